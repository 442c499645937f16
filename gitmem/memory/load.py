"""Load nodes from the index: fold the lines of each id."""

from __future__ import annotations

from .. import records
from ..index import entity_lines
from ..order.causal import CausalOrder
from ..order.node import PatchChange, VersionedNode, fold, fold_changes
from ..order.shares import LINES_MAX
from . import authors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..order.node import WinningPatches
    from ..records.record_types import NodeRecord

    Parsed = dict[int, PatchChange | None]
    Sets = dict[tuple[bytes, ...], WinningPatches]

AT_ONCE = 300  # ids in one query, up to three times: old versions of SQLite allow only 999 parameters
_FORGED = (
    "SELECT DISTINCT l.body FROM forged f JOIN line l ON l.id = f.line WHERE f.line IN (SELECT line FROM node WHERE id"
    " IN ({ids}) UNION SELECT line FROM node_again WHERE id IN ({ids}) UNION SELECT line FROM patch_of WHERE id IN ({ids}))"
)

SHARED_LEAST = 1_000  # pairs of a node and a patch, from which on a common order is considered
SHARED_TIMES = 4  # average number of nodes of a patch, from which on a common order is cheaper
ORDERED_MOST = 16_384  # patches in one order: its size grows with the square of their number


def load(
    db: sqlite3.Connection, ids: Iterable[str], parsed: Parsed | None = None, *, whole: bool = True
) -> list[VersionedNode]:
    """Return the nodes with these ids, in this order; unknown ids are skipped.

    Args:
        parsed: A cache of patches by line number, shared between calls. One patch may name thousands of nodes: to
            parse it for each of them would take quadratic time.
        whole: Whether to load the metadata, too.
    """
    wanted = list(dict.fromkeys(ids))
    found: dict[str, VersionedNode] = {}
    sets: Sets = {}
    patches = patches_of(db, wanted, parsed)
    order = order_of(patches)
    private: set[str] = set()
    for some in batches(wanted):
        for id, lines in lines_of(db, some, private).items():
            found[id] = fold_changes(lines, patches.get(id, ()), sets, order, whole=whole)
            found[id].private = id in private
        _add_accesses(db, some, found)
    if whole:
        _set_unverified(db, found)
        authors.set_own_names(db, found.values())
    return [found[id] for id in wanted if id in found]


def patches_of(
    db: sqlite3.Connection, ids: Sequence[str], parsed: Parsed | None = None
) -> dict[str, list[PatchChange]]:
    """Return the patches of nodes, by node id; each line is read and parsed once."""
    known: Parsed = {} if parsed is None else parsed
    return {id: of for some in batches(ids) for id, of in changes(db, some, known).items()}


def batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids for one query each."""
    for start in range(0, len(ids), AT_ONCE):
        yield ids[start : start + AT_ONCE]


def order_of(patches: Mapping[str, Sequence[PatchChange]]) -> CausalOrder[PatchChange] | None:
    """Return the causal order of all patches if nodes share many; None if ordering them by node is cheaper."""
    pairs = sum(len(of) for of in patches.values() if len(of) > 1)
    if pairs < SHARED_LEAST:
        return None
    every = {each.line: each for of in patches.values() for each in of}
    if pairs < SHARED_TIMES * len(every) or len(every) > ORDERED_MOST:
        return None
    return CausalOrder(every.values())


def lines_of(
    db: sqlite3.Connection, ids: Sequence[str], private: set[str] | None = None
) -> dict[str, list[tuple[NodeRecord, bytes]]]:
    """Return the lines that create these nodes, by node id: all lines if an id has several.

    Args:
        private: Gets the ids of those that are private to the reader.
    """
    marks = ", ".join("?" * len(ids))
    rows = db.execute(
        f"SELECT id, line, private FROM node WHERE id IN ({marks})"
        f" UNION ALL SELECT id, line, NULL FROM node_again WHERE id IN ({marks})",
        [*ids, *ids],
    ).fetchall()
    if private is not None:
        private.update(id for id, _, reader in rows if reader is not None)
    found: dict[str, list[tuple[NodeRecord, bytes]]] = {}
    for id, body in _node_lines(db, rows):
        record = records.read_kind("node", body)
        if record is not None:
            found.setdefault(id, []).append((record, body))
    return found


def _add_accesses(db: sqlite3.Connection, ids: Sequence[str], found: Mapping[str, VersionedNode]) -> None:
    marks = ", ".join("?" * len(ids))
    for id, count, last in db.execute(f"SELECT id, count, last FROM access WHERE id IN ({marks})", list(ids)):
        if id in found:
            found[id].accesses, found[id].last_accessed_at = count, last


def _node_lines(
    db: sqlite3.Connection, rows: Iterable[tuple[str, int, str | None]]
) -> Iterator[tuple[str, bytes]]:
    """Yield (node id, line) for rows that begin with a node id and a line number."""
    of = {line: id for id, line, _ in rows}
    for line, body in _lines(db, sorted(of)):
        yield of[line], body


def _lines(db: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        marks = ", ".join("?" * len(some))
        for line, body in db.execute(f"SELECT id, body FROM line WHERE id IN ({marks})", some):
            yield line, body.encode()


def changes(db: sqlite3.Connection, ids: Sequence[str], parsed: Parsed) -> dict[str, list[PatchChange]]:
    """Return the patches of at most `AT_ONCE` nodes, by node id; each line is read and parsed once.

    Args:
        parsed: As for `load`.
    """
    marks = ", ".join("?" * len(ids))
    pairs = db.execute(f"SELECT id, line FROM patch_of WHERE id IN ({marks})", list(ids)).fetchall()
    if len(pairs) > LINES_MAX:
        pairs = _without_floods(db, pairs)
    for line, body in _lines(db, sorted({line for _, line in pairs} - parsed.keys())):
        record = records.read_kind("patch", body)
        parsed[line] = PatchChange(record, body) if record is not None else None
    found: dict[str, list[PatchChange]] = {}
    for id, line in pairs:
        change = parsed.get(line)
        if change is not None:
            found.setdefault(id, []).append(change)
    return found


def _without_floods(db: sqlite3.Connection, pairs: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return pairs of a node and a line of a patch: of a node with too many patches a fair share of each sender."""
    lines: dict[str, list[int]] = {}
    for id, line in pairs:
        lines.setdefault(id, []).append(line)
    for id, of in lines.items():
        if len(of) > LINES_MAX:
            lines[id], _ = entity_lines.numbers(db, "SELECT line FROM patch_of WHERE id = ?", id, LINES_MAX)
    return [(id, line) for id, of in lines.items() for line in of]


def left_out(db: sqlite3.Connection, id: str) -> int:
    """Return how many patches of a node are not read, because there are too many."""
    (count,) = db.execute("SELECT count(*) FROM patch_of WHERE id = ?", (id,)).fetchone()
    return max(0, int(count) - LINES_MAX)


def node_of_line(line: bytes) -> VersionedNode:
    """Return the node that a line creates, without patches.

    Raises:
        ValueError: The line is not a node.
    """
    record = records.read_kind("node", line)
    if record is None:
        raise ValueError("no node")
    return fold([(record, line)], [])


def is_private(db: sqlite3.Connection, id: str) -> bool:
    """Return whether a node is private to the reader of these tables."""
    row = db.execute("SELECT private FROM node WHERE id = ?", (id,)).fetchone()
    return row is not None and row[0] is not None


def load_one(db: sqlite3.Connection, id: str) -> VersionedNode:
    """Return the node with an id that `private_nodes.find_node` returned."""
    (node,) = load(db, [id])
    return node


def _set_unverified(db: sqlite3.Connection, nodes: Mapping[str, VersionedNode]) -> None:
    """Set `unverified` of these nodes, given by id, from the forged lines that create or change them.

    On every clone, the fold of a node counts all its lines alike. This clone shows what comes from lines that were
    forged in the name of its sessions.
    """
    if db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is None:
        return
    forged = forged_lines(db, list(nodes))
    if not forged:
        return
    for node in nodes.values():
        found = {"node"} if node.line in forged else set()  # the line that created it; else changed fields
        if node.winners is not None:
            found.update(field for field, last in node.winners.by_field.items() if last.line in forged)
            found.update("metadata" for last in node.winners.by_key.values() if last.line in forged)
        node.unverified = sorted(found)


def forged_lines(db: sqlite3.Connection, ids: Sequence[str]) -> set[bytes]:
    """Return the forged lines that create or change these nodes."""
    found: set[bytes] = set()
    for some in batches(ids):
        query = _FORGED.format(ids=", ".join("?" * len(some)))
        found.update(body.encode() for (body,) in db.execute(query, [*some, *some, *some]))
    return found
