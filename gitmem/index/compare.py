"""Two indexes of one log compared, whatever the order in which lines came to each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .schema import Index


PACKED = "packed_"  # a table whose rows depend on what came together; a view has what they say


def differing(ours: Index, theirs: Index, *, but: Sequence[str] = ()) -> list[str]:
    """The tables whose rows are not the same, of the lines and of every view.

    Args:
        but: Columns that may differ: they depend on the order of arrival.
    """
    return [table for table in _tables(theirs) if not _are_same(ours, theirs, table, but)]


def _are_same(ours: Index, theirs: Index, table: str, but: Sequence[str]) -> bool:
    """Compare the number of rows and the sum of their hashes: neither depends on their order, nor takes memory.

    Every row has a text or a key, whose hash is 64 bits of a function that is another one in each process.
    """
    return _sum(ours, table, but) == _sum(theirs, table, but)


def _sum(index: Index, table: str, but: Sequence[str]) -> tuple[int, int]:
    (count,) = index.db.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return count, sum(map(hash, _rows(index, table, but)))


def _tables(index: Index) -> list[str]:
    own = ("meta", "file", "lost")  # how the log is read, not what it says
    rows = index.db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
    return [name for (name,) in rows if name not in own and not name.startswith(("sqlite_", PACKED))]


def _rows(index: Index, table: str, but: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """A table's rows, in any order. Of a line its key is taken, which is the same everywhere, not its number."""
    names = [row[1] for row in index.db.execute(f'PRAGMA table_info("{table}")')]
    if table == "line":
        wanted = "key, at, kind, body"
    else:
        key = "(SELECT key FROM line WHERE line.id = t.line)"
        wanted = ", ".join(key if name == "line" else f't."{name}"' for name in names if name not in but)
    return index.db.execute(f'SELECT {wanted} FROM "{table}" t')
