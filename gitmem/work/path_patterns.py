"""Patterns of paths: match a path, and decide whether two patterns may match the same path.

A pattern is a path from the top of the work tree. `*` and `?` match within a name, `**` as a whole name matches any number of
folders, and a pattern covers everything below what it matches. Other characters stand for themselves. Peers write patterns, so the
time of a match grows linearly with the lengths of pattern and path.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


PATTERNS_MAX = 100  # of one claim; readers ignore further ones
LENGTH_MAX = 1_024  # characters of a pattern; longer ones match nothing
PATH_MAX = 4_096  # characters of a path; longer ones are not matched
MATCH_STEPS_MAX = PATH_MAX * 16  # more than any match takes
STEP_BITS = 256  # positions of a pattern that one step of a match handles
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
        self._length = sum(map(len, self._names))
        whole = fixed_part("/".join(self._names))
        rest = self._names[whole.count("/") + 1 if whole else 0 :]
        self._begin = whole  # each path that it matches begins so
        if rest and rest[0] != DEEP:
            self._begin = f"{whole}/{_fixed_beginning(rest[0])}" if whole else _fixed_beginning(rest[0])
        fixed = "/".join(rest).replace("?", "*").replace("/", "*").split("*")
        self._part = max(fixed, key=len)  # each path that it matches has this in it
        self._masks: dict[str, int] | None = None  # made at the first match that needs it

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
        if not (text and budget.take(1)):
            return False
        if not text.startswith(self._begin) or self._part not in text:
            return False
        return budget.take(len(text) * (1 + self._length // STEP_BITS)) and self._run(text)

    def _run(self, text: str) -> bool:
        if self._masks is None:
            self._masks = self._prepare()
        end = 1 << self._positions
        any_character, at_end = self._masks[""], self._masks["/"]
        states = self._without_character(1)
        for char in text + "/":
            if char == "/":
                states = (states & at_end) << 1 | (states & self._inside) >> 1
            else:
                leads_on = any_character | self._masks.get(char, 0)
                states = (states & leads_on) << 1 | states & (self._skips | self._inside)
            states = self._without_character(states)
            if states & end:
                return True  # it covers what is below, too
            if not states:
                return False
        return False

    def _prepare(self) -> dict[str, int]:
        """Make an automaton whose states are the bits of an integer.

        `_skips` are the states for `*`: a character keeps them, and they lead on without one. `_folders` are those for `**`, at the
        beginning of a name; the state after each, of `_inside`, is for the rest of a name.

        Returns:
            The states that each character leads on, "" those that any character of a name leads on.
        """
        masks = {"": 0, "/": 0}
        self._skips = self._folders = self._inside = 0
        position = 0
        for name in self._names:
            if name == DEEP:
                self._folders |= 1 << position
                self._inside |= 2 << position
                masks[""] |= 1 << position
                position += 2
                continue
            for char in name + "/":
                if char == "*":
                    self._skips |= 1 << position
                else:
                    key = "" if char == "?" else char
                    masks[key] = masks.get(key, 0) | 1 << position
                position += 1
        self._positions = position
        return masks

    def _without_character(self, states: int) -> int:
        """Add the states that are reached without a character. A sum carries a bit through neighbouring skips."""
        states |= (states & self._folders) << 2
        reached = states & self._skips
        return states | ((self._skips + reached) ^ self._skips) if reached else states

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


def _names_may_overlap(one: str, two: str) -> bool:
    """Return whether two names with wildcards may match the same name: their fixed beginnings and ends must agree."""
    if not is_pattern(one) and not is_pattern(two):
        return one == two
    begins = [_fixed_beginning(name) for name in (one, two)]
    ends = [_fixed_beginning(name[::-1]) for name in (one, two)]
    return all(a.startswith(b) or b.startswith(a) for a, b in (begins, ends))


def _fixed_beginning(name: str) -> str:
    return name.partition("*")[0].partition("?")[0]
