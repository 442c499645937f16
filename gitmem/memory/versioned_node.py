"""Nodes, new ones with their lines, patches, and the choice of the patch that counts for each field."""

from __future__ import annotations

from functools import cached_property

from ..log.lines import format_at, parse_at
from ..order.causal import CausalOrder
from ..outcome import Outcome
from ..records import CLEARABLE
from . import bulk_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NotRequired, TypedDict

    from ..records.record_types import NodeRecord, PatchRecord

    class Changer(TypedDict):
        """A writer other than the author, and the fields whose present value it wrote."""

        sender_identity: str
        sender_name: NotRequired[str]
        fields: list[str]


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
        unverified: Parts from lines that name this clone's sessions but were not written here.
        conflicting: The senders of the lines with its id, if these have different content.
        private: Whether it is kept in this clone only, for its writer.
        signed: The identities, names and sessions of its author and of the writers of changes.
        own_names: The pairs of identity and name in `signed` that a session confirms.
    """

    __slots__ = (
        "id", "type", "lifecycle", "status", "content", "priority", "tags", "wu_id", "session_id", "lane", "paths",
        "head", "branch", "sensitive", "reason", "summarized_into", "created_at", "updated_at", "accesses",
        "last_accessed_at", "metadata", "sender_identity", "sender_session", "sender_name",
        "content_by", "content_by_name", "changed_by", "unverified", "conflicting", "private", "created", "updated", "closed", "archived", "deleted", "line",
        "hidden_by_other", "winners", "signed", "own_names",
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
        self.unverified: list[str] = []
        self.conflicting: list[str] = []
        self.private = False
        self.hidden_by_other = 0
        self.winners: WinningPatches | None = None
        self.signed: set[tuple[str, str, str]] = set()
        self.own_names: set[tuple[str, str]] = set()
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
        self.record = record = bulk_values.without_ignored(record)
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


class NewNodes:
    """New nodes with their lines.

    Attributes:
        lines: Stream and line of each node and of its relations.
        remarks: Warnings for the writer.
    """

    def __init__(
        self,
        lines: Sequence[tuple[str, bytes]],
        nodes: Sequence[VersionedNode],
        remarks: Sequence[str] = (),
    ) -> None:
        self.lines = lines
        self.nodes = nodes
        self.remarks = remarks
