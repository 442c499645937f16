"""Relations between nodes, such as `blocks` and `discovered_from`, and which nodes are superseded.

A node is superseded while an active node supersedes it. Nodes that supersede each other in a cycle are live: relations
within a cycle have no effect. The table `superseded` has the live end of each one's chain, so that queries follow no chains.
"""

from __future__ import annotations

from .. import records
from ..order.causal import CausalOrder, by_id
from ..text.strict_json import json_list
from . import node_fields
from .stored_nodes import IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..agents.caller import Caller
    from ..index.entities import LineRow, Rows
    from ..records.record_types import RelationFields, RelationRecord
    from ..store import Store

    Edge = tuple[str, str]  # the superseding and the superseded node


# `type = 'supersedes'` is a literal: only then can SQLite use the partial index of these relations.
_ANY = "SELECT 1 FROM relation WHERE type = 'supersedes' LIMIT 1"
_CONNECTED = (
    "WITH RECURSIVE part (id) AS (SELECT value FROM json_each(?) UNION"
    " SELECT CASE r.from_id WHEN p.id THEN r.to_id ELSE r.from_id END FROM part p JOIN relation r"
    " ON r.type = 'supersedes' AND (r.from_id = p.id OR r.to_id = p.id)) SELECT id FROM part"
)
_EDGES = (
    "SELECT r.from_id, r.to_id, n.created FROM relation r JOIN node n ON n.id = r.from_id AND n.state = 0"
    " WHERE r.type = 'supersedes' AND r.from_id <> r.to_id AND r.from_id IN (SELECT value FROM json_each(?))"
)

# The node `e` that is shown in place of a row `u` of `superseded`: the live end `l` of its chain or, while that is
# summarized, the summary, or the live end of the summary's chain. It is active, so what it replaces never vanishes.
IN_PLACE = (
    " CROSS JOIN node l ON l.id = u.live LEFT JOIN superseded w ON w.id = l.summarized_into CROSS JOIN node e"
    " ON e.id = CASE WHEN {} THEN coalesce(w.live, l.summarized_into) ELSE l.id END"
).format(IS_SUMMARIZED.replace("n.", "l."))


def update_superseded(db: sqlite3.Connection, ends: Iterable[str], changed: Iterable[str]) -> None:
    """Update the table after new lines.

    Only nodes that are connected with these are read, so what others relate elsewhere costs nothing here.

    Args:
        ends: Nodes of which a `supersedes` relation was added or removed.
        changed: Nodes that were added or changed.
    """
    seeds = set(ends)
    if db.execute(_ANY).fetchone():
        superseding = "SELECT DISTINCT from_id FROM relation WHERE type = 'supersedes' AND from_id IN (SELECT value FROM json_each(?))"
        seeds.update(id for (id,) in db.execute(superseding, (json_list(changed),)))
    if not seeds:
        return
    connected = json_list(id for (id,) in db.execute(_CONNECTED, (json_list(seeds),)))
    rows = db.execute(_EDGES, (connected,)).fetchall()
    found = live_ends([(new, old) for new, old, _ in rows], {new: created for new, _, created in rows})
    db.execute("DELETE FROM superseded WHERE id IN (SELECT value FROM json_each(?))", (connected,))
    db.executemany("INSERT INTO superseded VALUES (?, ?)", sorted(found.items()))


def unite_superseded(db: sqlite3.Connection, log: str) -> None:
    """Let `superseded` stand for what the lines of the attached index of the log and those of `db` itself say together."""
    replaced = db.execute("SELECT from_id, to_id FROM main.relation WHERE type = 'supersedes'").fetchall()
    if not replaced:
        db.execute(f"CREATE TEMP VIEW superseded AS SELECT * FROM {log}.superseded")
        return
    db.execute(f"CREATE TEMP TABLE superseded AS SELECT * FROM {log}.superseded")
    update_superseded(db, {id for ends in replaced for id in ends}, ())


def live_ends(edges: Sequence[Edge], created: Mapping[str, int]) -> dict[str, str]:
    """Return the live end for each superseded node, in time linear in the number of edges.

    Args:
        edges: The relations of active nodes.
        created: The times of the superseding nodes. Of several ends the one created last counts.
    """
    from ..order.causal import cyclic_components

    leads: dict[str, list[str]] = {}
    whole: dict[str, list[str]] = {old: [] for _, old in edges}
    for new, old in edges:
        leads.setdefault(new, []).append(old)
    whole.update(leads)
    cycle_of = {id: at for at, cycle in enumerate(cyclic_components(whole)) for id in cycle}
    older = {
        new: [old for old in olds if new not in cycle_of or cycle_of.get(old) != cycle_of[new]]
        for new, olds in leads.items()
    }
    missing: dict[str, int] = {}  # the number of successors whose ends are not known yet
    for olds in older.values():
        for old in olds:
            missing[old] = missing.get(old, 0) + 1
    ends: dict[str, str] = {}
    todo = [id for id in older if id not in missing]
    for id in todo:
        end = ends.get(id, id)
        for old in older.get(id, ()):
            ends[old] = max(ends.get(old, end), end, key=lambda each: (created[each], each))
            missing[old] -= 1
            if not missing[old]:
                todo.append(old)
    return ends


def is_any_superseded(db: sqlite3.Connection) -> bool:
    """Return whether any node is superseded."""
    return db.execute("SELECT 1 FROM superseded LIMIT 1").fetchone() is not None


def and_live(db: sqlite3.Connection) -> str:
    """Return the SQL condition that a row of `node n` is live, with AND before it; empty if all rows are."""
    return " AND n.id NOT IN (SELECT id FROM superseded)" if is_any_superseded(db) else ""


def ends_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """Return the live ends of those of these nodes that are superseded, by their ids."""
    if not is_any_superseded(db):
        return {}
    rows = db.execute(
        "SELECT id, live FROM superseded WHERE id IN (SELECT value FROM json_each(?))", (json_list(ids),)
    )
    return dict(rows.fetchall())


def replaced_by(db: sqlite3.Connection, ids: Iterable[str], most: int) -> dict[str, list[str]]:
    """Return the nodes that these supersede, directly and while it has effect, by the ids of those that do.

    Args:
        most: The number of nodes to return for each.
    """
    found: dict[str, list[str]] = {}
    if is_any_superseded(db):
        asked = (
            "SELECT r.to_id FROM relation r JOIN superseded s ON s.id = r.to_id JOIN node o ON o.id = r.to_id"
            " WHERE r.from_id = ? AND r.type = 'supersedes' AND o.state < 3 ORDER BY o.created DESC, o.id LIMIT ?"
        )
        for id in ids:
            older = [old for (old,) in db.execute(asked, (id, most))]
            found |= {id: older} if older else {}
    return found


SUPERSEDES = "supersedes"
RELATIONS_MAX = 100  # of one node in an answer


class RelationEvent:
    """A line about a relation, with the attributes that `CausalOrder` needs."""

    def __init__(self, record: RelationRecord, line: bytes) -> None:
        self.id = record["id"]
        self.line = line
        self.record = record
        self.named = frozenset(record.get("after", ()))


def line(
    store: Store,
    caller: Caller,
    from_id: str,
    type: str,
    to_id: str,
    *,
    removed: bool = False,
    metadata: Mapping[str, object] | None = None,
    id: str | None = None,
) -> tuple[str, bytes]:
    """Return the line of a relation, which names in `after` the earlier lines about it in the index.

    Args:
        id: A common id for clones that write the same relation; a new one by default.
    """
    events = _events(store.db(), (from_id, to_id, type))
    heads = CausalOrder(events).heads(events)
    fields: RelationFields = {
        "id": id or store.new_id("rel"),
        "from_id": from_id,
        "to_id": to_id,
        "type": type,
        "removed": removed,
        "after": sorted(each.id for each in heads),
        "metadata": node_fields.metadata(dict(metadata or {})),
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }
    return store.line("relation", fields)


def key_of(record: RelationRecord) -> tuple[str, str, str]:
    """Return the ends and the type of a relation."""
    return record["from_id"], record["to_id"], record["type"]


def exists(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> bool:
    """Return whether a relation exists: its causally last line does not remove it."""
    event = last_event(db, relation_key)
    return event is not None and not event.record.get("removed")


def last_event(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> RelationEvent | None:
    """Return the causally last line of a relation, or None if there is none."""
    events = _events(db, relation_key)
    return CausalOrder(events).latest(events)


def _events(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> list[RelationEvent]:
    bodies = db.execute(
        "SELECT l.body FROM relation_event e JOIN line l ON l.id = e.line"
        " WHERE e.from_id = ? AND e.to_id = ? AND e.type = ?",
        relation_key,
    )
    lines = (body.encode() for (body,) in bodies)
    found = ((records.read_kind("relation", line), line) for line in lines)
    return list(by_id(RelationEvent(record, line) for record, line in found if record is not None).values())


def relations_of(db: sqlite3.Connection, id: str) -> list[tuple[str, str, str]]:
    """Return the relations of a node (from, to, type), in both directions, by type and id, up to a number."""
    return db.execute(
        "SELECT from_id, to_id, type FROM relation WHERE from_id = ?"
        " UNION SELECT from_id, to_id, type FROM relation WHERE to_id = ? ORDER BY 3, 1, 2 LIMIT ?",
        (id, id, RELATIONS_MAX),
    ).fetchall()


def blockers_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the nodes that block these nodes, by the ids of those that some block."""
    query = "SELECT to_id, from_id FROM relation WHERE to_id IN (SELECT value FROM json_each(?)) AND type = 'blocks'"
    found: dict[str, set[str]] = {}
    for to_id, from_id in db.execute(query, (json_list(ids),)):
        found.setdefault(to_id, set()).add(from_id)
    return found


def related_pairs(db: sqlite3.Connection, ids: Sequence[str]) -> set[Edge]:
    """Return the pairs of these nodes with a relation `related`, from one to the other."""
    marks = ", ".join("?" * len(ids))
    query = f"SELECT from_id, to_id FROM relation WHERE from_id IN ({marks}) AND to_id IN ({marks}) AND type = 'related'"
    return set(db.execute(query, [*ids, *ids]))


def between(db: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return the relations (from, to, type) among nodes, in this order."""
    among = "IN (SELECT value FROM json_each(?1))"
    query = (
        f"SELECT from_id, to_id, type FROM relation WHERE from_id {among} AND to_id {among} ORDER BY 1, 2, 3"
    )
    return db.execute(query, (json_list(ids),)).fetchall()


def superseding_edges(db: sqlite3.Connection) -> list[Edge]:
    """Return the relations by which active nodes supersede others."""
    return db.execute(
        "SELECT r.from_id, r.to_id FROM relation r JOIN node n ON n.id = r.from_id AND n.state = 0"
        " WHERE r.type = 'supersedes' AND r.from_id <> r.to_id"
    ).fetchall()


def with_several_ends(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """Return the open or unknown nodes that several live ends supersede, directly or through others, and how many."""
    return db.execute(
        "SELECT r.to_id, count(DISTINCT coalesce(u.live, r.from_id)) FROM relation r"
        " JOIN superseded old ON old.id = r.to_id JOIN node n ON n.id = r.from_id AND n.state = 0"
        " LEFT JOIN superseded u ON u.id = r.from_id LEFT JOIN node o ON o.id = r.to_id"
        " WHERE r.type = 'supersedes' AND coalesce(o.state, 0) = 0"
        " GROUP BY r.to_id HAVING count(DISTINCT coalesce(u.live, r.from_id)) > 1 ORDER BY r.to_id"
    ).fetchall()


def every_end(db: sqlite3.Connection, id: str, most: int) -> list[str]:
    """Return the live ends that supersede a node, the last created first, up to a number."""
    rows = db.execute(
        "SELECT DISTINCT e.id, e.created FROM relation r JOIN node n ON n.id = r.from_id AND n.state = 0"
        " LEFT JOIN superseded u ON u.id = r.from_id JOIN node e ON e.id = coalesce(u.live, r.from_id)"
        " WHERE r.to_id = ? AND r.type = 'supersedes' AND r.from_id <> r.to_id ORDER BY e.created DESC, e.id LIMIT ?",
        (id, most),
    )
    return [end for end, _ in rows]


def add_relations(db: sqlite3.Connection, new: Rows) -> None:
    """Add relations, and update what is superseded after these and after changes of nodes."""
    ends = _add_relations(db, new.of("relation"))
    update_superseded(db, ends, _named(new))


def _named(new: Rows) -> Iterator[str]:
    """Yield the nodes that new lines create or change."""
    yield from new.of("node").column("id")
    for row in new.of("patch"):
        yield from row.record["node_ids"]


def _add_relations(db: sqlite3.Connection, rows: Iterable[LineRow]) -> set[str]:
    """Add relations and return the nodes that one of them says supersede others, or are superseded."""
    triples = set()
    for row in rows:
        relation_key = key_of(row.record)
        db.execute("INSERT OR IGNORE INTO relation_event VALUES (?, ?, ?, ?)", (*relation_key, row.id))
        triples.add(relation_key)
    for relation_key in sorted(triples):
        if exists(db, relation_key):
            db.execute("INSERT OR IGNORE INTO relation VALUES (?, ?, ?)", relation_key)
        else:
            db.execute("DELETE FROM relation WHERE from_id = ? AND to_id = ? AND type = ?", relation_key)
    return {id for *ends, type in triples if type == SUPERSEDES for id in ends}
