"""Serve an agent: take the tasks that are for it, one at a time, run them as functions or programs, and report how they end.

A task begins at least once: after a worker has died, its lease ends and another one takes it, three times at most. Of one clone only one
worker runs a task at a time; of clones that have not synced both may. A task with the semantics at-most-once begins once at most.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from ..agents import lifecycle, presence
from ..agents.caller import CallerClaims
from ..commit_process import NOW
from ..errors import GitmemError, StoreError, UsageError
from ..log.lines import format_at
from ..order.task import SUBMITTED, WAITING, WORKING
from ..outcome import Struct, command
from ..signals.message_frame import PEERS, quote_lines
from ..signals.watch import LogWaiter
from ..text.addresses import words_of
from ..text.name_matching import fold
from ..text.sanitize import SEPARATOR, sanitize_for_model, sender_text
from ..work import stored_tasks, task_rules, task_state, task_work
from ..work.task_roles import addressed_by
from . import ANSWER, WORKER, bundle, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionResult
    from ..order.task import FoldedTask
    from ..signals.watch import StopWatching
    from ..store import Store
    from .bundle import Received

    class Run(Protocol):
        """A task that is being run."""

        def poll(self, seconds: float) -> RunEnd | None:
            """Wait for its end, at most this many seconds."""
            ...

        def end(self) -> Mapping[str, Any] | None:
            """End it if it still runs, and return what it leaves, for the payload of its end.

            A function can't be ended: it goes on, and nobody waits for its result.
            """
            ...

    # Starts a task. It must return at once.
    Start = Callable[["ServedTask"], Run]
    Function = Callable[["ServedTask"], str | Mapping[str, Any] | None]


FRAME, TEXT = "frame", "text"
INPUT_FORMS = (FRAME, TEXT)


class InputNeededError(Exception):
    """Raised by a function that runs a task to ask its caller; it is called again with the answer in `messages`."""

    state = "input-required"


class AuthNeededError(InputNeededError):
    """The same, where the answer is that the caller has authenticated elsewhere."""

    state = "auth-required"


class Artifact(Struct):
    """An artifact that waits to be recorded."""

    content: Mapping[str, Any]
    append: bool
    last_chunk: bool


Report = str | Artifact  # what a function reports while it works


class TaskRejectedError(Exception):
    """Raised by a function that runs a task to refuse it; its text is the reason."""


class DirectAnswer(str):
    """A result that a client of A2A gets as a message instead of a task."""


class ServedTask:
    """A task that a worker runs.

    Attributes:
        session: The session of its worker.
        message: What is to be done: the text of a peer.
        messages: The questions of its worker and the answers of its caller since, as (`question` or `answer`, text).
        context: The working memory that the caller hands over: a copy.
        memory: The nodes that it hands over, as they are in this clone.
        handed_over: Both as its record has them, for a server without this log.
        is_canceled: Whether to stop, because the caller no longer wants the result, or nobody may wait for it.
        is_given_back: Whether that is because the worker ends: then another one goes on with the task.
    """

    def __init__(
        self, task: FoldedTask, session: str, progress: Callable[[Report], object], received: Received
    ) -> None:
        record = task.record
        self.session = session
        self.task_id = record["task_id"]
        self.thread_id = record["thread_id"]
        self.message = record["message"]
        self.purpose = record["purpose"]
        self.caller = record["sender_identity"]
        self.caller_name = record.get("sender_name")
        self.context: Mapping[str, Any] = received.context
        self.memory = received.memory_snapshot
        self.handed_over: Mapping[str, Any] = record.get("context") or {}
        self._inherited = received.text
        self.payload: Mapping[str, Any] = record.get("payload") or {}
        self.messages = _said(task)
        self.is_canceled = False
        self.is_given_back = False
        self._progress = progress

    def has_asked(self, task: FoldedTask) -> bool:
        """Return whether the run has asked the caller a question. Its output is then not the result, even if the answer has arrived."""
        before, now = ([kind for kind, _ in each].count("question") for each in (self.messages, _said(task)))
        return now > before

    def progress(self, text: str) -> None:
        """Report progress; it is recorded at most once a second, with all reports since."""
        self._progress(text)

    def artifact(
        self,
        content: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        name: str | None = None,
        artifact_id: str | None = None,
        append: bool = False,
        last_chunk: bool = True,
    ) -> None:
        """Add an artifact: a text, or parts as A2A has them; see `work.task_work.add_artifact`. It is recorded with the next progress.

        Raises:
            UsageError: A part has no content.
        """
        self._progress(
            Artifact(task_work.artifact_of(content, name, artifact_id), append=append, last_chunk=last_chunk)
        )

    def input(self, form: str = FRAME) -> str:
        """Return the standard input of a program that runs it.

        Args:
            form: `text` for the bare text; `frame` for a model, which must see whose text this is. In the frame no line begins with a peer's text,
                such as a command of the model's client.
        """
        if form == TEXT:
            return "\n\n".join([self.message, *(text for _, text in self.messages)])
        parts = (
            self.task_id,
            self.purpose,
            f"from {sender_text(self.caller_name, self.caller)}",
            self.thread_id,
        )
        lines = [f"[{SEPARATOR.join(map(sanitize_for_model, parts))}]", PEERS, *quote_lines(self.message)]
        if self._inherited:
            lines += [self._inherited.rstrip("\n")]
        for kind, text in self.messages:
            lines += ["You asked:" if kind == "question" else "The caller answered:", *quote_lines(text)]
        ask = command("gitmem", "task", "message", "--ask", self.task_id, "your question")
        lines.append(f"Your standard output is the answer. To ask first, run `{ask}` and end.")
        return "\n".join(lines) + "\n"


def _said(task: FoldedTask) -> list[tuple[str, str]]:
    """Return the questions of the holders of a task and the answers of its caller, in order."""
    found = []
    for each in sorted(task.events.values(), key=lambda each: each.line):
        text = each.record.get("message")
        if text and each.event == "status" and each.state in WAITING and task.counts(each):
            found.append(("question", text))
        elif text and each.event == "message" and each.sender[0] == task.caller[0]:
            found.append(("answer", text))
    return found


RESULT_MAX_BYTES = 64 * 1024  # of a text of a record
NO_ANSWER = "NO_ANSWER"  # the code of the failure of a coding agent that has ended without an answer
TEMPORARY = 75  # the exit status EX_TEMPFAIL of sysexits.h: another try may succeed


class RunEnd:
    """The end of a run.

    Attributes:
        state: `completed`, `failed`, or `input-required` or `auth-required` with a question.
        message: The result, the text of the error, or the question; None without a text.
        payload: Content beyond it.
    """

    def __init__(self, state: str, message: str | None, payload: Mapping[str, Any] | None = None) -> None:
        self.state = state
        self.message = message or None
        self.payload = dict(payload or {})

    @property
    def may_have_asked(self) -> bool:
        """Whether a run that has asked its caller ends like this: its output, or that there is none, means nothing then."""
        return self.state == "completed" or self.payload.get("error", {}).get("code") == NO_ANSWER


def failure(code: str, type: str, message: str, *, retryable: bool = False) -> RunEnd:
    """Return the end of a run that failed, with its error as its callers get it."""
    error = {"code": code, "type": type, "message": message, "retryable": retryable}
    return RunEnd("failed", None, {"error": error})


def completed(text: str, payload: Mapping[str, Any] | None = None) -> RunEnd:
    """Return the end of a run with a result, or a failure if its text is too large for a record."""
    size = len(text.encode("utf-8", "replace"))
    if size > RESULT_MAX_BYTES:
        return too_large(f"{size} bytes")
    return RunEnd("completed", text, payload)


def too_large(size: str) -> RunEnd:
    """Return the failure of a result that no record can have."""
    return failure(
        "RESULT_TOO_LARGE",
        "ResultTooLarge",
        f"The result has {size}; at most {RESULT_MAX_BYTES} are allowed. Commit it, and name the commit or the file.",
    )


class FunctionRun:
    """A function that runs in a thread.

    Args:
        function: Returns the result: a text, an object, or None. What it raises is the error of the task.
    """

    def __init__(self, function: Function, task: ServedTask) -> None:
        self._function = function
        self._task = task
        self._end: RunEnd | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, name=f"gitmem {task.task_id}", daemon=True).start()

    def poll(self, seconds: float) -> RunEnd | None:
        """Wait for its end, at most this many seconds."""
        self._ended.wait(seconds)
        return self._end

    def end(self) -> None:
        """Tell the function that nobody waits for its result."""
        self._task.is_canceled = True

    def _run(self) -> None:
        try:
            self._end = _result(self._function(self._task))
        except InputNeededError as question:
            self._end = RunEnd(question.state, str(question) or "What next?")
        except TaskRejectedError as reason:
            self._end = RunEnd("rejected", str(reason))
        except BaseException as error:  # whatever ends it: the caller waits for an end
            retryable = getattr(error, "retryable", False) is True
            self._end = failure("EXCEPTION", type(error).__name__, str(error), retryable=retryable)
        self._ended.set()


def _result(value: object) -> RunEnd:
    if isinstance(value, DirectAnswer):
        return completed(value, {ANSWER: "message"})
    if value is None or isinstance(value, str):
        return completed(value or "")
    if isinstance(value, dict):
        try:
            text = bundle.shown_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            return failure("BAD_RESULT", type(error).__name__, f"The object is not JSON: {error}")
        return completed(text, {"result": value})
    return failure(
        "BAD_RESULT", "TypeError", f"The function returned a {type(value).__name__}, not a text or an object."
    )


def start_session(
    store: Store, agent: str, options: Sequence[str] = (), *, name: str | None = None
) -> SessionResult:
    """Start the session of a worker; with a name of the pool if another worker of this agent has its name.

    Args:
        agent: The name or identity of the agent to serve.
        name: The session's name if it is free and valid; by default the agent's, else one of the pool.
        options: Those of `gitmem serve-agent`, which the commands for other names keep.

    Raises:
        UsageError: `bad-name`, `bad-identity`, or `name-in-use` by another agent.
        StoreError: It can't be recorded.
    """
    identity = call.own_address_of(store, agent)
    is_wished, name = name is not None, name or (None if words_of(identity) == words_of(agent) else agent)
    try:
        return lifecycle.start(store, CallerClaims(), agent_identity=identity, name=name, client=WORKER)
    except UsageError as error:
        holders = presence.of_name(store, fold(name or "")) if error.code == "name-in-use" else []
        others = [each for each in holders if each.agent_identity != identity]
        if not is_wished and others:
            free = error.suggestions
            raise UsageError(
                f"The name {name} is in use by {others[0].session_id}. Nothing was recorded.",
                hint=f"Free names: {', '.join(free)}.",
                code=error.code,
                suggestions=free,
                next=[command("gitmem", "serve-agent", other, *options) for other in free],
            ) from error
        if not is_wished and error.code == "bad-name":
            hint = "Use letters of one script, digits, dashes and spaces."
            raise UsageError(error.message, hint=hint, code=error.code, next=["gitmem roster"]) from error
        if not is_wished and not holders:
            raise
    return lifecycle.start(store, CallerClaims(), agent_identity=identity, client=WORKER)


LEASE_SECONDS = 60.0
POLL_SECONDS = 0.05  # between two looks at a running task: whether it is canceled
IDLE_SECONDS = 0.5  # between two looks at a log that does not change, and two ticks
RETRY_SECONDS = 2.0  # after an error of the disk

PROGRESS_SECONDS = 1.0  # between two records of progress

FOLDED_MAX = 200  # tasks that one look folds; the next one goes on
# For which a task is set aside, unless something happens to it, or a lease of it ends before.
ASIDE_MICROS = 60 * 1_000_000
# Open tasks that one look reads, the first of each caller before the second of any; of more the next look reads the next ones: a peer may
# write in any number of names.
ROWS_MAX = 5_000


def acting(store: Store, session: str) -> Callable[[], Caller]:
    """Return what finds the session of a worker as it is now."""
    from ..agents import caller

    who = CallerClaims(as_=session, session=session)

    def own() -> Caller:
        found = caller.find(store, who)
        assert found is not None  # the session is open
        return found

    return own


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
                return task_rules.require(self.store, task.record["task_id"], writing=True)
        return None

    def _may_run(self, task: FoldedTask, caller: Caller) -> bool:
        """Take a task if that is possible; return whether to run it now."""
        id, now = task.record["task_id"], self.store.now()
        mine = task_rules.own_take(task, task_work.sender_of(caller))
        if mine is not None and not task.is_finished and task.lease(mine) > now:
            if task.state == SUBMITTED:
                return True  # the caller has answered
            if task.state in WAITING and task.cancels:
                self._write(lambda: task_work.report(self.store, caller, id, "canceled"))
            elif task.state in WAITING:
                self._renew_if_due(caller, id)
            if task.state != WORKING or task.cancels:
                return False
            if not task_rules.is_once(task):
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
        over = task_rules.over_limit(self.store.db(), task) if not task.takes else None
        if over is not None:
            code, sentence = over
            if task.rejection_by(task_work.sender_of(caller)) is None:
                self._write(lambda: task_work.reject(self.store, caller, id, sentence, code=code))
            self._candidates.set_aside(task)  # one for a role stays open
            return False
        is_refused = task_rules.take(task, task_work.sender_of(caller), caller.ids, now) is not None
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
            inherited = bundle.receive(self.store, task.record)
        served = ServedTask(task, caller.session_id or "", progress.add, inherited)
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
            task = task_rules.require(self.store, id, writing=True)
            mine = task_rules.own_take(task, task_work.sender_of(caller))
            return task.lease(mine) if mine is not None else 0

    def _interrupted(self, caller: Caller, served: ServedTask, run: Run) -> RunEnd | None:
        """Return how a running task ends now, if something other than itself ends it."""
        id = served.task_id
        with self.store.lock, self.store.one_look():
            task = task_rules.require(self.store, id, writing=True)
            if task.is_finished or task_rules.own_take(task, task_work.sender_of(caller)) is None:
                return RunEnd("", None)
            if task.cancels:
                return RunEnd("canceled", task.cancels[0].record.get("reason"))
            ends = task_rules.deadline(self.store, task)
            if ends is not None and ends <= self.store.now():
                return failure("DEADLINE", "TimeoutError", f"It had to end before {format_at(ends)}.")
            if self.stop.is_set():
                served.is_given_back = not task_rules.is_once(task)
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
                    task = task_rules.require(self.store, id, writing=True)
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
            task = task_rules.require(self.store, id, writing=True)
            mine = task_rules.own_take(task, task_work.sender_of(caller))
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
    return task_work.add_artifact(
        store, caller, id, report.content, append=report.append, last_chunk=report.last_chunk
    )


class Progress:
    """Progress that waits to be recorded. Another thread adds to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Report] = []
        self._next = 0.0

    def add(self, report: Report) -> None:
        """Let a report wait."""
        with self._lock:
            self._waiting.append(report if isinstance(report, Artifact) else str(report))

    def due(self, *, last: bool) -> list[Report]:
        """Return what to record now, in order: at most once a second; texts in a row as one, of a long one its end."""
        with self._lock:
            if not self._waiting or (time.monotonic() < self._next and not last):
                return []
            waiting, self._waiting = self._waiting, []
            self._next = time.monotonic() + PROGRESS_SECONDS
        found: list[Report] = []
        for each in waiting:
            if isinstance(each, str) and found and isinstance(found[-1], str):
                found[-1] = f"{found[-1]}\n{each}"
            else:
                found.append(each)
        return [_cut(each) if isinstance(each, str) else each for each in found]

    def put_back(self, reports: Sequence[Report], seconds: float) -> None:
        """Let reports that could not be recorded wait again, for some time."""
        with self._lock:
            self._waiting[:0] = reports
            self._next = time.monotonic() + seconds


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[-RESULT_MAX_BYTES:].decode("utf-8", "ignore")


class Candidates(Struct):
    """The tasks that a worker may run.

    Attributes:
        is_partial: Whether the last look has left some out, which the next one finds.
    """

    _store: Store
    # The candidates of the last look, and the last line of their events.
    _lines: dict[str, int | None] = {}
    # That line, and until when.
    _aside: dict[str, tuple[int | None, int]] = {}
    # Callers of open tasks, and when one of theirs was run last, as a number.
    _served: dict[str, int] = {}
    _runs: int = 0
    _skipped: int = 0  # open tasks that earlier looks have read
    is_partial: bool = False

    def look(
        self, caller: Caller, first: Sequence[str], accepts: Callable[[str], bool]
    ) -> Iterator[FoldedTask]:
        """Yield the tasks that the worker may run, as far as the index and earlier looks tell.

        Args:
            first: Tasks to yield before all others.
            accepts: Returns whether the worker runs the task of an id at all.
        """
        now, db = self._store.now(), self._store.db()
        rows = stored_tasks.for_worker(db, caller.ids, addressed_by(caller), now, ROWS_MAX, self._skipped)
        self._lines = {id: line for id, _, line in rows}
        self._served = {caller: self._served[caller] for _, caller, _ in rows if caller in self._served}
        self._aside = {id: each for id, each in self._aside.items() if now < each[1] <= now + ASIDE_MICROS}
        in_turn = self._in_turn((id, caller) for id, caller, _ in rows if not self._is_aside(id, now))
        self.is_partial = False
        for number, id in enumerate(filter(accepts, [*first, *in_turn])):
            if number == FOLDED_MAX:
                self.is_partial = True
                return
            task = task_state.load_task(db, id)
            if task is None:
                self._aside[id] = self._lines.get(id), now + ASIDE_MICROS
            else:
                yield task
        self.is_partial = len(rows) == ROWS_MAX
        self._skipped = self._skipped + ROWS_MAX if self.is_partial else 0

    def serve(self, task: FoldedTask) -> None:
        """Note that a task is run: then it is the turn of the other callers."""
        self._runs += 1
        self._served[task.caller[0]] = self._runs

    def _in_turn(self, tasks: Iterable[tuple[str, str]]) -> list[str]:
        """Order tasks with their callers: the first of each caller, then the second of each; first those who were served longest ago."""
        before: Counter[str] = Counter()
        found = []
        for id, caller in tasks:
            before[caller] += 1
            found.append((before[caller], self._served.get(caller, 0), id))
        return [id for *_, id in sorted(found, key=lambda each: each[:2])]

    def set_aside(self, task: FoldedTask) -> None:
        """Leave a task out until something happens to it, a lease of it ends, or some time is over."""
        id, now = task.record["task_id"], self._store.now()
        leases = [end for each in task.held if (end := task.lease(each)) > now]
        self._aside[id] = self._lines.get(id), min([now + ASIDE_MICROS, *leases])

    def _is_aside(self, id: str, now: int) -> bool:
        """Return whether a task is set aside. A clock that was set back ends that."""
        line, until = self._aside.get(id, (None, 0))
        return now < until <= now + ASIDE_MICROS and line == self._lines[id]
