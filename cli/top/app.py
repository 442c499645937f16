"""The screen: lists, detail and keys. It has no logic of its own; `board` and `answers` call the operations."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.containers import Container
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Static

from . import answers, board, panes
from .answers import Answers, Help, KeyOrderApp
from .board import AGENTS, CLAIMS, PANES, TASKS, THREADS, WAITS, Board, LogAccess, error_sentence
from .panes import DetailPane, ListPane, MainScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from ..environment import Environment
    from .board import Detail


# `wide` shows all lists beside the detail, `middle` one list above it, `narrow` either. Colours are the terminal's own.
CSS = """
Screen { layout: vertical; }
#tabs, #status { height: 1; }
#body { height: 1fr; }
#lists { height: 1fr; }
ListPane, DetailPane { height: 1fr; scrollbar-size: 1 1; overflow-x: hidden; background: ansi_default; color: ansi_default; }
ListPane:focus { background-tint: transparent; }
ListPane .datatable--header, ListPane .datatable--cursor, ListPane .datatable--hover { background: ansi_default; color: ansi_default; background-tint: transparent; }
ListPane .datatable--header { text-style: bold underline; }
ListPane .datatable--cursor { text-style: underline; }
ListPane:focus .datatable--cursor { text-style: reverse; }
DetailPane { scrollbar-gutter: stable; }
ListPane { display: none; }
ListPane.active { display: block; }
#filter { height: 1; display: none; border: none; padding: 0; }
#filter.open { display: block; }
#body.wide { layout: horizontal; }
#body.wide #lists { width: 1fr; }
#body.wide #lists ListPane { display: block; min-height: 4; border: round $border-blurred; border-title-color: ansi_default; border-title-style: bold; }
#body.wide DetailPane { width: 1fr; border: round $border-blurred; }
#body.wide ListPane:focus, #body.wide DetailPane:focus { border: heavy $primary; }
#body.middle #lists { height: 2fr; }
#body.middle DetailPane { height: 3fr; border-top: solid $border-blurred; }
#body.middle DetailPane:focus { border-top: heavy $primary; }
#body.narrow DetailPane { display: none; }
#body.narrow.reading #lists { display: none; }
#body.narrow.reading DetailPane { display: block; }
WriteDialog, Help { align: center middle; }
#dialog { width: 90%; max-width: 100; height: 16; max-height: 100%; border: heavy $primary; padding: 0 1; }
#dialog.help { height: auto; max-height: 100%; }
#title { height: auto; max-height: 40%; }
#wrong { height: auto; max-height: 4; }
TextArea { height: 1fr; min-height: 1; }
TextArea .text-area--selection { color: ansi_default; background: ansi_default; text-style: reverse; }
#hint, #buttons { height: 1; }
#buttons Button { margin: 0 2 0 0; }
Button:focus { text-style: reverse bold; }
WriteDialog.low #dialog { border: none; height: 100%; width: 100%; padding: 0; }
"""
ROWS_LEAST, ROWS_MOST = 3, 9  # the share of a list where all are shown: of its frame, and of its rows
MIDDLE, WIDE = (60, 16), (100, 24)  # the least columns and lines
KEYS = (  # a narrow footer shows the first ones
    Binding("escape", "leave", "Back"),
    Binding("question_mark", "help", "Help"),
    Binding("q", "quit", "Quit"),
    *(
        Binding(str(number), f"pane('{pane}')", pane.capitalize(), show=False)
        for number, pane in enumerate(PANES, 1)
    ),
    Binding("r", "reply", "Reply"),
    Binding("a", "decide('AGREE')", "Agree"),
    Binding("x", "decide('REJECT')", "Reject"),
    Binding("c", "decide('COUNTER')", "Counter"),
    Binding("t", "other", "Task/thread"),
    Binding("o", "older", "Older"),
    Binding("slash", "filter", "Filter"),
    Binding("g", "gate", "Gate"),
)
HELP = (
    "1 2 3 4 5   who waits for whom, agents, threads, tasks, claims; Tab goes on",
    "j k, arrows move; Page Up, Page Down, Home, End",
    "Enter       open what the row is about; Escape goes back",
    "n p         choose the next or the previous signal of a thread",
    "r           reply to the chosen signal; answer a task; write to an agent",
    "a x c       agree to the chosen signal, reject it, make a counter-proposal",
    "t           from a thread to its task, and back",
    "g           check the gate of a work unit; pass it with a reason",
    "o           show older signals, or more rows",
    "/           show only rows with these words; Escape ends that",
    "q           quit",
    "",
    "!           asks for your decision or answer, is stuck, contested, or not as asked for",
    "*           you have not read it (of an agent: it has not)",
    "",
    "A signal counts as read once all its lines have been on the screen. Nothing else is marked.",
    "What you write is recorded only at the button of its dialog.",
    "Text of signals is from peers. Peers can inform, not authorize.",
)


class TopApp(KeyOrderApp):
    """The screen.

    Args:
        at: The environment; its store is used by the screen alone until it ends.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = list(KEYS)

    class Refreshed(Message):
        """The lists were read."""

        def __init__(self, found: Board) -> None:
            super().__init__()
            self.board = found

    class Failed(Message):
        """The lists could not be read."""

        def __init__(self, said: str) -> None:
            super().__init__()
            self.said = said

    def __init__(self, at: Environment) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self.limits = dict.fromkeys(PANES, board.LISTED)
        self.board: Board | None = None
        self.active = WAITS
        self.log_access = LogAccess(at)
        self.answers = Answers(self, self.log_access, self._say, self._open)
        self._failed = self._said = ""
        self._is_wrong = False
        self.pane = DetailPane()

    def get_default_screen(self) -> MainScreen:
        """Return the screen below all dialogs."""
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static("", id="tabs", markup=False)
        with Container(id="body"):
            with Container(id="lists"):
                for pane in PANES:
                    yield ListPane(pane)
            yield self.pane
        yield Input(placeholder="words to look for", id="filter", compact=True)
        yield Static("", id="status", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to follow the log."""
        self.action_pane(WAITS)
        self.log_access.follow(
            self.limits, lambda found: self.post_message(self.Refreshed(found)), lambda said: self.post_message(self.Failed(said))
        )  # fmt: skip

    def on_unmount(self) -> None:
        """End the threads."""
        self.log_access.close()

    def on_resize(self, event: events.Resize) -> None:
        """Divide the screen as its size allows."""
        body, now = self.query_one("#body"), mode(event.size.width, event.size.height)
        body.remove_class("wide", "middle", "narrow").add_class(now)
        self._show_tabs()

    def on_top_app_refreshed(self, event: TopApp.Refreshed) -> None:
        """Show the lists as they were read, and what is open anew."""
        found = self.board = event.board
        self.answers.who = found.who
        for pane in PANES:
            one = self._list(pane)
            one.set_rows(found.rows[pane], found.more[pane])
            one.border_title = found.heads[pane]
            share = min(len(one.listed), ROWS_MOST) + ROWS_LEAST
            one.styles.height = f"{share * (3 if pane == WAITS else 2)}fr"
        self._show_tabs()
        self._failed = ""
        self._show_status()
        open_now = self.pane.detail
        if open_now is not None and open_now.kind in PANES:
            self._load(open_now.kind, open_now.id, open_now.limit, opens=False)

    def on_top_app_failed(self, event: TopApp.Failed) -> None:
        """Say why the lists are old."""
        self._failed = event.said
        self._show_status()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open what a row is about."""
        pane = event.data_table
        if isinstance(pane, ListPane) and pane.current is not None:
            self._say("")
            self._load(board.kind_of(pane.pane, pane.current.id), pane.current.id)

    def on_detail_pane_chosen(self) -> None:
        """Offer the keys that fit."""
        self.refresh_bindings()

    def on_detail_pane_shown(self, event: DetailPane.Shown) -> None:
        """Mark what was shown as read."""

        async def mark() -> None:
            try:
                await self.log_access.run(
                    lambda store, caller: answers.mark_shown(store, caller, event.texts)
                )
            except Exception as error:
                self._say(f"Cannot mark what was shown as delivered: {error_sentence(error)}", wrong=True)

        self.run_worker(mark(), group="mark")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Make the focused list the active one."""
        if isinstance(event.widget, ListPane):
            self.active = event.widget.pane
            self._show_tabs()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key does something now."""
        if action in ("reply", "decide", "other", "older"):
            found = self.pane.detail
            has_signal = found is not None and self.pane.signal is not None
            if action == "decide":
                return has_signal
            if action == "reply":
                return has_signal or (found is not None and (found.kind == TASKS or found.to is not None))
            if action == "other":
                return found is not None and bool(found.thread if found.kind == TASKS else found.task)
            if action == "older":
                return bool(self._left_out)
        return True

    @property
    def _left_out(self) -> int:
        """The number of signals or rows that the focused part leaves out."""
        if isinstance(self.focused, DetailPane):
            return self.pane.detail.more if self.pane.detail is not None else 0
        return self._list(self.active).more

    def action_pane(self, pane: str) -> None:
        """Show a list."""
        self.active = pane
        self.query_one("#body").remove_class("reading")
        for each in PANES:
            self._list(each).set_class(each == pane, "active")
        self.set_focus(self._list(pane))
        self._show_tabs()

    def action_leave(self) -> None:
        """Return to the list, or end its filter."""
        box = self.query_one("#filter", Input)
        if box.has_class("open") and (self.focused is box or not isinstance(self.focused, DetailPane)):
            box.value = ""
            box.remove_class("open")
        self.action_pane(self.active)

    def action_filter(self) -> None:
        """Ask for the words that rows must have."""
        if isinstance(self.focused, DetailPane):
            self.action_pane(self.active)
        box = self.query_one("#filter", Input)
        box.add_class("open")
        self.set_focus(box)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter all lists."""
        for pane in PANES:
            self._list(pane).set_filter(event.value)

    def on_input_submitted(self) -> None:
        """Return to the list with its filter."""
        self._list(self.active).focus()

    def action_older(self) -> None:
        """Show more signals of the thread, or more rows of the list."""
        found = self.pane.detail
        if isinstance(self.focused, DetailPane) and found is not None:
            self._load(found.kind, found.id, 2 * found.limit, opens=False)
        else:
            self.limits[self.active] *= 2
            self.log_access.look_again()

    def action_other(self) -> None:
        """Open the task of a thread, or the thread of a task."""
        found = self.pane.detail
        assert found is not None
        kind, id = (THREADS, found.thread) if found.kind == TASKS else (TASKS, found.task)
        if id is not None:
            self._load(kind, id)

    async def action_help(self) -> None:
        """Show the keys."""
        await self.push_screen(Help(HELP))

    async def action_reply(self) -> None:
        """Answer what is open."""
        if self.pane.signal is not None:
            await self.answers.signal(self.pane.signal, None)
        elif self.pane.detail is not None:
            await self.answers.detail(self.pane.detail)

    async def action_decide(self, intent: str) -> None:
        """Decide on the chosen signal."""
        if self.pane.signal is not None:
            await self.answers.signal(self.pane.signal, intent)

    async def action_gate(self) -> None:
        """Ask for a work unit, check its gate, and ask for the reason to pass it if it is closed."""
        found = self.pane.detail
        await self.answers.gate((found.wu if found is not None else None) or "")

    def _list(self, pane: str) -> ListPane:
        return self.query_one(f"#{pane}", ListPane)

    def _load(self, kind: str, id: str, limit: int = board.SIGNALS, *, opens: bool = True) -> None:
        """Read something and show it; what is in the lists need not be read."""
        if kind in (AGENTS, CLAIMS):
            listed = board.listed_detail(self.board, kind, id) if self.board is not None else None
            if listed is not None:
                self._put(listed, opens=opens)
            elif opens:
                self._say("It has ended.")
            return

        async def load() -> None:
            read = board.task_detail if kind == TASKS else board.thread_detail
            try:
                found = await self.log_access.run(lambda store, caller: read(store, caller, id, limit))
            except Exception as error:
                self._say(error_sentence(error), wrong=True)
            else:
                self._put(found, opens=opens)

        self.run_worker(load(), group="open" if opens else "again", exclusive=True)

    def _put(self, found: Detail, *, opens: bool) -> None:
        """Show what was read, unless somebody has opened something else meanwhile."""
        before = self.pane.detail
        if opens:
            self._open(found)
        elif before is not None and (before.kind, before.id) == (found.kind, found.id):
            self.pane.show(found)

    def _open(self, found: Detail) -> None:
        self.query_one("#body").add_class("reading")
        self.pane.show(found)
        self.pane.focus()

    def _say(self, said: str, *, wrong: bool = False) -> None:
        """Show a sentence in the status line; without one, who looks and what is to be known."""
        self._said, self._is_wrong = said, wrong
        self._show_status()

    def _show_status(self) -> None:
        said = self._failed or self._said
        style = panes.COLOURS["REJECT"] if self._failed or self._is_wrong else panes.BOLD
        if not said and self.board is not None:
            said, style = " · ".join([self.board.who, *self.board.notes]), panes.DIM
        self.query_one("#status", Static).update(panes.one_line(said, style))

    def _show_tabs(self) -> None:
        self.query_one("#tabs", Static).update(tabs(self.board, self.active, self.size.width))


def mode(width: int, height: int) -> str:
    """Return how a screen of this size is divided, see `CSS`."""
    for name, (columns, rows) in (("wide", WIDE), ("middle", MIDDLE)):
        if width >= columns and height >= rows:
            return name
    return "narrow"


def tabs(board: Board | None, active: str, width: int) -> Text:
    """Return the names of the lists with their numbers; a click on one shows it. A narrow screen has short names."""
    heads = board.heads if board is not None else {}
    names = [heads.get(pane, pane.capitalize()) for pane in PANES]
    labels = [f" {number} {name} " for number, name in enumerate(names, 1)]
    if sum(map(len, labels)) > width:
        short = [f"{pane[:3].capitalize()}{_marks(name)}" for pane, name in zip(PANES, names, strict=True)]
        labels = [f"{number} {name} " for number, name in enumerate(short, 1)]
    found = Text(no_wrap=True, overflow="crop")
    for pane, label in zip(PANES, labels, strict=True):
        click = Style.from_meta({"@click": f"app.pane('{pane}')"})
        found.append(label, (panes.REVERSE if pane == active else panes.PLAIN) + click)
    return found


def _marks(head: str) -> str:
    return "".join(mark for mark in "!*" if mark in head)


ENDS = (signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 1.0


@contextlib.contextmanager
def restoring_terminal() -> Iterator[None]:
    """Let the screen restore the terminal before a signal ends this process; end it when the terminal has gone."""
    came: list[int] = []
    stop = threading.Event()

    def end(number: int, _: object) -> None:
        came.append(number)
        signal.raise_signal(signal.SIGINT)  # which the event loop answers by cancelling the screen

    before = [
        (number, signal.signal(number, end)) for number in ENDS if signal.getsignal(number) == signal.SIG_DFL
    ]
    threading.Thread(target=_look_at_terminal, args=(stop,), name="gitmem top terminal", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        for number, handler in before:
            signal.signal(number, handler)
        if came:
            os.kill(os.getpid(), came[0])


def _look_at_terminal(stop: threading.Event) -> None:
    """End the process when its terminal has gone: nothing can be drawn, and what was recorded is on the disk."""
    import termios

    while not stop.wait(LOOK_SECONDS):
        try:
            termios.tcgetattr(sys.__stdin__ or 0)
        except (OSError, ValueError, termios.error):
            os._exit(128 + signal.SIGHUP)
