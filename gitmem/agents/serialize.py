"""How records appear in answers."""

from __future__ import annotations

from . import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store import Store
    from .presence import Presence, ShownNames


def sender_name(store: Store, record: Mapping[str, object]) -> str | None:
    """What the sender of a record is called now, else what it was called when it wrote."""
    return named(presence.names_by_session(store.db()), record)


def named(names: ShownNames, record: Mapping[str, object]) -> str | None:
    """The same for who asks for many."""
    name = names.get(str(record.get("sender_session") or ""))
    return name or (str(record["sender_name"]) if record.get("sender_name") else None)


def row(found: Presence) -> dict[str, object]:
    """A session as `session list` and `roster` show it; every field is always there."""
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
