"""Patterns of paths: what they cover, and that no pattern of a peer makes a match slow."""

from __future__ import annotations

import random
import re
import time

import pytest

from gitmem.claims import path_patterns
from gitmem.claims.path_patterns import PathPattern


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("src/prices.py", "src/prices.py", True),
        ("src", "src/prices/round.py", True),
        ("src/", "src", True),
        ("src", "srcs/a.py", False),
        ("src/*", "src/prices/round.py", True),
        ("src/*.py", "src/prices/round.py", False),
        ("src/?.py", "src/a.py", True),
        ("src/?.py", "src/ab.py", False),
        ("**/round.py", "round.py", True),
        ("**/round.py", "src/prices/round.py", True),
        ("**/round.py", "src/around.py", False),
        ("src/**/round.py", "src/round.py", True),
        ("**", "a", True),
        ("a**z/b", "a-z/b", True),
        ("a**z/b", "a/z/b", False),
        ("[ab].py", "a.py", False),
        ("Src/Prices.PY", "src/prices.py", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("", "a", False),
        ("a" * 2000, "a" * 2000, False),
    ],
)
def test_what_a_pattern_covers(pattern: str, path: str, covered: bool) -> None:
    """A folder covers its content; case and the form of accents make no difference."""
    assert PathPattern(pattern).matches(path) is covered


@pytest.mark.parametrize(
    ("one", "two", "may"),
    [
        ("src", "src/prices/round.py", True),
        ("src/*.py", "src/a*", True),
        ("src/*.py", "src/*.md", False),
        ("src/a*", "src/b*", False),
        ("src/**", "docs/**", False),
        ("src/**/a.py", "src/b.py", True),
        ("**", "docs", True),
    ],
)
def test_patterns_that_may_cover_one_path_overlap(one: str, two: str, may: bool) -> None:
    """In doubt they do: a warning too many costs less than two agents in one file."""
    assert PathPattern(one).may_overlap(PathPattern(two)) is may
    assert PathPattern(two).may_overlap(PathPattern(one)) is may


def test_matches_agree_with_regular_expressions_and_overlaps_miss_nothing() -> None:
    """Random patterns of all forms."""
    draw = random.Random(15)
    names = ["**", "*", "?", "a", "b", "a*", "*b", "?a", "a*b", "ab", "**a"]

    def some(of: list[str], most: int) -> str:
        return "/".join(draw.choice(of) for _ in range(draw.randint(1, most)))

    for _ in range(5_000):
        one, two, path = some(names, 4), some(names, 4), some(["a", "b", "ab", "aab", "ba"], 5)
        covered = [PathPattern(each).matches(path) for each in (one, two)]
        assert covered == [_expression(each).match(path + "/") is not None for each in (one, two)]
        assert not all(covered) or PathPattern(one).may_overlap(PathPattern(two))


def _expression(pattern: str) -> re.Pattern[str]:
    parts = []
    for name in pattern.split("/"):
        if name == "**":
            parts.append("(?:[^/]+/)*")
        else:
            parts += [{"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in name]
            parts.append("/")
    return re.compile("".join(parts))


@pytest.mark.parametrize("pattern", ["*a" * 511 + "b", "**/" * 300 + "b", "?*" * 500, "**/*/" * 200])
def test_no_pattern_makes_a_match_slow(pattern: str) -> None:
    """Twice the path costs about twice the time, and the longest one a few milliseconds."""
    prepared = PathPattern(pattern)
    began = time.process_time()
    for path in ("a" * 1024, "a/" * 511, "aaa/" * 255):
        prepared.matches(path)
    assert time.process_time() - began < 0.2


def test_only_so_many_patterns_of_a_claim_are_read() -> None:
    """A line of a peer may have any number."""
    assert len(path_patterns.prepared(["a"] * 5_000)) == path_patterns.PATTERNS_MAX
