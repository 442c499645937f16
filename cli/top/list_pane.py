"""A list: rows of cells with a cursor. Only the rows on the screen are drawn, so its length does not matter."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView

from . import lines
from .board import COLUMNS, NOTHING, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

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
            return lines.strip(self._text(heads, width), width, lines.COLOURS["head"])
        place = y - 1 + self.scroll_offset.y
        if place < len(self.rows):
            row = self.rows[place]
            style = lines.COLOURS[row.style]
            if place == self.cursor:
                style += lines.REVERSE if self.has_focus else lines.UNDERLINE
            return lines.strip(self._text(row.cells, width), width, style)
        return lines.strip(self._below(place - len(self.rows), width), width, lines.DIM)

    def _below(self, place: int, width: int) -> str:
        """Return a line below the rows: how many there are more, or why there are none."""
        if self.rows:
            return f"{self.more} more not shown; o shows more" if self.more and place == 0 else ""
        if self.every:
            said = "Nothing matches the filter; Escape ends it."
        else:
            said = NOTHING[self.pane] if self._read else "Reading the log…"
        pieces = list(lines.wrap(said, width))
        return pieces[place] if place < len(pieces) else ""

    def _text(self, cells: Sequence[str], width: int) -> str:
        """Return the cells of a row in their columns."""
        if self._laid_out[0] != width:
            self._laid_out = (width, self._fit(width))
        widths = self._laid_out[1]
        shown = [lines.within(cell, wide) for cell, wide in zip(cells, widths, strict=False) if wide]
        left = width - sum(widths) - len(GAP) * len(shown)
        return GAP.join([*shown, lines.within(cells[-1], max(0, left))])

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
