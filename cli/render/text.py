"""Text that answers share: ages, and the frame around peers' messages."""

from __future__ import annotations

import time

from gitmem.signals import message_frame
from gitmem.signals.message_frame import BAR as BAR
from gitmem.signals.message_frame import quote_lines as quote_lines
from gitmem.text.sanitize import SEPARATOR as SEPARATOR
from gitmem.text.sanitize import columns_of, within
from gitmem.text.sanitize import sender_text as sender_text

from .output import paint, program, sanitize, terminal
from .output import plain as shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from gitmem.outcome import PartOfAnswer
    from gitmem.records.record_types import ShownSignal
    from gitmem.sync.autosync import FailedSync

WORK_LINES_MAX, WORK_COLUMNS = 60, 260


def block(*parts: str | int | Iterable[object] | None) -> list[str]:
    """Return the lines of an answer: each text that is not empty, and all lines of each list."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines += [part] if part else []
        elif part and not isinstance(part, int):
            lines += map(str, part)
    return lines


def facts(*parts: object) -> str:
    """Return one line of the parts that are not empty, sanitized."""
    return plain(SEPARATOR.join(str(part) for part in parts if part))


def notes(sentences: Iterable[str]) -> list[str]:
    """Return sentences as lines that begin with `note:`."""
    return [line for each in sentences for line in wrapped(f"note: {sanitize(each)}")]


def rest(count: int, noun: str = "", then: str = "; use --limit N") -> str:
    """Return how many entries a list leaves out, and how to see them; "" if it has all."""
    return (
        f"{plural(count, f'more {noun}') if noun else f'{count:,} more'} not shown{then}" if count > 0 else ""
    )


def format_ago(at: str, now: int | None = None) -> str:
    """Return the age of a time such as `2026-11-21T20:00:00.123456Z`; the time itself if it is in the future.

    Args:
        now: Microseconds since the epoch, if the clock was already read.
    """
    try:
        seconds = (time.time() if now is None else now / 1e6) - _seconds(at)
    except ValueError:
        return sanitize(at)
    if seconds < -60:
        return f"at {at[:16]}Z"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h ago"
    return f"{int(seconds // 86400)} days ago"


def lines_of_work(
    found: PartOfAnswer | None, without: Collection[str] = (), *, whole: bool = False
) -> list[str]:
    """Return who works on what, or what waits for the caller, as lines; see `PartOfAnswer.lines`."""
    shown = found.lines(without, whole=whole, via=program()) if found is not None else []
    left = [f"{len(shown) - WORK_LINES_MAX} more lines not shown"] if len(shown) > WORK_LINES_MAX else []
    return [within(sanitize(each, keep=""), WORK_COLUMNS) for each in shown[:WORK_LINES_MAX]] + left


def plain(text: str) -> str:
    """Sanitize a text for one line: no tabs."""
    return sanitize(text, keep="")


def span(seconds: float | None) -> str:
    """Return a time span such as `40 min`."""
    whole = int(seconds or 0)
    for size, word in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {word}"
    return f"{whole} s"


def _seconds(at: str) -> float:
    """Return a time as seconds since the epoch.

    Raises:
        ValueError: The text is not a time.
    """
    from gitmem.log.lines import parse_at

    try:
        return parse_at(at) / 1e6
    except ValueError:  # another form, from an import
        from datetime import datetime

        return datetime.fromisoformat(at).timestamp()


def framed(signal: ShownSignal, *, note: str = "", line: str | None = None) -> list[str]:
    """Return the lines of a signal in its frame.

    Args:
        line: The command for a reply, if the reader gets one.
    """
    age = format_ago(signal["created_at"])
    text = message_frame.signal_text(signal, age=age, note=note, line=line, via=program())
    return shown_frame(text, signal["intent"])


def shown_frame(text: str, intent: str) -> list[str]:
    """Return the lines of a frame; on a terminal painted, and broken between words, never in a command that fits."""
    head, *lines = shortened(text).split("\n")
    shown = terminal()
    if shown is None:
        return [head, *lines]
    found: list[str] = []
    for each in lines:
        if each.startswith(BAR):
            found += wrap(each, shown.columns)
        elif 0 < shown.columns < columns_of(each):  # the reply line: one command a line
            found += (
                each.replace(f"{SEPARATOR}To ", f"\n{INDENT}To ")
                .replace(". To ", f".\n{INDENT}To ", 1)
                .split("\n")
            )
        else:
            found.append(each)
    return [*_head(head, intent, shown.columns), *found]


def wrapped(line: str) -> list[str]:
    """Return a sentence in lines that a terminal need not break."""
    shown = terminal()
    return [line] if shown is None else list(wrap(line, shown.columns))


def _head(head: str, intent: str, columns: int) -> list[str]:
    """Return the lines of a head: the name and what its sender wants stand out, the rest is dim."""
    first, *others = head.split(SEPARATOR)
    styles = {intent: "", message_frame.WANTS: "careful"}
    parts = [(first, paint("[", "quiet") + _named(first[1:]))]
    return _rows([*parts, *((each, paint(each, styles.get(each, "quiet"))) for each in others)], columns)


def spread(*parts: tuple[object, str]) -> list[str]:
    """Return facts, each with its style, in one line; on a terminal broken between two of them. One in the style `head` begins with a name, which alone stands out."""
    texts = [(plain(str(part)), style) for part, style in parts if part]
    shown = terminal()
    painted = [(text, _named(text) if style == "head" else paint(text, style)) for text, style in texts]
    return _rows(painted, shown.columns if shown is not None else 0) if painted else []


def _named(text: str) -> str:
    """Return a sender with the name in bold, and what follows it dim."""
    name = text.partition(" (")[0].partition(", ")[0]
    return paint(name, "head") + paint(text[len(name) :], "quiet")


def _rows(parts: Sequence[tuple[str, str]], columns: int) -> list[str]:
    """Return parts, each as plain text and as painted, in lines that fit where a part does."""
    rows: list[list[str]] = [[]]
    room = columns
    for part, painted in parts:
        if columns and rows[-1] and columns_of(part) + len(SEPARATOR) > room:
            rows.append([])
            room = columns - len(INDENT)
        room -= columns_of(part) + len(SEPARATOR)
        rows[-1].append(painted)
    joint = paint(SEPARATOR, "quiet")
    return [(INDENT if place else "") + joint.join(row) for place, row in enumerate(rows)]


WIDE = 100  # a terminal of fewer columns merges or leaves out columns
INDENT, ID_SHOWN = "  ", 12  # of a list; the beginning of an id, which commands take


def wrap(line: str, width: int, size: Callable[[str], int] = columns_of) -> Iterator[str]:
    """Yield a line in pieces that are at most this wide, broken at spaces; 0 for no limit. Pieces of a peer's text keep its bar, those of an indented line are indented more.

    Args:
        size: Returns the columns that a text takes.
    """
    bar = BAR if line.startswith(BAR) else INDENT if line.startswith(INDENT) else ""
    rest, indent = line[len(bar) :].expandtabs(4), bar
    while width and (end := _end(rest, room := max(1, width - len(indent)), size)) < len(rest):
        space = rest.rfind(" ", 1, end + 1)
        end = space if space > room // 3 else end
        yield (indent + rest[:end]).rstrip()
        rest, indent = rest[end:].lstrip(" "), 2 * INDENT if bar == INDENT else bar
    yield (indent + rest).rstrip() if width else line


def _end(text: str, room: int, size: Callable[[str], int]) -> int:
    """Return how many signs of a text fit, at least one."""
    if text[: room + 1].isascii():
        return min(len(text), room)
    used = 0
    for place, each in enumerate(text):
        used += size(each)
        if used > room and place:
            return place
    return len(text)


def paint_intent(text: str, intent: str) -> str:
    """Return a description with its intent in colour, if it has it."""
    return text.replace(f" {intent} ", f" {paint(intent)} ", 1) if intent else text


def table(
    rows: Sequence[Sequence[str]],
    *,
    head: Sequence[str] = (),
    shortened: Sequence[int] = (),
    painted: Callable[[int, int, str], str] = lambda row, column, cell: cell,
) -> list[str]:
    """Return lines with columns of equal width, two spaces apart. On a terminal no line is wider than that.

    Args:
        rows: Sanitized cells.
        head: The headings, in a row of their own above others.
        shortened: The columns that a narrow terminal shortens or leaves out, in this order; none that the next command
            needs, such as ids. A pipe gets all values in full.
        painted: Returns a cell in its colours, of the number of its row, that of its column, and its text as shown.
    """
    if not rows:
        return []
    every = [*([head] if head else []), *rows]
    shown = terminal()
    if shown is not None:
        first = len(every) - len(rows)
        return shown.table(
            every,
            shortened,
            lambda row, at, cell: painted(row - first, at, cell) if row >= first else paint(cell, "head"),
        )
    widths = [max(len(row[at]) for row in every) for at in range(len(every[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in every
    ]


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sync_error_line(found: FailedSync | None) -> list[str]:
    """Return the error of the last sync in a line, or no line."""
    if found is None:
        return []
    return [f"{found.what}, {format_ago(found.at)}: {sanitize(found.message)}"]


def value_text(value: object) -> str:
    """Return a value as text; objects as JSON with all characters, because escapes would hide tags from `sanitize`."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_text, value))
    if not isinstance(value, dict):
        return str(value)
    import json

    return json.dumps(value, ensure_ascii=False)
