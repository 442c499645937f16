"""Two indexes of one log compared, whatever the order in which lines came to each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .schema import Index


PACKED = "packed_"  # so begin tables whose rows depend on what came together: a name, the first line, all lines as JSON


def differing(ours: Index, theirs: Index, *, but: Sequence[str] = ()) -> list[str]:
    """The tables whose rows are not the same, of the lines and of every view.

    Args:
        but: Columns that may differ: they depend on the order of arrival.
    """
    known, found = (dict(_sums(index, but)) for index in (ours, theirs))
    return [table for table in found if known.get(table) != found[table]]


def _sums(index: Index, but: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The number of rows of each table, and the sum of their hashes: neither depends on their order.

    Every row has a text or a key, whose hash is 64 bits of a function that is another one in each process.
    """
    keys = {id: hash(key) for id, key in index.db.execute("SELECT id, key FROM line")}
    for table in _tables(index):
        if table.startswith(PACKED):
            yield table, (0, sum(map(hash, _packed(index, table, keys).items())))
            continue
        (count,) = index.db.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        yield table, (count, sum(map(hash, _rows(index, table, but))))


def _tables(index: Index) -> list[str]:
    own = ("meta", "file", "lost")  # how the log is read, not what it says
    rows = index.db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [name for (name,) in rows if name not in own and not name.startswith("sqlite_")]


def _rows(index: Index, table: str, but: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """A table's rows, in any order. Of a line its key is taken, which is the same everywhere, not its number."""
    names = [row[1] for row in index.db.execute(f'PRAGMA table_info("{table}")')]
    if table == "line":
        wanted = "key, at, kind, body"
    else:
        key = "(SELECT key FROM line WHERE line.id = t.line)"
        wanted = ", ".join(key if name == "line" else f't."{name}"' for name in names if name not in but)
    return index.db.execute(f'SELECT {wanted} FROM "{table}" t')


def _packed(index: Index, table: str, keys: Mapping[int, int]) -> dict[object, int]:
    """Of each name the sum of the hashes of its lines, in whatever rows they stand."""
    found: dict[object, int] = {}
    for name, _, listed in index.db.execute(f'SELECT * FROM "{table}"'):
        try:
            lines = sum(map(keys.__getitem__, map(int, str(listed)[1:-1].split(","))))
        except (KeyError, ValueError):  # what the index does not have, or no number
            lines = hash((listed,))
        found[name] = found.get(name, 0) + lines
    return found
