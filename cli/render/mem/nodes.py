"""New and changed nodes, and blocks of nodes for prompts, as text."""

from __future__ import annotations

from ..output import record_position, sanitize
from ..text import SEPARATOR, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.memory.context import Context
    from gitmem.memory.edit import Created, NodesChanged, NodesCreated
    from gitmem.memory.profile import Profile
    from gitmem.memory.recover import Recovered
    from gitmem.memory.relations import RelationResult
    from gitmem.memory.versioned_node import VersionedNode

SHOWN = 20  # ids; JSON has all of them
KEPT_SHOWN = 5  # ids in a line


def created(found: Created) -> list[str]:
    """Return a new node's metadata in a line, and its warnings."""
    node = found.node
    facts = [
        about(node),
        node.lifecycle,
        sanitize(", ".join(node.paths), keep=""),
        "recorded in this clone only" if node.private else record_position(found.commit),
    ]
    return [SEPARATOR.join(fact for fact in facts if fact), *notes(found.warnings)]


def appended(found: NodesCreated) -> list[str]:
    """Return the ids of nodes that were created at once, at most SHOWN of them."""
    count = len(found.nodes)
    head = f"{count:,} node{'' if count == 1 else 's'}{SEPARATOR}{record_position(found.commit)}"
    more = [f"{count - SHOWN:,} more not shown"] if count > SHOWN else []
    return [head, *(node.id for node in found.nodes[:SHOWN]), *more, *notes(found.warnings)]


def changed(found: NodesChanged) -> list[str]:
    """Return the nodes that were changed."""
    which = ", ".join(found.ids) if len(found.ids) <= 3 else plural(len(found.ids), "node")
    return [f"changed: {which}{SEPARATOR}{record_position(found.commit)}", *notes(found.warnings)]


def related(found: RelationResult) -> list[str]:
    """Return a relation that was added or removed."""
    verb = f"no longer {found.type}" if found.removed else found.type
    return [
        f"{found.from_id} {verb} {found.to_id}{SEPARATOR}{record_position(found.commit)}",
        *notes(found.warnings),
    ]


def about(node: VersionedNode) -> str:
    """Return a node's metadata: `mem-… · discovery · P1 · WU-7 · bug`."""
    status = "" if node.status == "active" else node.status
    private = "private" if node.private else ""
    parts = [node.id, private, node.type, node.priority, node.wu_id, node.lane, ", ".join(node.tags), status]
    return sanitize(SEPARATOR.join(part for part in parts if part), keep="")


def end(commit: str | None, recorded: bool) -> str:
    """Return the end of a line with the commit of a change; "" without a change."""
    return SEPARATOR + record_position(commit) if commit or recorded else ""


def notes(sentences: Sequence[str]) -> list[str]:
    """Return sentences as sanitized lines that begin with `note:`."""
    return [f"note: {sanitize(each)}" for each in sentences]


def kept(reasons: Mapping[str, str]) -> list[str]:
    """Return the nodes that an operation on many nodes left as they are, a line for each reason."""
    lines = []
    for reason in sorted({*reasons.values()}):
        ids = [id for id, why in reasons.items() if why == reason]
        more = f" and {len(ids) - KEPT_SHOWN} more" if len(ids) > KEPT_SHOWN else ""
        forced = "; --force includes them" if reason.startswith(("open ", "last ")) else ""
        lines.append(f"kept, {reason}: {', '.join(ids[:KEPT_SHOWN])}{more}{forced}")
    return lines


def checkpointed(found: Created) -> list[str]:
    """Return the node, and the last lines of its diff stat, which have the totals."""
    head, *rest = created(found)
    stat = str(found.node.metadata.get("gitDiffStat") or "").split("\n")
    counts = [f"  {sanitize(line.strip())}" for line in stat[-2:] if line and "|" not in line]
    return [head, *counts, *rest]


def block(found: Context | Recovered) -> list[str]:
    """Return the packed text: peers' texts in it are already sanitized."""
    return [found.block]


def profile(found: Profile) -> list[str]:
    """Return the nodes of the whole project, and how often each tag is used."""
    if not found.nodes:
        about = f" with the tag {sanitize(found.tag, keep='')}" if found.tag else ""
        return [f"No project nodes{about}"]
    more = found.fitting - len(found.nodes)
    lines = [found.block, "", *([f"{more} more not shown"] if more else [])]
    tags = ", ".join(f"{sanitize(tag, keep='')} {count}" for tag, count in found.by_tag.items())
    return [*lines, f"{plural(found.total, 'node')}; tags: {tags or 'none'}"]
