"""What peers write can neither run nor ask for anything in the page, and does not break it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .browser import Browser, each_string
from .conftest import Show
from .page_samples import DAY, MADE, sample

pytestmark = pytest.mark.browser
PAYLOADS = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror=window.ran=1><svg onload=window.ran=1>",
    "\"><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "javascript:window.ran=1",
    "</script><script src=http://127.0.0.1:9/x.js></script>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css><style>@import 'http://127.0.0.1:9/y.css'</style>",
    "${window.ran=1}{{constructor.constructor('window.ran=1')()}}",
    "\u202eevil\u2066\u200f\u0000\u001b[31m",
    "__proto__",
    "../../../../etc/passwd",
    "x" * 65_536,
    "<b>\U0001f600\ud800</b>",
)
IDS = ("sig-", "thread-", "task-", "claim-", "mem-", "sess-", "audit-", "WU-")


def hostile(data: Any) -> Any:
    """Return data with every text replaced, and with ids that are names of objects, paths and markup."""
    count = 0

    def change(text: str) -> str:
        nonlocal count
        if text.startswith("gitmem.page/"):
            return text
        if text.startswith(IDS) or (text[:1] == "a" and text[1:].isdigit()):
            return {"a0": "__proto__", "a1": "constructor", "a2": "<img src=x onerror=window.ran=1>"}.get(
                text, f"../{text}\"'<b>\u202e"
            )
        count += 1
        return PAYLOADS[count % len(PAYLOADS)]

    return each_string(copy.deepcopy(data), change)


def visit(browser: Browser) -> None:
    """Open everything that there is to open."""
    for name in ("timeline", "board", "memory", "figures"):
        browser.run("gitmemPage.select(arguments[0])", name)
        browser.frame()
    browser.until("return Boolean(gitmemPage.sections.memory.cy)")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.run("""
        const { model } = gitmemPage;
        for (const kind of ["thread", "task", "claim", "commit", "passed", "node"])
          for (const id of model[kind].keys()) gitmemPage.open(kind, id);
        gitmemPage.select("timeline");
        for (const each of model.signals) gitmemPage.sections.timeline.focus(each);
        for (const id of model.agents.keys()) gitmemPage.setFilter({ agent: id });
        gitmemPage.setFilter({ agent: "" });
        document.getElementById("detail").close();""")
    browser.search("<script>")
    browser.search("")
    browser.run("window.dispatchEvent(new Event('beforeprint')); for (const each of document.querySelectorAll('button.link')) if (each.offsetParent) { each.click(); document.getElementById('detail').close(); }")  # fmt: skip
    browser.frame()


def test_a_hostile_log_runs_nothing_and_asks_for_nothing(show: Show) -> None:
    """No script, no request, no element that a text has made."""
    browser = show(hostile(sample(agents=6, signals=80, nodes=24)))
    scripts = browser.run("return document.scripts.length")
    visit(browser)

    assert browser.run("return window.ran") is None
    assert not browser.wrong()
    assert not browser.requests()
    assert browser.run("return document.querySelectorAll('img, iframe, object, embed, svg image, a[href]:not(.skip), base, link:not([rel=icon])').length") == 0  # fmt: skip
    assert browser.run("return document.scripts.length") == scripts
    assert browser.run("return performance.getEntriesByType('resource').filter((each) => !each.name.startsWith('data:')).length") == 0  # fmt: skip
    assert browser.run("return ({}).name === undefined && Object.keys(Object.prototype).length === 0")
    assert browser.run("return document.body.textContent.includes(arguments[0])", PAYLOADS[0])


def test_the_policy_stops_what_a_mistake_would_let_in(show: Show) -> None:
    """The second line of defence: markup that gets in neither runs nor loads."""
    browser = show(sample(2, 4, 2))
    browser.run("""document.getElementById("main").insertAdjacentHTML("beforeend", `<img src="http://127.0.0.1:9/x.png" onerror="window.ran = 1">
        <iframe src="http://127.0.0.1:9/"></iframe><a id=j href="javascript:window.ran=1">x</a>`);
        const script = document.createElement("script"); script.textContent = "window.ran = 1"; document.body.append(script);
        document.getElementById("j").click();""")
    browser.until("return window.violations.length >= 4")
    assert browser.run("return window.ran") is None
    with pytest.raises(Exception, match=r"Content Security Policy|Failed to fetch"):
        browser.driver.execute_async_script("const done = arguments[0]; fetch('http://127.0.0.1:9/').then(done, (e) => done(Promise.reject(e)))")  # fmt: skip
    assert "data:" not in "".join(browser.requests())


def test_references_that_lead_nowhere_or_in_circles_are_shown(show: Show) -> None:
    """Answers to themselves, superseded in a circle, blocked by each other, unknown agents, times that are none."""
    data = sample(3, 30, 12)
    for place, node in enumerate(data["nodes"]):
        node["superseded_by"] = f"mem-{(place + 1) % 12}"
        data["relations"].append(
            {"from": node["id"], "to": f"mem-{(place + 1) % 12}", "type": "supersedes", "supersedes": True}
        )
    data["relations"] += [{"from": "mem-0", "to": "mem-0", "type": "self", "supersedes": False}, {"from": "mem-1", "to": "mem-none", "type": "x", "supersedes": False}]  # fmt: skip
    data["signals"][0]["reply"] = data["signals"][0]["id"]
    data["signals"][1].update(reply="sig-none", thread="thread-none")
    data["signals"][1]["from"] = "a99"
    data["signals"][2]["at"] = 9_000_000_000_000_000_000
    data["tasks"][0]["blocked_by"] = ["task-1", "task-none"]
    data["tasks"][1]["blocked_by"] = ["task-0"]
    data["tasks"][1]["holder"] = "a98"
    data["claims"][0]["against"] = ["claim-0", "claim-none"]
    browser = show(data)

    visit(browser)

    browser.run("gitmemPage.open('node', 'mem-3')")
    assert "Superseded by" in browser.text(".node")
    assert not browser.wrong()


def test_a_thread_of_five_thousand_signals_opens_at_the_one_that_was_chosen(show: Show) -> None:
    """A part of it at a time; the others are a key away."""
    data = sample(3, 5000, 1)
    data["threads"] = [{**data["threads"][0], "id": "thread-0", "signals": 5000}]
    for each in data["signals"]:
        each["thread"] = "thread-0"
    browser = show(data)

    chosen = data["signals"][2500]
    took = browser.run("const start = performance.now(); gitmemPage.open('thread', 'thread-0', arguments[0]); return performance.now() - start", chosen["id"])  # fmt: skip
    assert took < 1500
    assert chosen["text"] in browser.run("return document.activeElement.innerText")
    shown = "return document.querySelectorAll('#detail .signal').length"
    before = browser.run(shown)
    assert before < 500
    browser.run("[...document.querySelectorAll('#detail button.more')].find((each) => each.textContent.startsWith('Show later')).click()")  # fmt: skip
    assert before < browser.run(shown) < 1000
    browser.keys("Escape")
    browser.run("document.querySelector('.lanes').focus()")
    browser.keys("End", "Enter")
    assert max(data["signals"], key=lambda each: each["at"])["text"] in browser.run("return document.activeElement.innerText")  # fmt: skip


def test_clocks_that_are_years_apart_do_not_hide_the_day(show: Show) -> None:
    """The first view is that of most signals; All shows the rest."""
    data = sample(3, 200, 1)
    data["signals"][0]["at"] = 1000
    data["signals"][1]["at"] = MADE + 4000 * DAY
    browser = show(data)

    low, high = browser.run("return gitmemPage.timelineView.state.view")
    assert high - low < 3 * DAY
    assert "far from the others" in browser.text("#timeline .tools")
    browser.run("document.querySelector('button[title=\"Show all times\"]').click()")
    low, high = browser.run("return gitmemPage.timelineView.state.view")
    assert low < 1000 and high > MADE + 4000 * DAY
    assert not browser.wrong()
