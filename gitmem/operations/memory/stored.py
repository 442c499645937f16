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

    Parsed = dict[int, tuple[Record | None, bytes]]

AT_ONCE = 500  # ids in one question: SQLite takes no more than 999 values in its oldest form


def load(db: sqlite3.Connection, ids: Iterable[str], parsed: Parsed | None = None) -> list[Node]:
    """The nodes of these ids, in this order; ids that the log does not have are left out.

    Args:
        parsed: Patches by the number of their line, kept from call to call. One patch may name thousands of
            nodes: read again for each of them it would take the square of their number.
    """
    wanted = list(dict.fromkeys(ids))
    parsed = {} if parsed is None else parsed
    found: dict[str, Node] = {}
    for start in range(0, len(wanted), AT_ONCE):
        found.update(_some(db, wanted[start : start + AT_ONCE], parsed))
    return [found[id] for id in wanted if id in found]


def _some(db: sqlite3.Connection, ids: Sequence[str], parsed: Parsed) -> dict[str, Node]:
    marks = ", ".join("?" * len(ids))
    rows = db.execute(
        f"SELECT id, line FROM node WHERE id IN ({marks})"
        f" UNION ALL SELECT id, line FROM node_again WHERE id IN ({marks})",
        [*ids, *ids],
    )
    nodes = said(db, rows, {})
    rows = db.execute(f"SELECT id, line FROM patch_of WHERE id IN ({marks})", list(ids))
    patches = said(db, rows, parsed)
    found = {id: fold.fold(lines, patches.get(id, ())) for id, lines in nodes.items()}
    for id, count, last in db.execute(f"SELECT id, count, last FROM access WHERE id IN ({marks})", list(ids)):
        if id in found:
            found[id].accesses, found[id].last_accessed_at = count, last
    return found


def said(
    db: sqlite3.Connection, rows: Iterable[tuple[str, int]], parsed: Parsed
) -> dict[str, list[tuple[Record, bytes]]]:
    """The records of (node id, number of a line), by node id; each line is fetched and read once."""
    pairs = list(rows)
    missing = sorted({line for _, line in pairs} - parsed.keys())
    for start in range(0, len(missing), AT_ONCE):
        some = missing[start : start + AT_ONCE]
        marks = ", ".join("?" * len(some))
        for line, body in db.execute(f"SELECT id, body FROM line WHERE id IN ({marks})", some):
            parsed[line] = (records.read(body.encode()), body.encode())
    found: dict[str, list[tuple[Record, bytes]]] = {}
    for id, line in pairs:
        record, body = parsed.get(line, (None, b""))
        if record is not None:
            found.setdefault(id, []).append((record, body))
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
