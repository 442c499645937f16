"""Decay: the score is the product that the documentation says, whatever the clock says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import UsageError
from gitmem.memory import decay
from tests.each import each

from ..sandbox import DAY, START

MONTH = 30 * DAY


def test_at_one_half_life_recency_is_one_by_e() -> None:
    """W26: documentation and code of the existing tool disagree; the code counts."""
    assert decay.recency(START, START + MONTH) == pytest.approx(math.exp(-1))


def test_what_lies_ahead_of_the_clock_is_as_young_as_can_be() -> None:
    """A node from a clock that was wrong neither outranks everything nor decays before it was written."""
    assert decay.recency(START + 10 * DAY, START) == 1


@each([(0, 0), (1, math.log(2) / 10), (10, math.log(11) / 10), (-1, 0)])
def test_access_counts_with_its_logarithm(count: int, bonus: float) -> None:
    assert decay.access(count) == pytest.approx(bonus)


@each([("P0", 2), ("P1", 1.5), ("P2", 1), ("P3", 0.5), (None, 1), ("P9", 1)])
def test_priorities_multiply(priority: str | None, factor: float) -> None:
    assert decay.importance(priority) == factor


def test_the_score_is_their_product() -> None:
    found = decay.score_of(START, 3, "P1", now=START + 10 * DAY, half_life=5 * DAY)

    assert found == pytest.approx(math.exp(-2) * (1 + math.log(4) / 10) * 1.5)


@given(
    touched=st.integers(0, 2**53),
    now=st.integers(0, 2**53),
    count=st.integers(0, 10**9),
    half_life=st.integers(1, 2**60),
    priority=st.sampled_from(["P0", "P3", None]),
)
def test_a_score_is_a_number_whatever_the_times(
    touched: int, now: int, count: int, half_life: int, priority: str | None
) -> None:
    """No overflow, no NaN, and never more than a new node has."""
    found = decay.score_of(touched, count, priority, now=now, half_life=half_life)

    assert 0 <= found <= decay.score_of(now, count, priority, now=now)


@each([0, -MONTH, float("nan"), float("inf"), float("-inf")])
def test_a_half_life_that_is_none_is_refused(half_life: int) -> None:
    with pytest.raises(
        UsageError, match=r"half-life must be a time above 0. Nothing was written\.$"
    ) as error:
        decay.validate(half_life)

    assert error.value.hint


@each([0, -0.1, float("nan"), float("inf")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold must be a number above 0") as error:
        decay.validate(MONTH, threshold)

    assert error.value.hint
