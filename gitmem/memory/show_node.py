"""Show one node in full: its relations, its changes with their writers, and its commit."""

from __future__ import annotations

from .. import records
from ..agents.descriptions import sender_name
from ..order.node import content_digest_text, without_ignored
from ..outcome import Outcome, command
from ..signals import history
from ..signals.task_records import TaskRecords
from . import anchors, decay, load, private_nodes, relations, superseded
from .listing import first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import TypedDict

    from ..order.node import VersionedNode
    from ..records.kinds import TaskDifference
    from ..records.record_types import PatchRecord
    from ..store import Store

    class Relative(TypedDict):
        """A relation of a node, with the first line of the other node, which is None if it is unknown."""

        from_id: str
        to_id: str
        type: str
        other: str | None


# Fields of a patch that are not changes.
_NOT_SHOWN = ("at", "kind", "mac", "schema_version", "id", "node_ids", "after", "sender_identity", "sender_session",
           "sender_name")  # fmt: skip


class NodeChange(Outcome):
    """One patch of a node: the fields with their new values; `clear` lists those it emptied."""

    def __init__(self, record: PatchRecord, sender: str) -> None:
        self.id = record["id"]
        self.at = record["at"]
        self.sender = sender
        self.sender_identity = record["sender_identity"]
        self.sender_session = record.get("sender_session")
        self.fields = {key: value for key, value in record.items() if key not in _NOT_SHOWN and value}


class NodeDetail(Outcome):
    """A node in full.

    Attributes:
        score: Its decay score now.
        stale: How much its files have changed, or None.
        superseded_by: The live end of the chain of nodes that supersede it; None if it is live.
        relations: In both directions: from_id, to_id, type, and the first line of the other node (None if unknown); at
            most `relations.RELATIONS_MAX`.
        history: Its patches, oldest first.
        left_out: The number of patches that do not count, because there are too many.
        contradicts: How it differs from the records of the tasks that its metadata names.
        ambiguous: Whether lines of its id have different content; the lowest line counts.
        commit: The commit of its line; None until it is committed.
    """

    def __init__(self, node: VersionedNode, score: float, commit: str | None) -> None:
        self.node = node
        self.score = score
        self.stale: str | None = None
        self.superseded_by: str | None = None
        self.relations: list[Relative] = []
        self.history: list[NodeChange] = []
        self.left_out = 0
        self.contradicts: list[TaskDifference] = []
        self.ambiguous = False
        self.commit = commit
        self.recorded = True
        self.next: list[str] = []


def show(store: Store, id: str, *, half_life: int = decay.HALF_LIFE_MICROS) -> NodeDetail:
    """Return a node by its id or a unique prefix, also if archived or deleted. Records no access.

    Args:
        half_life: Microseconds, for its score.

    Raises:
        UsageError: None or several nodes match.
    """
    decay.validate(half_life)
    db = store.db()
    node = load.load_one(db, private_nodes.find_node(db, id))
    found = NodeDetail(
        node,
        decay.score(node, now=store.now(), half_life=half_life),
        None if node.private else history.commit_of(store, node.line),
    )
    found.stale = anchors.stale(store, [node]).get(node.id)
    found.superseded_by = superseded.ends_of(db, [node.id]).get(node.id)
    found.relations = _relations(db, node)
    found.history = [
        NodeChange(record, sender_name(store, record) or record["sender_identity"])
        for record in _patches(db, node.id)
    ]
    found.left_out = load.left_out(db, node.id)
    found.contradicts = TaskRecords(db).of_node(node.wu_id, node.lane, node.metadata)
    found.ambiguous = _is_ambiguous(db, node.id)
    found.next = _next(found)
    return found


def _relations(db: sqlite3.Connection, node: VersionedNode) -> list[Relative]:
    every = relations.relations_of(db, node.id)
    others = {id for ends in every for id in ends[:2]} - {node.id}
    starts = {other.id: first_line(other) for other in load.load(db, sorted(others))}
    return [
        {"from_id": from_id, "to_id": to_id, "type": type,
         "other": starts.get(to_id if from_id == node.id else from_id)}
        for from_id, to_id, type in every
    ]  # fmt: skip


def _patches(db: sqlite3.Connection, id: str) -> list[PatchRecord]:
    rows = db.execute(
        "SELECT l.body FROM patch_of p JOIN line l ON l.id = p.line WHERE p.id = ? ORDER BY l.body", (id,)
    )
    found = (records.read_kind("patch", body.encode()) for (body,) in rows)
    return list({each["id"]: without_ignored(each) for each in found if each is not None}.values())


def _is_ambiguous(db: sqlite3.Connection, id: str) -> bool:
    rows = db.execute(
        "SELECT l.body FROM node n JOIN line l ON l.id = n.line WHERE n.id = ?"
        " UNION SELECT l.body FROM node_again n JOIN line l ON l.id = n.line WHERE n.id = ?",
        (id, id),
    )
    read = (records.read_kind("node", body.encode()) for (body,) in rows)
    return len({content_digest_text(record) if record is not None else None for record in read}) > 1


def _verify_options(stale: str) -> list[str]:
    """Return the options that clear a stale mark. A removed file cannot be verified, so its path is cleared."""
    return ["--clear", "paths"] if "is gone since" in stale else ["--verified"]


def _next(found: NodeDetail) -> list[str]:
    node = found.node
    if node.is_hidden:
        clear = [
            word for name in ("archived", "deleted") if getattr(node, name) for word in ("--clear", name)
        ]
        commands = [command("gitmem", "mem", "update", node.id, *clear)]
    elif found.stale:
        commands = [command("gitmem", "mem", "update", node.id, *_verify_options(found.stale))]
    else:
        commands = [command("gitmem", "mem", "update", node.id, "--status", "active")] if node.closed else []
    if found.superseded_by:
        commands.insert(0, command("gitmem", "mem", "show", found.superseded_by))
    return commands or ["gitmem mem list"]
