"""Records and sessions in the form of answers."""

from __future__ import annotations

from . import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store import Store
    from .presence import Presence, ShownNames


def sender_name(store: Store, record: Mapping[str, object]) -> str | None:
    """Return the present name of a record's sender, else its name when it wrote."""
    return sender_name_from(presence.names_by_session(store.db()), record)


def sender_name_from(names: ShownNames, record: Mapping[str, object]) -> str | None:
    """Return the same as `sender_name`, for callers that look up many."""
    name = names.get(str(record.get("sender_session") or ""))
    return name or (str(record["sender_name"]) if record.get("sender_name") else None)


def row(found: Presence) -> dict[str, object]:
    """Return a session as `session list` and `roster` show it. Every field is always present."""
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
        "worktree": found.worktree,
        "client": record.get("client"),
        "workspace_id": record.get("workspace_id"),
        "here": found.here,
        "status": found.status,
        "last_seen": presence.iso(found.last_seen),
    }
