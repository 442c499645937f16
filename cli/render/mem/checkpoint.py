"""A checkpoint that was written, as text."""

from __future__ import annotations

from ..out import sanitize
from . import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.memory.nodes import Created


def created(found: Created) -> list[str]:
    """The node, and the last lines of its diff stat, which count all."""
    head, *rest = nodes.created(found)
    stat = str(found.node.metadata.get("gitDiffStat") or "").split("\n")
    counts = [f"  {sanitize(line.strip())}" for line in stat[-2:] if line and "|" not in line]
    return [head, *counts, *rest]
