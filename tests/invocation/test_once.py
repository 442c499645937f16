"""Calls that may begin only once (I11): by the worker, offline, after its death, and at its end."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls.served_task import ServedTask
from gitmem.git.files import FENCES
from gitmem.log import ref
from gitmem.log.start import start
from gitmem.store import wall_clock
from gitmem.work import task_work
from gitmem.work.task_decisions import LOST
from gitmem.work.task_work import LOST_MICROS
from tests.clones import git

from .conftest import PLANNER, PRICES, Serve


def test_a_call_that_may_begin_once_has_a_result(log: Log, serve: Serve) -> None:
    """I11: the worker creates the fence, and runs it as any other call; whoever seals deletes the fence."""
    during: list[str | None] = []

    def pay(task: ServedTask) -> str:
        during.append(log.store.git.tip(FENCES[0] + task.task_id))
        return "paid"

    serve(pay)
    found = log.call("prices", "pay", once=True, timeout=20)
    assert (found.state, found.message) == ("completed", "paid")
    assert during == [ref.GENESIS]
    assert log.store.git.tip(FENCES[0] + found.results[0].task_id) is None


def test_with_a_fence_of_somebody_else_a_worker_begins_nothing(log: Log, serve: Serve) -> None:
    """I11: it was begun, or was about to: nobody can tell. Other calls are served."""
    with gitmem.open(str(log.store.repo.worktree), identity=PRICES) as away:
        away.sessions.start()
    made = log.call(PRICES, "pay", once=True, wait=False)
    task_id = made.results[0].task_id
    log.call(PRICES, "other", wait=False)
    start(log.store.log)
    assert log.store.git.swap(FENCES[0] + task_id, None, ref.GENESIS, "by hand")
    serve(identity=PRICES)
    assert log.call(PRICES, "third", timeout=20).message == "THIRD"
    assert log.wait_for(task_id, timeout=0.1).state == "submitted"


def test_the_caller_learns_that_the_worker_of_a_call_is_lost(repo: Path) -> None:
    """I11: nobody takes it again; the caller pins the failure, once the lease and a minute are over."""
    late = [0]
    with gitmem.open(str(repo), identity=PLANNER, now=lambda: wall_clock() + late[0]) as log:
        log.sessions.start(name="Planck")
        with gitmem.open(str(repo), identity=PRICES) as worker:
            worker.sessions.start(name="prices")
            made = log.call("prices", "pay", once=True, wait=False)
            task_id = made.results[0].task_id
            task_work.take(worker.store, worker.caller, task_id, lease=1_000_000)
        assert log.wait_for(task_id, timeout=0.1).timed_out
        late[0] = LOST_MICROS + 2_000_000
        found = log.wait_for(task_id, timeout=5)
        assert (found.state, found.message, found.timed_out) == ("failed", LOST, False)
        assert task_work.is_over(log.store, task_id)


def test_a_worker_that_is_ended_does_not_give_a_call_back_that_may_begin_once(repo: Path) -> None:
    """I11: another worker would begin it again; the caller gets the failure."""
    stop, begun = threading.Event(), threading.Event()

    def slow(task: ServedTask) -> str:
        begun.set()
        threading.Event().wait(20)
        return "too late"

    with gitmem.open(str(repo), identity=PLANNER) as log, gitmem.open(str(repo), identity=PRICES) as worker:
        log.sessions.start(name="Planck")
        worker.sessions.start(name="prices")
        thread = threading.Thread(target=worker.serve, args=(slow,), kwargs={"stop": stop}, daemon=True)
        thread.start()
        made = log.call("prices", "pay", once=True, wait=False)
        assert begun.wait(20)
        stop.set()
        thread.join(20)
        found = log.wait_for(made.results[0].task_id, timeout=5)
    assert found.state == "failed"
    assert found.error is not None
    assert found.error["code"] == "STOPPED"


@pytest.mark.deep
def test_offline_a_call_that_may_begin_once_waits_for_the_remote(log: Log, serve: Serve, repo: Path) -> None:
    """I11: nothing begins on a guess; the worker goes on with other calls."""
    git("remote", "add", "origin", str(repo.parent / "nowhere.git"), cwd=repo)
    serve()
    waiting = log.call("prices", "pay", once=True, timeout=1)
    assert waiting.timed_out and waiting.state == "submitted"
    assert log.call("prices", "other", timeout=20).message == "OTHER"
