"""The kinds of record, each with its pydantic model: the only definition of its fields, and the objects of roles in them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .base import (
    AccessId,
    Address,
    AgentIdentity,
    At,
    AuditId,
    ClaimId,
    CommitId,
    Digest,
    DisplayName,
    EventId,
    Line,
    LinkId,
    Message,
    NodeId,
    PatchId,
    Path,
    Record,
    RelationId,
    SessionId,
    ShortLine,
    SignalId,
    Tag,
    TaskId,
    TextRule,
    ThreadId,
    WorkUnit,
)

INTERRUPTS = ("priority", "advisory")
RESOLUTIONS = ("exact", "folded", "alias", "role", "prefix", "fuzzy")
CLEARABLE = (
    "wu_id", "initiative_id", "lane", "activity", "lifecycle_role", "specialty_profile", "role_alias", "role_pack",
    "capabilities", "actual_ownership_scope", "model", "branch", "task_id",
)  # fmt: skip
PURPOSES = ("call", "delegation", "handoff")
SEMANTICS = ("at-least-once", "at-most-once")
PRIORITIES = ("P0", "P1", "P2", "P3")
EVENTS = ("launch", "take", "renew", "release", "status", "artifact", "message", "cancel", "seal", "close", "escalate")  # fmt: skip
STATES = ("working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected")
LEVELS = ("warning", "error", "critical")
CLAIM_EVENTS = ("claim", "renew", "release")
MODES = ("exclusive", "shared")
ACTIONS = ("commit", "amend", "merge", "revert", "cherry-pick", "rebase", "squash", "apply", "rewrite")
EVIDENCE = ("environment", "output", "alone", "none")


class Signal(Record):
    """A message with its sender, recipients and subject."""

    KIND: ClassVar[str] = "signal"
    STREAM: ClassVar[str] = "signals"
    KEPT: ClassVar[tuple[str, ...]] = ("recipients",)
    FIRST_OF: ClassVar[dict[str, str]] = {"target_agent": "recipients"}
    MAY_DIFFER: ClassVar[tuple[str, ...]] = (
        "sender_session", "sender_name", "sender_headline", "sender_role", "target_agent", "requested_to", "resolved_by", "after",
        "answers_digest", "seen", "interrupt_class",  # the turn limit of one clone may lower it
    )  # fmt: skip

    kind: Literal["signal"] = Field(default="signal", description="Always `signal`.")
    signal_id: SignalId = Field(description="The id of this signal, for replies and receipts.")
    sender_identity: Address = Field(
        description="The sender: an agent identity, else a session id, else `human:<mail>`."
    )
    sender_session: Address | None = Field(default=None, description="The session that sent it.")
    sender_name: Line | None = Field(default=None, description="The sender's display name when it was sent.")
    sender_headline: Line | None = Field(default=None, description="The sender's headline when it was sent.")
    via: Address | None = Field(
        default=None, description="The session that recorded this in the sender's name."
    )
    recipients: Annotated[tuple[Address, ...], Field(strict=False)] = Field(
        default=(),
        description="The recipients: agent identities, session ids, people; empty for a broadcast.",
    )
    target_agent: Address | None = Field(
        default=None,
        description="Deprecated alias of the first recipient; used if `recipients` is missing.",
        deprecated=True,
    )
    requested_to: Annotated[tuple[Line, ...], Field(strict=False)] = Field(
        default=(), description="The recipients as the sender typed them."
    )
    resolved_by: Annotated[
        tuple[Annotated[Line, AfterValidator(TextRule(written=RESOLUTIONS))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="How each recipient was resolved: exact, folded, alias, role, prefix or fuzzy.",
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    thread_id: ThreadId | None = Field(default=None, description="The conversation that it belongs to.")
    reply_to: SignalId | None = Field(default=None, description="Id of the signal to answer.")
    after: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="The latest signals of the thread that its writer had seen."
    )
    answers_digest: Digest | None = Field(
        default=None, description="Digest of the answered line, so that its text cannot be replaced."
    )
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"] = Field(
        default="INFO", description="The role of the signal in its thread."
    )
    interrupt_class: Annotated[ShortLine, AfterValidator(TextRule(written=INTERRUPTS))] = Field(
        default="advisory",
        description="`priority` or `advisory`; other values are accepted on read.",
        examples=list(INTERRUPTS),
    )
    requires_ack: bool = Field(default=False, description="Whether the sender waits for AGREE or REJECT.")
    message: Message = Field(description="The text, unchanged: 1 byte to 64 KiB of UTF-8.")
    idempotency_key: Line | None = Field(
        default=None, description="Signals of one sender with one key are the same signal."
    )
    origin: ShortLine = Field(
        default="local", description="`local`, or the name of the adapter that imported it."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    lane: ShortLine | None = Field(default=None, description="The lane.")
    sender_role: ShortLine | None = Field(default=None, description="The role of the sender.")
    target_role: ShortLine | None = Field(default=None, description="The role of the recipient.")
    delegation_id: ShortLine | None = Field(default=None, description="The delegation that it belongs to.")
    task_id: TaskId | None = Field(default=None, description="The task that it is about.")
    artifact_path: Path | None = Field(default=None, description="A file that it points to.")
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )


class Receipt(Record):
    """One reader has received one signal. The reader's decision is computed from signals, not from receipts."""

    KIND: ClassVar[str] = "receipt"
    STREAM: ClassVar[str] = "receipts"
    MAY_DIFFER: ClassVar[tuple[str, ...]] = ("reader_session", "seen")

    kind: Literal["receipt"] = Field(default="receipt", description="Always `receipt`.")
    signal_id: SignalId = Field(description="The signal that was read.")
    reader_identity: Address = Field(
        description="The reader: an agent identity, else a session id, else `human:<mail>`."
    )
    reader_session: Address | None = Field(default=None, description="The session of the reader.")
    delivery_state: Literal["delivered", "acked", "rejected"] = Field(
        default="delivered",
        description="`acked` and `rejected` are those of importers; decisions override them.",
    )
    answers_digest: Digest = Field(description="Digest of the line that was read.")
    idempotency_key: Line | None = Field(default=None, description="The key of an importing adapter.")
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )


class Session(Record):
    """A session starts, changes or ends; with its fields at that moment."""

    KIND: ClassVar[str] = "session"
    STREAM: ClassVar[str] = "sessions"

    kind: Literal["session"] = Field(default="session", description="Always `session`.")
    session_id: SessionId = Field(description="The id of this session.")
    event: Literal["start", "change", "end"] = Field(description="The event.")
    agent_identity: AgentIdentity | None = Field(
        default=None, description="`owner:role:purpose`: who the agent is, beyond this session."
    )
    display_name: DisplayName = Field(description="The display name: 1 to 64 characters.")
    name_chosen: bool = Field(
        default=False, description="Whether the name was requested, not assigned from the pool."
    )
    clone_id: ShortLine = Field(description="The clone of the session.")
    worktree: Path | None = Field(
        default=None, description="The worktree of the session; none in a bare repository."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit of the session.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative of the session.")
    lane: ShortLine | None = Field(default=None, description="The lane of the session.")
    client: ShortLine | None = Field(
        default=None, description="The client that runs it, such as `claude-code`."
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    harness_session: Address | None = Field(
        default=None, description="The digest of the client's session id."
    )
    activity: ShortLine | None = Field(default=None, description="The current work, in its own words.")
    summary: Line | None = Field(default=None, description="What it did, said at its end.")
    lifecycle_role: ShortLine | None = Field(
        default=None, description="The part that it plays in the work, such as `reviewer`; any value is read."
    )
    specialty_profile: ShortLine | None = Field(
        default=None, description="What it is good at, such as `docs`; any value is read."
    )
    role_alias: ShortLine | None = Field(default=None, description="The alias that its role was given by.")
    role_pack: ShortLine | None = Field(
        default=None, description="The name of the vocabulary that its role was looked up in."
    )
    capabilities: Annotated[tuple[ShortLine, ...], Field(strict=False)] = Field(
        default=(), description="What it can do; capabilities give no role."
    )
    actual_ownership_scope: dict[str, Any] = Field(
        default={},
        description="What it works on: `responsibility_kinds`, `initiative_id`, `wu_ids`, `lane`, `paths`.",
    )
    model: ShortLine | None = Field(default=None, description="The model that runs it.")
    branch: Line | None = Field(default=None, description="The branch of its worktree.")
    task_id: TaskId | None = Field(default=None, description="The task that it works on.")
    clear: Annotated[
        tuple[Annotated[ShortLine, AfterValidator(TextRule(written=CLEARABLE))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="Fields that are removed; a missing field is unchanged.",
    )
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )


class Name(Record):
    """A name is added to the pool or removed from it."""

    KIND: ClassVar[str] = "name"
    STREAM: ClassVar[str] = "names"

    kind: Literal["name"] = Field(default="name", description="Always `name`.")
    name: DisplayName = Field(description="The name: 1 to 64 characters.")
    event: Literal["add", "remove"] = Field(description="Whether the pool gains or loses it.")
    sender_identity: Address | None = Field(
        default=None, description="The agent or person that changed the pool."
    )
    sender_session: Address | None = Field(default=None, description="The session that changed it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Node(Record):
    """A node as it was written. Its present state is computed from the patches that name it."""

    KIND: ClassVar[str] = "node"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["node"] = Field(default="node", description="Always `node`.")
    id: NodeId = Field(description="The id of this node.")
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] = Field(
        description="The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] = Field(
        description="The lifetime; decay does not archive `project` nodes."
    )
    content: Message = Field(description="The text: 1 byte to 64 KiB in UTF-8.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(
        default=None, description="The priority; P0 is the highest."
    )
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(
        default=(), description="Tags to find it by."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(
        default=None, description="The lane for which it is relevant; without one, every lane."
    )
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="Its files and folders, relative to the root of the work tree."
    )
    head: CommitId | None = Field(
        default=None, description="The commit of HEAD when its content was last known to be correct."
    )
    branch: Line | None = Field(default=None, description="The branch of HEAD at that time.")
    sensitive: bool = Field(default=False, description="Whether cleanup keeps it.")
    closed: bool = Field(default=False, description="Whether it is closed; a closed node blocks nothing.")
    archived: bool = Field(default=False, description="Whether it is archived: shown only on request.")
    deleted: bool = Field(default=False, description="Whether it is deleted; only its records remain.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that contains it.")
    updated_at: At | None = Field(default=None, description="The last change of an imported node.")
    metadata: dict[str, Any] = Field(default={}, description="Further data.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Patch(Record):
    """A change of some fields of one or more nodes. For each field the causally last change counts."""

    KIND: ClassVar[str] = "patch"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["patch"] = Field(default="patch", description="Always `patch`.")
    id: PatchId = Field(description="The id of this patch.")
    node_ids: Annotated[tuple[NodeId, ...], Field(strict=False)] = Field(
        description="The nodes that it changes."
    )
    after: Annotated[tuple[PatchId, ...], Field(strict=False)] = Field(
        default=(),
        description="The latest patches of these nodes that its writer had seen.",
    )
    clear: Annotated[
        tuple[Literal[
            "priority", "tags", "wu_id", "session_id", "lane", "paths", "sensitive", "closed", "archived",
            "deleted", "reason", "summarized_into", "metadata",
        ], ...],
        Field(strict=False),
    ] = Field(default=(), description="Fields that become empty.")  # fmt: skip
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] | None = Field(
        default=None, description="The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] | None = Field(
        default=None, description="The lifetime."
    )
    content: Message | None = Field(default=None, description="The text.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(default=None, description="The priority.")
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(default=(), description="All its tags.")
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(default=None, description="The lane for which it is relevant.")
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="All its files and folders."
    )
    head: CommitId | None = Field(
        default=None, description="The commit of HEAD when the node was last known to be correct."
    )
    branch: Line | None = Field(default=None, description="The branch of HEAD at that time.")
    sensitive: bool = Field(default=False, description="Whether cleanup keeps it.")
    closed: bool = Field(default=False, description="Whether it is closed.")
    archived: bool = Field(default=False, description="Whether it is archived.")
    deleted: bool = Field(default=False, description="Whether it is deleted.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that contains it.")
    metadata: dict[str, Any] = Field(
        default={}, description="Entries to change one by one; null removes an entry."
    )
    sender_identity: Address = Field(description="The agent or person that changed it.")
    sender_session: Address | None = Field(default=None, description="The session that changed it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Relation(Record):
    """One node gets or loses a relation to another. The causally last record counts."""

    KIND: ClassVar[str] = "relation"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["relation"] = Field(default="relation", description="Always `relation`.")
    id: RelationId = Field(description="The id of this record.")
    from_id: NodeId = Field(description="The node at its start: the blocker, the parent, the newer node.")
    to_id: NodeId = Field(
        description="The node at its end: the blocked one, the child, the source or the older node."
    )
    type: Literal["blocks", "parent_child", "related", "discovered_from", "supersedes"] = Field(
        description="The type of the relation."
    )
    removed: bool = Field(default=False, description="Whether the relation ends.")
    after: Annotated[tuple[RelationId, ...], Field(strict=False)] = Field(
        default=(), description="The earlier records of the same relation that its writer had seen."
    )
    metadata: dict[str, Any] = Field(default={}, description="Further data.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Access(Record):
    """One reading, with the nodes that it showed. Nodes that are read often decay more slowly."""

    KIND: ClassVar[str] = "access"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["access"] = Field(default="access", description="Always `access`.")
    id: AccessId = Field(description="The id of this access.")
    node_ids: Annotated[tuple[NodeId, ...], Field(strict=False)] = Field(
        description="The nodes that were shown."
    )
    reader_identity: Address = Field(description="The reader.")
    reader_session: Address | None = Field(default=None, description="The session of the reader.")


class Audit(Record):
    """One exception to a rule, with its reason. It changes no state."""

    KIND: ClassVar[str] = "audit"
    STREAM: ClassVar[str] = "audits"

    kind: Literal["audit"] = Field(default="audit", description="Always `audit`.")
    audit_id: AuditId = Field(description="The id of this record.")
    action: ShortLine = Field(description="The rule that was bypassed: `gate` or `checkpoint-gate`.")
    reason: Message = Field(description="The reason, in the sender's words.")
    reader_identity: Address = Field(description="The reader whose signals blocked it.")
    signal_ids: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="The signals that blocked."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    sender_identity: Address = Field(description="The agent or person that did it.")
    sender_session: Address | None = Field(default=None, description="The session that did it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Task(Record):
    """A task as its caller wrote it. Its state is computed from the task events that name it."""

    KIND: ClassVar[str] = "task"
    STREAM: ClassVar[str] = "tasks"
    MAY_DIFFER: ClassVar[tuple[str, ...]] = (
        "sender_session", "sender_name", "requested_to", "resolved_by", "deadline", "chain", "context",  # what is given of it counts
    )  # fmt: skip

    kind: Literal["task"] = Field(default="task", description="Always `task`.")
    task_id: TaskId = Field(description="The id of this task.")
    thread_id: ThreadId = Field(description="The conversation that it belongs to.")
    message: Message = Field(description="What is to be done: 1 byte to 64 KiB of UTF-8.")
    purpose: Annotated[ShortLine, AfterValidator(TextRule(written=PURPOSES))] = Field(
        default="call", description="`call`, `delegation` or `handoff`; other values are accepted on read."
    )
    agent: Address | None = Field(
        default=None, description="Whom it is for; without it, anybody with `target_role` may take it."
    )
    requested_to: Line | None = Field(default=None, description="The addressee as the caller typed it.")
    resolved_by: Line | None = Field(
        default=None, description="How the addressee was resolved, as in a signal."
    )
    target_role: ShortLine | None = Field(
        default=None, description="The role that it is for, such as `reviewer/docs`."
    )
    requested_role: dict[str, Any] = Field(
        default={},
        description="The role in parts, which count: `lifecycle_role`, `specialty_profile`, `role_alias`, `capabilities`.",
    )
    requested_ownership_scope: dict[str, Any] = Field(
        default={},
        description="What it covers: `responsibility_kinds`, `initiative_id`, `wu_ids`, `lane`, `paths`.",
    )
    requested_model: ShortLine | None = Field(default=None, description="The model that it is for.")
    priority: Annotated[ShortLine, AfterValidator(TextRule(written=PRIORITIES))] | None = Field(
        default=None, description="P0 to P3, P0 is the highest; other values are accepted on read."
    )
    blocked_by: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="The tasks that must be finished before it."
    )
    payload: dict[str, Any] = Field(
        default={}, description="Content beyond the text: A2A parts and metadata."
    )
    context: dict[str, Any] = Field(default={}, description="The working memory that the caller hands over.")
    brief_digest: Digest | None = Field(
        default=None, description="SHA-256 of the brief that the caller attests."
    )
    artifact_path: Path | None = Field(default=None, description="The file of the brief.")
    semantics: Annotated[ShortLine, AfterValidator(TextRule(written=SEMANTICS))] = Field(
        default="at-least-once",
        description="How often it may begin, over all clones; other values are accepted on read.",
    )
    deadline: At | None = Field(default=None, description="The time after which nobody begins it.")
    chain: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="The tasks within which it was written, outermost first."
    )
    references: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Other tasks that it refers to."
    )
    supersedes: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Earlier tasks of its caller that it replaces."
    )
    handoff_takes: Annotated[tuple[EventId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the giver's takes of the tasks that it hands over."
    )
    handoff_tasks: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the task of each of these takes."
    )
    handoff_claims: Annotated[tuple[ClaimId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the claims that it hands over."
    )
    handoff_threads: Annotated[tuple[ThreadId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the open threads."
    )
    checkpoint: NodeId | None = Field(default=None, description="Of a handoff: the giver's last checkpoint.")
    idempotency_key: Line | None = Field(
        default=None, description="Tasks of one caller with one key are the same task."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    lane: ShortLine | None = Field(default=None, description="The lane.")
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    sender_identity: Address = Field(description="The caller: an agent identity, a session id or a person.")
    sender_session: Address | None = Field(
        default=None, description="The session that wrote it, which alone may seal it."
    )
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class TaskEvent(Record):
    """Somebody takes a task, works on it, answers, or decides its outcome."""

    KIND: ClassVar[str] = "task_event"
    STREAM: ClassVar[str] = "tasks"

    kind: Literal["task_event"] = Field(default="task_event", description="Always `task_event`.")
    event_id: EventId = Field(description="The id of this event.")
    task_id: TaskId = Field(description="The task.")
    event: Annotated[ShortLine, AfterValidator(TextRule(written=EVENTS))] = Field(
        description="What happened; other values than those of format.md are accepted on read and ignored."
    )
    after: Annotated[tuple[EventId, ...], Field(strict=False)] = Field(
        default=(), description="The latest events of the task that its writer had seen."
    )
    take: EventId | None = Field(default=None, description="The take under which its writer works.")
    until: At | None = Field(default=None, description="The end of the lease that a take or a renewal gives.")
    state: Annotated[ShortLine, AfterValidator(TextRule(written=STATES))] | None = Field(
        default=None, description="The state that a status reports, or that a seal or close decides."
    )
    outcome: EventId | None = Field(
        default=None, description="The event whose result a seal or close makes the outcome."
    )
    answers_digest: Digest | None = Field(
        default=None, description="Digest of the line of that event, so that its text cannot be replaced."
    )
    message: Message | None = Field(default=None, description="The text, unchanged.")
    payload: dict[str, Any] = Field(
        default={}, description="Content beyond the text: `error`, `artifact`, `commit`, `branch`."
    )
    append: bool = Field(default=False, description="Whether an artifact continues the one before.")
    last_chunk: bool = Field(default=False, description="Whether an artifact is complete.")
    reason: Line | None = Field(default=None, description="Why.")
    level: Annotated[ShortLine, AfterValidator(TextRule(written=LEVELS))] | None = Field(
        default=None, description="Of an escalation: warning, error or critical."
    )
    actual_role: dict[str, Any] = Field(
        default={}, description="Of a take or launch: the role of the worker, in parts as in a task."
    )
    actual_ownership_scope: dict[str, Any] = Field(
        default={}, description="Of a take or launch: what the worker covers, as in a task."
    )
    requested_model: ShortLine | None = Field(
        default=None, description="Of a launch: the model that was asked for."
    )
    model: ShortLine | None = Field(default=None, description="The model of the worker.")
    client: ShortLine | None = Field(default=None, description="The client of the worker.")
    worktree: Path | None = Field(default=None, description="The folder's name of the worker's worktree.")
    branch: Line | None = Field(default=None, description="The branch of the worker's worktree.")
    launch: EventId | None = Field(default=None, description="Of a take: the launch that led to it.")
    relaunch_of: EventId | None = Field(default=None, description="Of a launch: the launch that it repeats.")
    attempt: ShortLine | None = Field(default=None, description="Of a launch: the label of this attempt.")
    wave: ShortLine | None = Field(default=None, description="Of a launch: its wave.")
    lane: ShortLine | None = Field(default=None, description="Of a launch: its lane.")
    claimed_mode: ShortLine | None = Field(
        default=None, description="Of a launch: how the work unit was claimed."
    )
    handoff_path: Path | None = Field(default=None, description="Of a launch: the file with the brief.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Claim(Record):
    """A claim on paths begins, gets more time, or ends. Claims are advice and always expire."""

    KIND: ClassVar[str] = "claim"
    STREAM: ClassVar[str] = "claims"

    kind: Literal["claim"] = Field(default="claim", description="Always `claim`.")
    claim_id: ClaimId = Field(description="The id of the claim, the same in all its records.")
    event: Annotated[ShortLine, AfterValidator(TextRule(written=CLAIM_EVENTS))] = Field(
        description="claim, renew or release; other values are accepted on read and ignored."
    )
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        description="Paths from the root of the work tree, with `*`, `?` and `**`; a folder covers its content."
    )
    mode: Annotated[ShortLine, AfterValidator(TextRule(written=MODES))] = Field(
        default="exclusive", description="`exclusive` or `shared`; other values are accepted on read."
    )
    until: At | None = Field(default=None, description="Its end; missing in a release.")
    reason: Line | None = Field(default=None, description="Why, in the sender's words.")
    task_id: TaskId | None = Field(default=None, description="The task that it belongs to; it ends with it.")
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    after: Annotated[tuple[ClaimId, ...], Field(strict=False)] = Field(
        default=(), description="The claims on the same paths that its writer had seen."
    )
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


class Commit(Record):
    """A commit was made in a worktree with a session. Nothing of its content is in the record."""

    KIND: ClassVar[str] = "commit"
    STREAM: ClassVar[str] = "commits"

    kind: Literal["commit"] = Field(default="commit", description="Always `commit`.")
    link_id: LinkId = Field(description="The id of this record: the same for one commit and one session.")
    commit: CommitId = Field(description="The commit.")
    patch_id: CommitId | None = Field(
        default=None, description="What `git patch-id --stable` says of its changes; missing of a merge."
    )
    authored_at: At | None = Field(
        default=None, description="The author's time, to the second: it stays when a commit is repeated."
    )
    action: Annotated[ShortLine, AfterValidator(TextRule(written=ACTIONS))] = Field(
        description="What made it: commit, amend, merge, revert, cherry-pick, rebase, squash, apply or rewrite;"
        " other values are accepted on read."
    )
    evidence: Annotated[ShortLine, AfterValidator(TextRule(written=EVIDENCE))] = Field(
        description="Why the session is named: `environment` of git's hook, `output` of the agent's command, `alone` in the worktree"
        " (inferred), `none`: nobody knows who made it; other values are accepted on read."
    )
    sources: Annotated[tuple[CommitId, ...], Field(strict=False)] = Field(
        default=(), description="The commits that it replaces or repeats."
    )
    parts: Annotated[tuple[CommitId, ...], Field(strict=False)] = Field(
        default=(), description="The patch ids of the changes that it combines."
    )
    branch: Line | None = Field(default=None, description="The branch of its worktree when it was found.")
    task_id: TaskId | None = Field(
        default=None, description="The task that its session had when it was made."
    )
    wu_id: WorkUnit | None = Field(
        default=None, description="The work unit that its session had when it was made."
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    sender_identity: Address = Field(description="Who made it; with the evidence `none` only who found it.")
    sender_session: Address | None = Field(
        default=None, description="The session that made it, or that found it."
    )
    sender_name: Line | None = Field(default=None, description="The display name of that session.")


# They contain no vocabulary: its words belong to packs, and readers accept others. What is not a text or a list of texts
# is ignored on read (`gitmem.agents.descriptors.read`), so these models check nothing.


class AgentRoleDescriptor(BaseModel):
    """The role of an agent. Its two parts count; `lifecycle_role/specialty_profile` only shows them."""

    model_config = ConfigDict(extra="allow")

    lifecycle_role: str = Field(description="The phase of the work that the agent owns.")
    specialty_profile: str = Field(description="The specialized view that it brings.")
    role_alias: str | None = Field(default=None, description="The name that the role was given by.")
    capabilities: list[str] = Field(description="What it can do: no substitute for the role.")


class OwnershipScope(BaseModel):
    """What an agent is responsible for."""

    model_config = ConfigDict(extra="allow")

    responsibility_kinds: list[str] = Field(description="The kinds of responsibility; empty if unknown.")
    initiative_id: str | None = Field(default=None, description="The initiative.")
    wu_ids: list[str] = Field(default=[], description="The work units.")
    lane: str | None = Field(default=None, description="The lane.")
    paths: list[str] = Field(default=[], description="Paths from the top of the work tree; `*` and `**`.")
