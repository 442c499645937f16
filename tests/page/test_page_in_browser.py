"""The page in a real browser: what is drawn, what a mouse and a keyboard reach, what stays over new data."""

from __future__ import annotations

import base64

import pytest

from .browser import Browser
from .conftest import Show
from .page_samples import empty, sample

pytestmark = pytest.mark.browser
INTENTS = ("info", "propose", "counter", "agree", "reject")
IS_OPEN = "return document.getElementById('detail').open"


def place_of(browser: Browser, signal: str) -> tuple[float, float]:
    """Bring the mark of a signal into view, and return where it is in the window."""
    x, y = browser.run("""
        const signal = gitmemPage.model.signal.get(arguments[0]);
        gitmemPage.sections.timeline.focus(signal, false);
        const box = document.querySelector(".lanes");
        box.scrollIntoView({ block: "center" });
        const at = document.querySelector(".lanes canvas").getBoundingClientRect();
        return [at.left + gitmemPage.timelineView.x(signal.at), at.top + gitmemPage.timelineView.yOf(signal) - box.scrollTop];""", signal)  # fmt: skip
    return x, y


def test_the_timeline_is_drawn(show: Show) -> None:
    """Marks of each intent, sessions, tasks, claims and commits; nothing breaks the page's policy or asks for something."""
    browser = show(sample())
    browser.frame()

    for colour in (*INTENTS, "session", "commit"):
        assert browser.pixels(colour) > 15, colour
    assert browser.run("return gitmemPage.timelineView.state.plan.lanes.length") == 5
    assert browser.text("#shown") == "60 of 60 signals"
    assert browser.text("h1") == "sample · gitmem"
    assert not browser.wrong()
    assert not browser.requests()


def test_the_filters_leave_what_they_say(show: Show) -> None:
    """By text, agent, work unit and intent; the tables and the count follow, and Clear shows all again."""
    data = sample()
    browser = show(data)

    browser.search("(17)")
    assert browser.text("#shown") == "1 of 60 signals"
    assert browser.run("return document.querySelectorAll('#timeline tbody tr').length") == 1
    browser.run("document.getElementById('filter-reset').click()")
    browser.until("return document.getElementById('shown').textContent === '60 of 60 signals'")

    browser.run("for (const box of document.querySelectorAll('#filter-intents input')) if (box.value !== 'REJECT') box.click()")  # fmt: skip
    rejects = sum(each["intent"] == "REJECT" for each in data["signals"])
    assert browser.text("#shown") == f"{rejects} of 60 signals"
    browser.frame()
    assert browser.pixels("reject") > 15
    assert browser.pixels("agree") == 0

    browser.run("document.getElementById('filter-reset').click()")
    browser.until("return document.getElementById('shown').textContent === '60 of 60 signals'")
    for name, value, of in (("agent", "a1", lambda each: "a1" in (each["from"], *each["to"])), ("wu", "WU-3", lambda each: each["wu"] == "WU-3")):  # fmt: skip
        browser.run("const box = document.getElementById(arguments[0]); box.value = arguments[1]; box.dispatchEvent(new Event('change'))", f"filter-{name}", value)  # fmt: skip
        kept = sum(map(of, data["signals"]))
        assert 0 < kept < 60
        assert browser.text("#shown") == f"{kept} of 60 signals"
        browser.run("gitmemPage.setFilter({ agent: '', wu: '' })")


def test_a_click_opens_the_whole_thread(show: Show) -> None:
    """With every signal of it, its receipts, and where each recipient stands; Escape closes it."""
    data = sample()
    browser = show(data)
    signal = next(each for each in data["signals"] if each["to"] and "reply" in each)
    (thread,) = (each for each in data["threads"] if each["id"] == signal["thread"])

    browser.point(*place_of(browser, signal["id"]))
    browser.until("return !document.querySelector('.tip').hidden")
    assert signal["text"] in browser.text(".tip")
    browser.point(*place_of(browser, signal["id"]), click=True)
    browser.until(IS_OPEN)

    said = browser.text("#detail ol")
    for each in data["signals"]:
        assert (each["text"] in said) == (each["thread"] == signal["thread"])
    names = {each["id"]: each["name"] for each in data["agents"]}
    assert f"delivered: {names[signal['to'][0]]}" in said
    words = {"agree": "agrees", "pending": "has not answered", "counter": "counters"}
    for agent, stand in thread["stands"]:
        assert f"{names[agent]} {words[stand]}" in browser.text("#detail .stands").replace("\n", " ")
    assert signal["text"] in browser.run("return document.activeElement.innerText")
    browser.keys("Escape")
    assert not browser.run(IS_OPEN)


def test_what_is_unsigned_and_whose_words_are_shared_is_said(show: Show) -> None:
    """A hole in the mark and a word in the thread; who agreed has the writer; agents of one name have theirs."""
    data = sample()
    for agent in data["agents"]:
        agent["writer"] = "0123456789abcdef"
    data["agents"][1].update(name=data["agents"][0]["name"], writer="fedcba9876543210")
    first = data["signals"][0]
    thread = next(each for each in data["threads"] if each["id"] == first["thread"])
    thread.update(verified=True, writers=[["a0", ["0123456789abcdef"]], ["a2", []]])
    browser = show(data)
    browser.frame()
    paper = browser.pixels("paper")
    browser.run("gitmemPage.open('thread', arguments[0])", thread["id"])
    assert (
        browser.text("#detail .signatures") == "verified signed by Curie @0123456789abcdef (0123456789abcdef)"
    )
    assert browser.run("return gitmemPage.model.name('a1')") == "Curie @fedcba9876543210"
    assert browser.run("return gitmemPage.model.name('a2')") == "Hopper"
    assert "unsigned" not in browser.text("#detail")

    for each in data["signals"]:
        each["unsigned"] = True
    thread["verified"] = False
    browser = show(data)
    browser.frame()
    assert browser.pixels("paper") > paper + 200
    browser.run("gitmemPage.open('thread', arguments[0])", thread["id"])
    assert browser.text("#detail .signatures").startswith(
        "unverified not all proposals and answers are signed, "
    )
    browser.frame()  # what is out of view has no text before
    assert browser.text("#detail .signal").split("\n")[0].endswith("unsigned")
    assert "unsigned" not in browser.text("#timeline .legend")  # it is folded
    browser.run("document.querySelector('#timeline .legend summary').click()")
    assert "unsigned" in browser.text("#timeline .legend")


def test_the_keyboard_reaches_everything(show: Show) -> None:
    """Tabs, the marks in the order of time, the thread and back to the same mark."""
    data = sample()
    browser = show(data)
    order = sorted(data["signals"], key=lambda each: each["at"])
    chosen = "return gitmemPage.timelineView.state.focus?.id"

    browser.keys("Tab")
    assert browser.run("return document.activeElement.className") == "skip"
    for _ in range(40):
        browser.keys("Tab")
        if browser.run("return document.activeElement.className") == "lanes":
            break
    assert browser.run(chosen) == order[0]["id"]
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.keys("ArrowRight", "ArrowRight")
    assert browser.run(chosen) == order[2]["id"]
    browser.until(
        "return document.getElementById('said').textContent.includes(arguments[0])", order[2]["text"]
    )
    browser.keys("End", "ArrowLeft")
    assert browser.run(chosen) == order[-2]["id"]
    browser.keys("ArrowDown")
    assert browser.run(chosen) != order[-2]["id"]
    browser.keys("Escape", "Home", "Enter")
    assert browser.run(IS_OPEN)
    assert order[0]["text"] in browser.run("return document.activeElement.innerText")
    browser.keys("Escape")
    assert browser.run("return document.activeElement.className") == "lanes"

    span = "const [a, b] = gitmemPage.timelineView.state.view; return b - a"
    before = browser.run(span)
    browser.keys("+")
    assert browser.run(span) < before * 0.7
    browser.keys("0")
    assert browser.run(span) == pytest.approx(before, rel=0.1)

    browser.run("document.getElementById('tab-timeline').focus()")
    browser.keys("ArrowRight")
    assert browser.run("return [document.activeElement.id, document.getElementById('board').hidden]") == ["tab-board", False]  # fmt: skip


def test_arrow_keys_reach_passed_rules_and_commits(show: Show) -> None:
    """Down through the lanes to the last branch; what is chosen is said, Enter opens it, and new data leave it chosen."""
    data = sample()
    browser = show(data)
    browser.run("document.querySelector('.lanes').focus()")
    browser.keys("Home", *["ArrowUp"] * 9)
    kinds = set()
    for _ in range(20):
        browser.keys("ArrowDown")
        kinds.add(browser.run("return gitmemPage.timelineView.state.other?.kind ?? 'signal'"))
    assert kinds == {"signal", "passed", "commit"}
    browser.keys("Home", "ArrowRight")
    chosen = browser.run("const { other, plan } = gitmemPage.timelineView.state; return [other.item.id, plan.branches.at(-1).commits[1].id]")  # fmt: skip
    assert chosen[0] == chosen[1]
    commit = next(each for each in data["commits"] if each["id"] == chosen[0])
    browser.until(
        "return document.getElementById('said').textContent.includes(arguments[0])", commit["subject"]
    )
    browser.run("gitmemPage.update(gitmemPage.data)")
    browser.keys("Enter")
    assert commit["subject"] in browser.text("#detail-title")
    browser.keys("Escape", "ArrowUp", "Escape")
    assert browser.run("return gitmemPage.timelineView.state.other") is None


def test_the_wheel_and_a_drag_move_what_is_in_view(show: Show) -> None:
    """The wheel alone scrolls the page: it does not take the reader's way away."""
    browser = show(sample())
    x, y = browser.run("const box = document.querySelector('.lanes').getBoundingClientRect(); return [box.left + box.width / 2, box.top + 60]")  # fmt: skip
    view = "return gitmemPage.timelineView.state.view"
    before = browser.run(view)

    wheel = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -200}
    browser.call("Input.dispatchMouseEvent", **wheel)
    browser.frame()
    assert browser.run(view) == before
    browser.call("Input.dispatchMouseEvent", **wheel, modifiers=2)
    browser.until("const [a, b] = gitmemPage.timelineView.state.view; return b - a < arguments[0]", (before[1] - before[0]) * 0.9)  # fmt: skip

    near = browser.run(view)
    for kind, left in (("mousePressed", x), ("mouseMoved", x + 60), ("mouseMoved", x + 120), ("mouseReleased", x + 120)):  # fmt: skip
        browser.call(
            "Input.dispatchMouseEvent", type=kind, x=left, y=y, button="left", buttons=1, clickCount=1
        )
    browser.until("return gitmemPage.timelineView.state.view[0] < arguments[0]", near[0])
    assert not browser.run(IS_OPEN)


def test_the_board_says_who_waits_for_whom(show: Show) -> None:
    """Above the rest of it, with the command; live agents with their work, tasks by state, contested claims, mismatches and overlaps."""
    data = sample()
    browser = show(data)
    browser.run("gitmemPage.select('board')")

    said, waits = browser.text("#board"), browser.text("#waits")
    names = {each["id"]: each["name"] for each in data["agents"]}
    for each in data["sessions"]:
        assert f"{each['wu']}: {each['activity']}" in said
    for each in data["board"]["waits"]:
        assert f"{names[each['waiter']]} waits for {names[each['owes']]} to answer {each['text']}" in waits
        assert each["commands"][0] in waits
    assert "asked for a reviewer, taken by a coder" in said
    assert "work/curie ↔ work/noether conflicts" in said
    assert all(each["text"] in said for each in data["tasks"] if each["open"])
    for each in data["board"]["contested"]:
        assert all(path in said for path in each["overlaps"][0])
    assert "Neither had seen the other’s claim: their clones had not synced." in said
    browser.run("document.querySelector('#waits li button').click()")
    assert browser.run(IS_OPEN)


def test_a_closed_gate_and_a_reason_lead_to_the_signal(show: Show) -> None:
    """From the board and from the mark on the timeline; the dialog of the signal says both, and a handoff opens its parts."""
    data = sample()
    (gate,), (reason,) = data["board"]["gates"], data["board"]["passed"]
    data["tasks"][0]["hands"] = {
        "tasks": ["task-1"],
        "claims": ["claim-0"],
        "threads": [],
        "checkpoint": "mem-0",
    }
    browser = show(data)
    names = {each["id"]: each["name"] for each in data["agents"]}
    who = names[gate["agent"]]

    browser.frame()
    assert browser.pixels("warn") > 15
    assert browser.run("const row = gitmemPage.data.board.passed[0]; const lane = gitmemPage.timelineView.state.plan.place.get(row.agent); return gitmemPage.sections.timeline.find(gitmemPage.timelineView.x(row.at), lane.y + 30 - document.querySelector('.lanes').scrollTop)?.kind") == "passed"  # fmt: skip
    browser.run("gitmemPage.select('board'); [...document.querySelectorAll('#board .card')].find((each) => each.innerText.startsWith('Cannot pass')).querySelector('button').click()")  # fmt: skip
    said = browser.text("#detail .signal.here")
    assert f"{who} cannot pass the gate of WU-1: this is unread" in said
    assert f"{who} passed the gate of WU-2 although 1 signal was unread: {reason['reason']}" in said
    browser.run("[...document.querySelectorAll('#detail .signal.here button')].find((each) => each.innerText === arguments[0]).click()", reason["reason"])  # fmt: skip
    assert reason["reason"] in browser.text("#detail .facts")

    browser.run("gitmemPage.open('task', 'task-0')")
    for kind, title in (("task", data["tasks"][1]["text"]), ("claim", data["claims"][0]["paths"][0])):
        browser.run("[...document.querySelectorAll('#detail .facts button')].find((each) => each.innerText.includes(arguments[0])).click()", title)  # fmt: skip
        assert title in browser.text("#detail-title")
        assert browser.text("#detail .facts").count("by ") == 1, kind
        browser.run("gitmemPage.open('task', 'task-0')")
    browser.run("[...document.querySelectorAll('#detail .facts button')].find((each) => each.innerText.includes(arguments[0])).click()", data["nodes"][0]["text"][:40])  # fmt: skip
    assert data["nodes"][0]["text"] in browser.text("#memory .node")
    assert not browser.wrong()


def test_the_memory_is_searched_and_a_node_has_its_history(show: Show) -> None:
    """In the list and in the graph; what is stale or superseded says so."""
    data = sample()
    data["nodes"][4]["superseded_by"] = "mem-5"
    browser = show(data)
    browser.run("gitmemPage.select('memory')")
    browser.until("return Boolean(gitmemPage.sections.memory.cy)")
    assert browser.run("return gitmemPage.sections.memory.cy.nodes().length") == 20
    assert browser.run("return gitmemPage.sections.memory.cy.nodes('.stale').length") == 2

    browser.search("(4)")
    assert browser.text("#shown") == "1 of 20 nodes"
    assert browser.run("return gitmemPage.sections.memory.cy.nodes('.dim').length") == 19
    browser.run("document.querySelector('.nodes button').click()")
    said = browser.text(".node")
    assert data["nodes"][4]["text"] in said
    assert "src/parser.py changed in 3 commits" in said
    assert "stale; without that, by its age" in said
    assert f"Superseded by {data['nodes'][5]['text'][:40]}" in said
    assert "created" in said and "updated: text" in said

    browser.search("")
    browser.run("document.querySelector('.nodes button[tabindex=\"0\"]').focus()")
    browser.keys("Home", "ArrowDown", "Enter")
    assert browser.run("return document.querySelector('.nodes [aria-current]') === document.querySelectorAll('.nodes button')[1]")  # fmt: skip
    browser.run("void gitmemPage.sections.memory.cy.nodes()[0].emit('tap')")
    assert data["nodes"][0]["text"] in browser.text(".node")


def test_labels_of_the_graph_do_not_cover_one_another(show: Show) -> None:
    """At any zoom; the closer, the more of them have room."""
    browser = show(sample(nodes=80))
    browser.run("gitmemPage.select('memory')")
    browser.until("return Boolean(gitmemPage.sections.memory.cy)")
    count = "return gitmemPage.sections.memory.cy.nodes().filter((each) => each.data('label')).length"
    far = browser.run(count)
    assert far > 10
    covering = """
        const boxes = gitmemPage.sections.memory.cy.nodes().filter((each) => each.data("label") && !each.hasClass("named"))
          .map((each) => each.boundingBox({ includeNodes: false, includeEdges: false, includeOverlays: false, includeUnderlays: false }));
        const by = 3 / gitmemPage.sections.memory.cy.zoom(); // the outline of letters
        return boxes.filter((a, at) => boxes.some((b, other) => other < at && a.x1 + by < b.x2 - by && b.x1 + by < a.x2 - by && a.y1 + by < b.y2 - by && b.y1 + by < a.y2 - by)).length"""
    assert browser.run(covering) == 0
    browser.run("gitmemPage.sections.memory.cy.zoom(3)")
    browser.until(f"{count} > arguments[0]", far)
    assert browser.run(covering) == 0


def test_filters_and_search_reach_every_section(show: Show) -> None:
    """States, roles, notes and results are found; a work unit and an agent limit the whole board, and commits of a person are that person's."""
    data = sample()
    data["tasks"][0].update(result="zebra", notes=["lion"], wu="WU-1", open=True)
    data["agents"][1].update(role="tiger")
    data["commits"][0].update(author="Nobody", person="a2")
    data["commits"][0].pop("agent", None)
    browser = show(data)
    set_filter = "gitmemPage.setFilter(arguments[0])"

    for word in ("zebra", "lion"):
        browser.search(word)
        assert browser.text("#shown") == "0 of 60 signals, 1 task"
    browser.search("tiger")
    said = browser.text("#shown")
    assert said.startswith(f"{sum(each['from'] == 'a1' for each in data['signals'])} of 60 signals, ")
    browser.search("agreed by all")
    states = {each["id"]: each["state"] for each in data["threads"]}
    converged = sum(states[each["thread"]] == "converged" for each in data["signals"])
    assert browser.text("#shown") == f"{converged} of 60 signals"
    browser.search("")
    browser.run(set_filter, {"agent": "a2"})
    commits = browser.run("return gitmemPage.timelineView.state.kept.commits.map((each) => each.id)")
    assert data["commits"][0]["id"] in commits

    browser.run("gitmemPage.select('board')")
    browser.run(set_filter, {"agent": "", "wu": "WU-1"})
    said = browser.text("#board")
    assert "has 2 unread signals on WU-1" in said
    of_unit = sum(each["wu"] == "WU-1" for each in data["signals"])
    assert browser.text("#shown") == f"{of_unit} of 60 signals"
    assert "cannot pass the gate of WU-1" in said and "asked for a reviewer, taken by a coder" in said
    assert data["board"]["passed"][0]["reason"] not in said
    browser.run(set_filter, {"wu": "WU-2"})
    said = browser.text("#board")
    assert "cannot pass the gate" not in said and "asked for a reviewer" not in said
    unread = len(data["board"]["unread"])
    assert f"Nothing for WU-2 ({unread} without the filter)." in said
    assert data["board"]["passed"][0]["reason"] in said


def test_no_line_leads_to_what_a_filter_has_left_out_and_a_failed_task_looks_failed(show: Show) -> None:
    """Lines to answers need both ends; a failed task is struck through, whatever else is red on the page."""
    data = sample()
    data["board"]["waits"], data["board"]["gates"], data["claims"] = [], [], data["claims"][:0]
    data["board"]["contested"] = []
    browser = show(data)
    lines = """
        const kind = CanvasRenderingContext2D.prototype;
        const [bend, curve] = [kind.bezierCurveTo, kind.quadraticCurveTo];
        let count = 0;
        kind.bezierCurveTo = kind.quadraticCurveTo = () => { count += 1; };
        gitmemPage.timelineView.draw();
        [kind.bezierCurveTo, kind.quadraticCurveTo] = [bend, curve];
        return count"""
    assert browser.run(lines) > 10
    browser.run("for (const box of document.querySelectorAll('#filter-intents input')) if (box.value !== 'REJECT') box.click()")  # fmt: skip
    rejects = {each["id"] for each in data["signals"] if each["intent"] == "REJECT"}
    both = sum(each["id"] in rejects and each.get("reply") in rejects for each in data["signals"])
    assert browser.run(lines) == both

    browser.frame()
    assert browser.pixels("bad") == 0
    data["tasks"][0].update(state="failed", state_text="failed", open=False, ended=data["tasks"][0]["at"] + 3_600_000)  # fmt: skip
    browser = show(data)
    browser.frame()
    assert browser.pixels("bad") > 15


def test_a_search_finds_all_words_anywhere_and_opens_what_has_them(show: Show) -> None:
    """In any order, over several fields; a closed section with hits is open until the search is over, others stay closed."""
    data = sample()
    data["commits"][0].update(subject="Name the unit of the export", id="936fe7c" + "0" * 33)
    browser = show(data)
    is_open = "return Object.fromEntries([...document.querySelectorAll('#timeline details')].map((each) => [each.querySelector('summary').firstChild.data, each.open]))"
    assert not any(browser.run(is_open).values())
    browser.search("export  936fe7c unit")
    browser.until(f"{is_open}.Commits")
    assert [name for name, state in browser.run(is_open).items() if state] == ["Commits"]
    assert browser.text("#timeline details[open] tbody").count("936fe7c") == 1
    browser.search("export 936fe7d")
    browser.until(f"return !{is_open[7:]}.Commits")
    assert browser.text("#shown") == "0 of 60 signals"


def test_times_are_to_the_second_and_in_utc_if_asked_for(show: Show) -> None:
    """Entries that share a minute differ; the switch changes every time of the page and its scale."""
    data = sample()
    start = data["made"] - 3_600_000
    for place, signal in enumerate(data["signals"]):
        signal["at"] = start + 7_000 * place
    browser = show(data)
    browser.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    browser.run("gitmemPage.useZone(); gitmemPage.update(gitmemPage.data)")
    time = "return gitmemPage.when(arguments[0])"
    local = browser.run(time, start + 7_000)
    assert local != browser.run(time, start) and local.count(":") == 2
    assert "UTC+05:30" in browser.text("#made") and "local (UTC+05:30)" in browser.text("#generator")
    browser.run("const box = document.getElementById('zone'); box.value = 'UTC'; box.dispatchEvent(new Event('change'))")  # fmt: skip
    assert browser.run(time, start + 7_000) == browser.run("return new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZone: 'UTC' }).format(arguments[0])", start + 7_000) != local  # fmt: skip
    assert "(UTC)" in browser.text("#made")
    browser.call("Emulation.setTimezoneOverride", timezoneId="")


def test_a_filter_does_not_make_the_board_false(show: Show) -> None:
    """What it leaves out is said, and an agent has as much unread and owed as without it; contested claims are not held."""
    data = sample()
    for claim in data["claims"]:
        claim["state"] = "contested" if claim["state"] == "contested" else "released"
    data["board"]["waits"][0].update(owes="a1", wu="WU-none")
    browser = show(data)
    browser.run("gitmemPage.select('board')")
    empty = ("Everybody has read", "Every worker is", "No two agents", "Nobody passed", "No path", "No open task", "Nothing closes")  # fmt: skip
    assert "None is held; 1 pair is contested." in browser.text("#board")
    assert browser.text("#waits-count") == str(len(data["board"]["waits"]))
    numbers = "return Object.fromEntries([...document.querySelector('#board table').tBodies[0].rows].map((row) => [row.cells[0].innerText, [7, 8, 9].map((at) => row.cells[at].innerText)]))"
    whole = browser.run(numbers)
    assert any(row[0] == "3" for row in whole.values())
    browser.run("gitmemPage.setFilter({ agent: 'a1', wu: 'WU-none', text: 'no such text' })")
    said = browser.text("#board")
    assert not [each for each in empty if each in said]
    assert f"({len(data['board']['waits'])} without the filter)" in browser.text("#waits")
    browser.run("gitmemPage.setFilter({ agent: 'a1', wu: '', text: '' })")
    assert browser.run(numbers) == {
        name: row for name, row in whole.items() if name == data["agents"][1]["name"]
    }
    browser.run("gitmemPage.setFilter({ agent: '', wu: 'WU-1' })")
    assert browser.run(numbers) == {name: whole[name] for name in browser.run(numbers)} != {}


def test_tasks_say_what_they_wait_for_who_has_them_and_that_a_lease_is_over(show: Show) -> None:
    """In the table and both dialogs, also after the blocker has failed; commits and claims have the work unit of their task, too."""
    data = sample()
    for task in data["tasks"]:
        task["thread"] = ""
    first, second = data["tasks"][:2]
    first.update(text="Try it", state="failed", state_text="failed", open=False, holder="a3", to="a2", thread="thread-0", wu="WU-77")  # fmt: skip
    second.update(text="Test it", state="working", state_text="working", open=True, blocked_by=[], waits_for=["task-0"], until=data["made"] - 3_600_000)  # fmt: skip
    data["board"]["open_tasks"] = [each["id"] for each in data["tasks"] if each["open"]]
    data["threads"][0].update(stands=[], state="settled")
    claim, commit = data["claims"][1], data["commits"][1]
    claim.update(task="task-0", wu="WU-1")
    commit.update(task="task-0", wu="WU-1")
    browser = show(data)
    names = {each["id"]: each["name"] for each in data["agents"]}
    said = f"waited for: Try it of {names['a3']} failed"

    browser.run("gitmemPage.select('board')")
    assert said in browser.text("#board").replace("\n", " ")
    assert "lease over since" in browser.text("#board")
    browser.run("gitmemPage.open('task', 'task-1')")
    assert said in browser.text("#detail").replace("\n", " ")
    assert "(over since 1 h)" in browser.text("#detail")
    browser.run("gitmemPage.open('task', 'task-0')")
    assert "Test it waited for it working" in browser.text("#detail .facts").replace("\n", " ")
    browser.run("gitmemPage.open('thread', 'thread-0')")
    assert browser.run(
        "return [...document.querySelectorAll('#detail .stands li')].map((each) => each.innerText)"
    ) == [f"{names['a3']} took the task: failed"]
    assert "failed 5 signals" in browser.text("#detail").replace("\n", " ")
    for kind, row in (("claim", claim), ("commit", commit)):
        browser.run("gitmemPage.open(arguments[0], arguments[1])", kind, row["id"])
        assert "WU-1, its task is of WU-77" in browser.text("#detail .facts")
        assert "Tasks of WU-77" in browser.text("#detail")
    browser.run("document.getElementById('detail').close(); gitmemPage.select('timeline'); gitmemPage.setFilter({ wu: 'WU-77' })")  # fmt: skip
    kept = browser.run("const { claims, commits } = gitmemPage.timelineView.state.kept; return [claims, commits].map((rows) => rows.map((each) => each.id))")  # fmt: skip
    assert kept == [[claim["id"]], [commit["id"]]]


def test_memory_in_dialogs_has_the_kind_and_the_state_of_its_section(show: Show) -> None:
    """A decision is none of the discoveries, and what is stale or superseded says so."""
    data = sample()
    node = data["nodes"][4]
    node.update(
        text="Short", type="discovery", tags=["decision"], superseded_by="mem-5", stale="3 commits behind"
    )
    data["threads"][0]["wu"] = node["wu"]
    browser = show(data)
    browser.run("gitmemPage.open('thread', 'thread-0')")
    row = browser.run("return [...document.querySelectorAll('#detail li')].find((each) => each.innerText.startsWith('Short')).innerText")  # fmt: skip
    assert row.split() == ["Short", "decision", "stale", "superseded"]


def test_the_figures_of_one_day_are_by_hour(show: Show) -> None:
    """They add up to the day; without all of its signals there is the day, once."""
    data = sample()
    day = {"day": "2026-09-21", "signals": 60, "agents": 5, "proposals": 9, "answers": 9}
    data["statistics"]["days"] = [day]
    browser = show(data)
    browser.run("gitmemPage.select('figures')")
    assert "By hour of 2026-09-21 (UTC)" in browser.text("#figures")
    hours = browser.run("return [...document.querySelectorAll('#figures .figure tbody')][0].innerText")
    assert sum(int(row.split("\t")[1]) for row in hours.splitlines()) == 60

    data["statistics"]["days"] = [{**day, "signals": 61}]
    browser = show(data)
    browser.run("gitmemPage.select('figures')")
    assert "2026-09-21\t61\t9\t9\t5" in browser.text("#figures")
    assert not browser.wrong()


def test_the_figures_are_charts_with_tables(show: Show) -> None:
    """The tables have every number that the charts draw."""
    data = sample()
    browser = show(data)
    browser.run("gitmemPage.select('figures')")

    assert browser.run("return document.querySelectorAll('#figures .uplot canvas').length") == 4
    said = browser.text("#figures")
    for day in data["statistics"]["days"]:
        assert f"{day['day']}\t{day['signals']}\t{day['proposals']}\t{day['answers']}" in said
    assert "5 min 40 s" in said
    assert "completed\t14" in said
    assert not browser.wrong()


def test_new_data_leave_the_reader_where_they_are(show: Show) -> None:
    """The filter, the part in view, the open thread and the focus stay; the new signal is shown and said."""
    data = sample()
    browser = show(data)
    thread = data["threads"][3]
    last = max(
        (each for each in data["signals"] if each["thread"] == thread["id"]), key=lambda each: each["at"]
    )
    browser.search("e")
    browser.run("gitmemPage.timelineView.zoomAt(gitmemPage.model.signals[10].at, 4); gitmemPage.open('thread', arguments[0], arguments[1])", thread["id"], last["id"])  # fmt: skip
    view = browser.run("return gitmemPage.timelineView.state.view")

    new = {
        **last,
        "id": "sig-new",
        "at": data["made"] + 5000,
        "text": "The newest signal of all",
        "reply": last["id"],
        "receipts": [],
    }
    data["signals"].append(new)
    data["made"] += 6000
    browser.run("gitmemPage.update(arguments[0])", data)

    assert "The newest signal of all" in browser.text("#detail")
    assert last["text"] in browser.run("return document.activeElement.innerText")
    assert browser.run("return document.getElementById('filter-text').value") == "e"
    assert browser.run("return gitmemPage.timelineView.state.view") == view
    browser.until("return document.getElementById('said').textContent === '1 new signal'")
    with pytest.raises(Exception, match=r"gitmem\.page/9; this page reads gitmem\.page/1"):
        browser.run("gitmemPage.update({ format: 'gitmem.page/9' })")


def test_no_section_scrolls_sideways_at_320_pixels(show: Show) -> None:
    """Nor the open thread."""
    data = sample()
    data["signals"][0]["text"] = data["threads"][0]["title"] = "x" * 300
    browser = show(data)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=2, mobile=False
    )
    for name in ("timeline", "board", "memory", "figures"):
        browser.run("gitmemPage.select(arguments[0])", name)
        browser.frame()
        assert browser.run("return document.documentElement.scrollWidth") <= 320, name
    browser.run("gitmemPage.open('thread', 'thread-0')")
    assert browser.run("const box = document.getElementById('detail'); return [box.scrollWidth, box.clientWidth]") == [318, 318]  # fmt: skip


def test_it_is_dark_where_the_reader_wants_it(show: Show) -> None:
    """As the system says, or by the switch, which is remembered."""
    browser = show(sample())
    light = "return getComputedStyle(document.body).backgroundColor"
    assert browser.run(light) == "rgb(255, 255, 255)"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.frame()
    assert browser.run(light) == "rgb(20, 23, 28)"
    assert browser.pixels("paper") > 10_000
    assert browser.pixels("propose") > 15
    shot = base64.b64decode(browser.driver.get_screenshot_as_base64())
    assert shot.startswith(b"\x89PNG") and len(shot) > 20_000

    switch = "const box = document.getElementById('theme'); box.value = arguments[0]; box.dispatchEvent(new Event('change'))"
    browser.run(switch, "light")
    assert browser.run(light) == "rgb(255, 255, 255)"
    browser.frame()
    assert browser.pixels("paper") > 10_000
    browser.driver.refresh()
    browser.until("return window.gitmemPage?.data")
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    browser.run(switch, "")


def test_paper_has_the_tables_of_all_sections(show: Show) -> None:
    """And no picture, which would show a part."""
    data = sample()
    browser = show(data)

    browser.run(
        "window.addEventListener('afterprint', () => { window.printed = document.querySelectorAll('#timeline tbody tr').length })"
    )
    assert base64.b64decode(browser.call("Page.printToPDF")["data"]).startswith(b"%PDF")
    assert browser.until("return window.printed") > 60
    assert browser.run("return document.querySelectorAll('details[open]').length") == 0

    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    said = browser.text("main")
    assert all(each["text"] in said for each in data["signals"])
    assert all(each["text"] in said for each in data["nodes"])
    assert "Cannot pass the gate" in said
    assert "How long it took" in said
    assert (
        browser.run(
            "return [...document.querySelectorAll('canvas')].filter((each) => each.offsetParent).length"
        )
        == 0
    )


@pytest.mark.parametrize(("agents", "signals", "nodes"), [(0, 0, 0), (1, 1, 1), (1, 9, 0)])
def test_a_page_of_almost_nothing_works(show: Show, agents: int, signals: int, nodes: int) -> None:
    """An empty log says so; one agent that talks to itself is drawn."""
    browser = show(sample(agents, signals, nodes) if agents else empty())
    for name in ("board", "memory", "figures", "timeline"):
        browser.run("gitmemPage.select(arguments[0])", name)
    browser.frame()
    assert ("The log has no signals yet" in browser.text("#state")) == (not agents)
    assert browser.text("#shown") == f"{signals} of {signals} signal{'' if signals == 1 else 's'}"
    assert not browser.wrong()


def test_a_page_that_can_not_be_read_says_so(show: Show, chromium: Browser, assets: object) -> None:
    """Another format, and a file that was cut."""
    browser = show({**empty(), "format": "gitmem.page/9"})
    assert "the data have the format gitmem.page/9; this page reads gitmem.page/1. Write it again: gitmem view" in browser.text("#state")  # fmt: skip
