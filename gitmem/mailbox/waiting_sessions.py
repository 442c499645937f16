"""The sessions of this clone that signals wait for: whose messages they read, and the names of their flags."""

from __future__ import annotations

from ..agents import heartbeats
from ..trust import sender_tables
from . import mailbox_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store

FORGED = "n.session_id IN (SELECT name FROM forged)"  # these are checked again by their own lines
NEW = (
    f" AND ({FORGED} OR EXISTS ("
    "SELECT 1 FROM signal s WHERE s.line > :after AND (s.broadcast OR EXISTS"
    " (SELECT 1 FROM mail m WHERE m.signal_id = s.signal_id AND m.reader IN"
    " (SELECT n.session_id UNION ALL SELECT n.agent_identity UNION ALL"
    " SELECT e.harness_session FROM session_event e WHERE e.session_id = n.session_id"
    " UNION ALL SELECT f.session_id FROM session f WHERE f.harness_session = n.harness_session"
    " UNION ALL SELECT f.session_id FROM session f WHERE f.agent_identity = n.agent_identity AND f.ended IS NOT NULL)))))"
)
_SESSIONS = (
    "SELECT n.session_id, n.agent_identity, n.workspace_id,"
    " coalesce((SELECT max(a.until) FROM alive a WHERE a.session_id = n.session_id), 0)"
    # Anybody can write a session with the id of this clone. Sessions that were started here have a file here.
    " FROM session n WHERE n.session_id IN (SELECT value FROM json_each(:here))"
    f" AND ((n.ended IS NULL AND n.clone_id = :clone) OR {FORGED})"
)


class WaitingSession:
    """An open session of this clone: its queue, its reader and the names of its flags."""

    def __init__(self, store: Store, row: Sequence[object]) -> None:
        session_id, identity, workspace, until = row
        self.session_id = str(session_id)
        self.reader = str(identity or session_id)
        self.workspace = str(workspace) if workspace is not None else None
        self.names = heartbeats.flag_names(self.session_id, heartbeats.client_of(store, self.session_id))
        self.alive_until = until if isinstance(until, int) else 0

    def unread(self, store: Store, after: int = 0, *, directed: bool = False) -> set[str]:
        """Return the ids of the signals that it has not read. The index must have caught up."""
        found = mailbox_view.unread_ids(
            store.index.db,
            self.reader,
            self.session_id,
            self.workspace,
            store.now(),
            after=after,
            directed=directed,
        )
        return {signal_id for _, signal_id in found}


def sessions(
    store: Store, where: str = "", *, begins: str | None = None, **values: object
) -> list[WaitingSession]:
    """Return this clone's open sessions that match a condition. The index must have caught up.

    Args:
        begins: A session that has no file here yet.
    """
    db = store.index.db
    here = {*heartbeats.all_last_seen(store), *([begins] if begins is not None else [])}
    ids = ",".join(f'"{session_id}"' for session_id in sorted(here))
    given = {"clone": store.log.clone_id(), "here": f"[{ids}]", **values}
    found = []
    for row in db.execute(_SESSIONS + where, given).fetchall():
        session_id = str(row[0])
        if sender_tables.is_forged(db, (session_id,)):
            from ..agents import own_sessions

            _, ended, fields, _ = own_sessions.fold(db, session_id)
            if ended is not None:
                continue
            row = (session_id, fields.get("agent_identity"), fields.get("workspace_id"), row[3])
        found.append(WaitingSession(store, row))
    return found
