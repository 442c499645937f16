"""Make new nodes: their fields from the writer's options, and their lines."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..order.node import VersionedNode
from ..records import ids
from . import anchors, node_fields, private_nodes, relations, superseded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..records.record_types import NodeFields, NodeRecord
    from ..store import Store

OPTIONS = ("type", "lifecycle", "wu", "session", "lane", "priority", "tags", "paths", "metadata", "sensitive",
           "discovered_from", "supersedes")  # fmt: skip
_NAMES = {"wu_id": "wu", "session_id": "session"}  # field names of an exported node
_KEYS = frozenset(("content", *OPTIONS))


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


def make_nodes(
    store: Store, caller: Caller, given: Sequence[Mapping[str, object]], *, allow_secret: bool
) -> NewNodes:
    """Return new nodes and their lines.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError); the message names the node.
        StoreError: The store could not be read or written.
    """
    head = anchors.head(store)
    first = store.log.clock.tick(len(given))
    lines: list[tuple[str, bytes]] = []
    nodes: list[VersionedNode] = []
    remarks: dict[str, None] = {}
    for at, each in enumerate(given, first):
        try:
            fields = _fields(each, caller, ids.new_id("mem", store.random))
            fields["head"], fields["branch"] = head
            lines.append(store.line("node", fields, allow_secret=allow_secret, at=at))
            line = lines[-1][1]
            record: NodeRecord = {**fields, "at": line[7:34].decode(), "kind": "node", "mac": None}
            nodes.append(VersionedNode(record, line, at).settle())
            more, told = _relations(store, caller, nodes[-1].id, each)
            lines += more
            remarks |= dict.fromkeys(told)
        except UsageError as error:
            if len(given) > 1:
                error.message = f"Node {at - first + 1} of {len(given)}: {error.message}"
                error.args = (error.message,)  # str() uses it
            raise
    return NewNodes(lines, nodes, list(remarks))


def _relations(
    store: Store, caller: Caller, id: str, given: Mapping[str, object]
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the lines of the relations that a new node gets, and warnings."""
    lines, remarks = [], []
    for type in ("discovered_from", relations.SUPERSEDES):
        if given.get(type) is None:
            continue
        found = [private_nodes.find_or_accept(store, text) for text in node_fields.texts(type, given[type])]
        others = list(dict.fromkeys(other for other, _ in found))
        lines += [relations.line(store, caller, id, type, other) for other in others]
        remarks += [remark for _, remark in found]
        if others and type == relations.SUPERSEDES:
            remarks.append(superseded.remark(store.db(), others, id))
    return lines, [remark for remark in remarks if remark]


def _fields(given: Mapping[str, Any], caller: Caller, id: str) -> NodeFields:
    """Return the fields of a node from the writer's options, with defaults from the caller's session."""
    given = {_NAMES.get(key, key): value for key, value in given.items()}
    if not _KEYS.issuperset(given):
        unknown = next(key for key in given if key not in _KEYS)
        raise UsageError(
            f"Invalid key of a node: {sanitize(str(unknown))[:60]}. Nothing was written.",
            hint=f"Valid keys: content, {', '.join(OPTIONS)}.",
            code="bad-option",
        )
    type, tags = node_fields.node_type(str(given.get("type") or node_fields.DEFAULT_TYPE))
    lifecycle = str(given.get("lifecycle") or node_fields.LIFECYCLE_OF[type])
    lifecycle = node_fields.one_of("lifecycle", lifecycle, node_fields.LIFECYCLES)
    priority = given.get("priority")
    return {
        "id": id,
        "type": type,
        "lifecycle": lifecycle,
        "content": node_fields.content(given.get("content")),
        "priority": None
        if priority is None
        else node_fields.one_of("priority", str(priority), node_fields.PRIORITIES),
        "tags": node_fields.tags([*tags, *node_fields.texts("tags", given.get("tags"))]),
        "wu_id": _work_unit(given, lifecycle, caller),
        "session_id": given.get("session") or caller.session_id,
        "lane": given.get("lane"),
        "paths": anchors.validate_paths(node_fields.texts("paths", given.get("paths"))),
        "sensitive": node_fields.flag("sensitive", given.get("sensitive")),
        "metadata": node_fields.metadata(given.get("metadata")),
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }


def _work_unit(given: Mapping[str, object], lifecycle: str, caller: Caller) -> str | None:
    """Return the given work unit, else that of the session; None for project nodes."""
    if given.get("wu") is not None:
        return node_fields.work_unit(str(given["wu"]))
    return None if lifecycle == "project" else caller.wu_id
