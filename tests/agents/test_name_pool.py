"""The names that ship."""

from __future__ import annotations

from itertools import combinations

from rapidfuzz.distance import Levenshtein

from gitmem.agents.display_names import POOL


def test_there_are_enough() -> None:
    """A repository with many agents does not come to `-2` soon."""
    assert len(POOL) >= 300


def test_no_two_are_within_two_edits() -> None:
    """A name with two typos is still nearest to itself."""
    near = [
        (a, b)
        for a, b in combinations(POOL, 2)
        if Levenshtein.distance(a.lower(), b.lower(), score_cutoff=2) <= 2
    ]

    assert near == []


def test_they_are_sorted_and_unique() -> None:
    """A new name has one place to go."""
    assert list(POOL) == sorted(set(POOL))


def test_they_are_easily_typed() -> None:
    """Three to ten ASCII letters, the first one a capital: no quoting, no look-alikes."""
    odd = [name for name in POOL if not (name.isascii() and name.isalpha() and 3 <= len(name) <= 10)]

    assert odd == []
    assert [name for name in POOL if not name[0].isupper()] == []
