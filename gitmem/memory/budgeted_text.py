"""A text within a size limit: pieces are selected by rank and printed by section.

Only lines of gitmem itself start at the margin. Text of others follows a prefix of gitmem's or a bar, so it cannot
imitate a heading, the frame or another piece.
"""

from __future__ import annotations

from ..errors import UsageError
from ..text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    FormatOmitted = Callable[[Mapping[str, int], int | None], str]

HEAD = "- "
BAR = "  | "
CUT_MARK = "…"
CUT_MIN = 120  # bytes of a cut line
PART = 4  # a piece gets at most 1/PART of the budget while others compete for it


class Section:
    """Lines to print in a section. The first line starts with words of gitmem.

    Args:
        rank: The lowest is selected first; ranks must be unique.
        id: The name of the piece in the result.
        more: The command that shows the whole piece; without it the piece is printed whole or not at all.
        part: The piece gets at most 1/part of the budget while others compete for it.
        cuts_line: Cut the first line if not even that fits, instead of printing nothing.
    """

    def __init__(
        self,
        section: str,
        rank: tuple[int, int, str],
        id: str,
        lines: Sequence[str],
        *,
        more: str | None = None,
        part: int = PART,
        cuts_line: bool = False,
    ) -> None:
        self.section = section
        self.rank = rank
        self.id = id
        self.lines = list(lines)
        self.more = more
        self.part = part
        self.cuts_line = cuts_line
        self.sizes = [size(line) for line in self.lines]
        self.whole = sum(self.sizes)

    def within(self, room: int) -> list[str] | None:
        """Return the lines that fit in `room` bytes.

        Returns:
            All lines, or the first ones and a note with the number of the others; None if not even one fits, or with
            `cuts_line` not even a part of the first.
        """
        if self.whole <= room:
            return self.lines
        if self.more is None:
            return None
        left = room - size(self._note(len(self.lines)))
        count = 0
        while count < len(self.lines) - 1 and self.sizes[count] <= left:
            left -= self.sizes[count]
            count += 1
        if not count and self.cuts_line:
            start = (
                self.lines[0]
                .encode("utf-8", "backslashreplace")[: left - size(CUT_MARK)]
                .decode(errors="ignore")
            )
            return [start + CUT_MARK, self._note(len(self.lines))] if left > CUT_MIN else None
        return [*self.lines[:count], self._note(len(self.lines) - count)] if count else None

    def _note(self, count: int) -> str:
        return f"  ({count} more line{'s' if count > 1 else ''}: {self.more})"


class BudgetedText:
    """The printed text.

    Attributes:
        text: Without a newline at its end; with one it is within the budget.
        included: Ids by section, without empty sections.
        left_out: Numbers of omitted pieces by section, without empty sections.
        shortened: Ids of pieces of which only the first lines are shown.
    """

    def __init__(self) -> None:
        self.text = ""
        self.included: dict[str, list[str]] = {}
        self.left_out: dict[str, int] = {}
        self.shortened: list[str] = []


def size(line: str) -> int:
    """Return the bytes of a line with its newline."""
    return len(line.encode("utf-8", "backslashreplace")) + 1


def quote_lines(head: str, text: str, *, bar: str = BAR) -> list[str]:
    """Return somebody's text as lines: gitmem's `head` before the first line, a bar before the others."""
    safe = sanitize_for_model(text.replace("\r\n", "\n"), keep="\n\t")
    lines = [line.rstrip() for line in safe.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return [f"{head} {lines[0]}" if lines else head, *((bar + line).rstrip() for line in lines[1:])]


def pack(
    pieces: Iterable[Section],
    *,
    frame: Sequence[str],
    sections: Sequence[str],
    max_size: int,
    omitted: FormatOmitted,
    unread: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
    always: bool = False,
) -> BudgetedText:
    """Select and print the pieces that fit.

    1. If everything fits whole, print everything.
    2. Else select by rank; each piece gets at most its part of the budget, and each section at most its own.
    3. Pieces that were too long for that get the remaining space, by rank.

    Args:
        frame: The lines before everything else, whatever the budget.
        sections: The headings, in print order.
        max_size: Bytes of UTF-8, with the newline at the end.
        omitted: Formats the line about omitted pieces, given their numbers by section and the budget that would be
            enough (None if unknown).
        unread: Numbers of further pieces by section; the caller did not load these.
        limits: The most bytes of a section while others compete for the budget.
        always: Print the frame even without pieces; otherwise the text is empty then.

    Raises:
        UsageError: The frame and the line about omitted pieces do not fit.
    """
    every = sorted(pieces, key=lambda piece: piece.rank)
    packing = _Packing(every, frame, sections, max_size, omitted, dict(unread or {}))
    if not always and not any(packing.left.values()):
        return BudgetedText()
    if packing.enough + packing.size_of_unread() <= max_size:
        for piece in every:
            packing.take(piece, piece.lines)
        return packing.block()
    packing.check()
    later = []
    for piece in every:
        limit = (limits or {}).get(piece.section, max_size) - packing.used.get(piece.section, 0)
        room = min(packing.room(piece), max_size // piece.part, limit)
        shown = piece.within(room)
        if shown is None:
            later.append(piece)
        else:
            packing.take(piece, shown)
    for piece in later:
        shown = piece.within(packing.room(piece))
        if shown is not None:
            packing.take(piece, shown)
    return packing.block()


class _Packing:
    """The state of a text while pieces are added."""

    def __init__(
        self,
        every: Sequence[Section],
        frame: Sequence[str],
        sections: Sequence[str],
        max_size: int,
        omitted: FormatOmitted,
        unread: dict[str, int],
    ) -> None:
        self.every = every
        self.frame = list(frame)
        self.sections = sections
        self.max_size = max_size
        self.omitted = omitted
        self.unread = unread
        self.shown: dict[str, list[str]] = {}
        self.left = {section: unread.get(section, 0) for section in sections}
        self.used: dict[str, int] = {}  # bytes by section, without its heading
        for piece in every:
            self.left[piece.section] += 1
        self.framed = sum(map(size, frame))
        self.printed = self.framed
        present = {piece.section for piece in every}
        self.enough = self.framed + sum(piece.whole for piece in every) + sum(map(self._heading, present))

    def _heading(self, section: str) -> int:
        return size(f"## {section}") + 1  # 1: the empty line before it

    def _last(self, left: Mapping[str, int]) -> list[str]:
        """Return the end of the text: an empty line, and the line about omitted pieces."""
        if not any(left.values()):
            return []
        enough = None if any(self.unread.values()) else self.enough
        return ["", self.omitted({name: count for name, count in left.items() if count}, enough)]

    def size_of_unread(self) -> int:
        """Return the bytes of the line about the items that the caller did not load."""
        return sum(map(size, self._last(self.unread)))

    def check(self) -> None:
        """Check that something fits.

        Raises:
            UsageError: Nothing fits.
        """
        least = self.framed + sum(map(size, self._last(self.left)))
        if not any(self.unread.values()):
            least = min(least, self.enough)  # a short text may be shorter than the line about its omission
        if least > self.max_size:
            raise UsageError(
                f"The budget of {self.max_size} bytes is too small for one line.",
                hint=f"The minimum here is --max-size {least}.",
                code="budget-too-small",
            )

    def room(self, piece: Section) -> int:
        """Return the bytes left for the lines of a piece, after the line about the pieces that remain omitted."""
        left = {**self.left, piece.section: self.left[piece.section] - 1}
        heading = 0 if piece.section in self.used else self._heading(piece.section)
        return self.max_size - self.printed - heading - sum(map(size, self._last(left)))

    def take(self, piece: Section, lines: list[str]) -> None:
        if piece.section not in self.used:
            self.printed += self._heading(piece.section)
        taken = piece.whole if lines is piece.lines else sum(map(size, lines))
        self.used[piece.section] = self.used.get(piece.section, 0) + taken
        self.printed += taken
        self.left[piece.section] -= 1
        self.shown[piece.id] = lines

    def block(self) -> BudgetedText:
        block = BudgetedText()
        lines = list(self.frame)
        for section in self.sections:
            chosen = [piece for piece in self.every if piece.section == section and piece.id in self.shown]
            if chosen:
                lines += ["", f"## {section}"]
                block.included[section] = [piece.id for piece in chosen]
            for piece in chosen:
                lines += self.shown[piece.id]
                if self.shown[piece.id] is not piece.lines:
                    block.shortened.append(piece.id)
        block.left_out = {name: count for name, count in self.left.items() if count}
        block.text = "\n".join([*lines, *self._last(self.left)])
        return block
