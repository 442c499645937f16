"""Calls that nobody ends: their callers learn it, once the deadline is over and nobody works on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls import DEADLINE_SECONDS, WORKER
from gitmem.git.files import FENCES
from gitmem.log import ref
from gitmem.log.committer import start_log
from gitmem.store import wall_clock
from gitmem.sync import autosync
from gitmem.work import handoffs, task_decisions, task_rules, task_work
from tests.clones import git

from ..signing import own_key
from .conftest import PLANNER, PRICES

DEADLINE = int(DEADLINE_SECONDS * 1_000_000)
MINUTE = task_decisions.GRACE_MICROS


class Late:
    """A clock that tests set forward."""

    def __init__(self) -> None:
        self.micros = 0

    def __call__(self) -> int:
        return wall_clock() + self.micros


@pytest.fixture
def late() -> Late:
    return Late()


@pytest.fixture
def log(repo: Path, late: Late) -> Iterator[Log]:
    """The caller's log; the agent that it calls is known, and nobody serves it."""
    own_key(repo)
    with gitmem.open(str(repo), identity=PLANNER, now=late) as found:
        found.sessions.start(name="Planck")
        with gitmem.open(str(repo), identity=PRICES, now=late) as away:
            away.sessions.start(name="prices", client=WORKER)
        yield found


def called(log: Log, **options: bool) -> str:
    return log.call("prices", "pay", wait=False, **options).results[0].task_id  # type: ignore[arg-type]


def fenced(log: Log) -> str:
    """A call that somebody has made a fence for, and never taken."""
    task_id = called(log, once=True)
    start_log(log.store.log)
    assert log.store.git.swap(FENCES[0] + task_id, None, ref.GENESIS, "by hand")
    return task_id


def test_the_caller_of_a_call_that_somebody_fenced_and_never_took_learns_that_it_is_lost(
    log: Log, late: Late
) -> None:
    """Before its deadline that somebody has begun it; then that it is lost, instead of `submitted` for ever."""
    task_id = fenced(log)
    before = log.wait_for(task_id, timeout=0.0)
    assert before.timed_out and before.warnings == [task_decisions.BEGUN]
    assert task_decisions.BEGUN in handoffs.show_handoff(log.store, task_id, log.caller).warnings
    late.micros = DEADLINE + MINUTE - 5_000_000
    assert log.wait_for(task_id, timeout=0.0).timed_out
    late.micros = DEADLINE + MINUTE
    found = log.wait_for(task_id, timeout=5)
    assert (found.state, found.message, found.timed_out) == ("failed", task_decisions.FENCED, False)
    assert task_rules.require(log.store, task_id).decided_by == "seal"


def test_a_look_of_the_session_that_called_gives_up_what_nobody_took_and_no_other_look_does(
    log: Log, late: Late, repo: Path
) -> None:
    """M3: only the session that wrote it seals, also not another one of its agent."""
    task_id = called(log)
    late.micros = DEADLINE + MINUTE
    with gitmem.open(str(repo), identity=PLANNER, now=late) as other:
        other.sessions.start(name="Second")
        assert handoffs.show_handoff(other.store, task_id, other.caller).state == "submitted"
    assert handoffs.show_handoff(log.store, task_id).state == "submitted"
    found = handoffs.show_handoff(log.store, task_id, log.caller)
    assert (found.state, found.seal and found.seal.get("reason")) == ("failed", task_decisions.UNTAKEN)


def test_a_call_that_somebody_works_on_is_not_given_up_before_its_lease_is_over(
    log: Log, late: Late, repo: Path
) -> None:
    task_id = called(log)
    late.micros = DEADLINE - 5_000_000
    with gitmem.open(str(repo), identity=PRICES, now=late) as worker:
        worker.sessions.start()
        task_work.take(worker.store, worker.caller, task_id, lease=10 * MINUTE)
    late.micros = DEADLINE + 5 * MINUTE
    assert log.wait_for(task_id, timeout=0.0).timed_out
    late.micros = DEADLINE + 11 * MINUTE
    assert log.wait_for(task_id, timeout=5).message == task_decisions.UNFINISHED


def test_a_call_is_not_given_up_before_the_remote_was_read_after_its_deadline(
    log: Log, late: Late, repo: Path
) -> None:
    """Its result may be there."""
    git("remote", "add", "origin", str(repo.parent / "nowhere.git"), cwd=repo)
    task_id = called(log)
    autosync.record_read(log.store.repo, log.store.now() / 1e6)
    late.micros = DEADLINE + MINUTE
    assert log.wait_for(task_id, timeout=0.0).timed_out
    autosync.record_read(log.store.repo, log.store.now() / 1e6)
    assert log.wait_for(task_id, timeout=5).message == task_decisions.UNTAKEN


def test_a_waiting_caller_asks_the_remote_for_the_fence_of_another_clone(
    log: Log, late: Late, repo: Path
) -> None:
    """A fence is never fetched."""
    there = repo.parent / "there.git"
    git("init", "-q", "--bare", str(there), cwd=repo.parent)
    git("remote", "add", "origin", str(there), cwd=repo)
    task_id = called(log, once=True)
    start_log(log.store.log)
    oid = ref.genesis(start_log(log.store.log))
    git("push", "-q", "origin", f"{oid}:{FENCES[0]}{task_id}", cwd=repo)
    late.micros = DEADLINE + MINUTE
    assert not os.path.exists(os.path.join(log.store.repo.state, autosync.READ))
    assert log.wait_for(task_id, timeout=5).message == task_decisions.FENCED


def test_a_delegation_is_not_given_up(log: Log, late: Late) -> None:
    """People take it after its deadline, and say so."""
    made = log.tasks.delegate(
        "Write it", to="prices", deadline=log.store.now() + MINUTE, role="implementer/test", wu="WU-1"
    )
    late.micros = 10 * MINUTE
    assert handoffs.show_handoff(log.store, made.task["task_id"], log.caller).state == "submitted"
    assert log.wait_for(made.task["task_id"], timeout=0.0).timed_out
