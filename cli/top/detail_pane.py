"""The detail pane: blocks of lines, of which it remembers what was on the screen. Only visible rows are drawn."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView

from . import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.style import Style
    from textual.strip import Strip
    from textual.timer import Timer

    from gitmem.records.record_types import ShownSignal

    from .details import Block, Detail

SHOWN_SECONDS = (
    0.3  # from the moment that rows are drawn until they count as shown: several are reported together
)
WIDTH_LEAST = 8  # columns of a row
NOTHING = "Choose a row and press Enter."
CHOSEN, OTHER = "▌", " "  # before the lines of the chosen signal, and before others


class ShownRow:
    """A row: its text, its style, and the number of its block."""

    def __init__(self, text: str, style: Style, block: int) -> None:
        self.text = text
        self.style = style
        self.block = block


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
                self._rows += [ShownRow(piece, style, number) for piece in lines.wrap(line, width)]
            self._spans.append(range(first, len(self._rows)))
            self._rows.append(ShownRow("", lines.PLAIN, -1))
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
            return lines.strip(NOTHING if y == 0 else "", width, lines.DIM)
        if place >= len(self._rows):
            return lines.strip("", width)
        row = self._rows[place]
        is_whole = width == self._width > WIDTH_LEAST  # in a narrower pane the rows are cut
        if is_whole and self.app.screen is self.screen:  # no dialog is above it
            self._seen.add(place)
            if row.block >= 0 and self._blocks()[row.block].is_new and self._timer is None:
                self._timer = self.set_timer(SHOWN_SECONDS, self._report)
        is_chosen = row.block == self.chosen and self.signal is not None
        return lines.strip((CHOSEN if is_chosen else OTHER) + row.text, width, row.style)

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
        return lines.BOLD if place == 0 else lines.PLAIN
    if place == 0:
        return lines.COLOURS.get(block.signal["intent"], lines.BOLD)
    return lines.BOLD if block.is_new else lines.PLAIN
