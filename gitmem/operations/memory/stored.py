"""Nodes from the index: the lines of each id, folded."""

from __future__ import annotations

from ... import records
from . import fold
from .fold import Change, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from .fold import Record, Winners

    Parsed = dict[int, Change | None]
    Sets = dict[tuple[bytes, ...], Winners]

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
    sets: Sets = {}
    for start in range(0, len(wanted), AT_ONCE):
        found.update(_some(db, wanted[start : start + AT_ONCE], parsed, sets))
    return [found[id] for id in wanted if id in found]


def _some(db: sqlite3.Connection, ids: Sequence[str], parsed: Parsed, sets: Sets) -> dict[str, Node]:
    marks = ", ".join("?" * len(ids))
    rows = db.execute(
        f"SELECT id, line FROM node WHERE id IN ({marks})"
        f" UNION ALL SELECT id, line FROM node_again WHERE id IN ({marks})",
        [*ids, *ids],
    )
    nodes: dict[str, list[tuple[Record, bytes]]] = {}
    for id, body in _bodies(db, rows):
        record = records.read(body)
        if record is not None:
            nodes.setdefault(id, []).append((record, body))
    patches = changes(db, ids, parsed)
    found = {id: fold.of_changes(lines, patches.get(id, ()), sets) for id, lines in nodes.items()}
    for id, count, last in db.execute(f"SELECT id, count, last FROM access WHERE id IN ({marks})", list(ids)):
        if id in found:
            found[id].accesses, found[id].last_accessed_at = count, last
    return found


def _bodies(db: sqlite3.Connection, rows: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """(node id, line) of (node id, number of a line)."""
    of = {line: id for id, line in rows}
    for line, body in _lines(db, sorted(of)):
        yield of[line], body


def _lines(db: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        marks = ", ".join("?" * len(some))
        for line, body in db.execute(f"SELECT id, body FROM line WHERE id IN ({marks})", some):
            yield line, body.encode()


def changes(db: sqlite3.Connection, ids: Sequence[str], parsed: Parsed) -> dict[str, list[Change]]:
    """The patches of at most `AT_ONCE` nodes, by node id; each line is fetched and read once.

    Args:
        parsed: As for `load`.
    """
    marks = ", ".join("?" * len(ids))
    pairs = db.execute(f"SELECT id, line FROM patch_of WHERE id IN ({marks})", list(ids)).fetchall()
    for line, body in _lines(db, sorted({line for _, line in pairs} - parsed.keys())):
        record = records.read(body)
        parsed[line] = Change(record, body) if record is not None else None
    found: dict[str, list[Change]] = {}
    for id, line in pairs:
        change = parsed.get(line)
        if change is not None:
            found.setdefault(id, []).append(change)
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
