"""Read nodes from the index: fold the lines of each id; find ids; and say who has written and changed a node."""

from __future__ import annotations

from .. import records
from ..errors import UsageError
from ..index import entity_lines
from ..index.resolve_id import choose
from ..order.causal import CausalOrder
from ..order.node import PatchChange, VersionedNode, add_signature, fold, fold_changes
from ..order.shares import LINES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..order.node import WinningPatches
    from ..records.record_types import NodeRecord

    Parsed = dict[int, PatchChange | None]
    Sets = dict[tuple[bytes, ...], WinningPatches]


NAMED_MAX = 2  # names of other writers in one line
UNVERIFIED = "UNVERIFIED"  # a line in the name of a session of this clone was not written here (forged)
CONFLICT = "CONFLICT"  # several lines with this node's id have different content
_NO_BRACKETS = str.maketrans("()[]", "    ")  # a name must not close gitmem's brackets or fake an identity
_SHOWN = (
    "SELECT s.session_id, coalesce(s.agent_identity, s.session_id), t.shown FROM json_each(?) i"
    " JOIN session s ON s.session_id = i.value JOIN tenure t INDEXED BY tenure_last"
    " ON t.session_id = s.session_id AND t.last"
)


def set_own_names(db: sqlite3.Connection, nodes: Collection[VersionedNode]) -> None:
    """Set which names in nodes are the display names of sessions of the same identity, now or at their end."""
    from ..records.ids import is_id

    for node in nodes:
        add_signature(node, node.sender_identity, node.sender_name, node.sender_session)
    sessions = {session for node in nodes for *_, session in node.signed if is_id("sess", session)}
    if not sessions:
        return
    listed = "[" + ",".join(f'"{session}"' for session in sorted(sessions)) + "]"  # ids need no escaping
    shown = {session: (sender, name) for session, sender, name in db.execute(_SHOWN, (listed,))}
    for node in nodes:
        node.own_names = {
            (sender, name) for sender, name, session in node.signed if shown.get(session) == (sender, name)
        }


def format_writer(node: VersionedNode, name: object, identity: object) -> str:
    """Return the name if it is its session's own, else the name with the identity, or the identity alone."""
    plain, exact = (str(each or "").translate(_NO_BRACKETS) for each in (name, identity))
    if not plain or plain == exact:
        return exact
    return plain if (identity, name) in node.own_names else f"{plain} ({exact})"


def byline(node: VersionedNode) -> str:
    """Return the writers of a node and the marks of doubt: `Curie, UNVERIFIED`."""
    return ", ".join([writer_names(node), *doubts(node)])


def doubts(node: VersionedNode) -> list[str]:
    """Return the reasons to doubt the content of a node. `mem show` lists who wrote which conflicting line."""
    found = [UNVERIFIED] if node.unverified else []
    if node.conflicting:
        others = f" and {len(node.conflicting) - NAMED_MAX} more" if len(node.conflicting) > NAMED_MAX else ""
        found.append(f"{CONFLICT}: different lines by {' and '.join(node.conflicting[:NAMED_MAX])}{others}")
    return found


def writer_names(node: VersionedNode) -> str:
    """Return the writer of the content and other writers: `Curie in a node of Planck, changed by Meitner`."""
    author = format_writer(node, node.sender_name, node.sender_identity)
    if node.content_by:
        author = f"{format_writer(node, node.content_by_name, node.content_by)} in a node of {author}"
    others = [
        format_writer(node, each.get("sender_name"), each["sender_identity"])
        for each in node.changed_by
        if each["sender_identity"] != node.content_by
    ]
    if not others:
        return author
    more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
    return f"{author}, changed by {', '.join(others[:NAMED_MAX])}{more}"


def is_changed(node: VersionedNode) -> bool:
    """Return whether writers other than the author changed it, or lines that cannot be verified as the author's."""
    return bool(node.content_by or node.changed_by or node.unverified or node.conflicting)


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
        set_own_names(db, found.values())
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
    """Return the node with an id that `find_node` returned."""
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


NODE_PREFIX = "mem-"


def find_node(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the node id for an id or a unique prefix; hidden nodes count, too.

    Raises:
        UsageError: None or several match; the error has the candidates.
    """
    text = validate_id(text)
    if db.execute("SELECT 1 FROM node WHERE id = ?", (text,)).fetchone():
        return text
    start = NODE_PREFIX + text.removeprefix(NODE_PREFIX)
    rows = db.execute("SELECT id FROM node WHERE id >= ? AND id < ? LIMIT 5", (start, start + "\U0010ffff"))
    found = [str(id) for (id,) in rows] if start != NODE_PREFIX else []
    lists = ("gitmem mem list", "gitmem mem list --include-archived")
    return choose(start if found else text, found, "node", "mem show", lists, writing=writing)


def validate_id(id: object) -> str:
    """Check that an id is a string: callers of the library may pass other objects.

    Raises:
        UsageError: The id is not a string.
    """
    if not isinstance(id, str):
        raise UsageError(
            f"Invalid id of type {type(id).__name__}; it must be text such as mem-0123456789ab. "
            "Nothing was written.",
            hint="Use `.id` of a node, or `.node.id` of the result that created it.",
            code="bad-id",
        )
    return id
