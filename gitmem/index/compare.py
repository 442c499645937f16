"""Two indexes of one log compared, whatever the order in which lines came to each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .schema import Index


def differing(ours: Index, theirs: Index, *, but: Sequence[str] = ()) -> list[str]:
    """The tables whose rows are not the same, of the lines and of every view.

    Args:
        but: Columns that may differ: they depend on the order of arrival.
    """
    return [table for table in _tables(theirs) if _rows(ours, table, but) != _rows(theirs, table, but)]


def _tables(index: Index) -> list[str]:
    own = ("meta", "file", "lost")  # how the log is read, not what it says
    rows = index.db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [name for (name,) in rows if name not in own and not name.startswith("sqlite_")]


def _rows(index: Index, table: str, but: Sequence[str]) -> list[tuple[object, ...]]:
    """A table's rows, sorted. Of a line its key is taken, which is the same everywhere, not its number."""
    names = [row[1] for row in index.db.execute(f'PRAGMA table_info("{table}")')]
    if table == "line":
        wanted = "key, at, kind, body"
    else:
        key = "(SELECT key FROM line WHERE line.id = t.line)"
        wanted = ", ".join(key if name == "line" else f't."{name}"' for name in names if name not in but)
    return sorted(index.db.execute(f'SELECT {wanted} FROM "{table}" t').fetchall(), key=repr)
