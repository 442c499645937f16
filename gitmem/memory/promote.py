"""Promote nodes of a work unit to project scope.

The promoted node is new; its source is unchanged, and each is archived or changed independently. Its id is derived
from the source and the tag, so two clones that promote the same node create the same node.
"""

from __future__ import annotations

from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Outcome
from ..records.ids import keyed_id, unit_key
from ..text.shell_quote import command
from . import load, node_fields, private_nodes, relations, resolve_node, write
from .edit import LISTED_MAX, summary_line
from .node_tables import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..records.record_types import NodeFields
    from ..store import Store
    from .versioned_node import VersionedNode


class Promoted(Outcome):
    """The result of a promotion.

    Attributes:
        promoted_nodes: The project nodes, in the order of their sources.
        already_promoted: The ids of those that existed before; nothing was written for them.
    """

    def __init__(self, tag: str, *, dry_run: bool) -> None:
        self.promoted_nodes: list[VersionedNode] = []
        self.already_promoted: list[str] = []
        self.tag = tag
        self.dry_run = dry_run
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def promoted_node(self) -> VersionedNode:
        """The node, if one was promoted."""
        return self.promoted_nodes[0]

    @property
    def new(self) -> list[VersionedNode]:
        """The nodes that this promotion created, or would create in a dry run."""
        return [node for node in self.promoted_nodes if node.id not in self.already_promoted]


def promote(
    store: Store,
    caller: Caller,
    *,
    node: str | None = None,
    wu: str | None = None,
    tag: str | None = None,
    dry_run: bool = False,
    allow_secret: bool = False,
) -> Promoted:
    """Promote a node, or every summary of a work unit: new nodes, in one commit.

    The operation is idempotent for each tag: it returns the existing node, also if another clone promoted it.

    Args:
        node: An id, or a prefix of six characters or more after the dash. The node may be archived.
        wu: A work unit; its summaries of any lifecycle are promoted, except hidden ones.
        tag: One of `node_fields.TAXONOMY`; by default the one that the nodes have.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    word = node_fields.one_of("taxonomy tag", tag, node_fields.TAXONOMY) if tag is not None else None
    if (node is None) == (wu is None):
        raise UsageError(
            "Promote takes one node, or the summaries of one work unit. Nothing was written.",
            hint="Example: `gitmem mem promote ID --tag decision`, or `--wu WU-7` instead of ID.",
            code="usage",
            next=["gitmem mem list", "gitmem mem promote --help"],
        )
    sources = (
        [_source(store, caller, node)]
        if node is not None
        else _summaries(store, node_fields.work_unit(str(wu)))
    )
    word = word or _own_tag(sources, node, wu)
    found = Promoted(word, dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark])]
    lines: list[tuple[str, bytes]] = []
    for source in sources:
        lines += _promote_one(store, caller, source, found, allow_secret=allow_secret)
    new = found.new
    if new and not dry_run:
        what = f"promotes {_describe(new)} as {word}"
        body = "\n".join(summary_line(each) for each in new[:LISTED_MAX])
        done = write.record(
            store, caller, lines, what, text=body, nodes=[each.id for each in new], wu=_one_wu(sources)
        )
        found.commit, found.recorded = done.commit, True
    found.next = _next(found, node, wu)
    return found


def _own_tag(sources: Sequence[VersionedNode], node: str | None, wu: str | None) -> str:
    """Return the one taxonomy tag that nodes have.

    Raises:
        UsageError: They have none, or several.
    """
    own = [[tag for tag in node_fields.TAXONOMY if tag in each.tags] for each in sources]
    if len(own[0]) == 1 and all(each == own[0] for each in own):
        return own[0][0]
    known = list(dict.fromkeys(tag for each in own for tag in each))
    why = f"the tags of the nodes are {', '.join(known)}" if known else "no node has one"
    which = ["--wu", wu] if node is None and wu else [str(node)]
    raise UsageError(
        f"Missing taxonomy tag: {why}. Nothing was written.",
        hint=f"Choose with --tag from {', '.join(node_fields.TAXONOMY)}.",
        code="bad-taxonomy-tag",
        next=[
            command("gitmem", "mem", "promote", *which, "--tag", each)
            for each in (known or node_fields.TAXONOMY)[:3]
        ],
    )


def _source(store: Store, caller: Caller, text: str) -> VersionedNode:
    db = store.db()
    own = private_nodes.of_caller(store, lambda: caller)
    if own is not None and resolve_node.is_in(own.db(), text):
        raise UsageError(
            f"Cannot promote {text}: it is private, and a promoted node is for all. Nothing was written.",
            hint="Create a node with its content and without --private, and promote that.",
            code="private-node",
            next=[command("gitmem", "mem", "show", text)],
        )
    found = load.load_one(db, resolve_node.find(db, text, writing=True))
    if found.deleted:
        raise UsageError(
            f"Cannot promote {found.id}: it is deleted. Nothing was written.",
            hint="Restore it first if it was deleted by mistake.",
            code="deleted-node",
            next=[command("gitmem", "mem", "update", found.id, "--status", "active")],
        )
    return found


def _summaries(store: Store, wu: str) -> list[VersionedNode]:
    """Return the summaries of a work unit, oldest first.

    Raises:
        UsageError: There are none.
    """
    db = store.db()
    rows = db.execute(
        f"SELECT id FROM node WHERE wu_id = ? AND state < {HIDDEN} AND type = 'summary' ORDER BY created, id",
        (unit_key(wu),),
    )
    found = load.load(db, [id for (id,) in rows])
    if not found:
        raise UsageError(
            f"{wu} has no summary to promote. Nothing was written.",
            hint="Create a summary first, or promote a node by its id.",
            code="no-summary",
            next=[
                command("gitmem", "mem", "summarize", "--wu", wu),
                command("gitmem", "mem", "list", "--wu", wu),
            ],
        )
    return found


def _promote_one(
    store: Store, caller: Caller, source: VersionedNode, found: Promoted, *, allow_secret: bool
) -> list[tuple[str, bytes]]:
    """Add the promoted node of a source to `found`.

    Returns:
        The lines to write; none if the node exists.
    """
    id = keyed_id("mem", source.id, found.tag)
    is_one = found.tag in source.tags and bool(source.metadata.get("promoted_from"))
    for there in [source] if is_one else load.load(store.db(), [id]):
        found.promoted_nodes.append(there)
        found.already_promoted.append(there.id)
        found.warnings += _remarks(source, there)
        return []
    fields: NodeFields = {
        "id": id,
        "type": source.type,
        "lifecycle": "project",
        "content": source.content,
        "priority": source.priority,
        "tags": list(dict.fromkeys([*source.tags, found.tag])),
        "lane": source.lane,
        "paths": source.paths,
        # The commit of the source, so that changes of its files since then make the node stale.
        "head": source.head,
        "branch": source.branch,
        "sensitive": source.sensitive,
        "metadata": {"promoted_from": source.id, "promoted_at": format_at(store.now())},
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }
    line = store.line("node", fields, allow_secret=allow_secret)
    found.promoted_nodes.append(load.node_of_line(line[1]))
    edge = keyed_id("rel", id, "discovered_from", source.id)
    return [line, relations.line(store, caller, id, "discovered_from", source.id, id=edge)]


def _remarks(source: VersionedNode, promoted: VersionedNode) -> list[str]:
    remarks = []
    if promoted.is_hidden:
        remarks.append(
            f"{promoted.id} was already promoted from {source.id}; its status is {promoted.status}."
        )
    elif promoted.content != source.content:
        remarks.append(
            f"{promoted.id} was already promoted from {source.id}, and one of them has changed since: "
            "use `gitmem mem update` for the new text."
        )
    return remarks


def _next(found: Promoted, node: str | None, wu: str | None) -> list[str]:
    if found.dry_run and found.new:
        which = ["--wu", wu] if wu is not None else [str(node)]
        return [command("gitmem", "mem", "promote", *which, "--tag", found.tag)]
    hidden = [each.id for each in found.promoted_nodes if each.is_hidden]
    back = [command("gitmem", "mem", "update", *hidden, "--status", "active")] if hidden else []
    show = command("gitmem", "mem", "show", found.promoted_nodes[0].id)
    return [*back, show, command("gitmem", "mem", "profile", "--tag", found.tag)]


def _describe(nodes: Sequence[VersionedNode]) -> str:
    return summary_line(nodes[0]) if len(nodes) == 1 else f"{len(nodes)} nodes"


def _one_wu(sources: Sequence[VersionedNode]) -> str | None:
    units = {source.wu_id for source in sources}
    return units.pop() if len(units) == 1 else None
