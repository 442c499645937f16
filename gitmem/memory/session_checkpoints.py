"""The checkpoints of a session or a work unit: the last one, which messages name to other agents, and own ones.

Nodes are folded only if there is a checkpoint: most signals come from sessions without one.
"""

from __future__ import annotations

from ..index import entities
from ..records.ids import unit_key
from ..trust import sender_tables
from .node_tables import HIDDEN, NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from ..order.node import VersionedNode
    from ..store import Store

PREFIX = "Checkpoint: "  # of the content of a checkpoint
AUTOMATIC = "auto-"  # begins the trigger of a checkpoint that a hook wrote, see `automatic_checkpoints`
EARLIER_MAX = 20  # earlier sessions with checkpoints to look at
AUTOMATIC_MAX = 200  # automatic checkpoints to read: peers can write any number about a work unit
TRIGGER = "coalesce(json_extract(l.body, '$.metadata.trigger'), '')"
IS_WRITTEN = f"{TRIGGER} NOT LIKE '{AUTOMATIC}%'"
_LIVE = "NOT EXISTS (SELECT 1 FROM superseded s WHERE s.id = n.id)"
_LAST = (
    "SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ?1 AND n.type = 'checkpoint'"
    " AND n.state < 2 AND NOT n.sensitive AND json_extract(l.body, '$.sender_session') = ?1"
    f" AND {IS_WRITTEN} AND {_LIVE} ORDER BY n.created DESC, n.id LIMIT 1"
)
_OWN = (
    "SELECT id FROM node WHERE session_id = ?1 AND type = 'checkpoint' UNION SELECT e.id FROM forged f"
    " JOIN entity_line e ON e.kind = 'node' AND e.line = f.line WHERE f.name = ?1"
)
_NOT_FORGED = "NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = {0}.line)"
# Superseded by a relation and a node that are not forged.
_REPLACED = (
    "SELECT 1 FROM superseded s JOIN relation r ON r.to_id = s.id AND r.type = 'supersedes'"
    " JOIN relation_event e ON e.from_id = r.from_id AND e.to_id = r.to_id AND e.type = r.type"
    " JOIN node n ON n.id = r.from_id AND n.state = 0 WHERE s.id = ?"
    f" AND {_NOT_FORGED.format('e')} AND {_NOT_FORGED.format('n')} LIMIT 1"
)


def last_text(db: sqlite3.Connection, session_id: str) -> str:
    """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""
    if sender_tables.is_forged(db, (session_id,)):
        own = own_checkpoints(db, session_id)
        nodes = sorted((node for node in own if not node.sensitive), key=lambda node: -node.created)
    else:
        nodes = _last(db, session_id)
    text = nodes[0].content.strip() if nodes else ""
    return text.removeprefix(PREFIX).split("\n", 1)[0]


def _last(db: sqlite3.Connection, session_id: str) -> list[VersionedNode]:
    row = db.execute(_LAST, (session_id,)).fetchone()
    if row is None:
        return []
    from . import stored_nodes

    return stored_nodes.load(db, [row[0]])


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
    until = _until(store)
    row = None
    if session is not None and sender_tables.is_forged(db, (session,)):
        for node in own_checkpoints(db, session):
            if unit_key(asked) in ("", unit_key(node.wu_id)) and node.touched <= until:
                return node
        session = None
    # Only checkpoints written by the session itself: others may claim anything about it.
    by_session = "n.session_id = ?1 AND json_extract(l.body, '$.sender_session') = ?1"
    said_by = "n.session_id IS NULL AND json_extract(l.body, '$.sender_identity') = ?1"
    for condition, value in (
        (by_session, session),
        ("n.wu_id = ?1", unit_key(unit) or None),
        (said_by, writer),
    ):
        if row is None and value is not None:
            row = db.execute(
                f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE {condition} AND n.type = 'checkpoint'"
                f" AND {IS_WRITTEN} AND n.state < {HIDDEN} AND (?2 IS NULL OR n.wu_id = ?2) AND n.touched <= ?3"
                f" AND {_LIVE} ORDER BY n.touched DESC, n.id DESC LIMIT 1",
                (value, unit_key(asked) or None, until),
            ).fetchone()
    return stored_nodes.load_one(db, row[0]) if row else None


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

    db = store.db()
    own = presence.trusted(store, session)
    if own is None:
        return None
    rows = db.execute(
        "SELECT session_id FROM session WHERE (agent_identity = ?1 OR harness_session = ?2) AND session_id <> ?3"
        " AND session_id IN (SELECT name FROM own) AND EXISTS (SELECT 1 FROM node n WHERE n.session_id ="
        " session.session_id AND n.type = 'checkpoint') ORDER BY started DESC LIMIT ?4",
        (own.agent_identity, own.harness_session, session, EARLIER_MAX),
    )
    found = None
    for (id,) in rows.fetchall():
        earlier = presence.trusted(store, id)
        if earlier is None:
            continue
        resumed = own.harness_session is not None and earlier.harness_session == own.harness_session
        if not resumed and (own.agent_identity is None or earlier.agent_identity != own.agent_identity):
            continue  # only forged records say so
        units = {"", unit_key(asked or unit)} if asked or (unit and not resumed) else None
        for node in own_checkpoints(db, id):
            fits = units is None or unit_key(node.wu_id) in units - ({""} if asked else set())
            if fits and node.touched <= _until(store):
                found = max(filter(None, (found, node)), key=lambda each: (each.touched, each.id))
                break
    return found


def is_automatic(node: VersionedNode) -> bool:
    """Return whether a hook wrote a checkpoint."""
    return str(node.metadata.get("trigger") or "").startswith(AUTOMATIC)


def automatic_ids(store: Store, session: str | None, unit: str | None) -> list[str]:
    """Return the live automatic checkpoints that a session wrote itself, and those of a work unit, last first.

    Peers write about a work unit, too: a time that is too far ahead of the clock would stay the last one.
    """
    of_session = "n.session_id = ?1 AND json_extract(l.body, '$.sender_session') = ?1"
    rows = store.db().execute(
        f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE (({of_session}) OR n.wu_id = ?2)"
        f" AND n.type = 'checkpoint' AND NOT {IS_WRITTEN} AND n.state < {HIDDEN} AND n.touched <= ?3 AND {_LIVE}"
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
            f" AND json_extract(l.body, '$.sender_session') = ?1 AND n.touched <= ?2 AND {IS_WRITTEN}",
            (session, _until(store)),
        )
        .fetchone()
    )
    return at or 0


def _until(store: Store) -> int:
    """Return the latest time of a node that counts: peers' clocks may be ahead, and they can claim any time."""
    from .candidates import CLOCK_SKEW_MAX

    return store.now() + CLOCK_SKEW_MAX


def own_checkpoints(db: sqlite3.Connection, session_id: str) -> list[VersionedNode]:
    """Return the checkpoints that a session of this clone wrote itself, folded without forged lines, last first.

    Superseded ones are left out, except those that only forged lines supersede.
    """
    ids = [str(id) for (id,) in db.execute(_OWN, (session_id,))]
    found = [
        node
        for node in _without_forged(db, ids)
        if node.type == "checkpoint"
        and node.session_id == node.sender_session == session_id
        and not node.is_hidden
        and not is_automatic(node)
        and db.execute(_REPLACED, (node.id,)).fetchone() is None
    ]
    return sorted(found, key=lambda node: (node.touched, node.id), reverse=True)


def _without_forged(db: sqlite3.Connection, ids: Sequence[str]) -> Iterator[VersionedNode]:
    """Yield nodes folded without forged lines; skip nodes that only forged lines create.

    The patches are read once for all nodes: one patch may name thousands.
    """
    from . import stored_nodes

    cache = stored_nodes.PatchCache()
    for some in stored_nodes.batches(ids):
        lines = entities.lines_of(db, NODE, some, forged=False, known=cache.lines)
        yield from stored_nodes.fold_all(lines, cache).values()
