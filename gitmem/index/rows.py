"""Lines that are new to the index, as views get them: one by one, or the fields of all lines of a kind."""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    Record = Mapping[str, object]


class Row:
    """A line that is new to the index: its row id, its bytes, and the record that it is."""

    __slots__ = ("id", "line", "record")

    def __init__(self, id: int, line: bytes, record: Record) -> None:
        self.id = id
        self.line = line
        self.record = record

    @property
    def at(self) -> str:
        return str(self.record["at"])


class Lines:
    """New lines of one kind; each attribute has one entry for a line."""

    __slots__ = ("_columns", "ids", "lines", "records")

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.lines: list[bytes] = []
        self.records: list[Record] = []
        self._columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Row]:
        return map(Row, self.ids, self.lines, self.records)

    def column(self, name: str) -> list[Any]:
        """Return a field of each line, None where it has none; views share the list."""
        if name not in self._columns:
            self._columns[name] = [record.get(name) for record in self.records]
        return self._columns[name]


class Rows:
    """New lines by their kind."""

    __slots__ = ("by_kind",)

    def __init__(self, by_kind: dict[str, Lines]) -> None:
        self.by_kind = by_kind

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> Rows:
        """Return some lines, whatever their kinds."""
        found = cls({})
        for row in rows:
            found.add(row.id, row.line, row.record)
        return found

    def add(self, id: int, line: bytes, record: Record) -> None:
        """Add a line."""
        kind = str(record["kind"])
        lines = self.by_kind.get(kind)
        if lines is None:
            lines = self.by_kind[kind] = Lines()
        lines.ids.append(id)
        lines.lines.append(line)
        lines.records.append(record)

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self.by_kind.values())

    def of(self, kind: str) -> Lines:
        """Return the lines of a kind."""
        return self.by_kind.get(kind) or Lines()
