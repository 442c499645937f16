"""The panes: lists with a cursor, and the detail pane, which remembers what was on the screen.

Lines are plain text without any markup. The detail pane wraps them to its width and draws only the visible ones.
"""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import DataTable

from gitmem.outcome import Struct
from gitmem.text.sanitize import is_unsafe

from ..render.text import wrap
from .board import COLUMNS, NOTHING, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.timer import Timer

    from gitmem.records.record_types import ShownSignal

    from .board import Block, Detail


PLAIN = Style()
BOLD = Style(bold=True)
DIM = Style(dim=True)
REVERSE = Style(reverse=True)
COLOURS = {
    "asks": Style(color="yellow", bold=True), "new": BOLD, "quiet": DIM, "": PLAIN,
    "PROPOSE": Style(color="yellow", bold=True), "COUNTER": Style(color="magenta", bold=True),
    "AGREE": Style(color="green", bold=True), "REJECT": Style(color="red", bold=True), "INFO": Style(color="cyan", bold=True),
}  # fmt: skip


def one_line(text: str, style: Style = PLAIN) -> Text:
    """Return a text in a row, which cuts it where it ends. It is data: nothing in it acts as markup or link."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def strip(text: str, width: int, style: Style = PLAIN) -> Strip:
    """Return a text as one row of exactly this width. It is data: nothing in it acts as markup, link or control."""
    if not text.isprintable():  # it is sanitized before; this holds even where that was forgotten
        text = "".join("\ufffd" if is_unsafe(each) or not each.isprintable() else each for each in text)
    return Strip([Segment(set_cell_size(text, width), style)], width)


LAST_LEAST = 18  # columns that the last cell keeps while others can be left out


class ListPane(DataTable[Text]):
    """One of the lists.

    Args:
        name: Its name, see `board.PANES`.

    Attributes:
        listed: The rows that it shows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", "Up", show=False),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("home", "scroll_top", "First", show=False),
        Binding("end", "scroll_bottom", "Last", show=False),
        Binding("enter", "select_cursor", "Open"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(id=name, cursor_type="row", cell_padding=0)
        self.pane = name
        self.listed: list[Row] = []
        self.more = 0
        self._every: Sequence[Row] | None = None  # None before the log was read
        self._words: list[str] = []

    def set_rows(self, rows: Sequence[Row], more: int) -> None:
        """Show these rows; the cursor stays on what it is on, or on the first row."""
        self._every, self.more = rows, more
        self._fill()

    def set_filter(self, text: str) -> None:
        """Show only the rows that contain each word."""
        self._words = text.casefold().split()
        self._fill()

    @property
    def current(self) -> Row | None:
        """The row that the cursor is on."""
        return self.listed[self.cursor_row] if self.cursor_row < len(self.listed) else None

    def on_resize(self) -> None:
        """Divide the width anew."""
        self._fill()

    def on_click(self, event: events.Click) -> None:
        """Let one click open a row: a table opens the cell that the cursor is on."""
        meta = event.style.meta
        if meta.get("row", -1) >= 0:
            self.move_cursor(row=meta["row"], column=meta["column"])

    def _fill(self) -> None:
        """Show the rows that have the words of the filter, or why there are none."""
        on, top = self.current.id if self.current is not None and self.cursor_row else None, self.scroll_y
        rows = [each for each in self._every or () if all(word in each.words for word in self._words)]
        self.listed = rows
        self.clear(columns=True)
        widths = self._widths()
        for column, width in zip(COLUMNS[self.pane], widths, strict=True):
            if width:
                self.add_column(one_line(column.head), width=width)
        for row in rows:
            shown = [cell for cell, width in zip(row.cells, widths, strict=True) if width]
            self.add_row(*(one_line(each, COLOURS[row.style]) for each in shown))
        if below := self._below():
            blank = [Text()] * (len(self.columns) - 1)
            self.add_row(*blank, Text(below, DIM), height=None)
        places = {each.id: place for place, each in enumerate(rows)}
        self.scroll_to(y=top, animate=False)
        self.move_cursor(row=places.get(on, 0) if on is not None else 0, animate=False)

    def _below(self) -> str:
        """Return what stands below the rows: how many there are more, or why there are none."""
        if self.listed:
            return f"{self.more} more not shown; o shows more" if self.more else ""
        if self._every:
            return "Nothing matches the filter; Escape ends it."
        return NOTHING[self.pane] if self._every is not None else "Reading the log…"

    def _widths(self) -> list[int]:
        """Return the widths of the columns, each with the blank after it; 0 for those that are left out."""
        columns, width = COLUMNS[self.pane], self.scrollable_content_region.width
        if not self.listed:
            return [*[0] * (len(columns) - 1), max(1, width)]
        found = []
        for place, each in enumerate(columns[:-1]):
            longest = max(cell_len(text) for text in (each.head, *(row.cells[place] for row in self.listed)))
            found.append(min(each.most, longest) + 1)
        for _, place in sorted((each.turn, place) for place, each in enumerate(columns) if each.turn):
            if sum(found) + LAST_LEAST > width:
                found[place] = 0
        return [*found, max(1, width - sum(found))]


# From the moment that rows are drawn until they count as shown: several are reported together.
SHOWN_SECONDS = 0.3
WIDTH_LEAST = 8  # columns of a row
NOTHING_CHOSEN = "Choose a row and press Enter."
CHOSEN, OTHER = "▌", " "  # before the lines of the chosen signal, and before others


class ShownRow(Struct):
    """A row: its text, its style, and the number of its block."""

    text: str
    style: Style
    block: int


class DetailPane(ScrollView, can_focus=True):
    """Shows one thing. In a thread one signal is chosen: that is what an answer answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("space", "page_down", "Page down", show=False),
        Binding("n", "choose(1)", "Next"),
        Binding("p", "choose(-1)", "Previous", show=False),
    ]

    class Shown(Message):
        """Unread signals whose rows have all been on the screen: their texts by their ids."""

        def __init__(self, texts: dict[str, set[str]]) -> None:
            super().__init__()
            self.texts = texts

    class Chosen(Message):
        """Another signal is chosen."""

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.detail: Detail | None = None
        self.chosen: int | None = None
        self._rows: list[ShownRow] = []
        self._spans: list[range] = []
        self._seen: set[int] = set()
        self._reported: set[tuple[str, str]] = set()  # signals and texts
        self._timer: Timer | None = None
        self._width = 0

    def show(self, detail: Detail | None) -> None:
        """Show something; the same thing anew keeps its place, and a new signal at the end is followed."""
        before, chosen = self.detail, self.signal
        is_same = (
            before is not None and detail is not None and (before.kind, before.id) == (detail.kind, detail.id)
        )
        was_end = self.scroll_offset.y >= self.max_scroll_y
        self.detail = detail
        if not is_same:
            self._reported.clear()
        self._lay_out()
        self.chosen = self._find(chosen) if is_same and chosen is not None else None
        if self.chosen is None:
            self.chosen = self._first_choice()
        if not is_same:
            self.call_after_refresh(self._begin)
        elif was_end and before is not None and before.limit == (detail.limit if detail is not None else 0):
            self.call_after_refresh(self._to, len(self._rows))
        self.post_message(self.Chosen())

    @property
    def signal(self) -> ShownSignal | None:
        """The chosen signal."""
        blocks = self.detail.blocks if self.detail is not None else []
        return blocks[self.chosen].signal if self.chosen is not None and self.chosen < len(blocks) else None

    def _find(self, signal: ShownSignal) -> int | None:
        """Return the block that shows a signal."""
        for place, block in enumerate(self._blocks()):
            if block.signal is not None and block.signal["signal_id"] == signal["signal_id"]:
                return place
        return None

    def _blocks(self) -> list[Block]:
        return self.detail.blocks if self.detail is not None else []

    def _first_choice(self) -> int | None:
        """Return the last signal that the reader owes a decision on, else the first unread one, else the last one."""
        said = [place for place, block in enumerate(self._blocks()) if block.signal is not None]
        owed = [place for place in said if self._blocks()[place].is_owed]
        new = [place for place in said if self._blocks()[place].is_new]
        return next(iter([*owed[-1:], *new[:1], *said[-1:]]), None)

    def _begin(self) -> None:
        """Scroll to the first unread signal, else to the chosen one."""
        new = [place for place, block in enumerate(self._blocks()) if block.is_new]
        at = new[0] if new else self.chosen
        top = self._spans[at].start if at is not None else 0
        self._to(0 if top < self.size.height // 2 else top)

    def _lay_out(self) -> None:
        """Wrap all lines to the width of the pane."""
        self._width = self.scrollable_content_region.width
        width = max(WIDTH_LEAST, self._width - 1)
        self._rows, self._spans, self._seen = [], [], set()
        for number, block in enumerate(self._blocks()):
            first = len(self._rows)
            for place, line in enumerate(block.lines):
                style = _style(block, place, line)
                rows = [ShownRow(piece, style, number) for piece in wrap(line, width, cell_len)]
                if block.signal is not None and place == 0:  # of a head: times and ids are dim
                    for row in rows[1:]:
                        row.style = row.style if block.signal["intent"] in row.text else DIM
                self._rows += rows
            self._spans.append(range(first, len(self._rows)))
            self._rows.append(ShownRow("", PLAIN, -1))
        self.virtual_size = Size(1, max(1, len(self._rows)))
        self.refresh()

    def on_resize(self) -> None:
        """Wrap anew if the width has changed."""
        if self.scrollable_content_region.width != self._width:
            was_hidden = not self._width
            self._lay_out()
            if was_hidden:
                self.call_after_refresh(self._begin)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key does something now."""
        return action != "choose" or self.signal is not None

    def action_choose(self, by: int) -> None:
        """Choose the next signal or the one before."""
        said = [place for place, block in enumerate(self._blocks()) if block.signal is not None]
        if self.chosen not in said:
            return
        at = said.index(self.chosen) + by
        if 0 <= at < len(said):
            self.chosen = said[at]
            span = self._spans[self.chosen]
            top, height = self.scroll_offset.y, self.size.height
            if span.start < top or span.stop > top + height:
                self._to(span.start)
            self.refresh()
            self.post_message(self.Chosen())

    def _to(self, row: int) -> None:
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """Return a row of the screen, and note that it is shown."""
        place, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if self.detail is None:
            return strip(NOTHING_CHOSEN if y == 0 else "", width, DIM)
        if place >= len(self._rows):
            return strip("", width)
        row = self._rows[place]
        is_whole = width == self._width > WIDTH_LEAST  # in a narrower pane the rows are cut
        if is_whole and self.app.screen is self.screen:  # no dialog is above it
            self._seen.add(place)
            if row.block >= 0 and self._blocks()[row.block].is_new and self._timer is None:
                self._timer = self.set_timer(SHOWN_SECONDS, self._report)
        is_chosen = row.block == self.chosen and self.signal is not None
        return strip((CHOSEN if is_chosen else OTHER) + row.text, width, row.style)

    def _report(self) -> None:
        """Report the unread signals of which every row was drawn."""
        self._timer = None
        found: dict[str, set[str]] = {}
        for block, span in zip(self._blocks(), self._spans, strict=True):
            signal = block.signal
            if signal is None or not block.is_new or not self._seen.issuperset(span):
                continue
            key = (signal["signal_id"], signal["message"])
            if key not in self._reported:
                self._reported.add(key)
                found.setdefault(key[0], set()).add(key[1])
        if found:
            self.post_message(self.Shown(found))


class MainScreen(Screen[None]):
    """The screen below all dialogs."""

    def on_screen_resume(self) -> None:
        """Draw the detail anew: what was first drawn behind a dialog is shown only now."""
        for pane in self.query(DetailPane):
            pane.refresh()


def _style(block: Block, place: int, line: str) -> Style:
    if block.signal is None:
        return BOLD if place == 0 else PLAIN
    if place == 0:
        return COLOURS.get(block.signal["intent"], BOLD)
    return BOLD if block.is_new else PLAIN
