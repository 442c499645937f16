"""Lines that are new to the index, as passed to views: by kind, one by one or as columns."""

from __future__ import annotations

from itertools import chain

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    # The index does not know records. Views declare the type of those of their kinds, see `records.record_types`.
    Record = Any


class LineRow:
    """A line that is new to the index: its row id, its bytes and its record."""

    __slots__ = ("id", "line", "record")

    def __init__(self, id: int, line: bytes, record: Record) -> None:
        self.id = id
        self.line = line
        self.record = record

    @property
    def at(self) -> str:
        """The time in the line, in ISO 8601 with microseconds, in UTC."""
        at: str = self.record["at"]
        return at


class NewLines(Struct):
    """New lines of one kind. Each attribute has one item for each line."""

    ids: list[int] = []
    lines: list[bytes] = []
    records: list[Record] = []
    _columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[LineRow]:
        return map(LineRow, self.ids, self.lines, self.records)

    def column(self, name: str) -> list[Any]:
        """Return a field of each line, None if a line lacks it. Views share the list."""
        if name not in self._columns:
            self._columns[name] = [record.get(name) for record in self.records]
        return self._columns[name]


class Rows:
    """New lines, grouped by kind."""

    def __init__(self, rows: Iterable[LineRow] = ()) -> None:
        self.by_kind: dict[str, NewLines] = {}
        for row in rows:
            self.add(row)

    def add(self, row: LineRow) -> None:
        """Add a line."""
        kind = row.record["kind"]
        if kind not in self.by_kind:
            self.by_kind[kind] = NewLines()
        lines = self.by_kind[kind]
        lines.ids.append(row.id)
        lines.lines.append(row.line)
        lines.records.append(row.record)

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def __iter__(self) -> Iterator[LineRow]:
        return chain.from_iterable(self.by_kind.values())

    def of(self, kind: str) -> NewLines:
        """Return the lines of a kind."""
        return self.by_kind.get(kind) or NewLines()

    def of_kinds(self, kinds: Collection[str]) -> Rows:
        """Return the lines of some kinds, with the same columns."""
        found = Rows()
        found.by_kind = {kind: of for kind, of in self.by_kind.items() if kind in kinds}
        return found


class View(Struct):
    """Tables that are derived from lines.

    `add` is called inside the transaction of `catch_up` with all new lines of the view's kinds. Lines arrive in any
    order, and the resulting tables must not depend on it. Change `version`, any value with a constant `repr`, when `add` changes
    and `ddl` does not.
    """

    kinds: Sequence[str]
    ddl: Sequence[str]
    add: Callable[[sqlite3.Connection, Rows], None]
    version: object = 1
