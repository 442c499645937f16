"""What a call does while it waits."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls import WORKER
from gitmem.commit_process import NOW
from gitmem.errors import GateError
from gitmem.index import engine, index_file
from gitmem.work import task_work
from tests.file_faults import at

from .conftest import PRICES


def test_a_call_ticks_when_its_task_is_recorded(log: Log, repo: Path) -> None:
    """And the task asks for a sync at once: a command that waits for another clone must not sync only at its end."""
    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices", client=WORKER)
    log.store.wrote = 0
    ticks: list[tuple[int, int]] = []

    found = log.call(
        "prices",
        "add",
        timeout=0.0,
        tick=lambda: ticks.append((len(log.tasks.list().tasks), log.store.wrote)),
    )

    assert found.timed_out
    assert ticks == [(1, NOW)]


def test_a_take_sees_what_others_recorded_since_its_step_began(log: Log, repo: Path) -> None:
    """A step looks at the log once, but a take once more when it has its lock: else two workers of a clone run one task."""
    with gitmem.open(str(repo), identity=PRICES) as one, gitmem.open(str(repo), identity=PRICES) as other:
        one.sessions.start(name="prices", client=WORKER)
        other.sessions.start(name="second", client=WORKER)
        called = log.call("prices", "add", wait=False)
        task_id = called.results[0].task_id
        with one.store.lock, one.store.one_look():
            one.store.db()
            caller = one.caller
            other.tasks.take(task_id)

            with pytest.raises(GateError):
                task_work.take(one.store, caller, task_id)


def test_i11_a_call_says_that_its_result_is_sealed_while_another_process_holds_the_index(
    log: Log, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seal that it has just written is not in the index then: it must not answer from that."""
    with gitmem.open(str(repo), identity=PRICES) as worker:
        worker.sessions.start(name="prices", client=WORKER)
        task_id = log.call("prices", "add", wait=False, idempotency_key="k", once=True).results[0].task_id
        worker.tasks.take(task_id)
        worker.tasks.report(task_id, "completed", "3")
    path = index_file.path(log.store.repo, log.store.machine)
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def hold() -> None:
        holder.execute("BEGIN IMMEDIATE")
        threading.Timer(engine.AFTER_COMMIT_MILLISECONDS / 1000 + 0.5, holder.close).start()

    held = at(monkeypatch, "fdatasync", "*.deferred1", hold)

    found = log.call("prices", "add", idempotency_key="k", once=True, timeout=20)

    assert len(held) == 1
    assert (found.state, found.results[0].message, found.results[0].confirmed) == ("completed", "3", True)
