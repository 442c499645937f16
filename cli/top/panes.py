"""The panes: lists with a cursor, and the detail pane, which remembers what was on the screen.

Lines are plain text without any markup, wrapped to a width. Only the visible rows are drawn, so the length of a list does not matter.
"""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip

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
UNDERLINE = Style(underline=True)
COLOURS = {
    "asks": Style(color="yellow", bold=True), "new": BOLD, "quiet": DIM, "": PLAIN, "head": Style(bold=True, underline=True),
    "PROPOSE": Style(color="yellow", bold=True), "COUNTER": Style(color="magenta", bold=True),
    "AGREE": Style(color="green", bold=True), "REJECT": Style(color="red", bold=True), "INFO": Style(color="cyan", bold=True),
}  # fmt: skip


def within(text: str, width: int) -> str:
    """Return a text of exactly this width; `…` marks a cut."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width) if width else ""


def strip(text: str, width: int, style: Style = PLAIN) -> Strip:
    """Return a text as one row of exactly this width. It is data: nothing in it acts as markup, link or control."""
    if not text.isprintable():  # it is sanitized before; this holds even where that was forgotten
        text = "".join("\ufffd" if is_unsafe(each) or not each.isprintable() else each for each in text)
    return Strip([Segment(set_cell_size(text, width), style)], width)


GAP = " "
LAST_LEAST = 18  # columns that the last cell keeps while others can be left out
MEASURED = 200  # rows whose cells decide on widths


class ListPane(ScrollView, can_focus=True):
    """One of the lists.

    Args:
        name: Its name, see `board.PANES`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(0)", "First", show=False),
        Binding("end", "edge(1)", "Last", show=False),
        Binding("enter", "open", "Open"),
    ]

    class Opened(Message):
        """Somebody wants to see what a row is about."""

        def __init__(self, pane: str, row: Row) -> None:
            super().__init__()
            self.pane = pane
            self.row = row

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.pane = name
        self.every: Sequence[Row] = ()
        self.rows: list[Row] = []
        self.more = 0
        self.cursor = 0
        self._filter = ""
        self._read = False
        self._widths: list[int] = []
        self._laid_out: tuple[int, list[int]] = (-1, [])

    def set_rows(self, rows: Sequence[Row], more: int) -> None:
        """Show these rows; the cursor stays on what it is on, or on the first row."""
        self.every, self.more, self._read = rows, more, True
        self._select()

    def set_filter(self, text: str) -> None:
        """Show only the rows that contain each word."""
        self._filter = text.casefold()
        self._select()

    def _select(self) -> None:
        at = self.current.id if self.current is not None and self.cursor else None
        words = self._filter.split()
        self.rows = [each for each in self.every if all(word in each.words for word in words)]
        places = {each.id: place for place, each in enumerate(self.rows)}
        self.cursor = places.get(at, min(self.cursor, max(0, len(self.rows) - 1))) if at is not None else 0
        measured = self.rows[:MEASURED]
        self._widths = [
            min(each.most, max([cell_len(each.head), *(cell_len(row.cells[place]) for row in measured)]))
            for place, each in enumerate(COLUMNS[self.pane][:-1])
        ]
        self._laid_out = (-1, [])
        self.virtual_size = Size(1, len(self.rows) + 1 + (self.more > 0))
        self.refresh()
        self.call_after_refresh(self._follow_cursor)

    @property
    def current(self) -> Row | None:
        """The row that the cursor is on."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def action_move(self, by: int) -> None:
        """Move the cursor by this many rows."""
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by this many pages."""
        self._go(self.cursor + by * max(1, self.size.height - 2))

    def action_edge(self, last: int) -> None:
        """Move the cursor to the first or the last row."""
        self._go(len(self.rows) if last else 0)

    def action_open(self) -> None:
        """Ask for what the row under the cursor is about."""
        if self.current is not None:
            self.post_message(self.Opened(self.pane, self.current))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row, and open it."""
        place = event.get_content_offset(self)
        if place is None or place.y == 0:
            return
        row = place.y + self.scroll_offset.y - 1
        if row < len(self.rows):
            self._go(row)
            self.action_open()

    def _go(self, to: int) -> None:
        before, self.cursor = self.cursor, max(0, min(to, len(self.rows) - 1))
        top = self.scroll_offset.y
        self._follow_cursor()
        if self.scroll_offset.y == top:
            for place in (before, self.cursor):
                self.refresh(Region(0, place - top + 1, self.size.width, 1))

    def _follow_cursor(self) -> None:
        """Scroll as far as is needed to see the cursor; the heading stays above the rows."""
        top, height = self.scroll_offset.y, max(1, self.size.height - 1)
        wanted = min(max(top, self.cursor - height + 1), self.cursor)
        if self.cursor == len(self.rows) - 1 and self.more:
            wanted = max(wanted, self.cursor - height + 2)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

    def on_focus(self) -> None:
        """Show the cursor as the one that keys move."""
        self.refresh()

    def on_blur(self) -> None:
        """Show the cursor as one that keys do not move."""
        self.refresh()

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self._follow_cursor()

    def render_line(self, y: int) -> Strip:
        """Return a row of the screen: the heading, or a row of the list."""
        width = self.scrollable_content_region.width  # beside the scroll bar
        if y == 0:
            heads = [each.head for each in COLUMNS[self.pane]]
            return strip(self._text(heads, width), width, COLOURS["head"])
        place = y - 1 + self.scroll_offset.y
        if place < len(self.rows):
            row = self.rows[place]
            style = COLOURS[row.style]
            if place == self.cursor:
                style += REVERSE if self.has_focus else UNDERLINE
            return strip(self._text(row.cells, width), width, style)
        return strip(self._below(place - len(self.rows), width), width, DIM)

    def _below(self, place: int, width: int) -> str:
        """Return a line below the rows: how many there are more, or why there are none."""
        if self.rows:
            return f"{self.more} more not shown; o shows more" if self.more and place == 0 else ""
        if self.every:
            said = "Nothing matches the filter; Escape ends it."
        else:
            said = NOTHING[self.pane] if self._read else "Reading the log…"
        pieces = list(wrap(said, width, cell_len))
        return pieces[place] if place < len(pieces) else ""

    def _text(self, cells: Sequence[str], width: int) -> str:
        """Return the cells of a row in their columns."""
        if self._laid_out[0] != width:
            self._laid_out = (width, self._fit(width))
        widths = self._laid_out[1]
        shown = [within(cell, wide) for cell, wide in zip(cells, widths, strict=False) if wide]
        left = width - sum(widths) - len(GAP) * len(shown)
        return GAP.join([*shown, within(cells[-1], max(0, left))])

    def _fit(self, width: int) -> list[int]:
        """Return the widths of all columns but the last; 0 for those that are left out."""
        columns = COLUMNS[self.pane][:-1]
        widths = [*self._widths] or [0] * len(columns)
        turns = sorted((each.turn, place) for place, each in enumerate(columns) if each.turn)
        for _, place in turns:
            if sum(widths) + sum(map(bool, widths)) + LAST_LEAST <= width:
                break
            widths[place] = 0
        return widths


SHOWN_SECONDS = (
    0.3  # from the moment that rows are drawn until they count as shown: several are reported together
)
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
        Binding("up,k", "scroll_by(-1)", "Up", show=False),
        Binding("down,j", "scroll_by(1)", "Down", show=False),
        Binding("pageup", "scroll_page(-1)", "Page up", show=False),
        Binding("pagedown,space", "scroll_page(1)", "Page down", show=False),
        Binding("home", "scroll_edge(0)", "Top", show=False),
        Binding("end", "scroll_edge(1)", "End", show=False),
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
        before = self.detail
        is_same = (
            before is not None and detail is not None and (before.kind, before.id) == (detail.kind, detail.id)
        )
        chosen, was_end = self.signal, self.scroll_offset.y >= self.max_scroll_y
        anchor = self._anchor() if is_same else None
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
        elif anchor is not None:
            self.call_after_refresh(self._back, *anchor)
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

    def _anchor(self) -> tuple[str, int] | None:
        """Return the signal at the top of the screen, and how far its first row is above that."""
        for place, span in enumerate(self._spans):
            signal = self._blocks()[place].signal
            if signal is not None and span.stop > self.scroll_offset.y:
                return signal["signal_id"], self.scroll_offset.y - span.start
        return None

    def _back(self, signal_id: str, rows: int) -> None:
        """Scroll so that a signal is where it was."""
        for place, block in enumerate(self._blocks()):
            if block.signal is not None and block.signal["signal_id"] == signal_id:
                self._to(self._spans[place].start + rows)
                return

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
            was_hidden, anchor = not self._width, self._anchor()
            self._lay_out()
            if was_hidden:
                self.call_after_refresh(self._begin)
            elif anchor is not None:
                self.call_after_refresh(self._back, *anchor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key does something now."""
        return action != "choose" or self.signal is not None

    def action_scroll_by(self, rows: int) -> None:
        """Scroll by this many rows."""
        self._to(self.scroll_offset.y + rows)

    def action_scroll_page(self, pages: int) -> None:
        """Scroll by this many pages, which share a row."""
        self._to(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_scroll_edge(self, last: int) -> None:
        """Scroll to the first or the last row."""
        self._to(len(self._rows) if last else 0)

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
