"""Make knowledge of the nodes of a work unit: promote them to project scope, or summarize them in one node.

The covered nodes are marked with the summary, so the next summary only covers new ones. A generated summary has the
first line of each node. An agent can write a better text: it is used as it is, and the nodes are marked as well.
"""

from __future__ import annotations

from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Written, command
from ..records.ids import keyed_id, unit_key
from ..text.strict_json import json_list
from . import anchors, node_fields, reader_store, relations, stored_nodes
from .edit import LISTED_MAX, summary_line
from .node_tables import HIDDEN
from .stored_nodes import IS_AMONG, IS_SUMMARIZED
from .upkeep import URGENT, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import NodeFields
    from ..store import Store


class Promoted(Written, kw_only=True):
    """The result of a promotion.

    Attributes:
        promoted_nodes: The project nodes, in the order of their sources.
        already_promoted: The ids of those that existed before; nothing was written for them.
    """

    promoted_nodes: list[VersionedNode] = []
    already_promoted: list[str] = []
    tag: str
    dry_run: bool

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
) -> Promoted:
    """Promote a node, or every summary of a work unit: new nodes, in one commit.

    The operation is idempotent for each tag: it returns the existing node, also if another clone promoted it.

    Args:
        node: An id, or a prefix of six characters or more after the dash. The node may be archived.
        wu: A work unit; its summaries of any lifecycle are promoted, except hidden ones.
        tag: One of `node_fields.TAXONOMY`; by default the one that all of the nodes have.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    word = tag if tag is None else node_fields.one_of("taxonomy tag", tag, node_fields.TAXONOMY)
    if (node is None) == (wu is None):
        raise UsageError(
            "Promote takes one node, or the summaries of one work unit. Nothing was written.",
            hint="Example: `gitmem mem promote ID --tag decision`, or `--wu WU-7` instead of ID.",
            code="usage",
            next=["gitmem mem list", "gitmem mem promote --help"],
        )
    sources = (
        [_source(store, node)] if node is not None else _summaries(store, node_fields.work_unit(str(wu)))
    )
    if word is None:
        own = {tuple(each for each in node_fields.TAXONOMY if each in source.tags) for source in sources}
        known = [each for each in node_fields.TAXONOMY if any(each in tags for tags in own)]
        if len(own) > 1 or len(known) != 1:
            which = [node] if node is not None else ["--wu", str(wu)]
            tags = known or node_fields.TAXONOMY
            raise UsageError(
                "Missing taxonomy tag. Nothing was written.",
                hint=f"Choose with --tag from {', '.join(node_fields.TAXONOMY)}.",
                code="bad-taxonomy-tag",
                next=[command("gitmem", "mem", "promote", *which, "--tag", each) for each in tags[:3]],
            )
        word = known[0]
    found = Promoted(tag=word, dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark])]
    lines: list[tuple[str, bytes]] = []
    for source in sources:
        lines += _promote_one(store, caller, source, found)
    new = found.new
    if new and not dry_run:
        what = summary_line(new[0]) if len(new) == 1 else format_count(len(new))
        body = "\n".join(summary_line(each) for each in new[:LISTED_MAX])
        unit = sources[0].wu_id if len({source.wu_id for source in sources}) == 1 else None
        done = stored_nodes.record(
            store, caller, lines, f"promotes {what} as {word}",
            text=body, nodes=[each.id for each in new], wu=unit,
        )  # fmt: skip
        found.commit, found.recorded = done.commit, True
    found.next = _next(found, node, wu)
    return found


def _source(store: Store, text: str) -> VersionedNode:
    if reader_store.is_private(store, text):
        raise UsageError(
            f"Cannot promote {text}: it is private, and a promoted node is for all. Nothing was written.",
            hint="Create a node with its content and without --private, and promote that.",
            code="private-node",
            next=[command("gitmem", "show", text)],
        )
    db = store.db()
    found = stored_nodes.load_one(db, stored_nodes.find_node(db, text, writing=True))
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
    where = f"n.wu_id = ? AND n.state < {HIDDEN} AND n.type = 'summary'"
    found = stored_nodes.select(store.db(), where, (unit_key(wu),))
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
    store: Store, caller: Caller, source: VersionedNode, found: Promoted
) -> list[tuple[str, bytes]]:
    """Add the promoted node of a source to `found`.

    Returns:
        The lines to write; none if the node exists.
    """
    id = keyed_id("mem", source.id, found.tag)
    is_one = found.tag in source.tags and bool(source.metadata.get("promoted_from"))
    for there in [source] if is_one else stored_nodes.load(store.db(), [id]):
        found.promoted_nodes.append(there)
        found.already_promoted.append(there.id)
        if there.is_hidden or there.content != source.content:
            state = there.status if there.is_hidden else "of another text"
            found.warnings.append(
                f"{there.id} was already promoted, and is {state}: `gitmem mem update` changes it."
            )
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
    line = store.line("node", fields)
    found.promoted_nodes.append(stored_nodes.node_of_line(line[1]))
    edge = keyed_id("rel", id, "discovered_from", source.id)
    return [line, relations.line(store, caller, id, "discovered_from", source.id, id=edge)]


def _next(found: Promoted, node: str | None, wu: str | None) -> list[str]:
    if found.dry_run and found.new:
        which = ["--wu", wu] if wu is not None else [str(node)]
        return [command("gitmem", "mem", "promote", *which, "--tag", found.tag)]
    hidden = [each.id for each in found.promoted_nodes if each.is_hidden]
    back = [command("gitmem", "mem", "update", *hidden, "--status", "active")] if hidden else []
    show = command("gitmem", "show", found.promoted_nodes[0].id)
    return [*back, show, command("gitmem", "mem", "profile", "--tag", found.tag)]


GROUPS = (
    ("discovery", "Discoveries"),
    ("checkpoint", "Checkpoints"),
    ("note", "Notes"),
    ("session", "Sessions"),
)
LINE_MAX = 200  # characters for each node
OPEN_WORK = frozenset(node_fields.ALIASES)
SOURCES_MAX = 2_000  # nodes in one summary: its line contains their ids
CONTENT_MAX = 64 * 1024  # bytes of one node
NOT_OPEN = "hidden, summarized or of another work unit"
SUPERSEDED = "superseded"
RESERVE = 400  # bytes for the head, and for the number of remaining nodes


class Summarized(Written, kw_only=True):
    """A summary, and the nodes it covers.

    Attributes:
        summary: The new node.
        source_ids: The covered nodes, oldest first; they are marked with the summary.
        left: The number of nodes left for another summary, because this one was full.
        kept: Why other open nodes of the work unit are not covered, by id.
    """

    summary: VersionedNode
    source_ids: Sequence[str]
    left: int
    kept: dict[str, str] = {}


def summarize(
    store: Store,
    caller: Caller,
    wu: str,
    *,
    text: str | None = None,
    only: Sequence[str] = (),
) -> Summarized:
    """Summarize the discoveries, checkpoints, notes and sessions of a work unit that no summary covers yet.

    A superseded node is marked with the node that replaces it, and is not in a generated text.
    Ephemeral, hidden and project nodes are left out. Open bugs, ideas, questions and dependencies and the last
    checkpoint are left out unless `only` names them; open nodes of P0 and P1 even then. The summary and the marks of
    its sources are one commit.

    Args:
        wu: The work unit.
        text: The summary's text; by default it is generated, and nodes that do not fit are left for another
            summary.
        only: Ids or prefixes of the nodes to cover, such as those that the text's writer read; by default all that
            no summary covers yet.

    Raises:
        UsageError: There is nothing to summarize, or a value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    unit = node_fields.work_unit(wu)
    if text is not None:
        node_fields.content(text)
    db = store.db()
    meant = {stored_nodes.find_node(db, id, writing=True) for id in only}
    every = _open_nodes(db, unit)
    ends = relations.ends_of(db, [node.id for node in every])
    kept = _kept(every, meant, ends)
    sources = [node for node in every if node.id not in {*kept, *ends} and (not meant or node.id in meant)]
    if not sources:
        raise _nothing(unit, {**dict.fromkeys(ends, SUPERSEDED), **kept})
    covered = sources[:SOURCES_MAX] if text is not None else _fitting_sources(sources[:SOURCES_MAX])
    left = len(sources) - len(covered)
    replaced = _replaced(db, every, ends, covered, kept)
    kept |= {id: SUPERSEDED for id in ends if id not in {*kept, *replaced} and (not meant or id in meant)}
    content = text if text is not None else _text(unit, covered, left)
    marked = replaced | {source.id for source in covered}
    names = [node.id for node in every if node.id in marked]
    fields = _fields(store, caller, _id(store.db(), unit, names, text or ""), unit, content, names)
    line = store.line("node", fields)
    summary = stored_nodes.node_of_line(line[1])
    lines = [line, *stored_nodes.patch_lines(store, caller, names, {"summarized_into": summary.id})]
    what = f"sums up {format_count(len(covered))} of {unit}"
    done = stored_nodes.record(store, caller, lines, what, text=content, nodes=[summary.id], wu=unit)
    found = Summarized(
        summary=summary, source_ids=names, left=left, kept=kept, commit=done.commit, recorded=True
    )
    found.warnings = [*filter(None, [caller.remark])]
    again = command("gitmem", "mem", "summarize", "--wu", unit)
    found.next = [
        *([again] if left else []),
        command("gitmem", "show", found.summary.id),
        command("gitmem", "mem", "promote", found.summary.id, "--tag", "decision"),
    ]
    return found


def _open_nodes(db: sqlite3.Connection, wu: str) -> list[VersionedNode]:
    """Return the nodes of a work unit that no summary covers, oldest first, without summaries."""
    types = ", ".join(f"'{type}'" for type, _ in GROUPS)
    where = f"n.wu_id = ? AND n.state < {HIDDEN} AND n.type IN ({types}) AND NOT {IS_SUMMARIZED}"
    return stored_nodes.select(db, where, (unit_key(wu),))


def _replaced(
    db: sqlite3.Connection,
    nodes: Sequence[VersionedNode],
    ends: Mapping[str, str],
    covered: Sequence[VersionedNode],
    kept: Collection[str],
) -> set[str]:
    """Return the superseded nodes to mark with the nodes that replace them.

    A cleanup deletes what is summarized: a superseded node that stayed behind would then be valid again.
    """
    asked = json_list({*ends.values()})
    done = f"{IS_AMONG} AND {IS_SUMMARIZED}"
    gone = {source.id for source in covered} | set(stored_nodes.select_ids(db, done, (asked,)))
    found = [node.id for node in nodes if ends.get(node.id) in gone and node.id not in kept]
    return {*found[: SOURCES_MAX - len(covered)]}


def _kept(nodes: Sequence[VersionedNode], meant: Collection[str], ends: Collection[str]) -> dict[str, str]:
    """Return why nodes are not covered, by id.

    Open work stays visible, and `context` and `recover` start with the last checkpoint. Project nodes have their own
    section.

    Args:
        meant: Nodes that were named; if there are any, the others are not reported.
        ends: The superseded nodes.
    """
    checkpoints = [node for node in nodes if node.type == "checkpoint" and node.id not in ends]
    last = max(checkpoints, key=lambda node: (node.touched, node.id), default=None)
    found = dict.fromkeys(sorted({*meant} - {node.id for node in nodes}), NOT_OPEN)
    for node in nodes:
        if meant and node.id not in meant:
            continue
        if node.lifecycle in ("ephemeral", "project"):
            found[node.id] = f"{node.lifecycle} scope"
        elif not node.closed and node.priority in URGENT:
            found[node.id] = f"open {node.priority}"
        elif not meant and not node.closed and (work := sorted(OPEN_WORK & {*node.tags})):
            found[node.id] = f"open {work[0]}"
        elif not meant and node is last:
            found[node.id] = "last checkpoint"
    return found


def _nothing(unit: str, kept: Mapping[str, str]) -> UsageError:
    reasons = [*kept.values()]
    counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in sorted({*reasons}))
    return UsageError(
        f"{unit} has no nodes to summarize{f' ({counts})' if counts else ''}. Nothing was written.",
        hint="Open work of P0 and P1 and the last checkpoint stay as they are. Hidden nodes, those of ephemeral and project scope, superseded nodes, and nodes with a summary are never included.",
        code="nothing-to-summarize",
        next=[command("gitmem", "mem", "list", "--wu", unit)],
    )


def _id(db: sqlite3.Connection, wu: str, names: Sequence[str], text: str) -> str:
    """Return the id of a summary; two clones that summarize the same nodes get the same id."""
    id = keyed_id("mem", "summary", wu, *names, text)
    while stored_nodes.is_known(db, id):  # deleted since
        id = keyed_id("mem", "summary", id)
    return id


def _fields(store: Store, caller: Caller, id: str, wu: str, content: str, names: Sequence[str]) -> NodeFields:
    head, branch = anchors.head(store)
    return {
        "id": id,
        "type": "summary",
        "lifecycle": "project",
        "content": content,
        "wu_id": wu,
        "head": head,
        "branch": branch,
        "metadata": {"source_nodes": list(names), "source_count": len(names)},
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }


def _fitting_sources(sources: Sequence[VersionedNode]) -> list[VersionedNode]:
    """Return as many of the oldest nodes as fit in the text of a node."""
    size = RESERVE
    found = []
    for source in sources:
        size += len(_line(source).encode()) + 1
        if size > CONTENT_MAX:
            break
        found.append(source)
    return found


def _text(wu: str, sources: Sequence[VersionedNode], left: int) -> str:
    first, last = sources[0].created_at[:10], max(source.created_at for source in sources)[:10]
    when = first if first == last else f"{first} to {last}"
    lines = [f"Summary of {wu}: {format_count(len(sources))}, {when}"]
    for type, title in GROUPS:
        some = [source for source in sources if source.type == type]
        if some:
            lines += ["", f"{title} ({len(some)})", *map(_line, some)]
    if left:
        lines += ["", f"{format_count(left)} more of {wu} not included; they remain for the next summary."]
    return "\n".join(lines)


def _line(node: VersionedNode) -> str:
    """Format a node as one sanitized line."""
    first, _, rest = node.content.strip().partition("\n")
    text = sanitize(" ".join(first.split()))
    if rest.strip():
        text += " …"
    about = [node.priority, *node.tags[:3], "" if node.status == "active" else node.status]
    marks = sanitize(", ".join(part for part in about if part))
    return f"- [{node.id}]{f' ({marks})' if marks else ''} {cut(text, LINE_MAX)}"
