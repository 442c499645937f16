"""What is fixed on the screen: its style sheet, its keys, its help, and the line of tabs."""

from __future__ import annotations

from rich.text import Text
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Static

from . import lines
from .board import PANES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual import events

    from .board import Board

# `wide` shows all lists beside the detail, `middle` one list above it, `narrow` either. Colours are the terminal's own.
CSS = """
Screen { layout: vertical; }
#tabs, #status { height: 1; }
#body { height: 1fr; }
#lists { height: 1fr; }
ListPane, DetailPane { height: 1fr; scrollbar-size: 1 1; overflow-x: hidden; }
DetailPane { scrollbar-gutter: stable; }
ListPane { display: none; }
ListPane.active { display: block; }
#filter { height: 1; display: none; border: none; padding: 0; }
#filter.open { display: block; }
#body.wide { layout: horizontal; }
#body.wide #lists { width: 1fr; }
#body.wide #lists ListPane { display: block; border: round $border-blurred; }
#body.wide #threads { height: 2fr; }
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
MIDDLE, WIDE = (60, 16), (100, 22)  # the least columns and lines
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
    "1 2 3 4     agents, threads, tasks, claims; Tab goes on",
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


def mode(width: int, height: int) -> str:
    """Return how a screen of this size is divided, see `CSS`."""
    for name, (columns, rows) in (("wide", WIDE), ("middle", MIDDLE)):
        if width >= columns and height >= rows:
            return name
    return "narrow"


class Tabs(Static):
    """The line with the names of the lists; a click shows one. A narrow screen has short names."""

    class Chosen(Message):
        """A list was clicked."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self) -> None:
        super().__init__("", id="tabs", markup=False)
        self._ends: list[tuple[int, str]] = []

    def show(self, board: Board | None, active: str, width: int) -> None:
        """Show the numbers of the lists, and which is active."""
        text, self._ends = Text(no_wrap=True, overflow="crop"), []
        heads = board.heads if board is not None else {}
        names = [heads.get(pane, pane.capitalize()) for pane in PANES]
        labels = [f" {number} {name} " for number, name in enumerate(names, 1)]
        if sum(map(len, labels)) > width:
            short = [
                f"{pane[:3].capitalize()}{_marks(name)}" for pane, name in zip(PANES, names, strict=True)
            ]
            labels = [f"{number} {name} " for number, name in enumerate(short, 1)]
        for pane, label in zip(PANES, labels, strict=True):
            text.append(label, lines.REVERSE if pane == active else lines.PLAIN)
            self._ends.append((len(text), pane))
        self.update(text)

    def on_click(self, event: events.Click) -> None:
        """Say which list was clicked."""
        pane = next((pane for end, pane in self._ends if event.x < end), None)
        if pane is not None:
            self.post_message(self.Chosen(pane))


def _marks(head: str) -> str:
    return "".join(mark for mark in "!*" if mark in head)
