"""The type of the records that folds order: signals of a thread, and patches of memory nodes."""

from __future__ import annotations

from typing import Protocol


class OrderedFact(Protocol):
    """A record: its id, one of its lines, and the ids that its writer had seen."""

    @property
    def id(self) -> str:
        """The id of the record."""
        ...

    @property
    def line(self) -> bytes:
        """One of its lines, which starts with the time; it orders facts that causality does not order."""
        ...

    @property
    def named(self) -> frozenset[str]:
        """The ids that its writer had seen."""
        ...
