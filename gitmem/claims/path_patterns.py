"""Patterns of paths: match a path, and decide whether two patterns may match the same path.

A pattern is a path from the top of the work tree. `*` and `?` match within a name, `**` as a whole name matches any number of
folders, and a pattern covers everything below what it matches. Other characters stand for themselves. Peers write patterns, so the
time of a match grows linearly with the lengths of pattern and path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PATTERNS_MAX = 100  # of one claim; readers ignore further ones
LENGTH_MAX = 1_024  # characters of a pattern or path; longer patterns match nothing
DEEP = "**"


class PathPattern:
    """A pattern, prepared for any number of matches.

    Names that differ only in case or in the form of their accents are the same: on some file systems they are one file.
    """

    __slots__ = ("_folders", "_inside", "_masks", "_names", "_positions", "_skips", "is_valid")

    def __init__(self, pattern: str) -> None:
        text = _normal(pattern).strip("/")
        self.is_valid = 0 < len(text) <= LENGTH_MAX
        names = [name for name in text.split("/") if name not in ("", ".")] if self.is_valid else []
        self._names = [
            name for name, before in zip(names, ["", *names], strict=False) if (name, before) != (DEEP, DEEP)
        ]
        # An automaton whose states are the bits of an integer. `_masks` has the states that each character leads on, "" those that
        # any character of a name leads on. `_skips` are the states for `*`: a character keeps them, and they lead on without one.
        # `_folders` are those for `**`, at the beginning of a name; the state after each, of `_inside`, is for the rest of a name.
        self._masks: dict[str, int] = {"": 0}
        self._skips = self._folders = self._inside = 0
        self._positions = 0
        for name in self._names:
            if name == DEEP:
                self._folders |= 1 << self._positions
                self._inside |= 2 << self._positions
                self._masks[""] |= 1 << self._positions
                self._positions += 2
                continue
            for char in name:
                if char == "*":
                    self._skips |= 1 << self._positions
                    self._positions += 1
                else:
                    self._add("" if char == "?" else char)
            self._add("/")

    def matches(self, path: str) -> bool:
        """Return whether the pattern covers a path from the top of the work tree."""
        text = _normal(path).strip("/")
        if not self.is_valid or not text or len(text) > LENGTH_MAX:
            return False
        end = 1 << self._positions
        states = self._without_character(1)
        for char in text + "/":
            if char == "/":
                states = (states & self._masks.get("/", 0)) << 1 | (states & self._inside) >> 1
            else:
                leads_on = self._masks[""] | self._masks.get(char, 0)
                states = (states & leads_on) << 1 | states & (self._skips | self._inside)
            states = self._without_character(states)
            if states & end:
                return True  # it covers what is below, too
            if not states:
                return False
        return False

    def _add(self, char: str) -> None:
        self._masks[char] = self._masks.get(char, 0) | 1 << self._positions
        self._positions += 1

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


def covers(patterns: Iterable[str], path: str) -> bool:
    """Return whether any of the patterns covers a path."""
    return any(PathPattern(pattern).matches(path) for pattern in patterns)


def may_overlap(ours: Sequence[PathPattern], theirs: Sequence[PathPattern]) -> bool:
    """Return whether a path may be covered by a pattern of each list."""
    return any(one.may_overlap(two) for one in ours for two in theirs)


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


def _normal(path: str) -> str:
    """Return the form in which paths are compared."""
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path[: LENGTH_MAX * 4]).casefold())
