"""The memory about a commit: what was known when it was made, and whether that still holds."""

from __future__ import annotations

from ..log.lines import format_at
from ..memory import anchors, load, node_fold
from ..outcome import Outcome
from ..records.ids import unit_key
from ..text.sanitize import title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..memory.versioned_node import VersionedNode
    from ..store import Store

NODES_MAX = 5
LOOKED_AT = 40
HOLDS, CHANGED = "holds", "changed since"
_BY_PATH = (
    "SELECT n.id FROM anchor a JOIN node n ON n.id = a.id WHERE a.path IN ({marks}) AND n.state < 2 AND NOT n.sensitive"
    " AND n.hidden_by_other = 0 ORDER BY n.touched DESC LIMIT ?"
)
_BY_UNIT = (
    "SELECT n.id FROM node n WHERE n.wu_id = ? AND n.state < 2 AND NOT n.sensitive AND n.type <> 'checkpoint'"
    " AND n.hidden_by_other = 0 ORDER BY n.touched DESC LIMIT ?"
)


class KnownNode(Outcome):
    """A node about a file or work unit of a commit.

    Attributes:
        by: `path` or `work unit`: how it belongs to the commit.
        text: Its first line as it was when the commit was made; for a later node as it is now.
        known_then: Whether it was written before the commit.
        now: `holds`, or why not: superseded, closed, stale, or changed since.
        superseded_by: The node that has replaced it.
    """

    def __init__(self, node: VersionedNode, by: str, *, known_then: bool) -> None:
        self.id = node.id
        self.type = node.type
        self.by = by
        self.text = title(node.content)
        self.sender_name = node.sender_name or node.sender_identity
        self.known_then = known_then
        self.now = HOLDS
        self.superseded_by: str | None = None


def nodes(store: Store, paths: Sequence[str], wu_id: str | None, committed: int) -> list[KnownNode]:
    """Return the nodes that are anchored to files or to the work unit of a commit: those known then first.

    Args:
        paths: The files.
        wu_id: The work unit.
        committed: When the commit was made, in microseconds.
    """
    db = store.db()
    ids = _ids(db, paths, wu_id)
    found = load.load(db, list(ids), whole=False)
    found.sort(
        key=lambda node: (
            node.created > committed,
            ids[node.id] != "path",
            node.type != "decision",
            -node.created,
        )
    )
    some = found[:NODES_MAX]
    stale = anchors.stale(store, some)
    then = _as_of(db, [node.id for node in some], committed)
    return [_known(db, node, then.get(node.id), ids[node.id], stale.get(node.id), committed) for node in some]


def _ids(db: sqlite3.Connection, paths: Sequence[str], wu_id: str | None) -> dict[str, str]:
    """Return the ids of nodes, and how each belongs to the commit."""
    wanted = list(dict.fromkeys(each for path in paths for each in _with_folders(path)))[:LOOKED_AT]
    found: dict[str, str] = {}
    if wanted:
        query = _BY_PATH.format(marks=", ".join("?" * len(wanted)))
        found.update((str(id), "path") for (id,) in db.execute(query, (*wanted, LOOKED_AT)))
    if wu_id:
        for (id,) in db.execute(_BY_UNIT, (unit_key(wu_id), LOOKED_AT)):
            found.setdefault(str(id), "work unit")
    return found


def _with_folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _as_of(db: sqlite3.Connection, ids: Sequence[str], committed: int) -> dict[str, VersionedNode]:
    """Return nodes as they were when a commit was made: only the lines up to then count, as with `--as-of`.

    `memory.as_of` opens the whole log of a time; for a few nodes that would take minutes of a large one.
    """
    if not ids:
        return {}
    patches, until = load.patches_of(db, ids), format_at(committed)
    found = {}
    for id, lines in load.lines_of(db, ids).items():
        earlier = [change for change in patches.get(id, ()) if change.record["at"] <= until]
        found[id] = node_fold.of_changes(lines, earlier, {}, whole=False)
    return found


def _known(
    db: sqlite3.Connection,
    node: VersionedNode,
    then: VersionedNode | None,
    by: str,
    stale: str | None,
    committed: int,
) -> KnownNode:
    known_then = node.created <= committed and then is not None
    found = KnownNode(then if known_then and then is not None else node, by, known_then=known_then)
    row = db.execute("SELECT live FROM superseded WHERE id = ?", (node.id,)).fetchone()
    if row is not None:
        found.superseded_by = str(row[0])
        found.now = f"superseded by {row[0]}"
    elif node.closed:
        found.now = "closed"
    elif stale:
        found.now = stale
    elif known_then and then is not None and then.content != node.content:
        found.now = CHANGED
    return found
