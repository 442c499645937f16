"""Nodes that were written or changed, as text."""

from __future__ import annotations

from ..out import sanitize
from ..text import SEPARATOR, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.operations.memory.fold import Node
    from gitmem.operations.memory.nodes import Appended, Changed, Created
    from gitmem.operations.memory.relations import Related


SHOWN = 20  # ids; JSON has all of them


def created(found: Created) -> list[str]:
    node = found.node
    facts = [about(node), node.lifecycle, sanitize(", ".join(node.paths), keep=""), where(found.commit)]
    return [SEPARATOR.join(fact for fact in facts if fact), *notes(found.warnings)]


def appended(found: Appended) -> list[str]:
    count = len(found.nodes)
    head = f"{count:,} node{'' if count == 1 else 's'}{SEPARATOR}{where(found.commit)}"
    more = [f"and {count - SHOWN:,} more"] if count > SHOWN else []
    return [head, *(node.id for node in found.nodes[:SHOWN]), *more, *notes(found.warnings)]


def changed(found: Changed) -> list[str]:
    which = ", ".join(found.ids) if len(found.ids) <= 3 else plural(len(found.ids), "node")
    verb = "would change" if found.dry_run else "changed"
    end = "" if found.dry_run else SEPARATOR + where(found.commit)
    return [f"{verb}: {which}{end}", *notes(found.warnings)]


def related(found: Related) -> list[str]:
    verb = f"no longer {found.type}" if found.removed else found.type
    return [f"{found.from_id} {verb} {found.to_id}{SEPARATOR}{where(found.commit)}", *notes(found.warnings)]


def about(node: Node) -> str:
    """What a node is, without what it says: `mem-… · discovery · P1 · WU-7 · bug`."""
    status = "" if node.status == "active" else node.status
    parts = [node.id, node.type, node.priority, node.wu_id, node.lane, ", ".join(node.tags), status]
    return sanitize(SEPARATOR.join(part for part in parts if part), keep="")


def where(commit: str | None) -> str:
    return f"commit {commit[:12]}" if commit else "recorded"


def notes(sentences: Sequence[str]) -> list[str]:
    return [f"note: {sanitize(each)}" for each in sentences]
