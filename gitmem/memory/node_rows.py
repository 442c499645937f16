"""Convert lines of the memory to rows of its view, in any order of arrival.

A node without patches, or with one patch that only changes its status, is written directly: archiving 50,000 nodes
must not load them. Every other node is folded again from all of its lines.
"""

from __future__ import annotations

from ..log.lines import parse_all, parse_at
from ..order.node import STATUS, PatchChange
from ..records.ids import unit_key
from . import relations, stored_nodes
from .node_tables import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from ..index.entities import LineRow, NewLines, Rows
    from ..order.node import VersionedNode

_PUT = "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
# For a node without patches. Binding an empty text is four times as fast as binding None.
_NEW = (
    "INSERT OR IGNORE INTO node VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, nullif(?, ''),"
    " ?, ?, 0, ?, 0, NULL)"
)
_TEXTS = ("wu_id", "session_id", "lane", "priority", "summarized_into")


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add lines of the memory."""
    changed = _add_nodes(db, rows.of("node"))
    changed |= _add_patches(db, rows.of("patch"))
    _refold(db, stored_nodes.load(db, sorted(changed), whole=False))
    ends = _add_relations(db, rows.of("relation"))
    _add_accesses(db, rows.of("access"))
    relations.update_superseded(db, ends, _named(rows))


def _named(rows: Rows) -> Iterator[str]:
    """Yield the nodes that new lines create or change."""
    yield from rows.of("node").column("id")
    for row in rows.of("patch"):
        yield from row.record["node_ids"]


def _add_nodes(db: sqlite3.Connection, nodes: NewLines) -> set[str]:
    """Add nodes and return the ids of those to fold with other lines."""
    among = _ids_condition(nodes.column("id"))
    before = db.total_changes
    _add_fresh(db, nodes)
    again: set[str] = set()
    if db.total_changes - before < len(nodes):  # some ids exist already, or occur twice here
        lines: dict[str, int] = dict(db.execute(f"SELECT id, line FROM node WHERE {among}").fetchall())
        further = [
            (id, line) for id, line in zip(nodes.column("id"), nodes.ids, strict=True) if lines[id] != line
        ]
        db.executemany("INSERT OR IGNORE INTO node_again VALUES (?, ?)", further)
        again.update(id for id, _ in further)
    if db.execute("SELECT 1 FROM patch_of LIMIT 1").fetchone():
        again.update(id for (id,) in db.execute(f"SELECT id FROM patch_of WHERE {among}"))
    _add_tags_and_paths(db, zip(nodes.column("id"), nodes.column("tags"), nodes.column("paths"), strict=True))
    return again


def _add_fresh(db: sqlite3.Connection, nodes: NewLines) -> None:
    """Add the nodes whose ids are new. The rows equal those of `_values` for a node without other lines."""
    ids, column = nodes.column("id"), nodes.column
    work_units, sessions, lanes, priorities, summaries = (
        [each or "" for each in column(name)] for name in _TEXTS
    )
    created = parse_all(column("at"))
    touched = [
        max(at, parse_at(updated)) if updated else at
        for at, updated in zip(created, column("updated_at"), strict=True)
    ]
    marks = zip(column("deleted"), column("archived"), column("closed"), strict=True)
    ranks = [3 if deleted else 2 if archived else 1 if closed else 0 for deleted, archived, closed in marks]
    sensitive = [1 if each else 0 for each in column("sensitive")]
    values = zip(
        ids, nodes.ids, column("type"), column("lifecycle"), map(unit_key, work_units), sessions, lanes, priorities, ranks, sensitive,
        summaries, created, touched, column("sender_identity"), strict=True,
    )  # fmt: skip
    db.executemany(_NEW, sorted(values))  # sorted by key, as below: takes half the time


def _values(node: VersionedNode, line: int, patched: int) -> tuple[object, ...]:
    return (
        node.id, line, node.type, node.lifecycle, unit_key(node.wu_id) or None, node.session_id, node.lane, node.priority, node.rank,
        int(node.sensitive), node.summarized_into, node.created, node.touched, patched,
        node.sender_identity, node.hidden_by_other,
    )  # fmt: skip


def _add_tags_and_paths(
    db: sqlite3.Connection, nodes: Iterable[tuple[str, Sequence[str], Sequence[str]]]
) -> None:
    """Add the tags and paths of nodes."""
    tags, paths = [], []
    for id, own_tags, own_paths in nodes:
        tags += [(tag, id) for tag in own_tags or ()]
        paths += [(path, id) for path in own_paths or ()]
    db.executemany("INSERT OR IGNORE INTO tag VALUES (?, ?)", sorted(tags))
    db.executemany("INSERT OR IGNORE INTO anchor VALUES (?, ?)", sorted(paths))


def _add_patches(db: sqlite3.Connection, rows: Iterable[LineRow]) -> set[str]:
    """Add patches and return the ids of nodes to fold again."""
    changed: set[str] = set()
    for row in rows:
        change = PatchChange(row.record, row.line)
        ids = sorted(set(row.record["node_ids"]))
        db.executemany("INSERT OR IGNORE INTO patch_of VALUES (?, ?)", [(id, row.id) for id in ids])
        among = _ids_condition(ids)
        if change.clears or change.touches("summarized_into") or not change.only_marks:
            changed.update(id for (id,) in db.execute(f"SELECT id FROM node WHERE {among}"))
            continue
        changed.update(id for (id,) in db.execute(f"SELECT id FROM node WHERE patched AND {among}"))
        values = (change.rank, row.record["sender_identity"])
        db.execute(
            "UPDATE node SET state = max(state, ?1), patched = 1, hidden_by_other ="
            f" (?1 >= {HIDDEN} AND ?1 >= state AND sender <> ?2) * {STATUS} WHERE {among}",
            values,
        )
    return changed


def _ids_condition(ids: Iterable[str]) -> str:
    """Return an SQL condition on any number of ids. They need no escaping: the models allow only letters and digits."""
    return "id IN (SELECT value FROM json_each('[{}]'))".format(",".join(f'"{id}"' for id in ids))


def _refold(db: sqlite3.Connection, nodes: Sequence[VersionedNode]) -> None:
    """Replace the rows of nodes that were folded from all of their lines."""
    among = _ids_condition(node.id for node in nodes)
    lines: dict[str, int] = dict(db.execute(f"SELECT id, line FROM node WHERE {among}").fetchall())
    for (id,) in db.execute(f"SELECT DISTINCT id FROM node_again WHERE {among}").fetchall():
        lines[id] = _lowest_first(db, id)
    patched = {id for (id,) in db.execute(f"SELECT DISTINCT id FROM patch_of WHERE {among}")}
    db.executemany(_PUT, [_values(node, lines[node.id], int(node.id in patched)) for node in nodes])
    db.execute(f"DELETE FROM tag WHERE {among}")
    db.execute(f"DELETE FROM anchor WHERE {among}")
    _add_tags_and_paths(db, ((node.id, node.tags, node.paths) for node in nodes))


def _lowest_first(db: sqlite3.Connection, id: str) -> int:
    """Return the lowest line of a node, for the table `node`; store its other lines in `node_again`."""
    rows = db.execute(
        "SELECT l.id FROM line l WHERE l.id IN (SELECT line FROM node WHERE id = ?1"
        " UNION SELECT line FROM node_again WHERE id = ?1) ORDER BY l.body",
        (id,),
    ).fetchall()
    (lowest,), *others = rows
    db.execute("DELETE FROM node_again WHERE id = ?", (id,))
    db.executemany("INSERT INTO node_again VALUES (?, ?)", [(id, line) for (line,) in others])
    return int(lowest)


def _add_relations(db: sqlite3.Connection, rows: Iterable[LineRow]) -> set[str]:
    """Add relations and return the nodes that one of them says supersede others, or are superseded."""
    triples = set()
    for row in rows:
        relation_key = relations.key_of(row.record)
        db.execute("INSERT OR IGNORE INTO relation_event VALUES (?, ?, ?, ?)", (*relation_key, row.id))
        triples.add(relation_key)
    for relation_key in sorted(triples):
        if relations.exists(db, relation_key):
            db.execute("INSERT OR IGNORE INTO relation VALUES (?, ?, ?)", relation_key)
        else:
            db.execute("DELETE FROM relation WHERE from_id = ? AND to_id = ? AND type = ?", relation_key)
    return {id for *ends, type in triples if type == relations.SUPERSEDES for id in ends}


def _add_accesses(db: sqlite3.Connection, rows: Iterable[LineRow]) -> None:
    seen = [(id, row.at) for row in rows for id in sorted(set(row.record["node_ids"]))]
    db.executemany(
        "INSERT INTO access VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE"
        " SET count = count + 1, last = max(last, excluded.last)",
        seen,
    )
