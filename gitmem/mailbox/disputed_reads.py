"""Signals that a reader of this clone has not read although a forged line says so: see `trust.line_checks`."""

from __future__ import annotations

from . import receipts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_TO_ALL = (
    " AND EXISTS (SELECT 1 FROM doubt d WHERE d.reader IN {own} AND d.signal_id = b.signal_id)"
    " AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.reader IN {own} AND r.signal_id = b.signal_id AND NOT EXISTS"
    " (SELECT 1 FROM doubt d WHERE d.reader = r.reader AND d.signal_id = r.signal_id))"
)


def directed(
    db: sqlite3.Connection,
    own: str,
    ours: str,
    more: str,
    chosen: str,
    values: Mapping[str, str | int | None],
) -> set[tuple[str, str]]:
    """Return (address, signal id) of directed signals.

    Args:
        own: The placeholders of the reader's addresses.
        ours: The condition of its workspace, on a line `l`.
        more: Further conditions.
        chosen: A query around `{found}`, the query for the signals.
    """
    found = receipts.DIRECTED.format(found="doubt", own=own)
    found = f"SELECT reader, signal_id FROM ({found} AND {ours}) WHERE true{more}"
    return set(db.execute(chosen.format(found=found), values).fetchall())


def broadcasts(
    db: sqlite3.Connection, own: str, broadcasts: str, values: Mapping[str, str | int | None]
) -> set[tuple[str, str]]:
    """Return (reader, signal id) of broadcasts, given the query for all that the reader did not write."""
    return set(db.execute(broadcasts + _TO_ALL.format(own=own), values).fetchall())
