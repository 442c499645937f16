"""Publication: where remotes keep the log is a field of the log itself, set by one commit."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft
from gitmem.log import ref
from gitmem.log.local_log import LocalLog
from gitmem.sync.init import set_publish_ref
from tests.log.logs import all_lines, entry, open_log, record


@pytest.fixture
def log(repo: Path) -> LocalLog:
    return open_log(repo, seed=1)


def leave_lock(log: LocalLog, seconds: float) -> Path:
    """The lock of a process that was killed so long ago."""
    path = Path(log.repo.common, f"{ref.LOG_REF}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


def form(log: LocalLog) -> ref.Format:
    tip = log.git.tip(ref.LOG_REF)
    assert tip is not None
    found = ref.read_format(log.git, log.git.tree(log.git.commit(tip).tree))
    assert found is not None
    return found


def test_a_choice_is_one_commit_of_the_person_with_the_next_turn(log: LocalLog) -> None:
    """So that it wins over the choice before in every clone; the same again is none, and no turn."""
    assert set_publish_ref(log, ref.LOG_REF)
    assert (form(log).publish, form(log).turn) == (ref.LOG_REF, 1)
    tip = log.git.tip(ref.LOG_REF)
    assert not set_publish_ref(log, ref.LOG_REF)
    assert log.git.tip(ref.LOG_REF) == tip
    assert tip is not None and log.git.commit(tip).author.name == "Test Person"
    assert set_publish_ref(log, ref.BRANCH)
    assert (form(log).publish, form(log).turn) == (ref.BRANCH, 2)


@pytest.mark.parametrize("started", [True, False], ids=["a log", "no log yet"])
def test_a_lock_that_the_dead_left_is_no_hindrance(log: LocalLog, started: bool) -> None:
    """It is broken under our own lock, which is free again afterwards."""
    if started:
        record(log, entry(log, "one"))
    left = leave_lock(log, 60)
    assert set_publish_ref(log, ref.LOG_REF)
    assert not left.exists() and form(log).publish == ref.LOG_REF
    lock = log.lock()
    assert lock.take()
    lock.release()


def test_a_lock_that_is_alive_is_said_and_left(log: LocalLog) -> None:
    """Nothing has changed then, and our own lock is free."""
    record(log, entry(log, "one"))
    left = leave_lock(log, 0)
    with pytest.raises(StoreError) as refused:
        set_publish_ref(log, ref.LOG_REF, 3)
    assert (refused.value.code, refused.value.next) == ("locked", ["gitmem doctor"])
    assert ref.LOG_REF in refused.value.message and "again" in refused.value.hint
    assert left.exists() and form(log).publish == ref.BRANCH
    lock = log.lock()
    assert lock.take()
    lock.release()


def test_who_loses_the_race_chooses_on_top_of_what_came(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append without the lock in between: its line stays."""
    record(log, entry(log, "one"))
    tip = log.git.tip(ref.LOG_REF)
    assert tip is not None
    real = log.git.advance
    who = log.signature()
    races = [Draft({"signals/2026-11/21/gm-x.jsonl": b"two\n"}, who, who, "Race\n")]

    def advance(name: str, old: str, draft: Draft, why: str) -> str | None:
        while races:
            assert real(name, old, races.pop(), "race")
        return real(name, old, draft, why)

    monkeypatch.setattr(log.git, "advance", advance)
    assert set_publish_ref(log, ref.LOG_REF)
    assert form(log).publish == ref.LOG_REF and b"two" in all_lines(log) and len(all_lines(log)) == 2
