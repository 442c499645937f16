"""The clock: every time of a clone is later than the one before, whichever process gave it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.log.local_log import AHEAD_MAX_MICROS, Clock

from .logs import START, FakeClock


def test_the_next_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    """At one instant, and after the wall clock went back a little."""
    path, now = str(tmp_path / "clock"), FakeClock()

    ticks = [Clock(path, now).tick() for _ in range(3)]
    now.forward(-30)
    ticks.append(Clock(path, now).tick())

    assert ticks == [START, START + 1, START + 2, START + 3]


@pytest.mark.parametrize("lasting", [True, False], ids=["same process", "next process"])
def test_many_ticks_at_once_are_all_taken(tmp_path: Path, lasting: bool) -> None:
    """The next line is later than the last of them, whichever process writes it."""
    path, now = str(tmp_path / "clock"), FakeClock()
    clock = Clock(path, now)

    assert clock.tick(100) == START
    assert (clock if lasting else Clock(path, now)).tick() == START + 100


@pytest.mark.parametrize("lasting", [True, False], ids=["same process", "next process"])
def test_a_time_far_ahead_is_not_believed(tmp_path: Path, lasting: bool) -> None:
    """A clock that once stood in another year does not keep all lines there."""
    path, now = str(tmp_path / "clock"), FakeClock(START + 2 * AHEAD_MAX_MICROS)
    clock = Clock(path, now)
    clock.tick()
    now.value = START

    assert (clock if lasting else Clock(path, now)).tick() == START


def test_where_nothing_can_be_remembered_times_still_increase_in_a_process(tmp_path: Path) -> None:
    """The folder is missing, or may not be written: a line from a sandbox has a time, too."""
    clock = Clock(str(tmp_path / "missing" / "clock"), FakeClock())

    assert [clock.tick() for _ in range(3)] == [START, START + 1, START + 2]
    assert not os.path.exists(tmp_path / "missing")
