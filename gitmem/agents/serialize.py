"""Records and sessions in the form of answers."""

from __future__ import annotations

from . import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from ..records.record_types import AuditRecord, NodeRecord, PatchRecord, SignalRecord
    from ..store import Store
    from .presence import Presence, ShownNames

    SentRecord = SignalRecord | NodeRecord | PatchRecord | AuditRecord

    class SessionRow(TypedDict):
        """A session in an answer; only the roster has `unread`, which is None if counting takes too long."""

        session_id: str
        display_name: str
        agent_identity: str | None
        reader_identity: str
        role: str | None
        wu_id: str | None
        initiative_id: str | None
        lane: str | None
        activity: str | None
        summary: str | None
        worktree: str | None
        client: str | None
        workspace_id: str | None
        here: bool
        status: str
        last_seen: str
        headline: str
        unread: NotRequired[int | None]


def sender_name(store: Store, record: SentRecord) -> str | None:
    """Return the present name of a record's sender, else its name when it wrote."""
    return sender_name_from(presence.names_by_session(store.db()), record)


def sender_name_from(names: ShownNames, record: SentRecord) -> str | None:
    """Return the same as `sender_name`, for callers with many lookups."""
    session, name = record.get("sender_session"), record.get("sender_name")
    return (names.get(session) if session else None) or name


def row(found: Presence, headline: str) -> SessionRow:
    """Return a session as `session list` and `roster` show it."""
    record = found.record
    return {
        "session_id": found.session_id,
        "display_name": found.name,
        "agent_identity": found.agent_identity,
        "reader_identity": found.reader,
        "role": found.role,
        "wu_id": found.wu_id,
        "initiative_id": record.get("initiative_id"),
        "lane": record.get("lane"),
        "activity": record.get("activity"),
        "summary": record.get("summary"),
        "worktree": found.worktree,
        "client": record.get("client"),
        "workspace_id": record.get("workspace_id"),
        "here": found.here,
        "status": found.status,
        "last_seen": presence.iso(found.last_seen),
        "headline": headline,
    }
