"""The type of new nodes and their lines, before they are recorded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..index.rows import Group
    from .versioned_node import VersionedNode


class NewNodes:
    """New nodes with their lines.

    Attributes:
        lines: Stream and line of each node and of its relations.
        remarks: Warnings for the writer.
        group: The columns that the index would read of the lines, if known.
    """

    __slots__ = ("group", "lines", "nodes", "remarks")

    def __init__(
        self,
        lines: Sequence[tuple[str, bytes]],
        nodes: Sequence[VersionedNode],
        remarks: Sequence[str] = (),
        group: Group | None = None,
    ) -> None:
        self.lines = lines
        self.nodes = nodes
        self.remarks = remarks
        self.group = group
