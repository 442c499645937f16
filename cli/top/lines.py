"""Lines of text for panes: wrapped to a width, and shown as plain text without any markup."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gitmem.signals.message_frame import BAR
from gitmem.text.sanitize import is_unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield a line in pieces that are at most this wide, broken at spaces. Pieces of a peer's text keep its bar."""
    bar = BAR if text.startswith(BAR) else ""
    rest, indent = text[len(bar) :].expandtabs(4), bar
    room = max(1, width - len(bar))
    while True:
        end = _end(rest, room)
        if end >= len(rest):
            yield (indent + rest).rstrip()
            return
        space = rest.rfind(" ", 1, end + 1)
        end = space if space > room // 3 else end
        yield (indent + rest[:end]).rstrip()
        rest = rest[end:].lstrip(" ")


def _end(text: str, room: int) -> int:
    """Return how many signs of a text fit, at least one."""
    part = text[: room + 1]
    if part.isascii():
        return min(len(text), room)
    used = 0
    for place, each in enumerate(text):
        used += cell_len(each)
        if used > room and place:
            return place
    return len(text)
