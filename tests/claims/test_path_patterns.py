"""Patterns of paths: what they cover, and that no pattern of a peer makes a match slow."""

from __future__ import annotations

import random
import re
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitmem.work import claims
from gitmem.work.claims import PathPattern


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
        ("a", "a/" + "b" * 2000, True),
        ("a", "a/" + "b" * 70_000, False),
        ("a\\b", "a\\b", True),
        ("a\\b", "a/b", False),
        ("STRASSE.md", "stra\u00dfe.md", True),
        ("a?", "a\U0001f600", True),
        ("\ud83d", "a", False),
        ("./src//a.py", "src/a.py", True),
        ("src/*", "src", False),
        ("src/**", "src", True),
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
        ("a", "aba", False),
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


NAME = st.text(
    st.sampled_from("ab*?\u00e9e\u0301\u0323\u00df\u1e9eK\u212a\\[]^$.\U0001f600"), min_size=1, max_size=6
)
# A name "." means the folder itself, and is left out of patterns.
PATTERN = st.lists(NAME.filter(lambda name: name != ".") | st.just("**"), min_size=1, max_size=5).map(
    "/".join
)
PATH = st.lists(
    st.text(st.sampled_from("abe\u00e9\u0301\u00dfKk\\"), min_size=1, max_size=4), min_size=1, max_size=5
).map("/".join)


@given(PATTERN, PATH)
@example("e\u0301*", "\u00e9a")
@example("**/*", "a")
def test_a_match_is_what_the_pattern_says_in_any_normal_form(pattern: str, path: str) -> None:
    """Patterns and paths in all four normal forms of Unicode that keep names apart, upper and lower case."""
    expected = _expression(claims.normal(pattern)).match(claims.normal(path) + "/") is not None
    for form in ("NFC", "NFD"):
        changed = unicodedata.normalize(form, path)
        assert PathPattern(pattern).matches(changed) is expected
        assert PathPattern(unicodedata.normalize(form, pattern)).matches(path) is expected
    ascii_swapped = "".join(char.swapcase() if char.isascii() else char for char in path)
    assert PathPattern(pattern).matches(ascii_swapped) is expected


@given(PATTERN, PATTERN, PATH)
def test_patterns_that_cover_one_path_overlap(one: str, two: str, path: str) -> None:
    """In either order, and each overlaps the path itself."""
    first, second = PathPattern(one), PathPattern(two)
    assert first.may_overlap(second) is second.may_overlap(first)
    if first.matches(path) and second.matches(path):
        assert first.may_overlap(second)
    if first.matches(path):
        assert first.may_overlap(PathPattern(path)) or claims.is_pattern(path)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_a_pattern_and_a_path(pattern: str, path: str) -> None:
    """No text makes an error, and a path without wildcards covers itself and what is below."""
    PathPattern(pattern).matches(path)
    PathPattern(pattern).may_overlap(PathPattern(path))
    if claims.normal(path).strip("/.") and not claims.is_pattern(path):
        below = "/".join(name for name in path.split("/") if name not in ("", "."))
        assert PathPattern(path).matches(below) is PathPattern(path).matches(f"{below}/x") is True


def test_a_match_costs_steps_and_none_are_left_over() -> None:
    """What is not compared for want of steps is said, and a path that cannot match costs one step."""
    budget = claims.Budget(50)
    assert not PathPattern("src/**/*.py").covers("docs/a.md", budget)
    assert not PathPattern("**/*.py").covers("docs/a.md", budget)
    assert (budget.left, budget.is_spent) == (48, False)
    assert PathPattern("**/*.py").covers("a/b.py", budget)
    assert budget.left == 41
    assert not PathPattern("**/*.py").covers("a/" * 30 + "b.py", budget)
    assert budget.is_spent


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 511 + "b",
        "**/" * 300 + "b",
        "?*" * 500,
        "**/*/" * 200,
        "*" * 1024,
        "?" * 1024,
        "\u0301\u0323" * 512,
    ],
)
def test_no_pattern_makes_a_match_slow(pattern: str) -> None:
    """Twice the path costs about twice the time, and the longest one a few milliseconds."""
    prepared = PathPattern(pattern)
    began = time.process_time()
    for path in ("a" * 1024, "a/" * 511, "aaa/" * 255):
        prepared.matches(path)
    assert time.process_time() - began < 0.2
    assert PathPattern("*" * 64 * 1024).is_valid is False


def test_only_so_many_patterns_of_a_claim_are_read() -> None:
    """A line of a peer may have any number."""
    assert len(claims.prepared(["a"] * 5_000)) == claims.PATTERNS_MAX


@pytest.mark.parametrize("letter", ["a", "é"])
def test_a_path_above_the_limit_is_not_covered(letter: str) -> None:
    """Section 16: 4096 characters."""
    whole, longest = PathPattern("src"), "src/" + letter * (claims.PATH_MAX - 4)
    assert (whole.matches(longest), whole.matches(f"{longest}{letter}")) == (True, False)


def test_no_path_and_no_pattern_means_nothing() -> None:
    """Not everything: too long ones are as if they were empty."""
    assert not PathPattern("**").matches("a" * (claims.PATH_MAX + 1))
    assert not PathPattern("**").matches("")
    assert not PathPattern("*" * (claims.LENGTH_MAX + 1)).matches("a")


def test_comparisons_stop_once_no_steps_are_left() -> None:
    """A budget that is spent says that something was not compared."""
    budget = claims.Budget(3)
    many = [PathPattern(each) for each in "abcde"]
    assert not claims.may_overlap(many, [PathPattern("e")], budget)
    assert (budget.left, budget.is_spent) == (1, True)


def test_a_path_in_ascii_needs_no_tables_of_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of each edit compare paths."""
    monkeypatch.setitem(sys.modules, "unicodedata", None)
    assert PathPattern("src/*.c").matches("Src/a.c")
