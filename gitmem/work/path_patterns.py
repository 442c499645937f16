"""Patterns of paths: match a path, and decide whether two patterns may match the same path.

A pattern is a path from the top of the work tree. `*` and `?` match within a name, `**` as a whole name matches any number of
folders, and a pattern covers everything below what it matches. Other characters stand for themselves. Peers write patterns, so the
time of a match grows linearly with the lengths of pattern and path.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence


PATTERNS_MAX = 100  # of one claim; readers ignore further ones
LENGTH_MAX = 1_024  # characters of a pattern; longer ones match nothing
PATH_MAX = 4_096  # characters of a path; longer ones are not matched
STEP = 64  # characters of a pattern that one step compares with one of a path
MATCH_STEPS_MAX = PATH_MAX * (1 + LENGTH_MAX // STEP)  # more than any match takes
DEEP = "**"


class Budget(Struct):
    """The steps that are left for matches and comparisons: peers write patterns, and any number of them.

    Attributes:
        is_spent: Whether something was not compared for want of steps.
    """

    left: int
    is_spent: bool = False

    def take(self, steps: int) -> bool:
        """Take steps; return False if too few are left."""
        if steps > self.left:
            self.is_spent = True
            return False
        self.left -= steps
        return True


class PathPattern:
    """A pattern, prepared for any number of matches.

    Names that differ only in case or in the form of their accents are the same: on some file systems they are one file.
    """

    def __init__(self, pattern: str) -> None:
        text = normal(pattern) if len(pattern) <= LENGTH_MAX else ""
        names = [name for name in text.split("/") if name not in ("", ".")]
        self.is_valid = bool(names)
        self._names = [
            name for name, before in zip(names, ["", *names], strict=False) if (name, before) != (DEEP, DEEP)
        ]
        whole = fixed_part("/".join(self._names))
        rest = self._names[whole.count("/") + 1 if whole else 0 :]
        self._begin = whole  # each path that it matches begins so
        if rest and rest[0] != DEEP:
            self._begin = f"{whole}/{_fixed_beginning(rest[0])}" if whole else _fixed_beginning(rest[0])
        fixed = "/".join(rest).replace("?", "*").replace("/", "*").split("*")
        self._part = max(fixed, key=len)  # each path that it matches has this in it
        self._length = sum(map(len, self._names))
        self._expression: re.Pattern[str] | None = None  # made at the first match that needs it

    @property
    def weight(self) -> int:
        """What a match of it costs, roughly: little if paths have to begin with something."""
        return 1 if self._begin else 1 + self._length

    @property
    def names(self) -> int:
        """The number of its names."""
        return len(self._names)

    def matches(self, path: str) -> bool:
        """Return whether the pattern covers a path from the top of the work tree."""
        return self.covers(normal(path), Budget(MATCH_STEPS_MAX))

    def covers(self, text: str, budget: Budget) -> bool:
        """Return whether the pattern covers a path that `normal` has returned; False if the budget is spent."""
        if not (
            self.is_valid and text and budget.take(1) and text.startswith(self._begin) and self._part in text
        ):
            return False
        if not budget.take(len(text) * (1 + self._length // STEP)):
            return False
        if self._expression is None:
            self._expression = _expression(self._names)
        return self._expression.match(text + "/") is not None

    def may_overlap(self, other: PathPattern) -> bool:
        """Return whether some path may be covered by both. True in doubt: what stands after `**` is not compared."""
        if not (self.is_valid and other.is_valid):
            return False
        for one, two in zip(self._names, other._names, strict=False):
            if DEEP in (one, two):
                return True
            if not _names_may_overlap(one, two):
                return False
        return True  # one is above the other, and covers it


def normal(path: str) -> str:
    """Return the form in which paths are compared; "" for one that is too long."""
    text = path.strip("/")
    if text.isascii():
        return text.lower() if len(text) <= PATH_MAX else ""
    import unicodedata

    if len(text) > PATH_MAX:
        return ""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def may_overlap(
    ours: Sequence[PathPattern], theirs: Sequence[PathPattern], budget: Budget | None = None
) -> bool:
    """Return whether a path may be covered by a pattern of each list; False if the budget is spent."""
    for one in ours:
        for two in theirs:
            if budget is not None and not budget.take(1 + min(one.names, two.names)):
                return False
            if one.may_overlap(two):
                return True
    return False


def prepared(patterns: Iterable[str]) -> list[PathPattern]:
    """Return the patterns of a claim that readers read."""
    return [PathPattern(pattern) for pattern in list(patterns)[:PATTERNS_MAX]]


def is_pattern(path: str) -> bool:
    """Return whether a path has wildcards."""
    return "*" in path or "?" in path


def fixed_part(pattern: str) -> str:
    """Return the folders of a pattern before its first name with a wildcard."""
    names = pattern.split("/")
    count = next((number for number, name in enumerate(names) if is_pattern(name)), len(names))
    return "/".join(names[:count])


def _expression(names: Sequence[str]) -> re.Pattern[str]:
    """Return what the beginning of a path matches. Nothing is tried again: the first place of a part leaves most to those after it."""
    import re  # most commands match no path

    blocks = [""]  # of names, between those that are `**`
    for name in names:
        if name == DEEP:
            blocks.append("")
            continue
        first, *parts = (re.escape(part).replace(r"\?", "[^/]") for part in name.split("*"))
        last = f"[^/]*{parts.pop()}" if parts else ""
        blocks[-1] += first + "".join(f"(?>[^/]*?{part})" for part in parts) + last + "/"
    return re.compile(blocks[0] + "".join(f"(?>(?:[^/]+/)*?{block})" for block in blocks[1:]))


def _names_may_overlap(one: str, two: str) -> bool:
    """Return whether two names with wildcards may match the same name: their fixed beginnings and ends must agree."""
    if not is_pattern(one) and not is_pattern(two):
        return one == two
    begins = [_fixed_beginning(name) for name in (one, two)]
    ends = [_fixed_beginning(name[::-1]) for name in (one, two)]
    return all(a.startswith(b) or b.startswith(a) for a, b in (begins, ends))


def _fixed_beginning(name: str) -> str:
    return name.partition("*")[0].partition("?")[0]
