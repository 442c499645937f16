"""Nodes of the shared memory on the page, their history, and the relations between them. Private nodes are in no log."""

from __future__ import annotations

from ..memory import anchors, decay, load, superseded
from ..memory.node_tables import DELETED
from ..memory.relations import SUPERSEDES
from .texts import millis, millis_of, put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..git.port import PathChanges
    from ..memory.load import Parsed
    from ..memory.versioned_node import PatchChange, VersionedNode
    from ..signals.many_threads import Selection
    from ..store import Store
    from .contract import MemoryNode, NodeChange, Relation
    from .lanes import Lanes
    from .texts import TextBudget

NODES_MAX = 3_000
RELATIONS_MAX = 10_000
CHANGES_MAX = 30  # of a node
STALE_BY_MAX = 5  # commits that made a node stale
LISTED_MAX = 20  # tags and paths of a node
_RELATIONS = (
    "SELECT r.from_id, r.to_id, r.type FROM json_each(?) j CROSS JOIN relation r ON r.from_id = j.value"
    " ORDER BY r.from_id, r.to_id, r.type"
)


class NodeMarks:
    """The nodes of the page.

    Attributes:
        nodes: The last changed, the oldest of them first.
        relations: Those between them.
        omitted: How many nodes are left out; `omitted_relations` of the relations between the others.
    """

    def __init__(self, store: Store, only: Selection, lanes: Lanes, texts: TextBudget) -> None:
        self._lanes = lanes
        self._texts = texts
        self._now = store.now()
        db = store.db()
        where = [f"n.state < {DELETED}", *(["n.touched >= :since"] if only.since else [])]
        where += ["n.wu_id = :unit"] if only.unit else []
        where += ["n.sender IN (SELECT value FROM json_each(:readers))"] if only.readers is not None else []
        source = f"FROM node n WHERE {' AND '.join(where)}"
        rows = db.execute(
            f"SELECT n.id {source} ORDER BY n.touched DESC, n.id LIMIT :most",
            {**only.values, "most": NODES_MAX},
        ).fetchall()
        ids = [str(id) for (id,) in rows]
        parsed: Parsed = {}
        found = load.load(db, ids, parsed)
        (total,) = db.execute(f"SELECT count(*) {source}", only.values).fetchone()
        self.omitted = total - len(found)
        patches = load.patches_of(db, ids, parsed)
        ends = superseded.ends_of(db, ids)
        changed = anchors.changed(store, found)
        self.nodes = [
            self._node(each, patches.get(each.id, ()), changed.get(each.id), ends.get(each.id))
            for each in found
        ][::-1]
        known = set(ids)
        every = [row for row in db.execute(_RELATIONS, (superseded.as_json(ids),)) if row[1] in known]
        self.omitted_relations = max(0, len(every) - RELATIONS_MAX)
        self.relations: list[Relation] = [
            {"from": start, "to": end, "type": short(type), "supersedes": type == SUPERSEDES}
            for start, end, type in every[:RELATIONS_MAX]
        ]

    def _node(
        self,
        node: VersionedNode,
        patches: list[PatchChange] | tuple[()],
        changed: dict[str, PathChanges] | None,
        end: str | None,
    ) -> MemoryNode:
        at = millis(node.created)
        text, cut = self._texts.cut(node.content)
        shown: MemoryNode = {
            "id": node.id,
            "type": node.type,
            "lifecycle": node.lifecycle,
            "status": node.status,
            "text": text,
            "at": at,
            "agent": self._lanes.of(node.sender_identity, at, node.sender_name),
            "tags": [short(each) for each in node.tags[:LISTED_MAX]],
            "paths": [short(each) for each in node.paths[:LISTED_MAX]],
            "decay": round(min(1.0, decay.score(node, now=self._now)), 3),
            "history": self._history(node, patches),
        }
        if cut:
            shown["cut"] = cut
        if node.updated is not None:
            shown["updated"] = millis(node.updated)
        put(shown, "wu", node.wu_id)
        if changed:
            put(shown, "stale", anchors.stale_text(changed))
            commits = dict.fromkeys(each.last for each in changed.values() if each.last)
            shown["stale_by"] = list(commits)[:STALE_BY_MAX]
        put(shown, "superseded_by", end)
        return shown

    def _history(self, node: VersionedNode, patches: list[PatchChange] | tuple[()]) -> list[NodeChange]:
        """Return who created a node and who changed what of it, the last changes."""
        changes = {each.id: each for each in sorted(patches, key=lambda each: each.line)}
        made: NodeChange = {
            "at": millis(node.created),
            "agent": self._lanes.of(node.sender_identity),
            "what": "created",
        }
        later: list[NodeChange] = [
            {
                "at": millis_of(each.record["at"]),
                "agent": self._lanes.of(each.record["sender_identity"], None, each.record.get("sender_name")),
                "what": _what(each),
            }
            for each in changes.values()
        ]
        return [made, *later[-CHANGES_MAX:]]


def _what(change: PatchChange) -> str:
    """Return what a patch changed, in words."""
    fields = sorted(change.touched)
    fields += ["metadata"] if change.record.get("metadata") or "metadata" in change.clears else []
    cleared = change.clears.intersection(("closed", "archived", "deleted"))
    if cleared:
        return f"reopened ({', '.join(sorted(cleared))} cleared)"
    words = [word for word in ("closed", "archived", "deleted") if word in fields]
    reason = change.record.get("reason")
    is_verified = fields == ["head"]  # nothing but the commit at which its content is right
    changed = f"changed {', '.join(fields) or 'nothing'}"
    text = ", ".join(words) or (
        f"verified at {(change.record.get('head') or '')[:12]}" if is_verified else changed
    )
    return short(f"{text}: {reason}" if reason else text)
