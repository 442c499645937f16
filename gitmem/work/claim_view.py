"""The view of claims: a row for each claim that has begun, and the lines it is folded from."""

from __future__ import annotations

from ..index.index_file import View
from ..records.ids import unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..index.rows import Rows
    from ..order.claim import FoldedClaim


DDL = (
    # Times are microseconds since the epoch. The table `claim` is another one: of lines without a valid code.
    "CREATE TABLE path_claim (claim_id TEXT PRIMARY KEY, line INTEGER, owner TEXT, session TEXT, mode TEXT, since INTEGER,"
    " until INTEGER, released INTEGER, task_id TEXT, wu_id TEXT) WITHOUT ROWID",
    "CREATE INDEX path_claim_owner ON path_claim (owner)",
    # For the claims that have not ended: those that have are never deleted.
    "CREATE INDEX path_claim_until ON path_claim (until)",
    "CREATE TABLE path_claim_event (claim_id TEXT, line INTEGER, PRIMARY KEY (claim_id, line)) WITHOUT ROWID",
    "CREATE INDEX path_claim_event_line ON path_claim_event (line)",
)
_LINES = "SELECT e.line FROM path_claim_event e WHERE e.claim_id = ?"
_NOT_FORGED = " AND e.line NOT IN (SELECT line FROM forged)"


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add records of claims, in any order of arrival."""
    claims = rows.of("claim")
    ids = claims.column("claim_id")
    db.executemany(
        "INSERT OR IGNORE INTO path_claim_event VALUES (?, ?)", sorted(zip(ids, claims.ids, strict=True))
    )
    for claim_id in sorted(set(ids)):
        found, numbers = _fold(db, claim_id)
        if found is None:
            continue
        record = found.record
        values = (
            claim_id,
            numbers[found.line],
            *found.owner,
            record["mode"],
            found.since,
            found.until,
            int(found.released is not None),
            record.get("task_id"),
            unit_key(record.get("wu_id")),
        )
        db.execute("INSERT OR REPLACE INTO path_claim VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def folded_claim(
    db: sqlite3.Connection, claim_id: str, ahead: int | None = None, *, forged: bool = True
) -> FoldedClaim | None:
    """Return a claim, folded from its lines; None if none of them begins it.

    Args:
        ahead: The time after which lines do not count yet.
        forged: Whether lines count that claim to be from this clone and are not.
    """
    return _fold(db, claim_id, ahead, "" if forged else _NOT_FORGED)[0]


def _fold(
    db: sqlite3.Connection, claim_id: str, ahead: int | None = None, but: str = ""
) -> tuple[FoldedClaim | None, dict[bytes, int]]:
    """Return a claim, and the number of each of its lines."""
    from .. import records
    from ..index import entity_lines
    from ..order import claim

    lines, left_out = entity_lines.read(db, _LINES + but, claim_id, claim.READ_MAX)
    read = [(records.read_kind("claim", line), line) for _, line in lines]
    found = claim.fold(((record, line) for record, line in read if record is not None), ahead)
    if found is not None:
        found.left_out = left_out
    return found, {line: number for number, line in lines}


VIEW = View(("claim",), DDL, add)
