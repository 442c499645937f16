"""The records as they are read from lines, for type checkers alone. Written by `tools/compile_types.py`: don't edit.

Import it under `TYPE_CHECKING`. A record has every required field of its kind, and the other ones where its line has them.
"""

# One field, one line:
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, Protocol, TypedDict, overload

if TYPE_CHECKING:
    from collections.abc import Sequence


class SignalRecord(TypedDict):
    """A line of the kind `signal`."""

    at: str
    kind: Literal["signal"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    signal_id: str
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]
    sender_headline: NotRequired[str | None]
    via: NotRequired[str | None]
    recipients: Sequence[str]
    target_agent: NotRequired[str | None]
    requested_to: NotRequired[Sequence[str]]
    resolved_by: NotRequired[Sequence[str]]
    workspace_id: NotRequired[str | None]
    thread_id: NotRequired[str | None]
    reply_to: NotRequired[str | None]
    after: NotRequired[Sequence[str]]
    answers_digest: NotRequired[str | None]
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"]
    interrupt_class: str
    requires_ack: NotRequired[bool]
    message: str
    idempotency_key: NotRequired[str | None]
    origin: str
    wu_id: NotRequired[str | None]
    initiative_id: NotRequired[str | None]
    lane: NotRequired[str | None]
    sender_role: NotRequired[str | None]
    target_role: NotRequired[str | None]
    delegation_id: NotRequired[str | None]
    artifact_path: NotRequired[str | None]
    seen: NotRequired[Sequence[str] | None]


class ReceiptRecord(TypedDict):
    """A line of the kind `receipt`."""

    at: str
    kind: Literal["receipt"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    signal_id: str
    reader_identity: str
    reader_session: NotRequired[str | None]
    delivery_state: Literal["delivered", "acked", "rejected"]
    answers_digest: str
    idempotency_key: NotRequired[str | None]
    seen: NotRequired[Sequence[str] | None]


class SessionRecord(TypedDict):
    """A line of the kind `session`."""

    at: str
    kind: Literal["session"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    session_id: str
    event: Literal["start", "change", "end"]
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
    clear: NotRequired[Sequence[str]]
    seen: NotRequired[Sequence[str] | None]


class NameRecord(TypedDict):
    """A line of the kind `name`."""

    at: str
    kind: Literal["name"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    name: str
    event: Literal["add", "remove"]
    sender_identity: NotRequired[str | None]
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class NodeRecord(TypedDict):
    """A line of the kind `node`."""

    at: str
    kind: Literal["node"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    id: str
    type: Literal["session", "discovery", "checkpoint", "note", "summary"]
    lifecycle: Literal["ephemeral", "session", "wu", "project"]
    content: str
    priority: NotRequired[Literal["P0", "P1", "P2", "P3"] | None]
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


class PatchRecord(TypedDict):
    """A line of the kind `patch`."""

    at: str
    kind: Literal["patch"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    id: str
    node_ids: Sequence[str]
    after: NotRequired[Sequence[str]]
    clear: NotRequired[Sequence[Literal["priority", "tags", "wu_id", "session_id", "lane", "paths", "sensitive", "closed", "archived", "deleted", "reason", "summarized_into", "metadata"]]]
    type: NotRequired[Literal["session", "discovery", "checkpoint", "note", "summary"] | None]
    lifecycle: NotRequired[Literal["ephemeral", "session", "wu", "project"] | None]
    content: NotRequired[str | None]
    priority: NotRequired[Literal["P0", "P1", "P2", "P3"] | None]
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
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class RelationRecord(TypedDict):
    """A line of the kind `relation`."""

    at: str
    kind: Literal["relation"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    id: str
    from_id: str
    to_id: str
    type: Literal["blocks", "parent_child", "related", "discovered_from"]
    removed: NotRequired[bool]
    after: NotRequired[Sequence[str]]
    metadata: NotRequired[dict[str, object]]
    sender_identity: str
    sender_session: NotRequired[str | None]
    sender_name: NotRequired[str | None]


class AccessRecord(TypedDict):
    """A line of the kind `access`."""

    at: str
    kind: Literal["access"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
    id: str
    node_ids: Sequence[str]
    reader_identity: str
    reader_session: NotRequired[str | None]


class AuditRecord(TypedDict):
    """A line of the kind `audit`."""

    at: str
    kind: Literal["audit"]
    schema_version: Literal["A2A.V1"]
    mac: NotRequired[str | None]
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


AnyRecord = SignalRecord | ReceiptRecord | SessionRecord | NameRecord | NodeRecord | PatchRecord | RelationRecord | AccessRecord | AuditRecord


class ReadKind(Protocol):
    """The type of `records.read_kind`."""

    @overload
    def __call__(self, kind: Literal["signal"], line: bytes) -> SignalRecord | None: ...

    @overload
    def __call__(self, kind: Literal["receipt"], line: bytes) -> ReceiptRecord | None: ...

    @overload
    def __call__(self, kind: Literal["session"], line: bytes) -> SessionRecord | None: ...

    @overload
    def __call__(self, kind: Literal["name"], line: bytes) -> NameRecord | None: ...

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
