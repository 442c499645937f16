"""Nodes from the index: the lines of each id, folded."""

from __future__ import annotations

from ... import records
from . import fold
from .fold import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from .fold import Record

AT_ONCE = 500  # ids in one question: SQLite takes no more than 999 values in its oldest form


def load(db: sqlite3.Connection, ids: Iterable[str]) -> list[Node]:
    """The nodes of these ids, in this order; ids that the log does not have are left out."""
    wanted = list(dict.fromkeys(ids))
    found: dict[str, Node] = {}
    for start in range(0, len(wanted), AT_ONCE):
        found.update(_some(db, wanted[start : start + AT_ONCE]))
    return [found[id] for id in wanted if id in found]


def _some(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Node]:
    marks = ", ".join("?" * len(ids))
    nodes = _bodies(db, f"SELECT n.id, l.body FROM node n JOIN line l ON l.id = n.line WHERE n.id IN ({marks})"
                    " UNION ALL SELECT a.id, l.body FROM node_again a JOIN line l ON l.id = a.line"
                    f" WHERE a.id IN ({marks})", [*ids, *ids])  # fmt: skip
    patches = _bodies(
        db, f"SELECT p.id, l.body FROM patch_of p JOIN line l ON l.id = p.line WHERE p.id IN ({marks})", ids
    )
    found = {id: fold.fold(lines, patches.get(id, ())) for id, lines in nodes.items()}
    for id, count, last in db.execute(f"SELECT id, count, last FROM access WHERE id IN ({marks})", list(ids)):
        if id in found:
            found[id].accesses, found[id].last_accessed_at = count, last
    return found


def _bodies(
    db: sqlite3.Connection, question: str, values: Sequence[str]
) -> dict[str, list[tuple[Record, bytes]]]:
    found: dict[str, list[tuple[Record, bytes]]] = {}
    parsed: dict[str, Record] = {}  # one patch may name many nodes
    for id, body in db.execute(question, list(values)):
        record = parsed.get(body) or records.read(body.encode())
        if record is not None:
            parsed[body] = record
            found.setdefault(id, []).append((record, body.encode()))
    return found


def of_line(line: bytes) -> Node:
    """The node that a line makes by itself. ValueError where it is none."""
    record = records.read(line)
    if record is None or record["kind"] != "node":
        raise ValueError("no node")
    return fold.fold([(record, line)], [])


def one(db: sqlite3.Connection, id: str) -> Node:
    """The node of an id that `known.find` gave."""
    (node,) = load(db, [id])
    return node
