"""Relations between nodes, such as `blocks` and `discovered_from`."""

from __future__ import annotations

from .. import records
from ..errors import UsageError
from ..order.causal import CausalOrder, by_id
from ..outcome import Outcome, command
from ..records import ids
from . import node_fields, private_nodes, superseded, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from ..agents.caller import Caller
    from ..records.record_types import RelationFields, RelationRecord
    from ..store import Store


SUPERSEDES = "supersedes"
RELATIONS_MAX = 100  # of one node in an answer
CYCLE_SHOWN = 20  # nodes


class RelationResult(Outcome):
    """A relation that was recorded or removed."""

    def __init__(self, relation_key: tuple[str, str, str], removed: bool, commit: str | None) -> None:
        self.from_id, self.to_id, self.type = relation_key
        self.removed = removed
        self.commit = commit
        self.recorded = True
        self.warnings: list[str] = []
        self.next: list[str] = []


class RelationEvent:
    """A line about a relation, with the attributes that `CausalOrder` needs."""

    def __init__(self, record: RelationRecord, line: bytes) -> None:
        self.id = record["id"]
        self.line = line
        self.record = record
        self.named = frozenset(record.get("after", ()))


# What a cycle of relations of a type means.
_EFFECT_OF_CYCLE = {
    "blocks": "block each other in a cycle",
    SUPERSEDES: "supersede each other in a cycle, so each of them still counts",
}


def relate(
    store: Store,
    caller: Caller,
    from_: str,
    type: str,
    to: str,
    *,
    remove: bool = False,
    metadata: Mapping[str, object] | None = None,
) -> RelationResult:
    """Record a relation between two nodes: `from_` blocks or supersedes `to`, is its parent, or was discovered from it.

    A node that is not in this log is accepted, with a warning.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    db = store.db()
    kind = node_fields.one_of("relation", type, node_fields.RELATIONS)
    source, remark = private_nodes.find_or_accept(store, from_)
    target, other = private_nodes.find_or_accept(store, to)
    if source == target:
        raise UsageError(f"Cannot relate {source} to itself. Nothing was written.", code="usage")
    already = superseded.remark(db, [target], source) if kind == SUPERSEDES and not remove else None
    line_ = line(store, caller, source, kind, target, removed=remove, metadata=metadata)
    verb = f"no longer {kind}" if remove else kind
    done = write.record(store, caller, [line_], f"{source} {verb} {target}", nodes=[source, target])
    related = RelationResult((source, target, kind), remove, done.commit)
    related.warnings = [each for each in (caller.remark, remark, other, already) if each]
    effect = _EFFECT_OF_CYCLE.get(kind)
    circle = path(store.db(), kind, target, source) if effect and not remove else []
    if circle:
        more = [f"… {len(circle) - CYCLE_SHOWN} more"] if len(circle) > CYCLE_SHOWN else []
        told = " → ".join([source, *circle[:CYCLE_SHOWN], *more])
        related.warnings.append(f"These nodes {effect}: {told}.")
    related.next = [command("gitmem", "mem", "show", source)]
    return related


def line(
    store: Store,
    caller: Caller,
    from_id: str,
    type: str,
    to_id: str,
    *,
    removed: bool = False,
    metadata: Mapping[str, object] | None = None,
    id: str | None = None,
) -> tuple[str, bytes]:
    """Return the line of a relation, which names in `after` the earlier lines about it in the index.

    Args:
        id: A common id for clones that write the same relation; a new one by default.
    """
    events = _events(store.db(), (from_id, to_id, type))
    heads = CausalOrder(events).heads(events)
    fields: RelationFields = {
        "id": id or ids.new_id("rel", store.random),
        "from_id": from_id,
        "to_id": to_id,
        "type": type,
        "removed": removed,
        "after": sorted(each.id for each in heads),
        "metadata": node_fields.metadata(dict(metadata or {})),
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }
    return store.line("relation", fields)


def key_of(record: RelationRecord) -> tuple[str, str, str]:
    """Return the ends and the type of a relation."""
    return record["from_id"], record["to_id"], record["type"]


def exists(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> bool:
    """Return whether a relation exists: its causally last line does not remove it."""
    event = last_event(db, relation_key)
    return event is not None and not event.record.get("removed")


def last_event(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> RelationEvent | None:
    """Return the causally last line of a relation, or None if there is none."""
    events = _events(db, relation_key)
    return CausalOrder(events).latest(events)


def _events(db: sqlite3.Connection, relation_key: tuple[str, str, str]) -> list[RelationEvent]:
    bodies = db.execute(
        "SELECT l.body FROM relation_event e JOIN line l ON l.id = e.line"
        " WHERE e.from_id = ? AND e.to_id = ? AND e.type = ?",
        relation_key,
    )
    lines = (body.encode() for (body,) in bodies)
    found = ((records.read_kind("relation", line), line) for line in lines)
    return list(by_id(RelationEvent(record, line) for record, line in found if record is not None).values())


def relations_of(db: sqlite3.Connection, id: str, most: int = RELATIONS_MAX) -> list[tuple[str, str, str]]:
    """Return the relations of a node (from, to, type), in both directions, by type and id, up to a number."""
    return db.execute(
        "SELECT from_id, to_id, type FROM relation WHERE from_id = ?"
        " UNION SELECT from_id, to_id, type FROM relation WHERE to_id = ? ORDER BY 3, 1, 2 LIMIT ?",
        (id, id, most),
    ).fetchall()


def path(db: sqlite3.Connection, type: str, start: str, end: str) -> list[str]:
    """Return a chain of relations of a type from one node to another, with both ends; empty if there is none."""
    came: dict[str, str] = {start: ""}
    todo = [start]
    for here in todo:
        if here == end:
            way = [here]
            while came[way[-1]]:
                way.append(came[way[-1]])
            return way[::-1]
        for (other,) in db.execute(
            "SELECT to_id FROM relation WHERE from_id = ? AND type = ? ORDER BY to_id", (here, type)
        ):
            if other not in came:
                came[other] = here
                todo.append(other)
    return []
