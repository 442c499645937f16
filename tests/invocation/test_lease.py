"""The lease of a running task: renewed while its worker works, and of no use to a worker that can't write."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls.served_task import ServedTask
from gitmem.errors import StoreError
from gitmem.work import task_rules

from .conftest import PRICES, Serve


def test_i11_a_task_that_takes_longer_than_its_lease_is_renewed_and_begins_once(
    log: Log, serve: Serve
) -> None:
    """Two workers of one agent: the other one never takes it, for it is renewed before the lease ends."""
    begun: list[str] = []

    def slow(task: ServedTask) -> str:
        begun.append(task.task_id)
        time.sleep(2.5)
        return "done"

    serve(slow, lease=1.0)
    serve(slow, name="Bohr", lease=1.0)
    found = log.call(PRICES, "x", timeout=20)
    events = [each.event for each in task_rules.require(log.store, found.results[0].task_id).events.values()]
    assert (found.message, len(begun), events.count("take")) == ("done", 1, 1)
    assert events.count("renew") >= 1


def test_i11_a_worker_without_permission_to_write_begins_nothing_and_goes_on(repo: Path, log: Log) -> None:
    """What can't be recorded is not run: it says why, and takes the task once it may write."""
    stop, refused = threading.Event(), threading.Event()
    said: list[str] = []
    begun: list[str] = []

    def run(task: ServedTask) -> str:
        begun.append(task.task_id)
        return "done"

    from gitmem.calls.served_task import FunctionRun
    from gitmem.calls.worker import Worker

    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices")
        made = log.call("prices", "x", wait=False)

        def report(sentence: str) -> None:
            said.append(sentence)
            refused.set()

        def caller() -> object:
            if not refused.is_set():
                error = OSError(errno.EACCES, os.strerror(errno.EACCES))
                raise StoreError(f"Cannot write: {error.strerror}.", code="read-only") from error
            return own.caller

        worker = Worker(own.store, caller, lambda task: FunctionRun(run, task), stop=stop, report=report)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.serve, daemon=True)
        thread.start()
        assert refused.wait(20)
        assert begun == [] and "Permission denied" in said[0] and "retrying" in said[0]
        assert log.wait_for(made.results[0].task_id, timeout=20).message == "done"
        stop.set()
        thread.join(10)


@pytest.mark.parametrize("step", ["renew its lease", "report its end"])
def test_a_full_disk_ends_no_run_before_its_lease_does(repo: Path, log: Log, step: str) -> None:
    """Else a task that may begin only once were lost, though there is room again a moment later."""
    from gitmem.calls.served_task import FunctionRun
    from gitmem.calls.worker import Worker

    stop, refused = threading.Event(), threading.Event()
    said: list[str] = []
    begun: list[ServedTask] = []
    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices")
        record = own.store.record

        def full(*args: object, **options: object) -> object:
            if refused.is_set():
                return record(*args, **options)  # type: ignore[arg-type]
            raise StoreError(f"Cannot write: {os.strerror(errno.ENOSPC)}.", code="store")

        def report(sentence: str) -> None:
            said.append(sentence)
            if f"cannot {step}" in sentence:
                refused.set()

        def run(task: ServedTask) -> str:
            begun.append(task)
            own.store.record = full  # type: ignore[method-assign, assignment]
            task.progress("at work")
            if step.startswith("renew"):
                assert refused.wait(10)
            return "done" if not task.is_canceled else "canceled"

        worker = Worker(
            own.store,
            lambda: own.caller,
            lambda task: FunctionRun(run, task),
            stop=stop,
            lease=6.0,
            report=report,
        )
        thread = threading.Thread(target=worker.serve, daemon=True)
        thread.start()
        found = log.call("prices", "pay", once=True, timeout=20)
        stop.set()
        thread.join(10)
    assert (found.state, found.message, len(begun)) == ("completed", "done", 1), said
    texts = [
        each.record.get("message")
        for each in task_rules.require(log.store, found.results[0].task_id).events.values()
    ]
    assert "at work" in texts
