"""A task as its worker sees it: what to do, who asks, what was said since, and how to report progress."""

from __future__ import annotations

from ..order.task import WAITING
from ..outcome import command
from ..signals.message_frame import PEERS, quote_lines, sender_text
from ..tasks import artifacts
from ..text.sanitize import SEPARATOR, sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..order.task import FoldedTask
    from .received import Received


FRAME, TEXT = "frame", "text"
INPUT_FORMS = (FRAME, TEXT)


class InputNeededError(Exception):
    """Raised by a function that runs a task to ask its caller; it is called again with the answer in `messages`."""

    state = "input-required"


class AuthNeededError(InputNeededError):
    """The same, where the answer is that the caller has authenticated elsewhere."""

    state = "auth-required"


class Artifact:
    """An artifact that waits to be recorded."""

    def __init__(self, content: Mapping[str, Any], *, append: bool, last_chunk: bool) -> None:
        self.content = content
        self.append = append
        self.last_chunk = last_chunk


Report = str | Artifact  # what a function reports while it works


class TaskRejectedError(Exception):
    """Raised by a function that runs a task to refuse it; its text is the reason."""


class DirectAnswer(str):
    """A result that a client of A2A gets as a message instead of a task."""


class ServedTask:
    """A task that a worker runs.

    Attributes:
        message: What is to be done: the text of a peer.
        messages: The questions of its worker and the answers of its caller since, as (`question` or `answer`, text).
        context: The working memory that the caller hands over: a copy.
        memory: The nodes that it hands over, as they are in this clone.
        handed_over: Both as its record has them, for a server without this log.
        is_canceled: Whether to stop, because the caller no longer wants the result, or nobody may wait for it.
        is_given_back: Whether that is because the worker ends: then another one goes on with the task.
    """

    def __init__(self, task: FoldedTask, progress: Callable[[Report], object], received: Received) -> None:
        record = task.record
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
        """Return whether its run has asked its caller: then the run's output is no result, also if the answer has come meanwhile."""
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
        """Add an artifact: a text, or parts as A2A has them; see `tasks.artifacts.add`. It is recorded with the next progress.

        Raises:
            UsageError: A part has no content.
        """
        self._progress(
            Artifact(artifacts.artifact_of(content, name, artifact_id), append=append, last_chunk=last_chunk)
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
        ask = command("gitmem", "task", "ask", self.task_id, "your question")
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
