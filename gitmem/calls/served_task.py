"""A task as the function or program that runs it sees it, how a run ends, and the run of a Python function in a thread."""

from __future__ import annotations

import threading

from ..order.task import WAITING
from ..outcome import Struct, command
from ..signals.message_frame import PEERS, quote_lines
from ..text.sanitize import SEPARATOR, sanitize_for_model, sender_text
from ..work import task_work
from . import ANSWER, bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from ..order.task import FoldedTask
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
