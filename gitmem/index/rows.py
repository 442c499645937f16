"""Lines that are new to the index, as passed to views: single lines, or the columns of all lines of a kind."""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    # The index does not know records. Views declare the type of those of their kinds, see `records.record_types`.
    Record = Any
    Columns = Mapping[str, Sequence[Any]]
    # Lines of one kind: kind, numbers, records, and the columns if all records have the same fields.
    Group = tuple[str, Sequence[int], Sequence[Record], Columns | None]


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


class NewLines:
    """New lines of one kind. Each attribute has one item for each line."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.lines: list[bytes] = []
        self.records: list[Record] = []
        self._parts: list[tuple[Sequence[Record], Columns | None]] = []
        self._columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[LineRow]:
        return map(LineRow, self.ids, self.lines, self.records)

    def add(
        self, ids: Sequence[int], lines: Sequence[bytes], records: Sequence[Record], columns: Columns | None
    ) -> None:
        """Add lines.

        Args:
            columns: The values of each field, if all records have the same fields.
        """
        self.ids += ids
        self.lines += lines
        self.records += records
        self._parts.append((records, columns))

    def column(self, name: str) -> list[Any]:
        """Return a field of each line, None if a line lacks it. Views share the list."""
        if name not in self._columns:
            found = self._columns[name] = []
            for records, columns in self._parts:
                if columns is None:
                    found += [record.get(name) for record in records]
                else:
                    found += columns[name] if name in columns else [None] * len(records)
        return self._columns[name]


class Rows:
    """New lines, grouped by kind."""

    def __init__(self, by_kind: dict[str, NewLines]) -> None:
        self.by_kind = by_kind

    @classmethod
    def of_rows(cls, rows: Iterable[LineRow]) -> Rows:
        """Group lines of any kinds."""
        found = cls({})
        for row in rows:
            found.add(row.record["kind"], [row.id], [row.line], [row.record], None)
        return found

    def add(
        self,
        kind: str,
        ids: Sequence[int],
        lines: Sequence[bytes],
        records: Sequence[Record],
        columns: Columns | None,
    ) -> None:
        """Add lines of a kind; see `Lines.add`."""
        if kind not in self.by_kind:
            self.by_kind[kind] = NewLines()
        self.by_kind[kind].add(ids, lines, records, columns)

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def __iter__(self) -> Iterator[LineRow]:
        return chain.from_iterable(self.by_kind.values())

    def of(self, kind: str) -> NewLines:
        """Return the lines of a kind."""
        return self.by_kind.get(kind) or NewLines()
