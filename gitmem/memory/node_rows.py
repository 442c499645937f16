"""Convert lines of the memory to rows of its view, in any order of arrival.

A node without patches, or with one patch that only changes its status, is written directly: archiving 50,000 nodes
must not load them. Every other node is folded again from all of its lines. What is superseded is computed after that.
"""

from __future__ import annotations

from ..index.entities import Fold, json_list
from ..log.lines import parse_all, parse_at
from ..order.node import STATUS, PatchChange
from ..records.ids import unit_key
from . import relations, stored_nodes
from .node_tables import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..index.entities import LineRow, Lines, NewLines, Rows
    from ..order.node import VersionedNode

# For a node without patches. Binding an empty text is four times as fast as binding None.
_NEW = (
    "INSERT OR IGNORE INTO node VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, nullif(?, ''),"
    " ?, ?, 0, ?, 0, NULL)"
)
_TEXTS = ("wu_id", "session_id", "lane", "priority", "summarized_into")


def _write_unfolded(db: sqlite3.Connection, new: Rows, _: set[str]) -> set[str]:
    """Write the nodes that need no fold, and return those that do."""
    nodes, again = new.of("node"), set()
    if len(nodes):
        _add_fresh(db, nodes)
        _add_tags_and_paths(
            db, zip(nodes.column("id"), nodes.column("tags"), nodes.column("paths"), strict=True)
        )
        several = (
            f"SELECT id FROM entity_line WHERE kind = 'node' AND {_among(nodes.column('id'))}"
            " GROUP BY id HAVING count(*) > 1"
        )
        again = {id for (id,) in db.execute(several)}
    return again | _mark(db, new.of("patch"))


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


def _values(node: VersionedNode, lines: Lines) -> Sequence[object]:
    return (
        node.id, lines.of("node")[0].id, node.type, node.lifecycle, unit_key(node.wu_id) or None, node.session_id, node.lane,
        node.priority, node.rank, int(node.sensitive), node.summarized_into, node.created, node.touched,
        int(bool(lines.of("patch"))), node.sender_identity, node.hidden_by_other, None,
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


def _mark(db: sqlite3.Connection, patches: Iterable[LineRow]) -> set[str]:
    """Write the status that patches set, if they change nothing else, and return the ids of nodes to fold again."""
    changed: set[str] = set()
    for row in patches:
        change = PatchChange(row.record, row.line)
        among = _among(sorted(set(row.record["node_ids"])))
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


def _among(ids: Iterable[str]) -> str:
    """Return an SQL condition on any number of ids. They need no escaping: the models allow only letters and digits."""
    return f"id IN (SELECT value FROM json_each('{json_list(ids)}'))"


def _folded(db: sqlite3.Connection, lines: Mapping[str, Lines]) -> list[Sequence[object]]:
    """Return the rows of nodes that are folded from all of their lines."""
    nodes = stored_nodes.fold_all(lines, whole=False)
    among = _among(nodes)
    db.execute(f"DELETE FROM tag WHERE {among}")
    db.execute(f"DELETE FROM anchor WHERE {among}")
    _add_tags_and_paths(db, ((node.id, node.tags, node.paths) for node in nodes.values()))
    return [_values(node, lines[id]) for id, node in nodes.items()]


def _add_accesses(db: sqlite3.Connection, new: Rows) -> tuple[str, ...]:
    seen = [(id, row.at) for row in new.of("access") for id in sorted(set(row.record["node_ids"]))]
    db.executemany(
        "INSERT INTO access VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE"
        " SET count = count + 1, last = max(last, excluded.last)",
        seen,
    )
    return ()


FOLD = Fold(_folded, also=_add_accesses, direct=_write_unfolded)


def add_relations(db: sqlite3.Connection, new: Rows) -> None:
    """Add relations, and update what is superseded after these and after changes of nodes."""
    ends = _add_relations(db, new.of("relation"))
    relations.update_superseded(db, ends, _named(new))


def _named(new: Rows) -> Iterator[str]:
    """Yield the nodes that new lines create or change."""
    yield from new.of("node").column("id")
    for row in new.of("patch"):
        yield from row.record["node_ids"]


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
