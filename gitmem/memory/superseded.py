"""Which nodes are superseded, and the live end of each one's chain.

A node is superseded while an active node supersedes it. Nodes that supersede each other in a cycle are live: relations
within a cycle have no effect. The table `superseded` has the result, so that queries follow no chains.
"""

from __future__ import annotations

from .node_tables import IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol, TypeVar

    from ..order.node import VersionedNode

    class RankedHit(Protocol):
        """A hit of a search."""

        node: VersionedNode
        matched: str
        superseded_by: str | None

    AnyHit = TypeVar("AnyHit", bound=RankedHit)
    Edge = tuple[str, str]  # the superseding and the superseded node

SHOWN = 3  # nodes in a warning

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


def update(db: sqlite3.Connection, ends: Iterable[str], changed: Iterable[str]) -> None:
    """Update the table after new lines.

    Only nodes that are connected with these are read, so what others relate elsewhere costs nothing here.

    Args:
        ends: Nodes of which a `supersedes` relation was added or removed.
        changed: Nodes that were added or changed.
    """
    seeds = set(ends)
    if db.execute(_ANY).fetchone():
        superseding = "SELECT DISTINCT from_id FROM relation WHERE type = 'supersedes' AND from_id IN (SELECT value FROM json_each(?))"
        seeds.update(id for (id,) in db.execute(superseding, (as_json(changed),)))
    if not seeds:
        return
    connected = as_json(id for (id,) in db.execute(_CONNECTED, (as_json(seeds),)))
    rows = db.execute(_EDGES, (connected,)).fetchall()
    found = live_ends([(new, old) for new, old, _ in rows], {new: created for new, _, created in rows})
    db.execute("DELETE FROM superseded WHERE id IN (SELECT value FROM json_each(?))", (connected,))
    db.executemany("INSERT INTO superseded VALUES (?, ?)", sorted(found.items()))


def as_json(ids: Iterable[str]) -> str:
    """Return ids as a JSON list. They need no escaping: the models allow only letters and digits."""
    return "[{}]".format(",".join(f'"{id}"' for id in ids))


def live_ends(edges: Sequence[Edge], created: Mapping[str, int]) -> dict[str, str]:
    """Return the live end for each superseded node, in time linear in the number of edges.

    Args:
        edges: The relations of active nodes.
        created: The times of the superseding nodes. Of several ends the one created last counts.
    """
    from ..order.cycles import cyclic_components

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


def is_used(db: sqlite3.Connection) -> bool:
    """Return whether any node is superseded."""
    return db.execute("SELECT 1 FROM superseded LIMIT 1").fetchone() is not None


def and_live(db: sqlite3.Connection) -> str:
    """Return the SQL condition that a row of `node n` is live, with AND before it; empty if all rows are."""
    return " AND n.id NOT IN (SELECT id FROM superseded)" if is_used(db) else ""


def ends_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """Return the live ends of those of these nodes that are superseded, by their ids."""
    if not is_used(db):
        return {}
    rows = db.execute(
        "SELECT id, live FROM superseded WHERE id IN (SELECT value FROM json_each(?))", (as_json(ids),)
    )
    return dict(rows.fetchall())


def replaced_by(db: sqlite3.Connection, ids: Iterable[str], most: int) -> dict[str, list[str]]:
    """Return the nodes that these supersede, directly and while it has effect, by the ids of those that do.

    Args:
        most: The number of nodes to return for each.
    """
    found: dict[str, list[str]] = {}
    if is_used(db):
        asked = (
            "SELECT r.to_id FROM relation r JOIN superseded s ON s.id = r.to_id JOIN node o ON o.id = r.to_id"
            " WHERE r.from_id = ? AND r.type = 'supersedes' AND o.state < 3 ORDER BY o.created DESC, o.id LIMIT ?"
        )
        for id in ids:
            older = [old for (old,) in db.execute(asked, (id, most))]
            found |= {id: older} if older else {}
    return found


def remark(db: sqlite3.Connection, ids: Sequence[str], by: str) -> str | None:
    """Return a warning for the writer of relations if nodes that are not among them supersede these already.

    Args:
        ids: The nodes that get superseded.
        by: The node that supersedes them.
    """
    ends = sorted({end for end in ends_of(db, ids).values() if end != by and end not in ids})
    if not ends:
        return None
    names = ", ".join(ends[:SHOWN]) + (f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else "")
    return f"Superseded before by {names}: `gitmem mem triage` lists this until one of these supersedes the other."


def revived(db: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Return a warning if nodes that these supersede count again, after these were closed, archived or deleted."""
    if not db.execute(_ANY).fetchone():
        return []
    rows = db.execute(
        "SELECT o.id FROM relation r JOIN node n ON n.id = r.from_id AND n.state > 0 JOIN node o ON o.id = r.to_id"
        " WHERE r.type = 'supersedes' AND r.from_id IN (SELECT value FROM json_each(?)) AND o.state = 0"
        " AND o.id NOT IN (SELECT id FROM superseded) ORDER BY o.created DESC, o.id LIMIT ?",
        (as_json(ids), SHOWN + 1),
    ).fetchall()
    if not rows:
        return []
    more = " and others" if len(rows) > SHOWN else ""
    return [f"No longer superseded, and shown again: {', '.join(id for (id,) in rows[:SHOWN])}{more}."]


def arrange(
    db: sqlite3.Connection, hits: Sequence[AnyHit], limit: int, successor: Callable[[str, AnyHit], AnyHit]
) -> list[AnyHit]:
    """Return the hits of a search, each superseded one directly below the live end of its chain.

    Live end and superseded hits take the place of the best of them.

    Args:
        hits: Best match first.
        limit: The maximum number of hits to return; live ends that did not match count.
        successor: Returns the hit of a live end that did not match, given its id and the hit that it supersedes.
    """
    ends = ends_of(db, [hit.node.id for hit in hits])
    if not ends:
        return list(hits)
    matched = {hit.node.id: hit for hit in hits}
    older: dict[str, list[AnyHit]] = {}
    for hit in hits:
        hit.superseded_by = ends.get(hit.node.id)
        older.setdefault(hit.superseded_by or hit.node.id, []).append(hit)
    found: list[AnyHit] = []
    for live, group in older.items():
        top = matched.get(live) or successor(live, group[0])
        top.matched = group[0].matched  # the headings of an answer follow the groups
        found += [top, *(hit for hit in group if hit is not top)]
    return found[:limit]
