"""Read the lines of one entity: all, or of too many a fair share of each sender."""

from __future__ import annotations

from ..order.shares import fair_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_SENDERS = (
    "SELECT l.id, json_extract(l.body, '$.sender_identity'), json_extract(l.body, '$.sender_session') FROM line l"
    " WHERE l.id IN ({}) ORDER BY l.body"
)
_BODIES = "SELECT id, body FROM line WHERE id IN (SELECT value FROM json_each(?)) ORDER BY body"


def numbers(db: sqlite3.Connection, source: str, id: str, most: int) -> tuple[list[int], int]:
    """Return the numbers of the lines that are read, and how many others there are.

    Args:
        source: Selects the numbers of all lines of an entity by its id.
        id: The entity.
        most: How many lines are read.
    """
    found = [number for (number,) in db.execute(f"{source} LIMIT {most + 1}", (id,))]
    if len(found) <= most:
        return found, 0
    every = db.execute(_SENDERS.format(source), (id,)).fetchall()
    chosen = fair_share(every, most, lambda row: (row[1], row[2]))
    return [row[0] for row in chosen], len(every) - most
