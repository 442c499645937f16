"""Records in the form of answers, for type checkers alone: import it under `TYPE_CHECKING`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypedDict, final, overload

from .record_types import (
    AuditFields,
    AuditRecord,
    NodeFields,
    NodeRecord,
    ReceiptContent,
    ReceiptRecord,
    SessionFields,
    SessionRecord,
    SignalContent,
    SignalRecord,
    TaskContent,
    TaskEventFields,
    TaskEventRecord,
    TaskRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Conflict(TypedDict):
    """One of several lines of a signal id: its number, how many there are, and what differs."""

    number: int
    shown: int
    versions: int
    differs: Sequence[str]
    clone: NotRequired[str]


class TaskDifference(TypedDict):
    """What a signal or node says of a task, and what the record of the task says instead, which counts.

    Attributes:
        field: `wu_id`, `initiative_id`, `lane`, `target_role`, `sender_role`, `holder` or `state`.
        recorded: None for the holder of a task that nobody has.
    """

    task_id: str
    field: str
    said: str
    recorded: str | None


@final
class ShownSignal(SignalContent):
    """A signal as an answer shows it.

    Attributes:
        kind: In a list of several kinds.
        sender_name: The sender's present name.
        recipient_names: In the log: the present names of the recipients.
        delivery_state: In an inbox: the reader's receipt state, if any.
        delivery: In a thread: the receipt state of each recipient.
        reply_line: The command that answers it.
        message_cut: Whether the message is only a beginning.
        thread_too_large: The id of its thread, if that was not folded.
        unverified: Why its sender is doubtful.
        conflict: Set if other lines with this id differ.
        counts: False if it answers a line that the log lacks.
        decides: False if its decision is void.
        owed: In an inbox: set if the reader owes an answer, AGREE or REJECT.
        asks_about: The proposal that it owes this answer to, if that is not the signal: a withdrawal brings one back.
        settled: Why nobody owes an answer any more: who has taken its task, or what replaced the proposal.
        contradicts: How it differs from the records of the tasks that it is about.
        overdue: Set if its task had to begin before a deadline that is over, and nobody has taken it.
    """

    created_at: str
    intent: str
    interrupt_class: str
    origin: str
    recipients: NotRequired[Sequence[str]]
    kind: NotRequired[Literal["signal"]]
    recipient_names: NotRequired[Sequence[str]]
    delivery_state: NotRequired[str | None]
    delivery: NotRequired[Mapping[str, str]]
    reply_line: NotRequired[str]
    message_cut: NotRequired[bool]
    thread_too_large: NotRequired[str]
    unverified: NotRequired[str]
    conflict: NotRequired[Conflict]
    counts: NotRequired[bool]
    decides: NotRequired[bool]
    owed: NotRequired[bool]
    asks_about: NotRequired[str]
    settled: NotRequired[str]
    contradicts: NotRequired[Sequence[TaskDifference]]
    overdue: NotRequired[bool]


class BlockingSignal(TypedDict):
    """A signal that closes a gate: its metadata and the commands that settle it, not its text."""

    signal_id: str
    created_at: str
    sender_identity: str
    sender_name: str | None
    intent: str
    requires_ack: bool
    thread_id: str | None
    wu_id: str | None
    initiative_id: str | None
    why: str
    commands: list[str]


@final
class ShownReceipt(ReceiptContent):
    """A receipt as an answer shows it."""

    created_at: str
    delivery_state: str
    kind: NotRequired[Literal["receipt"]]
    sender_name: NotRequired[str | None]


@final
class ShownSession(SessionFields):
    """A record of a session as an answer shows it."""

    created_at: str
    kind: NotRequired[Literal["session"]]
    sender_name: NotRequired[str | None]


@final
class ShownNode(NodeFields):
    """A memory node as an answer shows it."""

    created_at: str
    kind: NotRequired[Literal["node"]]


@final
class ShownAudit(AuditFields):
    """A passed gate as an answer shows it."""

    created_at: str
    past: NotRequired[str]
    kind: NotRequired[Literal["audit"]]


@final
class ShownTask(TaskContent):
    """A task as an answer shows it, without its state."""

    created_at: str
    purpose: str
    semantics: str
    kind: NotRequired[Literal["task"]]


@final
class ShownTaskEvent(TaskEventFields):
    """An event of a task as an answer shows it."""

    created_at: str
    kind: NotRequired[Literal["task_event"]]


class Show(Protocol):
    """The type of `records.shown`."""

    @overload
    def __call__(self, record: SignalRecord, *, kind: bool = False) -> ShownSignal: ...
    @overload
    def __call__(self, record: ReceiptRecord, *, kind: bool = False) -> ShownReceipt: ...
    @overload
    def __call__(self, record: SessionRecord, *, kind: bool = False) -> ShownSession: ...
    @overload
    def __call__(self, record: NodeRecord, *, kind: bool = False) -> ShownNode: ...
    @overload
    def __call__(self, record: AuditRecord, *, kind: bool = False) -> ShownAudit: ...
    @overload
    def __call__(self, record: TaskRecord, *, kind: bool = False) -> ShownTask: ...
    @overload
    def __call__(self, record: TaskEventRecord, *, kind: bool = False) -> ShownTaskEvent: ...
    @overload
    def __call__(self, record: Mapping[str, object], *, kind: bool = False) -> Mapping[str, Any]: ...
