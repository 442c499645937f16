"""Runs of tasks: their ends, and the run of a Python function in a thread."""

from __future__ import annotations

import threading

from . import ANSWER, bundle_encoding
from .served_task import DirectAnswer, InputNeededError, TaskRejectedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from .served_task import ServedTask

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
    Start = Callable[[ServedTask], Run]
    Function = Callable[[ServedTask], str | Mapping[str, Any] | None]

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
            text = bundle_encoding.shown(value)
        except (TypeError, ValueError, RecursionError) as error:
            return failure("BAD_RESULT", type(error).__name__, f"The object is not JSON: {error}")
        return completed(text, {"result": value})
    return failure(
        "BAD_RESULT", "TypeError", f"The function returned a {type(value).__name__}, not a text or an object."
    )
