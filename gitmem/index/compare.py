"""Compare two indexes of one log, independently of the order in which each got its lines."""

from __future__ import annotations

from ..text.strict_json import read as read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .index_file import Index


PACKED = "packed_"  # prefix of tables whose rows depend on joint arrival: name, first line, all lines


def differing(ours: Index, theirs: Index, *, but: Sequence[str] = ()) -> list[str]:
    """Return the tables whose rows differ, among the table of lines and those of all views.

    Args:
        but: Columns to ignore because they depend on the order of arrival.
    """
    known, found = (dict(_sums(index, but)) for index in (ours, theirs))
    return [table for table in found if known.get(table) != found[table]]


def _sums(index: Index, but: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield for each table the number of rows and the sum of their hashes; both are independent of the order.

    Every row has a text or a key. Its hash is a 64-bit function that differs from process to process.
    """
    keys = {id: hash(key) for id, key in index.db.execute("SELECT id, key FROM line")}
    for table in _tables(index):
        if table.startswith(PACKED):
            yield table, (0, sum(map(hash, _packed(index, table, keys).items())))
            continue
        (count,) = index.db.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        yield table, (count, sum(map(hash, _rows(index, table, but))))


def _tables(index: Index) -> list[str]:
    own = ("meta", "file", "lost")  # bookkeeping, not content of the log
    rows = index.db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [name for (name,) in rows if name not in own and not name.startswith("sqlite_")]


def _rows(index: Index, table: str, but: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Return the rows of a table, in any order. Lines are identified by their keys, because their numbers differ."""
    names = [row[1] for row in index.db.execute(f'PRAGMA table_info("{table}")')]
    if table == "line":
        wanted = "key, at, kind, body"
    else:
        key = "(SELECT key FROM line WHERE line.id = t.line)"
        wanted = ", ".join(key if name == "line" else f't."{name}"' for name in names if name not in but)
    return index.db.execute(f'SELECT {wanted} FROM "{table}" t')


def _packed(index: Index, table: str, keys: Mapping[int, int]) -> dict[object, int]:
    """Return for each name the sum of the hashes of its lines, regardless of the rows that contain them."""
    found: dict[object, int] = {}
    for name, _, listed in index.db.execute(f'SELECT * FROM "{table}"'):
        try:
            lines = sum(map(keys.__getitem__, read_json(str(listed))))
        except (KeyError, TypeError, ValueError, RecursionError):
            # It is not a list of numbers, or the index does not have one of these lines.
            lines = hash((listed,))
        found[name] = found.get(name, 0) + lines
    return found
