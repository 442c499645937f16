"""Create, change and relate nodes: the fields of new ones from the writer's options, and their lines."""

from __future__ import annotations

from .. import records
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..order.node import VersionedNode
from ..outcome import OneStep, Struct, Written, command
from ..records.ids import is_id
from . import anchors, node_fields, reader_store, relations, stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..log.local_log import Appended
    from ..records.record_types import NodeFields, NodeRecord, PatchContent
    from ..store import Store


OPTIONS = ("type", "lifecycle", "wu", "session", "lane", "priority", "tags", "paths", "metadata", "sensitive",
           "discovered_from", "supersedes")  # fmt: skip
_NAMES = {"wu_id": "wu", "session_id": "session"}  # field names of an exported node
_KEYS = frozenset(("content", *OPTIONS))


class NewNodes(Struct):
    """New nodes with their lines.

    Attributes:
        lines: Stream and line of each node and of its relations.
        remarks: Warnings for the writer.
    """

    lines: Sequence[tuple[str, bytes]]
    nodes: Sequence[VersionedNode]
    remarks: Sequence[str] = ()


def make_nodes(store: Store, caller: Caller, given: Sequence[Mapping[str, object]]) -> NewNodes:
    """Return new nodes and their lines.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError); the message names the node.
        StoreError: The store could not be read or written.
    """
    head = anchors.head(store)
    first = store.log.clock.tick(len(given))
    lines: list[tuple[str, bytes]] = []
    nodes: list[VersionedNode] = []
    remarks: list[str] = []
    for at, each in enumerate(given, first):
        try:
            fields = _fields(each, caller, store.new_id("mem"))
            fields["head"], fields["branch"] = head
            if store.is_of_another_key(
                fields.get("session_id") or ""
            ):  # of a node that somebody else has exported
                fields["session_id"] = caller.session_id
            lines.append(store.line("node", fields, at=at))
            line = lines[-1][1]
            record: NodeRecord = {
                **fields,
                "at": line[7:34].decode(),
                "kind": "node",
                "writer": None,
                "texts": None,
            }
            nodes.append(VersionedNode(record, line, at).settle())
            more, told = _relations(store, caller, nodes[-1].id, each)
            lines += more
            remarks += told
        except UsageError as error:
            if len(given) > 1:
                error.message = f"Node {at - first + 1} of {len(given)}: {error.message}"
                error.args = (error.message,)  # str() uses it
            raise
    return NewNodes(lines, nodes, list(dict.fromkeys(remarks)))


def _relations(
    store: Store, caller: Caller, id: str, given: Mapping[str, object]
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the lines of the relations that a new node gets, and warnings."""
    lines, remarks = [], []
    for type in ("discovered_from", relations.SUPERSEDES):
        if given.get(type) is None:
            continue
        found = [find_or_accept(store, text) for text in node_fields.texts(type, given[type])]
        others = list(dict.fromkeys(other for other, _ in found))
        lines += [relations.line(store, caller, id, type, other) for other in others]
        remarks += [remark for _, remark in found if remark]
    return lines, remarks


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


CHECKED_MAX = 100  # nodes whose paths are checked
LISTED_MAX = 40  # nodes listed in the body of a commit
MANY = 20_000  # nodes in one call


class Created(Written, kw_only=True):
    """A new node; `commit` is None until it is committed."""

    node: VersionedNode


class NodesCreated(Written, kw_only=True):
    """New nodes, written in one commit."""

    nodes: Sequence[VersionedNode]


class NodesChanged(Written, kw_only=True):
    """The nodes changed. `dry_run` is always false: it is kept for programs that read it."""

    ids: list[str]
    dry_run: bool = False


def create(
    store: Store,
    caller: Caller,
    content: str,
    *,
    private: bool = False,
    **options: object,
) -> Created:
    """Create one node.

    Args:
        content: The text, at most 64 KiB.
        private: As for `append`.
        options: Those of `append`: type, lifecycle, wu, session, lane, priority, tags, paths, metadata, sensitive,
            discovered_from, supersedes.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError). Nothing was written.
        StoreError: The store could not be read or written.
    """
    done = append(store, caller, [{"content": content, **options}], private=private)
    created = Created(node=done.nodes[0], commit=done.commit, recorded=True, warnings=done.warnings)
    created.next = [command("gitmem", "show", created.node.id), *done.next]
    return created


def append(
    store: Store,
    caller: Caller,
    many: Iterable[Mapping[str, object]],
    *,
    private: bool = False,
) -> NodesCreated:
    """Create nodes in one commit: all of them or none.

    Args:
        many: For each node its `content`, and any of: type (default discovery; bug, idea, question and dependency
            are discoveries with that tag), lifecycle (default by type), wu and session (default those of the
            caller's session), lane, priority (P0 to P3), tags, paths (from the root of the work tree), metadata,
            sensitive, discovered_from (a node id), supersedes (ids of the nodes that it replaces).
        private: Keep them in this clone, for the caller's identity only, and out of the log.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError); the message names the node.
        StoreError: The store could not be read or written.
    """
    given = list(many)
    if not 0 < len(given) <= MANY:
        raise UsageError(
            f"Invalid number of nodes: {len(given)}; one call writes 1 to {MANY}. Nothing was written.",
            code="bad-count",
        )
    if private:
        store = reader_store.for_new(store, caller)
    with OneStep(store, "recording nodes", 0, len(given), len(given)):
        made = make_nodes(store, caller, given)
        done = _record(store, caller, made.lines, made.nodes)
    appended = NodesCreated(nodes=made.nodes, commit=done.commit, recorded=True)
    for node in made.nodes:
        node.private = private
    appended.warnings = [
        *filter(None, [caller.remark]),
        *made.remarks,
        *anchors.missing_path_warnings(store, made.nodes),
    ]
    appended.next = [command("gitmem", "mem", "context", *_wu_option(made.nodes))]
    return appended


def _record(
    store: Store, caller: Caller, lines: Sequence[tuple[str, bytes]], nodes: Sequence[VersionedNode]
) -> Appended:
    first = nodes[0]
    if len(nodes) == 1:
        what, text = f"{first.type} {summary_line(first)}", first.content
    else:
        what, text = f"{len(nodes)} nodes", "\n".join(summary_line(node) for node in nodes[:LISTED_MAX])
    wu = first.wu_id if all(node.wu_id == first.wu_id for node in nodes) else None
    return stored_nodes.record(
        store, caller, lines, what, text=text, nodes=[node.id for node in nodes], wu=wu
    )


def summary_line(node: VersionedNode) -> str:
    """Return the first line of a node's content, shortened to 100 characters."""
    return cut(node.content.strip().split("\n", 1)[0].strip(), 100)


def _wu_option(nodes: Sequence[VersionedNode]) -> list[str]:
    return ["--wu", nodes[0].wu_id] if nodes[0].wu_id else []


def change(
    store: Store,
    caller: Caller,
    node_ids: Sequence[str],
    *,
    verified: bool = False,
    clear: Sequence[str] = (),
    **options: object,
) -> NodesChanged:
    """Change fields of nodes. For each field the causally last change counts, also between clones.

    Args:
        node_ids: Ids, or prefixes of six characters or more after the dash.
        verified: The content is still correct for the code at HEAD: the nodes are no longer stale.
        clear: Names of fields to empty.
        options: content, type, lifecycle, priority, tags, wu, session, lane, paths, metadata (merged by entry; None
            removes an entry), sensitive, closed, archived, deleted (True), reason.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    db = store.db()
    found = list(dict.fromkeys(stored_nodes.find_node(db, text, writing=True) for text in node_ids))
    fields = _changes(options)
    if verified or "paths" in fields or "content" in fields:
        fields["head"], fields["branch"] = anchors.head(store)
    empty = [
        node_fields.one_of("field that can be cleared", name, records.CLEARABLE["patch"]) for name in clear
    ]
    if not found or not (any(fields.values()) or empty):
        raise UsageError(
            "Missing node ids or changes. Nothing was written.",
            hint="Example: `gitmem mem update ID --status closed`.",
            code="usage",
        )
    both = sorted(name for name in empty if fields.get(name))
    if both:
        raise UsageError(f"{both[0]} cannot be set and cleared at once. Nothing was written.", code="usage")
    marks = fields.keys() & _VERBS.keys()
    if not marks and any(name in _VERBS for name in empty) and "reason" not in {*fields, *empty}:
        empty.append("reason")  # the reason for a status that is cleared
    lines = stored_nodes.patch_lines(store, caller, found, fields, clear=empty)
    done = stored_nodes.record(
        store, caller, lines, f"{_change_verb(fields, empty)} {format_ids(found)}", nodes=found
    )
    changed = NodesChanged(ids=found, commit=done.commit, recorded=True)
    changed.warnings = [*filter(None, [caller.remark])]
    if verified or "paths" in fields:
        changed.warnings += anchors.missing_path_warnings(
            store, stored_nodes.load(store.db(), found[:CHECKED_MAX])
        )
    changed.next = [command("gitmem", "show", found[0])]
    return changed


def _word(what: str, known: Sequence[str]) -> Callable[[Any], object]:
    return lambda value: node_fields.one_of(what, str(value), known)


# The options of `change`, each with its field and the function that checks and converts its value.
_CHANGED: dict[str, tuple[str, Callable[[Any], object] | None]] = {
    "content": ("content", node_fields.content),
    "type": ("type", _word("type of node", node_fields.TYPES)),
    "lifecycle": ("lifecycle", _word("lifecycle", node_fields.LIFECYCLES)),
    "priority": ("priority", _word("priority", node_fields.PRIORITIES)),
    "wu": ("wu_id", lambda value: node_fields.work_unit(str(value))),
    "session": ("session_id", None),
    "tags": ("tags", lambda value: node_fields.tags(node_fields.texts("tags", value))),
    "paths": ("paths", lambda value: anchors.validate_paths(node_fields.texts("paths", value))),
    "metadata": ("metadata", node_fields.metadata),
    **{
        name: (name, None)
        for name in ("lane", "reason", "sensitive", "closed", "archived", "deleted", "summarized_into")
    },
}
_VERBS = {"deleted": "deletes", "archived": "archives", "closed": "closes"}


def _change_verb(fields: PatchContent, empty: Sequence[str]) -> str:
    """Return the verb of a change, for the subject of its commit."""
    for mark, verb in _VERBS.items():
        if mark in fields:
            return verb
    if any(mark in empty for mark in _VERBS):
        return "reopens"
    names = ", ".join(name for name in [*fields, *empty] if name not in ("head", "branch"))
    return f"changes {names} of" if names else "verifies"


def _changes(options: Mapping[str, Any]) -> PatchContent:
    """Convert the options of `change` to the fields of a patch; those without a value change nothing."""
    fields: PatchContent = {}
    for name, value in options.items():
        if name not in _CHANGED:
            raise UsageError(
                f"Invalid field: {sanitize(name)[:60]}; it cannot be changed. Nothing was written.",
                code="bad-option",
            )
        if value not in (None, [], (), {}, False):
            field, convert = _CHANGED[name]
            fields[field] = convert(value) if convert is not None else value  # type: ignore[literal-required]
    return fields


def format_ids(node_ids: Sequence[str]) -> str:
    """Format ids in a line: at most two of them, else their number."""
    return ", ".join(node_ids) if len(node_ids) <= 2 else f"{len(node_ids)} nodes"


class RelationResult(Written, kw_only=True):
    """A relation that was recorded or removed."""

    from_id: str
    to_id: str
    type: str
    removed: bool


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
    kind = node_fields.one_of("relation", type, node_fields.RELATIONS)
    source, remark = find_or_accept(store, from_)
    target, other = find_or_accept(store, to)
    if source == target:
        raise UsageError(f"Cannot relate {source} to itself. Nothing was written.", code="usage")
    line = relations.line(store, caller, source, kind, target, removed=remove, metadata=metadata)
    verb = f"no longer {kind}" if remove else kind
    done = stored_nodes.record(store, caller, [line], f"{source} {verb} {target}", nodes=[source, target])
    related = RelationResult(
        from_id=source, to_id=target, type=kind, removed=remove, commit=done.commit, recorded=True
    )
    related.warnings = [each for each in (caller.remark, remark, other) if each]
    related.next = [command("gitmem", "show", source)]
    return related


def find_or_accept(store: Store, text: str) -> tuple[str, str | None]:
    """Return the node id for a relation. A whole id that is not in this log is accepted, with a warning.

    Raises:
        UsageError: As in `find_node`, for a prefix; or it is a private node, which no line of the log names.
    """
    try:
        return stored_nodes.find_node(store.db(), text, writing=True), None
    except UsageError as error:
        if error.code != "unknown-id" or not is_id("mem", text):
            raise
    if reader_store.is_private(store, text):
        raise reader_store.naming_error(text)
    return (
        text,
        f"{text} is not in this log yet: the relation takes effect when it arrives, perhaps with `gitmem sync`.",
    )
