"""The page of `gitmem view` in a browser: until its timeline is painted, and from a key in the search to the next frame."""

from __future__ import annotations

import json
import os
import shutil
import statistics

from .chromium import Chromium
from .measure import Figure, not_measured, run
from .page_log import PageLog
from .workbench import Workbench

ROUNDS = 7
PAINT_MS, KEY_MS = 1500, 100
TYPED = "parser"
# From the event of each key, as typed, to the message after the frame that shows what it left.
KEYS = """(async () => {
  const box = document.getElementById("filter-text");
  const took = [];
  for (const text of %s) {
    await new Promise((done) => setTimeout(done, 250));
    box.value = text;
    const start = performance.now();
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    took.push(performance.now() - start);
  }
  return took;
})()"""


def page_browser(workbench: Workbench) -> list[Figure]:
    """Measure the first paint of the timeline, and a key of the search, at the sizes of the page's targets."""
    signals = workbench.size.bulk
    nodes, agents = signals // 5, max(2, signals // 200)
    what = f"page of {signals:,} signals, {nodes:,} nodes, {agents} agents in Chromium"
    paint, key = (
        f"{what}: until the timeline is painted",
        f"{what}: from a key of the search to the next frame",
    )
    if shutil.which("chromium") is None:
        return [not_measured(each, "the limit", 1, "chromium is not installed") for each in (paint, key)]
    where = workbench.repository("page-browser")
    PageLog(signals, nodes, agents).build(where)
    page = os.path.join(workbench.folder, "page.html")
    run([workbench.program("gitmem"), "view", "--out", page], where, workbench.environment)
    painted: list[float] = []
    keys: list[float] = []
    texts = [TYPED[:length] for length in range(1, len(TYPED) + 1)] + [""]
    with Chromium() as browser:
        for _ in range(min(ROUNDS, workbench.size.rounds)):
            browser.open(f"file://{page}")
            assert browser.run("gitmemPage.model.signals.length") == signals
            painted.append(float(browser.run("gitmemPage.timing.painted")))
            keys += browser.run(KEYS % json.dumps(texts))
    return [
        Figure(paint, "the limit", statistics.median(painted), PAINT_MS, 1, "ms"),
        Figure(key, "the limit", statistics.median(keys), KEY_MS, 1, "ms"),
    ]
