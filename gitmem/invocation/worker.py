"""Serve an agent: take the tasks that are for it, one at a time, run them, and report how they end.

A task begins at least once: after a worker has died, its lease ends and another one takes it, three times at most. Of one clone only one
worker runs a task at a time; of clones that have not synced both may. A task with the semantics at-most-once begins once at most.
"""

from __future__ import annotations

import time

from ..commit_process import NOW
from ..errors import GitmemError, StoreError, UsageError
from ..log.lines import format_at
from ..tasks import SUBMITTED, WAITING, WORKING, artifacts, chains, find_task, open_tasks, rules, task_work
from . import received
from .candidates import Candidates
from .log_waiter import LogWaiter
from .progress import Progress
from .runs import RunEnd, failure
from .served_task import ServedTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..agents.caller import Caller
    from ..signals.change_watcher import StopWatching
    from ..store import Store
    from ..tasks.fold import FoldedTask
    from .runs import Run, Start
    from .served_task import Report

LEASE_SECONDS = 60.0
POLL_SECONDS = 0.05  # between two looks at a running task: whether it is canceled
IDLE_SECONDS = 0.5  # between two looks at a log that does not change, and two ticks
RETRY_SECONDS = 2.0  # after an error of the disk


class Worker:
    """Runs the tasks of an agent.

    Args:
        store: The store; other threads may use it meanwhile.
        caller: Returns the session that serves the agent.
        start: Starts a task.
        stop: Ends the worker: a running task is ended and given back.
        lease: Seconds for which a task is taken; it is renewed at a third of that.
        tick: Called between two looks, such as to sync.
        report: Called with a sentence about each task and error.
        accepts: Returns whether to run a task that is for the agent; by default each is.
    """

    def __init__(
        self,
        store: Store,
        caller: Callable[[], Caller],
        start: Start,
        *,
        stop: StopWatching,
        lease: float = LEASE_SECONDS,
        tick: Callable[[], object] = lambda: None,
        report: Callable[[str], object] = lambda sentence: None,
        accepts: Callable[[str], bool] = lambda id: True,
    ) -> None:
        self.store = store
        self.caller = caller
        self.start = start
        self.stop = stop
        self.lease = lease
        self.tick = tick
        self.report = report
        self.accepts = accepts
        self._waiter = LogWaiter(store, stop)
        self._candidates = Candidates(store)
        self._failed: list[str] = []  # own tasks whose failure allows another try
        self._renewals: dict[str, float] = {}  # waiting and running tasks, and when to renew their leases

    def serve(self) -> None:
        """Run tasks until the stop is set."""
        while not self.stop.is_set():
            self.tick()
            stamp = self._waiter.stamp()  # before reading: what arrives meanwhile is a change
            try:
                with self.store.lock, self.store.one_look():
                    caller = self.caller()
                    task = self._next(caller)
                if task is not None:
                    self._run(task, caller)
                if task is not None or self._candidates.is_partial:
                    continue
            except (StoreError, OSError) as error:
                self.report(f"Cannot use the log ({error}); retrying.")
                time.sleep(RETRY_SECONDS)
                continue
            self._waiter.wait(stamp, IDLE_SECONDS)

    def _next(self, caller: Caller) -> FoldedTask | None:
        """Return a task to run that this worker holds now. Taking one whose chain breaks a limit rejects it."""
        for task in self._candidates.look(caller, self._failed, self.accepts):
            if self._may_run(task, caller):
                self._candidates.serve(task)
                return find_task.require(self.store, task.record["task_id"], writing=True)
        return None

    def _may_run(self, task: FoldedTask, caller: Caller) -> bool:
        """Take a task if that is possible; return whether to run it now."""
        id, now = task.record["task_id"], self.store.now()
        mine = rules.own_take(task, task_work.sender_of(caller))
        if mine is not None and not task.is_finished and task.lease(mine) > now:
            if task.state == SUBMITTED:
                return True  # the caller has answered
            if task.state in WAITING and task.cancels:
                self._write(lambda: task_work.report(self.store, caller, id, "canceled"))
            elif task.state in WAITING:
                self._renew_if_due(caller, id)
            if task.state != WORKING or task.cancels:
                return False
            if not rules.is_once(task):
                return True  # an earlier run here could not report its end
            error = failure("LOST", "Lost", "Its end could not be recorded, and it may begin only once.")
            self._write(lambda: task_work.report(self.store, caller, id, error.state, payload=error.payload))
            return False
        return self._take(task, caller)

    def _take(self, task: FoldedTask, caller: Caller) -> bool:
        """Take a task if that is possible; after a refusal, such as of an unreachable remote, try again later."""
        id, now = task.record["task_id"], self.store.now()
        if id in self._failed:
            self._failed.remove(id)
        over = open_tasks.over_limit(self.store.db(), task) if not task.takes else None
        if over is not None:
            code, sentence = over
            if task.rejection_by(task_work.sender_of(caller)) is None:
                self._write(lambda: task_work.reject(self.store, caller, id, sentence, code=code))
            self._candidates.set_aside(task)  # one for a role stays open
            return False
        is_refused = rules.take(task, task_work.sender_of(caller), caller.ids, now) is not None
        took = not is_refused and self._write(
            lambda: task_work.take(self.store, caller, id, lease=int(self.lease * 1_000_000))
        )
        if not took:
            self._candidates.set_aside(task)
        return took

    def _run(self, task: FoldedTask, caller: Caller) -> None:
        """Run a task until it ends, its caller cancels it, its deadline is over, or somebody else has it."""
        id = task.record["task_id"]
        progress = Progress()
        with self.store.lock, self.store.one_look():
            inherited = received.receive(self.store, task.record)
        served = ServedTask(task, progress.add, inherited)
        self._renewals[id] = time.monotonic() + self.lease / 3
        self.report(f"{id}: begun")
        try:
            run = self.start(served)
        except (OSError, ValueError) as error:
            self._finish(caller, id, failure("CANNOT_START", type(error).__name__, str(error)), served)
            return
        try:
            end = run.poll(0)
            while end is None:
                end = run.poll(POLL_SECONDS) or self._interrupted(caller, served, run)
                self._flush(caller, served, progress)
        finally:
            left = run.end()
        ended = RunEnd(end.state, end.message, {**end.payload, **(left or {})})
        while not self._has_finished(caller, served, progress, ended):
            time.sleep(RETRY_SECONDS)

    def _has_finished(self, caller: Caller, served: ServedTask, progress: Progress, end: RunEnd) -> bool:
        """Report the end of a run; return False to try again, after an error of the disk that comes before the end of the lease.

        Raises:
            StoreError: The lease is over, or the worker ends.
        """
        try:
            self._flush(caller, served, progress, last=True)
            self._finish(caller, served.task_id, end, served)
        except StoreError as error:
            if self.stop.is_set() or self._lease_end(caller, served.task_id) <= self.store.now():
                raise
            self.report(f"{served.task_id}: cannot report its end ({error}); retrying.")
            return False
        return True

    def _lease_end(self, caller: Caller, id: str) -> int:
        with self.store.lock:
            task = find_task.require(self.store, id, writing=True)
            mine = rules.own_take(task, task_work.sender_of(caller))
            return task.lease(mine) if mine is not None else 0

    def _interrupted(self, caller: Caller, served: ServedTask, run: Run) -> RunEnd | None:
        """Return how a running task ends now, if something other than itself ends it."""
        id = served.task_id
        with self.store.lock, self.store.one_look():
            task = find_task.require(self.store, id, writing=True)
            if task.is_finished or rules.own_take(task, task_work.sender_of(caller)) is None:
                return RunEnd("", None)
            if task.cancels:
                return RunEnd("canceled", task.cancels[0].record.get("reason"))
            ends = chains.deadline(self.store, task)
            if ends is not None and ends <= self.store.now():
                return failure("DEADLINE", "TimeoutError", f"It had to end before {format_at(ends)}.")
            if self.stop.is_set():
                served.is_given_back = not rules.is_once(task)
                run.end()
                if not served.is_given_back:
                    return failure("STOPPED", "Stopped", "The worker was ended, and it may begin only once.")
                self._write(lambda: task_work.release(self.store, caller, id, reason="The worker ends."))
                return RunEnd("", None)
            self._renew_if_due(caller, id)
        return None

    def _renew_if_due(self, caller: Caller, id: str) -> None:
        if time.monotonic() >= self._renewals.get(id, 0.0):
            self._renewals[id] = time.monotonic() + self.lease / 3
            try:
                self._write(lambda: task_work.renew(self.store, caller, id))
            except StoreError as error:
                if self._lease_end(caller, id) <= self.store.now():
                    raise
                self._renewals[id] = time.monotonic() + min(RETRY_SECONDS, self.lease / 10)
                self.report(f"{id}: cannot renew its lease ({error}); retrying.")

    def _flush(self, caller: Caller, served: ServedTask, progress: Progress, *, last: bool = False) -> None:
        """Record what is due. A text after a question would take the question back, so it is dropped."""
        id, due = served.task_id, progress.due(last=last)
        while due:
            each = due[0]
            try:
                with self.store.lock:
                    task = find_task.require(self.store, id, writing=True)
                    if not (isinstance(each, str) and served.has_asked(task)):
                        self._write(lambda each=each: _record(self.store, caller, id, each))  # type: ignore[misc]
            except StoreError:
                progress.put_back(due, RETRY_SECONDS)
                if last:
                    raise
                return
            del due[0]

    def _finish(self, caller: Caller, id: str, end: RunEnd, served: ServedTask) -> None:
        """Report the end of a run, unless the task has ended otherwise, or waits for an answer."""
        with self.store.lock, self.store.one_look():
            task = find_task.require(self.store, id, writing=True)
            mine = rules.own_take(task, task_work.sender_of(caller))
            if not end.state or task.is_finished or mine is None:
                self.report(f"{id}: {task.state}")
                return
            if end.may_have_asked and (task.state in WAITING or served.has_asked(task)):
                self.report(f"{id}: has asked its caller")
                return
            if not self._report(caller, id, end):
                return
            self.store.wrote = NOW  # its caller waits
            error = end.payload.get("error")
            if isinstance(error, dict) and error.get("retryable") is True:
                self._failed.append(id)
            self.report(f"{id}: {end.state}")

    def _report(self, caller: Caller, id: str, end: RunEnd) -> bool:
        """Record the end of a run; if its text can't be recorded, record that as its failure."""
        try:
            task_work.report(self.store, caller, id, end.state, end.message, payload=end.payload)
        except UsageError as error:
            code = error.code.upper().replace("-", "_")
            message = error.message.removesuffix(" Nothing was written.")
            instead = failure(code, type(error).__name__, message)
            return self._write(
                lambda: task_work.report(self.store, caller, id, instead.state, payload=instead.payload)
            )
        return True

    def _write(self, job: Callable[[], object]) -> bool:
        """Write an event; return False if the task does not allow it, such as because somebody else was first."""
        try:
            job()
        except StoreError:
            raise
        except GitmemError as error:
            self.report(error.message)
            return False
        return True


def _record(store: Store, caller: Caller, id: str, report: Report) -> object:
    if isinstance(report, str):
        return task_work.report(store, caller, id, "working", report)
    return artifacts.add(
        store, caller, id, report.content, append=report.append, last_chunk=report.last_chunk
    )
