"""Claims as entities of the index: a row for each claim that has begun."""

from __future__ import annotations

from .. import records
from ..index import entities
from ..order import claim as claim_fold
from ..records.ids import unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from ..index.entities import Lines
    from ..order.claim import FoldedClaim

CLAIM = entities.EntityKind(
    "claim",
    {"claim": "claim_id"},
    "claim_id",
    # Times are microseconds since the epoch.
    "line INTEGER, owner TEXT, session TEXT, mode TEXT, since INTEGER, until INTEGER, released INTEGER, task_id TEXT, wu_id TEXT",
    records.read,
    # `until` is for the claims that have not ended: those that have are never deleted.
    indexes={"owner": "(owner)", "until": "(until)"},
    table="path_claim",  # the table `claim` is another one: of lines without a valid code
    events=("claim",),
    begins="claim",
    most=claim_fold.READ_MAX,
)


def folded_claim(
    db: sqlite3.Connection, claim_id: str, ahead: int | None = None, *, forged: bool = True
) -> FoldedClaim | None:
    """Return a claim, folded from its lines; None if none of them begins it.

    Args:
        ahead: The time after which lines do not count yet.
        forged: Whether lines count that claim to be from this clone and are not.
    """
    return _fold(entities.lines(db, CLAIM, claim_id, forged=forged), ahead)


def _fold(lines: Lines, ahead: int | None = None) -> FoldedClaim | None:
    found = claim_fold.fold(((row.record, row.line) for row in lines), ahead)
    if found is not None:
        found.left_out = lines.left_out
    return found


def _rows(_: sqlite3.Connection, claims: Mapping[str, Lines]) -> Iterator[Sequence[object]]:
    for claim_id, lines in claims.items():
        found = _fold(lines)
        if found is not None:
            record = found.record
            yield (
                claim_id, lines.number(found.line), *found.owner, record["mode"], found.since, found.until,
                int(found.released is not None), record.get("task_id"), unit_key(record.get("wu_id")),
            )  # fmt: skip


FOLD = entities.Fold(_rows)
