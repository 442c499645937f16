"""Reduce the lines of a node: the line that created it, and for each field the causally last change.

A patch names in `after` the patches that its writer had seen. Concurrent changes of two clones are merged field by
field; if both changed one field, the greater `(at, bytes)` counts. A patch of several nodes has values of a limited size:
each of perhaps thousands of nodes gets a copy.
"""

from __future__ import annotations

from functools import cached_property

from ..log.lines import format_at, parse_at
from ..outcome import Outcome
from ..records import CLEARABLE, is_forgotten
from .causal import CausalOrder, by_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal, NotRequired, TypedDict

    from ..records.record_types import NodeRecord, PatchContent, PatchRecord

    Field = Literal["content", "tags", "paths", "metadata"]

    class Changer(TypedDict):
        """A writer other than the author, and the fields whose present value it wrote."""

        sender_identity: str
        sender_name: NotRequired[str]
        fields: list[str]


LIMITED: tuple[Field, ...] = ("content", "tags", "paths", "metadata")
SIZE_MAX = 128  # of each of these fields, in a patch of several nodes
ENTRY = 16  # added for each entry of a list or an object


def too_large(fields: PatchRecord | PatchContent) -> list[Field]:
    """Return the names of fields that are too large for a patch of several nodes."""
    return [name for name in LIMITED if fields.get(name) and _exceeds(fields[name])]


def ignored_fields(record: PatchRecord) -> list[Field]:
    """Return the fields of a patch that readers ignore."""
    if not any(record.get(name) for name in LIMITED) or not _several(record["node_ids"]):
        return []
    return too_large(record)


def without_ignored(record: PatchRecord) -> PatchRecord:
    """Return a patch without the fields that readers ignore."""
    aside = ignored_fields(record)
    if aside:
        record = record.copy()
        for name in aside:
            del record[name]
    return record


def _several(ids: Iterable[str]) -> bool:
    first = None
    for id in ids:
        if first is None:
            first = id
        elif id != first:
            return True
    return False


def _exceeds(value: object) -> bool:
    """Return whether the size of a value is above the limit. Stop reading as soon as it is."""
    size = 0
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            size += len(each) if len(each) > SIZE_MAX else len(each.encode())
        elif isinstance(each, dict):
            size += ENTRY * len(each)
            if size <= SIZE_MAX:
                todo += [*each, *each.values()]
        elif isinstance(each, (list, tuple)):
            size += ENTRY * len(each)
            if size <= SIZE_MAX:
                todo += each
        else:
            size += 8  # a number, true, false or null
        if size > SIZE_MAX:
            return True
    return False


# Fields of the status of a node. A change of these does not count as an update of its content.
STATUS_FIELDS = ("closed", "archived", "deleted", "reason", "summarized_into")
TEXTS = ("type", "lifecycle", "content", "priority", "wu_id", "session_id", "lane", "head")
LISTS = ("tags", "paths")
FLAGS = ("sensitive", "closed", "archived", "deleted")
FIELDS = (*TEXTS, *LISTS, *FLAGS, "reason", "summarized_into")
STATUSES = ("active", "closed", "archived", "deleted")


class VersionedNode(Outcome):
    """A node with its present state.

    Attributes:
        created, updated: Microseconds since the epoch; `updated` is None if the content never changed.
        line: The bytes of the line that created it.
        content_by: The writer of the content, if not the author; see `authors`.
        changed_by: Other writers whose changes count.
        conflicting: The senders of the lines with its id, if these have different content.
        private: Whether it is kept in this clone only, for its writer.
        forgotten: Whether the writer of its content took that back.
        signed: The identities, names and sessions of its author and of the writers of changes.
        own_names: The pairs of identity and name in `signed` that a session confirms.
        shared: Those of its writers whose words are also another writer's agent.
    """

    __slots__ = (
        "id", "type", "lifecycle", "status", "content", "priority", "tags", "wu_id", "session_id", "lane", "paths",
        "head", "branch", "sensitive", "reason", "summarized_into", "created_at", "updated_at", "accesses",
        "last_accessed_at", "metadata", "sender_identity", "sender_session", "sender_name",
        "content_by", "content_by_name", "changed_by", "conflicting", "private", "forgotten", "created", "updated", "closed", "archived", "deleted", "line",
        "hidden_by_other", "winners", "signed", "own_names", "shared",
    )  # fmt: skip

    def __init__(self, base: NodeRecord, line: bytes, created: int | None = None) -> None:
        self.id = base["id"]
        self.line = line
        self.type = base["type"]
        self.lifecycle = base["lifecycle"]
        self.content = base["content"]
        self.priority = base.get("priority")
        self.wu_id = base.get("wu_id")
        self.session_id = base.get("session_id")
        self.lane = base.get("lane")
        self.head = base.get("head")
        self.reason = base.get("reason")
        self.summarized_into = base.get("summarized_into")
        self.branch = base.get("branch")
        self.tags = list(base.get("tags", ()))
        self.paths = list(base.get("paths", ()))
        self.sensitive = base.get("sensitive", False)
        self.closed = base.get("closed", False)
        self.archived = base.get("archived", False)
        self.deleted = base.get("deleted", False)
        self.status = ""
        self.metadata = dict(base.get("metadata", {}))
        self.sender_identity = base["sender_identity"]
        self.sender_session = base.get("sender_session")
        self.sender_name = base.get("sender_name")
        self.created = parse_at(base["at"]) if created is None else created
        updated = base.get("updated_at")
        self.updated = parse_at(updated) if updated else None
        self.created_at = base["at"]
        self.updated_at: str | None = None
        self.content_by: str | None = None
        self.content_by_name: str | None = None
        self.changed_by: list[Changer] = []
        self.conflicting: list[str] = []
        self.private = False
        self.forgotten = is_forgotten(base)
        self.hidden_by_other = 0
        self.winners: WinningPatches | None = None
        self.signed: set[tuple[str, str, str]] = set()
        self.own_names: set[tuple[str, str]] = set()
        self.shared: set[str] = set()
        self.accesses = 0
        self.last_accessed_at: str | None = None

    @property
    def touched(self) -> int:
        """The time of its last update: the later of `created` and `updated`."""
        return max(self.created, self.updated or 0)

    @property
    def rank(self) -> int:
        """The index of its status in `STATUSES`."""
        return 3 if self.deleted else 2 if self.archived else 1 if self.closed else 0

    @property
    def is_hidden(self) -> bool:
        """Whether it is archived or deleted."""
        return self.archived or self.deleted

    def settle(self) -> VersionedNode:
        """Set the fields that are derived from other fields."""
        self.status = STATUSES[self.rank]
        self.updated_at = format_at(self.updated) if self.updated is not None else None
        return self

    def as_json(self) -> dict[str, object]:
        """Return the public fields, without empty ones."""
        shown = self.__slots__[: self.__slots__.index("created")]
        found = {name: getattr(self, name) for name in shown}
        return {name: value for name, value in found.items() if value not in (None, [], {}, False)}


_CLEARABLE = frozenset(CLEARABLE["patch"])


class PatchChange:
    """A patch with the attributes that `CausalOrder` needs. Its record lacks the fields that readers ignore."""

    def __init__(self, record: PatchRecord, line: bytes) -> None:
        self.id = record["id"]
        self.line = line
        self.record = record = without_ignored(record)
        self.named = frozenset(record.get("after", ()))
        self.clears = _CLEARABLE.intersection(record.get("clear", ()))
        self.touched = frozenset(field for field in FIELDS if record.get(field) or field in self.clears)
        self.updated_at = "" if self.only_marks else record["at"]  # "" or time of an update

    def touches(self, field: str) -> bool:
        """Return whether the patch sets or clears a field."""
        return field in self.touched

    @property
    def rank(self) -> int:
        """The index in `STATUSES` of the status that it sets; only valid if it clears nothing."""
        return (
            3 if self.touches("deleted") else 2 if self.touches("archived") else int(self.touches("closed"))
        )

    @property
    def only_marks(self) -> bool:
        """Whether it only changes the status of its nodes."""
        if self.record.get("metadata") or not _REOPENING.isdisjoint(self.clears):
            return False  # restoring a node counts as an update
        return self.touched.issubset(STATUS_FIELDS)


_REOPENING = frozenset(("metadata", "closed", "archived", "deleted"))


class WinningPatches:
    """The patch that counts for each field, and for each entry of the metadata."""

    def __init__(self, changes: Iterable[PatchChange], whole: CausalOrder[PatchChange] | None = None) -> None:
        every = list(changes)
        fields: dict[str, list[PatchChange]] = {}
        self._keys: dict[str, list[PatchChange]] = {}
        for each in every:
            for field in each.touched:
                fields.setdefault(field, []).append(each)
            for key in each.record.get("metadata", ()):
                self._keys.setdefault(key, []).append(each)
        self._clears = [each for each in every if "metadata" in each.clears]
        self._order = CausalOrder(every, whole)
        self.by_field = self._order.latest_of_each(fields)
        latest = max(
            each.updated_at for each in every
        )  # times have one fixed form, so their texts sort by time
        self.updated = parse_at(latest) if latest else None

    @property
    def clears_metadata(self) -> bool:
        """Whether a patch clears the metadata."""
        return bool(self._clears)

    @cached_property
    def by_key(self) -> dict[str, PatchChange]:
        """The patch that counts for each entry of the metadata."""
        return self._order.latest_of_each(self._keys, self._clears)


# Bits of `node.hidden_by_other`: another writer archived or deleted the node; another writer summarized it.
STATUS, SUMMARY = 1, 2


def set_changed_by(node: VersionedNode, winners: WinningPatches, *, whole: bool) -> None:
    """Set the fields of a node that name changes by writers other than its author.

    A writer that only verified a node (field `head`) has not changed its content and is not named.

    Args:
        whole: Whether to include writers of metadata.
    """
    changes: dict[str, tuple[str | None, set[str]]] = {}
    entries = {each.id: each for each in winners.by_key.values()} if whole else {}
    last = [*winners.by_field.items(), *(("metadata", each) for each in entries.values())]
    for field, change in last:
        sender = change.record["sender_identity"]
        name = change.record.get("sender_name")
        if field == "content":
            node.content_by, node.content_by_name = sender, name
        if whole:
            add_signature(node, sender, name, change.record.get("sender_session"))
        if sender != node.sender_identity:
            changes.setdefault(sender, (name, set()))[1].add(field)
    if node.content_by == node.sender_identity:
        node.content_by = node.content_by_name = None
    node.changed_by = [
        {"sender_identity": sender, "sender_name": name, "fields": sorted(fields)}
        if name
        else {"sender_identity": sender, "fields": sorted(fields)}
        for sender, (name, fields) in sorted(changes.items())
        if fields != {"head"}
    ]
    status = winners.by_field.get("deleted" if node.deleted else "archived" if node.archived else "")
    summary = winners.by_field.get("summarized_into") if node.summarized_into else None
    node.hidden_by_other = sum(
        bit
        for bit, change in ((STATUS, status), (SUMMARY, summary))
        if change is not None and change.record["sender_identity"] != node.sender_identity
    )


def add_signature(node: VersionedNode, sender: str, name: str | None, session: str | None) -> None:
    """Record a name that a writer gave for an identity, and the session of that line."""
    if name and session:
        node.signed.add((sender, name, session))


KNOWN_MAX = 256  # sets of patches in the cache of one fold of many nodes


def fold(
    nodes: Iterable[tuple[NodeRecord, bytes]], patches: Iterable[tuple[PatchRecord, bytes]]
) -> VersionedNode:
    """Fold the lines of one id and the patches that name it, in any order, into a node."""
    return fold_changes(nodes, [PatchChange(record, body) for record, body in patches], {})


def fold_changes(
    nodes: Iterable[tuple[NodeRecord, bytes]],
    patches: Iterable[PatchChange],
    known: dict[tuple[bytes, ...], WinningPatches],
    order: CausalOrder[PatchChange] | None = None,
    *,
    whole: bool = True,
) -> VersionedNode:
    """Fold the lines of one id and parsed patches into a node.

    Args:
        known: A cache of the winners of sets of patches, by their lines: one patch may name thousands of nodes.
        order: The causal order of all patches, if many nodes share many of them.
        whole: Whether to fold the metadata and its writers, too.
    """
    made = list(nodes)
    base, line = min(made, key=lambda each: each[1])
    node = VersionedNode(base, line)
    if any(is_forgotten(record) for record, _ in made):
        made = [({**record, "content": ""}, each) for record, each in made]  # to be compared without it
    if len(made) > 1 and len({content_digest_text(record) for record, _ in made}) > 1:
        node.conflicting = sorted({record["sender_identity"] for record, _ in made})
    changes = by_id(patches).values()
    if changes:
        lines = tuple(each.line for each in changes)
        if lines not in known:
            if len(known) >= KNOWN_MAX:
                known.clear()
            known[lines] = WinningPatches(changes, order)
        _apply(node, known[lines], whole=whole)
        set_changed_by(node, known[lines], whole=whole)
        node.winners = known[lines]
    return node.settle()


def content_digest_text(record: NodeRecord) -> object:
    """Return the content of a line without its writer and time: clones that create a node independently agree on it.

    For an indexed source it is only the path of the file: the content changes with the file.
    """
    source = record.get("metadata", {}).get("source_path")
    if source is not None:
        return ("source", str(source))
    return (
        *(record["type"], record["lifecycle"], record["content"]),
        *(record.get("priority"), record.get("wu_id"), record.get("lane")),
        *(tuple(sorted(each)) for each in (record.get("tags", ()), record.get("paths", ()))),
    )


def _apply(node: VersionedNode, winners: WinningPatches, *, whole: bool) -> None:
    for field, last in winners.by_field.items():
        value: Any = last.record.get(field)
        if field in LISTS:
            value = list(value or ())
        elif field in FLAGS:
            value = value is True
        else:
            value = value or None
        setattr(node, field, value)
        if field == "content":
            node.forgotten = is_forgotten(last.record)
        if field == "head":
            node.branch = last.record.get("branch")
    if winners.clears_metadata:
        node.metadata = {}
    for key, last in sorted(winners.by_key.items()) if whole else ():
        value = last.record.get("metadata", {}).get(key)
        if value is None:
            node.metadata.pop(key, None)
        else:
            node.metadata[key] = value
    if winners.updated is not None:
        node.updated = max(winners.updated, node.updated or 0)
