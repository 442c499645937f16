"""Take pictures of the page of the demo's log: `python tools/picture_page.py` writes docs/page-timeline.png and docs/page-memory.png.

It plays `gitmem demo`, has the agents write what they found out, and shows `gitmem view` in Debian's Chromium.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.chromium import Chromium  # noqa: E402 - the path comes first

WIDTH, HEIGHT = 1280, 800
BYTES_MAX = 300_000
# Who wrote it, its tag, its text, and how it is related to earlier ones.
FOUND: list[tuple[str, str, str, list[tuple[str, int]]]] = [
    ("Planck", "decision", "Put the price rules behind one interface, PriceRules", []),
    ("Curie", "bug", "Discounts are rounded twice: once per item, once per line", [("discovered_from", 0)]),
    ("Noether", "question", "Which currencies have no minor unit?", [("related", 0)]),
    ("Curie", "decision", "Round half up, once per line", [("discovered_from", 1)]),
    ("Noether", "bug", "The import job calls the old rules by name", [("discovered_from", 0), ("blocks", 0)]),
    ("Planck", "decision", "Keep the old entry point for one release", [("discovered_from", 4)]),
    ("Gauss", "dependency", "The report of the warehouse reads prices from the import job", [("related", 4)]),
    ("Curie", "decision", "Round half to even, once per line, as invoices do", [("supersedes", 3)]),
    ("Gauss", "idea", "Warn once when the old entry point is called", [("discovered_from", 5)]),
    (
        "Noether",
        "decision",
        "Yen and won have no minor unit; the table is in currencies.py",
        [("discovered_from", 2)],
    ),
    (
        "Planck",
        "idea",
        "Property tests for the rules: sums never differ by more than a cent",
        [("related", 7)],
    ),
]


def main() -> int:
    """Play the demo, take the pictures."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "TMPDIR": home, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        played = _gitmem(environment, "demo", where=ROOT)
        folder = Path(
            re.findall(r"^Look around in (.+), and delete it when you like\.$", played, re.MULTILINE)[0]
        )
        _remember(environment, folder / "project")
        page = folder / "page.html"
        _gitmem(environment, "view", "--out", str(page), where=folder / "project")
        _take(page)
    return 0


def _gitmem(environment: dict[str, str], *arguments: str, where: Path) -> str:
    command = [sys.executable, "-m", "cli", *arguments]
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def _remember(environment: dict[str, str], project: Path) -> None:
    """Write the nodes of `FOUND` and their relations."""
    ids: list[str] = []
    for name, tag, text, relations in FOUND:
        made = _gitmem(
            environment,
            "mem",
            "create",
            text,
            "--tag",
            tag,
            "--wu",
            "WU-7",
            "--as",
            name,
            "-q",
            where=project,
        )
        ids.append(made.split()[-1])
        for kind, to in relations:
            _gitmem(environment, "mem", "relate", ids[-1], kind, ids[to], "--as", name, where=project)


def _take(page: Path) -> None:
    with Chromium() as browser:
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=WIDTH,
            height=HEIGHT,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.call("Emulation.setTimezoneOverride", timezoneId="Etc/UTC")
        browser.open(page.as_uri())
        browser.run("""(() => {
            const { signals } = gitmemPage.model;
            const [first, last] = [signals[0].at, signals.at(-1).at];
            gitmemPage.timelineView.setView([first - (last - first) * 0.35, last + (last - first) * 0.45]);
            gitmemPage.sections.timeline.focus(signals.find((each) => each.intent === "COUNTER"), false);
        })()""")
        _save(browser, ROOT / "docs/page-timeline.png")
        browser.run("gitmemPage.select('memory')")
        browser.until("Boolean(gitmemPage.sections.memory.cy)")
        browser.run(
            "gitmemPage.sections.memory.show(gitmemPage.model.data.relations.find((each) => each.supersedes).to)"
        )
        _save(browser, ROOT / "docs/page-memory.png")


def _save(browser: Chromium, path: Path) -> None:
    browser.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 400))")
    browser.picture(str(path))
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    if size > BYTES_MAX:
        raise SystemExit(f"{path} has {size:,} bytes; at most {BYTES_MAX:,}")


if __name__ == "__main__":
    sys.exit(main())
