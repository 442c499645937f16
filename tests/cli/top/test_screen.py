"""The screen of `gitmem top` as a person uses it: keys, sizes, what it marks, and text that is not markup."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest import mock

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from cli import main as front
from cli.environment import Environment
from cli.top import answers
from cli.top.answers import Help, WriteDialog
from cli.top.app import TopApp
from cli.top.panes import ListPane
from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.signals import inbox, send
from gitmem.work import new_task, task_work
from tests.cli import pseudo_terminal
from tests.in_process import background_starts
from tests.sandbox import acting

WAIT_MAX_SECONDS = 60.0
HOSTILE = (
    "[bold red]x[/] [link=http://evil]y[/link] \x1b]8;;http://evil\x07z\x1b]8;;\x07 \u202eabc \x9b31m @click"
)
LOOK_AT_REPLY = answers.look_at_reply
Script = Callable[["Screen"], Awaitable[None]]


class Screen:
    """A screen that Curie looks at; Planck writes by another store."""

    def __init__(self, repo: Path) -> None:
        agents = (("Planck", "claude:architect:shop"), ("Curie", "codex:builder:host"))
        with Environment(str(repo)) as at:
            ids = [
                lifecycle.start(
                    at.store(), CallerClaims(), name=name, agent_identity=identity, wu="WU-7"
                ).session_id
                for name, identity in agents
            ]
        self.at, self.other = Environment(str(repo), as_=ids[1]), Environment(str(repo), as_=ids[0])
        self.store = self.other.store()
        self.planck, self.curie = (acting(self.store, each) for each in ids)
        self.app: TopApp
        self.pilot: Pilot[None]

    def say(self, text: str, **options: object) -> str:
        return str(send.send(self.store, self.planck, text, **options).signal["signal_id"])  # type: ignore[arg-type]

    def unread(self) -> list[str]:
        return [each["message"] for each in inbox.read(self.store, self.curie).signals]

    def said(self) -> list[tuple[str, str]]:
        """What Planck was told."""
        return [
            (each["intent"], each["message"])
            for each in inbox.read(self.store, self.planck, all=True).signals
        ]

    def rows(self, pane: str) -> list[str]:
        return [row.cells[-1] for row in self.app.query_one(f"#{pane}", ListPane).listed]

    @property
    def status(self) -> str:
        return str(self.app.query_one("#status", Static).content)

    def text(self) -> str:
        """What the terminal shows of the detail pane, with its border and scroll bar."""
        region, screen = self.app.pane.region, self.app.screen_stack[0]
        strips = screen._compositor.render_strips(screen.size)[region.y : region.bottom]
        return "\n".join(strip.text[region.x : region.right] for strip in strips)

    async def keys(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def burst(self, keys: str) -> None:
        """Send keys as a terminal does that reads them with one call."""
        for each in keys:
            key = {"/": "slash", "\x1b": "escape", "\x13": "ctrl+s"}.get(each, each)
            self.app.post_message(events.Key(key, each if each.isprintable() else None))
        await self.pilot.pause()

    async def until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_MAX_SECONDS
        while not what():
            assert time.monotonic() < deadline, f"waited in vain; status: {self.status}"
            await self.pilot.pause(0.02)

    async def click(self, where: str, offset: tuple[int, int], what: Callable[[], object]) -> None:
        """Click until something is so: between two drawings of a list a click hits no row."""
        deadline = time.monotonic() + WAIT_MAX_SECONDS
        while not what():
            assert time.monotonic() < deadline, f"clicked in vain; status: {self.status}"
            await self.pilot.click(where, offset=offset)
            await self.pilot.pause(0.5)

    async def open(self, key: str = "enter") -> None:
        """Open the row under the cursor and wait until it is shown."""
        before = self.app.pane.detail
        await self.keys(key)
        await self.until(lambda: self.app.pane.detail is not before)
        await self.pilot.pause()

    @property
    def dialog(self) -> str:
        """What the terminal shows while a dialog is open."""
        screen = self.app.screen
        return "\n".join(strip.text for strip in screen._compositor.render_strips(screen.size))

    async def ask(self, key: str) -> None:
        """Open a dialog by a key and wait until it says to whom, and whether it counts: nothing else is recorded."""
        await self.keys(key)
        await self.until(lambda: isinstance(self.app.screen, WriteDialog) and self.app.screen.looked.is_set())
        await self.pilot.pause()

    async def write(self, key: str, text: str = "") -> None:
        """Answer by a key, a text in place of the proposed one, and the button."""
        await self.ask(key)
        if text:
            self.app.screen.query_one(TextArea).text = text
        await self.keys("tab", "enter")


Run = Callable[..., None]


@pytest.fixture
def run(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(script, size=(120, 40))`: run a script on a screen that has read the log once; nothing is committed meanwhile."""
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "60")
    background_starts(monkeypatch)
    screen = Screen(repo)

    def go(script: Script, size: tuple[int, int] = (120, 40)) -> None:
        async def all_of_it() -> None:
            screen.app = TopApp(screen.at)
            async with screen.app.run_test(size=size) as screen.pilot:
                await screen.until(lambda: screen.app.board is not None)
                await screen.keys("3")  # the threads
                await screen.pilot.pause()
                await script(screen)

        with screen.at, screen.other:
            asyncio.run(all_of_it())

    go.screen = screen  # type: ignore[attr-defined]
    return go


@pytest.fixture
def desk(run: Run) -> Screen:
    return run.screen  # type: ignore[attr-defined,no-any-return]


def test_only_what_was_on_the_screen_is_marked(run: Run, desk: Screen) -> None:
    """Opening the screen marks nothing, the first page of a long signal neither; its last line does."""
    long = "\n".join(f"line {number}" for number in range(40))
    desk.say(long, to=["Curie"])
    desk.say("short", to=["Curie"])

    async def script(screen: Screen) -> None:
        await screen.pilot.pause(0.5)
        assert sorted(screen.unread()) == sorted([long, "short"])
        await screen.open()
        await screen.until(lambda: screen.unread() == [long])
        await screen.keys("escape", "j")
        await screen.open()
        await screen.pilot.pause(0.5)
        assert screen.unread() == [long]
        await screen.keys("question_mark")
        screen.app.pane.action_scroll_end()  # what is drawn behind a dialog is not shown
        await screen.pilot.pause(0.5)
        assert screen.unread() == [long]
        await screen.keys("escape")
        await screen.until(lambda: screen.unread() == [])
        await screen.until(lambda: screen.app.board is not None and not screen.app.board.unread)

    run(script, (120, 30))


def test_a_person_answers_everything_from_the_screen(run: Run, desk: Screen) -> None:
    """Reply, agree, reject, counter, a task's question, the gate: each as the caller, and the status line says what was recorded."""
    desk.say("Agreed?", to=["Curie"], intent="PROPOSE", wu="WU-7")
    task = new_task.delegate(desk.store, desk.curie, "Measure", to="Planck", role="reviewer", wu="WU-7").task[
        "task_id"
    ]
    task_work.take(desk.store, desk.planck, task)
    task_work.report(desk.store, desk.planck, task, "input-required", "Cold or warm?")

    async def script(screen: Screen) -> None:
        await screen.until(lambda: len(screen.rows("threads")) == 2)
        screen.app.action_pane("tasks")
        await screen.open()
        assert "Cold or warm?" in screen.text()
        await screen.keys("r")
        await screen.until(lambda: "| Cold or warm?" in screen.dialog)
        await screen.keys("escape")
        await screen.write("r", "warm")
        await screen.until(lambda: screen.status.startswith(f"{task} · answered"))
        await screen.keys("3", "end")
        await screen.open()
        for key, text, intent in (
            ("r", "why?", "INFO"),
            ("c", "half of it", "COUNTER"),
            ("x", "no", "REJECT"),
            ("a", "", "AGREE"),
        ):
            await screen.write(key, text)
            await screen.until(lambda intent=intent: f"· {intent} ·" in screen.status)  # type: ignore[misc]
            assert (intent, text or "agreed") in screen.said()
        await screen.keys("g")
        await screen.until(lambda: isinstance(screen.app.screen, WriteDialog))
        assert screen.app.screen.query_one(TextArea).text == "WU-7"
        await screen.keys("ctrl+s")
        await screen.until(lambda: "gate closed" in screen.text() or "gate open" in screen.text())

    run(script)
    assert ("INFO", "warm") in desk.said()


def test_keys_typed_ahead_are_for_the_field_or_dialog_that_a_key_opens(run: Run, desk: Screen) -> None:
    """`/gate` in one write once opened the dialog of `g` and lost the rest."""
    for text in ("an old one", "watch the gate"):
        desk.say(text, to=["Curie"])

    async def script(screen: Screen) -> None:
        await screen.burst("/gate")
        assert not isinstance(screen.app.screen, WriteDialog)
        await screen.until(lambda: screen.rows("threads") == ["watch the gate"])
        assert screen.app.query_one("#filter", Input).value == "gate"
        await screen.burst("\x1b")
        await screen.burst("jk")
        await screen.open()
        for key in "racxg":
            await screen.burst(f"{key}qx/ya")
            assert isinstance(screen.app.screen, WriteDialog), key
            await screen.until(lambda: screen.app.screen.query_one(TextArea).text.endswith("qx/ya"))
            await screen.keys("escape")
        await screen.burst("npr?")  # in the order in which they were typed
        await screen.until(lambda: screen.app.screen.query_one(TextArea).text.endswith("?"))

    run(script)


def test_the_dialog_says_for_whom_an_answer_is_and_whether_it_counts(run: Run, desk: Screen) -> None:
    """An answer to one's own proposal goes to its recipients; an AGREE that changes nothing is recorded only after that was said."""
    send.send(desk.store, desk.curie, "Shall we?", to=["Planck"], intent="PROPOSE")

    async def script(screen: Screen) -> None:
        await screen.open()
        with mock.patch("cli.top.answers.look_at_reply", side_effect=slow_look):
            await screen.burst("a\x13")  # Ctrl-S before anything was said
            await screen.until(lambda: "changes nothing" in screen.dialog)
        assert "AGREE to Planck (claude:architect:shop), as Curie" in screen.dialog
        await screen.pilot.pause()
        assert screen.said() == [("PROPOSE", "Shall we?")]
        await screen.keys("ctrl+s")
        await screen.until(lambda: "to Planck" in screen.status)
        assert ("AGREE", "agreed") in screen.said()

    run(script)


def slow_look(*args: object) -> object:
    time.sleep(0.3)
    return LOOK_AT_REPLY(*args)  # type: ignore[arg-type]


def test_a_refused_answer_leaves_its_text_and_says_why(run: Run, desk: Screen) -> None:
    """Nothing is recorded, no traceback; the text is there again after Escape."""
    desk.say("look", to=["Curie"], wu="WU-7")
    secret = "my key is AKIA" + "Z7QWERTYUIOPASDF"

    async def script(screen: Screen) -> None:
        await screen.open()
        await screen.write("r", secret)
        wrong = screen.app.screen.query_one("#wrong", Static)
        await screen.until(lambda: "Nothing was written" in str(wrong.content))
        await screen.keys("escape", "r")
        await screen.until(lambda: isinstance(screen.app.screen, WriteDialog))
        assert screen.app.screen.query_one(TextArea).text == secret
        await screen.keys("escape")
        await screen.write("g", "WU-404")
        wrong = screen.app.screen.query_one("#wrong", Static)
        await screen.until(lambda: "WU-404" in str(wrong.content))
        await screen.keys("escape")
        assert not isinstance(screen.app.screen, WriteDialog)

    run(script)
    assert desk.said() == []


def test_a_closed_gate_is_passed_with_a_reason(run: Run, desk: Screen) -> None:
    desk.say("look first", to=["Curie"], wu="WU-7")

    async def script(screen: Screen) -> None:
        await screen.keys("g", "ctrl+s")
        await screen.until(lambda: "Type a work unit" in screen.dialog)
        await screen.keys("escape")
        await screen.write("g", "WU-7")
        await screen.until(
            lambda: (
                isinstance(screen.app.screen, WriteDialog) and "Pass the" in screen.app.screen.what.title[0]
            )
        )
        await screen.keys("ctrl+s")
        await screen.until(lambda: "Type the reason" in screen.dialog)
        screen.app.screen.query_one(TextArea).text = "it is small"
        await screen.keys("ctrl+s")
        await screen.until(lambda: screen.status.startswith("gate passed"))
        await screen.until(lambda: "gate passed" in screen.text() and "gate closed" not in screen.text())
        assert screen.unread() == ["look first"]

    run(script)


def test_text_of_peers_is_neither_markup_nor_control(run: Run, desk: Screen) -> None:
    """Every cell and line has it as text, sanitized; nothing is a link."""
    desk.say(HOSTILE, to=["Curie"], intent="PROPOSE", wu="WU-7")

    async def script(screen: Screen) -> None:
        assert screen.rows("threads")[0].startswith("[bold red]x[/] [link=http://evil]y[/link]")
        await screen.open()
        assert "| [bold red]x[/] [link=http://evil]y[/link]" in screen.text()
        await screen.keys("r")
        await screen.until(lambda: isinstance(screen.app.screen, WriteDialog))
        await screen.pilot.pause()
        for each in (screen.app.screen_stack[0], screen.app.screen):
            for strip in each._compositor.render_strips(each.size):
                assert strip.text.isprintable() and "\u202e" not in strip.text
                assert not any(segment.style and segment.style.link for segment in strip)
        assert "[bold red]x[/]" in "".join(
            strip.text for strip in screen.app.screen._compositor.render_strips(screen.app.size)
        )

    run(script)


def test_who_waits_for_whom_comes_first_and_opens_what_it_is_about(run: Run, desk: Screen) -> None:
    """What the reader owes is marked; a row opens the thread, or the task."""
    desk.say("Freeze it?", to=["Curie"], requires_ack=True)
    new_task.delegate(desk.store, desk.planck, "Measure", to="Curie", role="reviewer")

    async def script(screen: Screen) -> None:
        await screen.keys("1")
        (first, second) = screen.app.query_one("#waits", ListPane).listed
        assert first.cells[:3] == ["!", "Planck", "you"] and first.cells[-1] == 'to answer "Freeze it?"'
        assert second.cells[-1].startswith('to take "Measure"')
        await screen.open()
        assert "| Freeze it?" in screen.text()
        await screen.keys("escape", "j")
        await screen.open()
        assert screen.app.pane.detail.kind == "tasks"  # type: ignore[union-attr]

    run(script)


def test_a_small_screen_shows_one_thing_at_a_time_and_a_larger_one_more(run: Run, desk: Screen) -> None:
    """At 40 columns and 10 lines; the same keys, and what is open stays open when the size changes."""
    desk.say(f"first words of a signal that is longer than forty columns {'x' * 36}Z", to=["Curie"])

    async def script(screen: Screen) -> None:
        threads, pane = screen.app.query_one("#threads", ListPane), screen.app.pane
        assert (threads.display, threads.size.width, pane.region.width) == (True, 40, 0)
        await screen.open()
        assert "| first words of a signal" in screen.text() and threads.region.width == 0
        await screen.keys("end")
        assert "Z" in screen.text()  # the scroll bar hides no column
        await screen.until(lambda: screen.unread() == [])
        await screen.keys("escape")
        assert threads.has_focus and pane.region.width == 0
        await screen.keys("slash", *"nothing", "enter")
        assert screen.rows("threads") == [] and screen.rows("agents") == []
        await screen.keys("4", "escape")  # it ends for all lists, whichever is active
        assert len(screen.rows("agents")) == 2
        await screen.keys("3")
        assert len(screen.rows("threads")) == 1
        await screen.keys("question_mark")
        assert isinstance(screen.app.screen, Help)
        await screen.keys("escape", "4")
        assert screen.app.query_one("#tasks", ListPane).has_focus
        await screen.pilot.resize_terminal(80, 24)
        await screen.pilot.pause()
        assert pane.region.width == 80 and "first words" in screen.text()
        await screen.pilot.resize_terminal(120, 40)
        await screen.pilot.pause()
        assert all(
            screen.app.query_one(f"#{each}").region.width
            for each in ("waits", "agents", "threads", "tasks", "claims")
        )

    run(script, (40, 10))


def test_a_narrow_screen_shows_the_keys_that_lead_out(run: Run, desk: Screen) -> None:
    """At 40 columns: Back, Help and Quit in the footer; in a dialog what records and what cancels."""
    desk.say("look", to=["Curie"], wu="WU-7")

    async def script(screen: Screen) -> None:
        await screen.open()
        await screen.until(
            lambda: all(each in screen.dialog.splitlines()[-1] for each in ("Back", "Help", "Quit"))
        )
        await screen.ask("x")
        assert "^s records · Esc cancels" in screen.dialog
        assert "Record REJECT" in screen.dialog and "REJECT to Planck" in screen.dialog

    run(script, (40, 10))


def test_typing_replaces_a_proposed_text_and_goes_on_with_a_draft(run: Run, desk: Screen) -> None:
    """`agreed` stays unless something is typed, and can be read on any background; one's own words stay in any case."""
    desk.say("Agreed?", to=["Curie"], intent="PROPOSE", wu="WU-7")

    async def script(screen: Screen) -> None:
        await screen.open()
        await screen.keys("a")
        (piece,) = [
            piece
            for strip in screen.app.screen._compositor.render_strips(screen.app.size)
            for piece in strip
            if piece.text == "agreed"
        ]
        assert piece.style is not None and piece.style.reverse
        assert piece.style.color is None or piece.style.color.is_default
        await screen.keys("escape")
        for keys, expected in (
            ("a", "agreed"),
            ("aok", "ok"),
            ("a too", "ok too"),
            ("gWU-9", "WU-9"),
            ("gWU-9", "WU-9"),
        ):
            await screen.burst(keys)
            await screen.until(
                lambda expected=expected: screen.app.screen.query_one(TextArea).text == expected
            )  # type: ignore[misc]
            await screen.keys("escape")

    run(script)


def test_a_pane_that_cuts_its_rows_shows_nothing_whole(run: Run, desk: Screen) -> None:
    """A terminal of one column marks nothing; wide enough, the same rows do."""
    desk.say("agreed: we delete it all", to=["Curie"])

    async def script(screen: Screen) -> None:
        await screen.open()
        await screen.pilot.pause(0.6)
        assert screen.unread() != []
        await screen.pilot.resize_terminal(20, 60)
        await screen.until(lambda: screen.unread() == [])

    run(script, (3, 60))


def test_it_follows_the_log_and_the_mouse(run: Run, desk: Screen) -> None:
    """An empty log says what to do; a signal appears without a key; a click opens it; answers appear in what is open."""

    async def script(screen: Screen) -> None:
        assert screen.rows("threads") == []
        root = screen.say("hello", to=["Curie"])
        await screen.until(lambda: screen.rows("threads") == ["hello"])
        await screen.click("#threads", (5, 2), lambda: "| hello" in screen.text())
        screen.say("and more", reply_to=root)
        await screen.until(lambda: "| and more" in screen.text())
        await screen.click("#tabs", (14, 0), lambda: screen.app.active == "agents")
        await screen.open()
        name = (
            "Planck (claude:architect:shop)"
            if "claude:architect" in screen.text()
            else "Curie (codex:builder:host)"
        )
        await screen.keys("r")
        await screen.until(lambda: f"Signal to {name}, as Curie" in screen.dialog)

    run(script)


def test_a_log_that_cannot_be_read_is_a_sentence_in_the_status_line(
    run: Run, desk: Screen, repo: Path
) -> None:
    async def script(screen: Screen) -> None:
        with mock.patch("cli.top.board.read", side_effect=OSError(28, "No space left on device")):
            screen.say("hello", to=["Curie"])
            await screen.until(lambda: screen.status.startswith("No space left on device"))
        screen.app.log_access.look_again()
        await screen.until(lambda: screen.rows("threads") == ["hello"])
        assert "No space" not in screen.status

    run(script)


class Terminal(io.TextIOWrapper):
    """A standard stream that is a terminal, or not."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def answer(
    args: list[str], repo: Path, patch: pytest.MonkeyPatch, *, terminal: bool = True
) -> tuple[int, str]:
    """The exit status of a command and all that it prints."""
    streams = [Terminal(terminal) for _ in range(3)]
    for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
        patch.setattr(sys, name, stream)
    patch.chdir(repo)
    return front.main(args), "".join(each.text() for each in streams)


def test_without_textual_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, repo: Path) -> None:
    for name in [
        name for name in sys.modules if name.startswith("cli.top.") or name.partition(".")[0] == "textual"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("cli.top.app", raising=False)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setenv("TERM", "xterm")

    status, said = answer(["top"], repo, monkeypatch)

    assert status == 2
    for each in (
        "pip install",
        "pipx inject gitmem-coord 'textual>=8'",
        "uv tool install 'gitmem-coord[top]'",
    ):
        assert each in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("args", "terminal", "term", "why"),
    [
        (["top"], False, "xterm", "standard input, output and error must be one"),
        (["top"], True, "dumb", "TERM is dumb"),
        (["top"], True, "", "TERM is dumb"),
        (["top", "--json"], True, "xterm", "a screen for people"),
    ],
)
def test_without_a_screen_it_says_so(
    args: list[str], terminal: bool, term: str, why: str, monkeypatch: pytest.MonkeyPatch, repo: Path
) -> None:
    monkeypatch.setenv("TERM", term)

    status, said = answer(args, repo, monkeypatch, terminal=terminal)

    assert status == 2
    assert why in said and "Traceback" not in said


def test_on_a_real_terminal_without_colour_it_begins_and_ends_cleanly(repo: Path) -> None:
    """The whole program: no colour with NO_COLOR, the terminal is as before, and the exit status 0."""
    with (repo / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")

    status, drawn = pseudo_terminal.run(
        ["top"], repo, typed=b"2?qq", after=b"Test Person", both=True, variables={"NO_COLOR": "1"}
    )

    assert status == 0
    assert "\x1b[?1049h" in drawn and drawn.rindex("\x1b[?1049l") > drawn.rindex("\x1b[?1049h")
    codes = {int(code) for part in re.findall(r"\x1b\[([0-9;]*)m", drawn) for code in part.split(";") if code}
    assert codes and not codes & {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}
