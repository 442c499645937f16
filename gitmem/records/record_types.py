"""The records as they are read from lines, and in the form of answers. Written by `tools/compile_kinds.py`: don't edit.

For type checkers: everyday commands must not import it. A record has every required field of its kind, and the other ones where its
line has them. `Fields` are what a writer passes to `Store.line`, where other fields may be missing.
"""

# One field, one line:
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypedDict, final, overload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .kinds import Conflict, TaskDifference


class SignalContent(TypedDict):
    """The content of a `signal`, without recipients, intent, interrupt_class, origin."""
    signal_id: str
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]
    sender_headline: NotRequired[str | None]
    via: NotRequired[str | None]
    target_agent: NotRequired[str | None]
    requested_to: NotRequired[Sequence[str]]
    resolved_by: NotRequired[Sequence[str]]
    workspace_id: NotRequired[str | None]
    thread_id: NotRequired[str | None]
    reply_to: NotRequired[str | None]
    after: NotRequired[Sequence[str]]
    answers_digest: NotRequired[str | None]
    need: NotRequired[str | None]
    veto: NotRequired[Sequence[str]]
    requires_ack: NotRequired[bool]
    message: str
    idempotency_key: NotRequired[str | None]
    wu_id: NotRequired[str | None]
    initiative_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    sender_role: NotRequired[str | None]
    target_role: NotRequired[str | None]
    delegation_id: NotRequired[str | None]
    task_id: NotRequired[str | None]
    artifact_path: NotRequired[str | None]


class SignalFields(SignalContent):
    """The fields of a new `signal`."""
    recipients: NotRequired[Sequence[str]]
    intent: NotRequired[str]
    interrupt_class: NotRequired[str]
    origin: NotRequired[str]


class SignalRecord(SignalContent):
    """A line of the kind `signal`."""
    at: str
    kind: Literal["signal"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]
    seen: NotRequired[Sequence[str] | None]
    recipients: Sequence[str]
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"]
    interrupt_class: str
    origin: str


@final
class ShownSignal(SignalContent):
    """A `signal` as an answer shows it."""
    created_at: str
    kind: NotRequired[Literal["signal"]]
    recipients: Sequence[str]
    intent: str
    interrupt_class: str
    origin: str
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
    no_party: NotRequired[bool]
    owed: NotRequired[bool]
    asks_about: NotRequired[str]
    settled: NotRequired[str]
    contradicts: NotRequired[Sequence[TaskDifference]]
    overdue: NotRequired[bool]
    forgotten: NotRequired[bool]


class ReceiptContent(TypedDict):
    """The content of a `receipt`, without delivery_state."""
    signal_id: str
    reader_identity: str
    reader_session: NotRequired[str | None]
    answers_digest: str
    idempotency_key: NotRequired[str | None]


class ReceiptFields(ReceiptContent):
    """The fields of a new `receipt`."""
    delivery_state: NotRequired[str]


class ReceiptRecord(ReceiptContent):
    """A line of the kind `receipt`."""
    at: str
    kind: Literal["receipt"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]
    seen: NotRequired[Sequence[str] | None]
    delivery_state: Literal["delivered", "acked", "rejected"]


class SessionFields(TypedDict):
    """The fields of a new `session`."""
    session_id: str
    event: str
    agent_identity: NotRequired[str | None]
    display_name: str
    name_chosen: NotRequired[bool]
    clone_id: str
    worktree: NotRequired[str | None]
    wu_id: NotRequired[str | None]
    initiative_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    client: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    harness_session: NotRequired[str | None]
    activity: NotRequired[str | None]
    summary: NotRequired[str | None]
    lifecycle_role: NotRequired[str | None]
    specialty_profile: NotRequired[str | None]
    role_alias: NotRequired[str | None]
    role_pack: NotRequired[str | None]
    capabilities: NotRequired[Sequence[str]]
    actual_ownership_scope: NotRequired[dict[str, object]]
    model: NotRequired[str | None]
    branch: NotRequired[str | None]
    task_id: NotRequired[str | None]
    clear: NotRequired[Sequence[str]]


class SessionRecord(SessionFields):
    """A line of the kind `session`."""
    at: str
    kind: Literal["session"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]
    seen: NotRequired[Sequence[str] | None]


class NodeFields(TypedDict):
    """The fields of a new `node`."""
    id: str
    type: str
    lifecycle: str
    content: str
    priority: NotRequired[str | None]
    tags: NotRequired[Sequence[str]]
    wu_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    paths: NotRequired[Sequence[str]]
    head: NotRequired[str | None]
    branch: NotRequired[str | None]
    sensitive: NotRequired[bool]
    closed: NotRequired[bool]
    archived: NotRequired[bool]
    deleted: NotRequired[bool]
    reason: NotRequired[str | None]
    summarized_into: NotRequired[str | None]
    updated_at: NotRequired[str | None]
    metadata: NotRequired[dict[str, object]]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class NodeRecord(NodeFields):
    """A line of the kind `node`."""
    at: str
    kind: Literal["node"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class PatchContent(TypedDict):
    """The content of a `patch`, without id, node_ids, sender_identity."""
    after: NotRequired[Sequence[str]]
    clear: NotRequired[Sequence[str]]
    type: NotRequired[str | None]
    lifecycle: NotRequired[str | None]
    content: NotRequired[str | None]
    priority: NotRequired[str | None]
    tags: NotRequired[Sequence[str]]
    wu_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    paths: NotRequired[Sequence[str]]
    head: NotRequired[str | None]
    branch: NotRequired[str | None]
    sensitive: NotRequired[bool]
    closed: NotRequired[bool]
    archived: NotRequired[bool]
    deleted: NotRequired[bool]
    reason: NotRequired[str | None]
    summarized_into: NotRequired[str | None]
    metadata: NotRequired[dict[str, object]]
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class PatchFields(PatchContent):
    """The fields of a new `patch`."""
    id: str
    node_ids: Sequence[str]
    sender_identity: str


class PatchRecord(PatchFields):
    """A line of the kind `patch`."""
    at: str
    kind: Literal["patch"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class RelationFields(TypedDict):
    """The fields of a new `relation`."""
    id: str
    from_id: str
    to_id: str
    type: str
    removed: NotRequired[bool]
    after: NotRequired[Sequence[str]]
    metadata: NotRequired[dict[str, object]]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class RelationRecord(RelationFields):
    """A line of the kind `relation`."""
    at: str
    kind: Literal["relation"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class AccessFields(TypedDict):
    """The fields of a new `access`."""
    id: str
    node_ids: Sequence[str]
    reader_identity: str
    reader_session: NotRequired[str | None]


class AccessRecord(AccessFields):
    """A line of the kind `access`."""
    at: str
    kind: Literal["access"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class AuditFields(TypedDict):
    """The fields of a new `audit`."""
    audit_id: str
    action: str
    reason: str
    reader_identity: str
    signal_ids: NotRequired[Sequence[str]]
    wu_id: NotRequired[str | None]
    initiative_id: NotRequired[str | None]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class AuditRecord(AuditFields):
    """A line of the kind `audit`."""
    at: str
    kind: Literal["audit"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class TaskContent(TypedDict):
    """The content of a `task`, without purpose, semantics."""
    task_id: str
    thread_id: str
    message: str
    agent: NotRequired[str | None]
    requested_to: NotRequired[str | None]
    resolved_by: NotRequired[str | None]
    target_role: NotRequired[str | None]
    requested_role: NotRequired[dict[str, object]]
    requested_ownership_scope: NotRequired[dict[str, object]]
    requested_model: NotRequired[str | None]
    priority: NotRequired[str | None]
    blocked_by: NotRequired[Sequence[str]]
    payload: NotRequired[dict[str, object]]
    context: NotRequired[dict[str, object]]
    brief_digest: NotRequired[str | None]
    artifact_path: NotRequired[str | None]
    deadline: NotRequired[str | None]
    chain: NotRequired[Sequence[str]]
    references: NotRequired[Sequence[str]]
    supersedes: NotRequired[Sequence[str]]
    handoff_takes: NotRequired[Sequence[str]]
    handoff_tasks: NotRequired[Sequence[str]]
    handoff_claims: NotRequired[Sequence[str]]
    handoff_threads: NotRequired[Sequence[str]]
    checkpoint: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]
    wu_id: NotRequired[str | None]
    initiative_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class TaskFields(TaskContent):
    """The fields of a new `task`."""
    purpose: NotRequired[str]
    semantics: NotRequired[str]


class TaskRecord(TaskContent):
    """A line of the kind `task`."""
    at: str
    kind: Literal["task"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]
    purpose: str
    semantics: str


@final
class ShownTask(TaskContent):
    """A `task` as an answer shows it."""
    created_at: str
    kind: NotRequired[Literal["task"]]
    purpose: str
    semantics: str
    forgotten: NotRequired[bool]


class TaskEventFields(TypedDict):
    """The fields of a new `task_event`."""
    event_id: str
    task_id: str
    event: str
    after: NotRequired[Sequence[str]]
    take: NotRequired[str | None]
    until: NotRequired[str | None]
    state: NotRequired[str | None]
    retryable: NotRequired[bool]
    outcome: NotRequired[str | None]
    answers_digest: NotRequired[str | None]
    message: NotRequired[str | None]
    payload: NotRequired[dict[str, object]]
    append: NotRequired[bool]
    last_chunk: NotRequired[bool]
    reason: NotRequired[str | None]
    level: NotRequired[str | None]
    actual_role: NotRequired[dict[str, object]]
    actual_ownership_scope: NotRequired[dict[str, object]]
    requested_model: NotRequired[str | None]
    model: NotRequired[str | None]
    client: NotRequired[str | None]
    worktree: NotRequired[str | None]
    branch: NotRequired[str | None]
    launch: NotRequired[str | None]
    relaunch_of: NotRequired[str | None]
    attempt: NotRequired[str | None]
    wave: NotRequired[str | None]
    lane: NotRequired[str | None]
    claimed_mode: NotRequired[str | None]
    handoff_path: NotRequired[str | None]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class TaskEventRecord(TaskEventFields):
    """A line of the kind `task_event`."""
    at: str
    kind: Literal["task_event"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


@final
class ShownTaskEvent(TaskEventFields):
    """A `task_event` as an answer shows it."""
    created_at: str
    kind: NotRequired[Literal["task_event"]]
    forgotten: NotRequired[bool]


class ClaimContent(TypedDict):
    """The content of a `claim`, without mode."""
    claim_id: str
    event: str
    paths: Sequence[str]
    until: NotRequired[str | None]
    reason: NotRequired[str | None]
    task_id: NotRequired[str | None]
    wu_id: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    after: NotRequired[Sequence[str]]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class ClaimFields(ClaimContent):
    """The fields of a new `claim`."""
    mode: NotRequired[str]


class ClaimRecord(ClaimContent):
    """A line of the kind `claim`."""
    at: str
    kind: Literal["claim"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]
    mode: str


class CommitFields(TypedDict):
    """The fields of a new `commit`."""
    link_id: str
    commit: str
    patch_id: NotRequired[str | None]
    authored_at: NotRequired[str | None]
    action: str
    evidence: str
    sources: NotRequired[Sequence[str]]
    parts: NotRequired[Sequence[str]]
    branch: NotRequired[str | None]
    task_id: NotRequired[str | None]
    wu_id: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class CommitRecord(CommitFields):
    """A line of the kind `commit`."""
    at: str
    kind: Literal["commit"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class AttestationFields(TypedDict):
    """The fields of a new `attestation`."""
    key: str
    clone: str
    number: str
    before: NotRequired[str | None]
    lines: str
    signature: str


class AttestationRecord(AttestationFields):
    """A line of the kind `attestation`."""
    at: str
    kind: Literal["attestation"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class ForgetFields(TypedDict):
    """The fields of a new `forget`."""
    forget_id: str
    lines: Sequence[str]
    of: NotRequired[str | None]
    about: str
    reason: str
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class ForgetRecord(ForgetFields):
    """A line of the kind `forget`."""
    at: str
    kind: Literal["forget"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


class TrustFields(TypedDict):
    """The fields of a new `trust`."""
    trust_id: str
    event: str
    other: str
    words: NotRequired[Sequence[str]]
    signature: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class TrustRecord(TrustFields):
    """A line of the kind `trust`."""
    at: str
    kind: Literal["trust"]
    writer: NotRequired[str | None]
    texts: NotRequired[str | None]


AnyFields = SignalFields | ReceiptFields | SessionFields | NodeFields | PatchFields | RelationFields | AccessFields | AuditFields | TaskFields | TaskEventFields | ClaimFields | CommitFields | AttestationFields | ForgetFields | TrustFields

AnyRecord = SignalRecord | ReceiptRecord | SessionRecord | NodeRecord | PatchRecord | RelationRecord | AccessRecord | AuditRecord | TaskRecord | TaskEventRecord | ClaimRecord | CommitRecord | AttestationRecord | ForgetRecord | TrustRecord


class ReadKind(Protocol):
    """The type of `records.read_kind`."""
    @overload
    def __call__(self, kind: Literal["signal"], line: bytes) -> SignalRecord | None: ...
    @overload
    def __call__(self, kind: Literal["receipt"], line: bytes) -> ReceiptRecord | None: ...
    @overload
    def __call__(self, kind: Literal["session"], line: bytes) -> SessionRecord | None: ...
    @overload
    def __call__(self, kind: Literal["node"], line: bytes) -> NodeRecord | None: ...
    @overload
    def __call__(self, kind: Literal["patch"], line: bytes) -> PatchRecord | None: ...
    @overload
    def __call__(self, kind: Literal["relation"], line: bytes) -> RelationRecord | None: ...
    @overload
    def __call__(self, kind: Literal["access"], line: bytes) -> AccessRecord | None: ...
    @overload
    def __call__(self, kind: Literal["audit"], line: bytes) -> AuditRecord | None: ...
    @overload
    def __call__(self, kind: Literal["task"], line: bytes) -> TaskRecord | None: ...
    @overload
    def __call__(self, kind: Literal["task_event"], line: bytes) -> TaskEventRecord | None: ...
    @overload
    def __call__(self, kind: Literal["claim"], line: bytes) -> ClaimRecord | None: ...
    @overload
    def __call__(self, kind: Literal["commit"], line: bytes) -> CommitRecord | None: ...
    @overload
    def __call__(self, kind: Literal["attestation"], line: bytes) -> AttestationRecord | None: ...
    @overload
    def __call__(self, kind: Literal["forget"], line: bytes) -> ForgetRecord | None: ...
    @overload
    def __call__(self, kind: Literal["trust"], line: bytes) -> TrustRecord | None: ...


class Show(Protocol):
    """The type of `records.shown`."""
    @overload
    def __call__(self, record: SignalRecord, *, kind: bool = False) -> ShownSignal: ...
    @overload
    def __call__(self, record: TaskRecord, *, kind: bool = False) -> ShownTask: ...
    @overload
    def __call__(self, record: TaskEventRecord, *, kind: bool = False) -> ShownTaskEvent: ...
    @overload
    def __call__(self, record: Mapping[str, object], *, kind: bool = False) -> Mapping[str, Any]: ...
