"""The checkpoints of a session or a work unit: the last one, which messages name to other agents, and earlier ones.

Nodes are folded only if there is a checkpoint: most signals come from sessions without one.
"""

from __future__ import annotations

from ..records.ids import unit_key
from .node_tables import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..order.node import VersionedNode
    from ..store import Store

PREFIX = "Checkpoint: "  # of the content of a checkpoint
AUTOMATIC = "auto-"  # begins the trigger of a checkpoint that a hook wrote, see `automatic_checkpoints`
AUTOMATIC_MAX = 200  # automatic checkpoints to read: peers can write any number about a work unit
TRIGGER = "coalesce(json_extract(l.body, '$.metadata.trigger'), '')"
IS_WRITTEN = f"{TRIGGER} NOT LIKE '{AUTOMATIC}%'"
# Of the nodes `n` and their lines `l`: checkpoints that count.
_IS_LIVE = f"n.type = 'checkpoint' AND n.state < {HIDDEN} AND NOT EXISTS (SELECT 1 FROM superseded s WHERE s.id = n.id)"
# By the session that they are about: others may claim anything about it.
_BY_SESSION = "json_extract(l.body, '$.sender_session') = n.session_id"
_LAST = (
    f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ? AND {_BY_SESSION} AND {_IS_LIVE}"
    f" AND NOT n.sensitive AND {IS_WRITTEN} ORDER BY n.created DESC, n.id LIMIT 1"
)
_EARLIER = (
    "SELECT n.id FROM session s CROSS JOIN node n ON n.session_id = s.session_id JOIN line l ON l.id = n.line"
    " WHERE (s.agent_identity = :identity OR s.harness_session = :client) AND s.session_id <> :session"
    f" AND s.session_id IN (SELECT name FROM own) AND {_BY_SESSION} AND {_IS_LIVE} AND {IS_WRITTEN} AND n.touched <= :until"
    " AND CASE WHEN :asked IS NOT NULL THEN n.wu_id = :asked WHEN :unit IS NULL OR s.harness_session = :client THEN true"
    " ELSE coalesce(n.wu_id, :unit) = :unit END ORDER BY n.touched DESC, n.id DESC LIMIT 1"
)


def last_text(db: sqlite3.Connection, session_id: str) -> str:
    """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""
    row = db.execute(_LAST, (session_id,)).fetchone()
    if row is None:
        return ""
    from . import stored_nodes

    text = stored_nodes.load_one(db, row[0]).content.strip()
    return text.removeprefix(PREFIX).split("\n", 1)[0]


def last_checkpoint(
    store: Store, session: str | None, unit: str | None, asked: str | None, writer: str | None = None
) -> VersionedNode | None:
    """Return the last checkpoint of a session, else of the work unit, else of the writer.

    Args:
        asked: A work unit that the caller named: only checkpoints of this unit count then.
        writer: A reader identity that works without a session.
    """
    from . import stored_nodes

    db = store.db()
    said_by = "n.session_id IS NULL AND json_extract(l.body, '$.sender_identity') = ?1"
    for condition, value in (
        (f"n.session_id = ?1 AND {_BY_SESSION}", session),
        ("n.wu_id = ?1", unit_key(unit) or None),
        (said_by, writer),
    ):
        if value is None:
            continue
        row = db.execute(
            f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE {condition} AND {_IS_LIVE} AND {IS_WRITTEN}"
            " AND (?2 IS NULL OR n.wu_id = ?2) AND n.touched <= ?3 ORDER BY n.touched DESC, n.id DESC LIMIT 1",
            (value, unit_key(asked) or None, _until(store)),
        ).fetchone()
        if row is not None:
            return stored_nodes.load_one(db, row[0])
    return None


def earlier_checkpoint(
    store: Store, session: str, unit: str | None, asked: str | None
) -> VersionedNode | None:
    """Return the last checkpoint that earlier sessions of the same agent, or of the same conversation, wrote in this clone.

    Args:
        session: The present session, of this clone.
        unit: Its work unit: a checkpoint of another one counts only in the same conversation.
        asked: As in `last_checkpoint`.
    """
    from ..agents import presence
    from . import stored_nodes

    own = presence.get(store, session)
    if own is None:
        return None
    values = {
        "identity": own.agent_identity, "client": own.harness_session, "session": session, "until": _until(store),
        "unit": unit_key(unit) or None, "asked": unit_key(asked) or None,
    }  # fmt: skip
    row = store.db().execute(_EARLIER, values).fetchone()
    return stored_nodes.load_one(store.db(), row[0]) if row else None


def automatic_ids(store: Store, session: str | None, unit: str | None) -> list[str]:
    """Return the live automatic checkpoints that a session wrote itself, and those of a work unit, last first.

    Peers write about a work unit, too: a time that is too far ahead of the clock would stay the last one.
    """
    rows = store.db().execute(
        f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE ((n.session_id = ?1 AND {_BY_SESSION}) OR n.wu_id = ?2)"
        f" AND {_IS_LIVE} AND NOT {IS_WRITTEN} AND n.touched <= ?3"
        " ORDER BY n.touched DESC, n.id DESC LIMIT ?4",
        (session, unit_key(unit) or None, _until(store), AUTOMATIC_MAX),
    )
    return [str(id) for (id,) in rows]


def notes_changed(store: Store, session: str) -> int:
    """Return when the nodes that a session wrote itself last changed, without automatic checkpoints; 0 without any."""
    (at,) = (
        store.db()
        .execute(
            "SELECT max(n.touched) FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ?1"
            f" AND {_BY_SESSION} AND n.touched <= ?2 AND {IS_WRITTEN}",
            (session, _until(store)),
        )
        .fetchone()
    )
    return at or 0


def _until(store: Store) -> int:
    """Return the latest time of a node that counts: peers' clocks may be ahead, and they can claim any time."""
    from .candidates import CLOCK_SKEW_MAX

    return store.now() + CLOCK_SKEW_MAX
