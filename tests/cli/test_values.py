"""Values as people type them."""

from __future__ import annotations

import time

import pytest

from cli.values import check_utf8, duration, number, parse_moment
from gitmem.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("1h", 3600), ("2d", 172800), ("1w", 604800), ("1.5", 1.5), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    """A number and a unit; seconds without one."""
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "soon", "nan", "inf", "1e99d", "1 hour"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With what would be one."""
    with pytest.raises(UsageError):
        duration(text)


def test_moments_are_so_long_ago_or_iso() -> None:
    """UTC where nothing else is said."""
    assert abs(parse_moment("1h") - (time.time() - 3600) * 1e6) < 5e6
    assert parse_moment("1970-01-02") == 86_400_000_000
    assert parse_moment("1970-01-01T01:00:00+01:00") == 0
    assert parse_moment("2026-11-21T20:00:00Z") == parse_moment("2026-11-21T20:00:00")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "1x"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    """With what would be one."""
    with pytest.raises(UsageError):
        parse_moment(text)


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1.5", "٣", "9" * 13])
def test_what_is_no_number_is_refused(text: str) -> None:
    """Only whole numbers of 1 or more."""
    with pytest.raises(UsageError):
        number("--limit", text, 5)


def test_numbers() -> None:
    """The default where nothing is given."""
    assert number("--limit", None, 5) == 5
    assert number("--limit", "12", 5) == 12


def test_text_must_be_utf8() -> None:
    """Bytes of another encoding arrive as surrogates; only the name of a folder may be any bytes."""
    check_utf8(["-C", "fo\udcefder", "signal", "naïve →"])
    with pytest.raises(UsageError, match="Argument 2 "):
        check_utf8(["signal", "na\udcefve"])
