"""The claims that stand now, and which of them are in each other's way.

The index has the end of each claim; whether that is over is decided here, with the clock of whoever asks. Lines that claim to be
from this clone and are not count for what is shown, as on every other clone; nobody here acts on them.
"""

from __future__ import annotations

from .. import records
from ..agents import heartbeats
from . import claim_fold, path_patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..store import Store
    from .claim_fold import FoldedClaim

HELD, CONTESTED, BEHIND, PERHAPS_RENEWED = "held", "contested", "behind", "perhaps renewed"
GRACE_MICROS = 15 * 60 * 1_000_000  # a renewal by another clone may be under way for as long
OF_OWNER_MAX, READ_MAX = 100, 500  # claims that are read: peers may have written any number
COMPARED_MAX = 100_000  # pairs of patterns in one answer; further claims are not compared
EXCLUSIVE = "exclusive"

# A claim ends with its session and with its task. Those of this clone come first, and of an owner only so many count.
_STANDING = (
    "SELECT claim_id, forged FROM (SELECT c.claim_id, c.since,"
    " EXISTS (SELECT 1 FROM path_claim_event e JOIN forged f ON f.line = e.line WHERE e.claim_id = c.claim_id) AS forged,"
    " EXISTS (SELECT 1 FROM own WHERE name = c.session) AS ours,"
    " row_number() OVER (PARTITION BY c.owner ORDER BY c.since, c.claim_id) AS place"
    " FROM path_claim c LEFT JOIN session s ON s.session_id = c.session LEFT JOIN task t ON t.task_id = c.task_id"
    " WHERE c.until > :since AND (NOT c.released OR forged) AND (s.ended IS NULL OR s.ended < c.since)"
    " AND t.decided_by IS NULL) WHERE place <= :of_owner ORDER BY NOT ours, since, claim_id LIMIT :most"
)
_LINES = "SELECT l.body FROM path_claim_event e JOIN line l ON l.id = e.line WHERE e.claim_id = ?{but} ORDER BY l.body LIMIT ?"
_NOT_FORGED = " AND e.line NOT IN (SELECT line FROM forged)"


class StandingClaim:
    """A claim that stands, or that perhaps was renewed.

    Attributes:
        claim: Its records, folded.
        patterns: Its paths, prepared for matches.
        is_over: Whether its end has passed: then its owner's clone has perhaps renewed it.
        is_here: Whether its session works in this clone, which then knows its end.
        against: The claims in its way, and it in theirs: neither writer had seen the other's.
        before: The claims in its way that its writer had seen.
    """

    __slots__ = ("against", "before", "claim", "is_here", "is_over", "patterns")

    def __init__(self, claim: FoldedClaim, *, is_over: bool, is_here: bool) -> None:
        self.claim = claim
        self.patterns = path_patterns.prepared(claim.record["paths"])
        self.is_over = is_over
        self.is_here = is_here
        self.against: list[StandingClaim] = []
        self.before: list[StandingClaim] = []

    @property
    def id(self) -> str:
        """The id of the claim."""
        return self.claim.record["claim_id"]

    @property
    def who(self) -> str:
        """The owner's name for people."""
        return self.claim.record.get("sender_name") or self.claim.owner[0]

    @property
    def status(self) -> str:
        """`held`, `contested`, `behind` (somebody else's claim came first) or `perhaps renewed`."""
        if self.is_over:
            return PERHAPS_RENEWED
        if self.before:
            return BEHIND
        return CONTESTED if self.against else HELD

    def covers(self, path: str) -> bool:
        """Return whether it covers a path from the top of the work tree."""
        return any(pattern.matches(path) for pattern in self.patterns)

    def is_of(self, addresses: Iterable[str | None]) -> bool:
        """Return whether its owner has one of these names: then it is nobody else's."""
        named = {each for each in addresses if each}
        return not named.isdisjoint(self.claim.owner)


def standing(
    store: Store, *, forged: bool = True, db: sqlite3.Connection | None = None
) -> list[StandingClaim]:
    """Return the claims that stand now, with those in each other's way.

    Args:
        forged: Whether lines count that claim to be from this clone and are not.
        db: The index to read; by default the store's, caught up.
    """
    now = store.now()
    db = store.db() if db is None else db
    values = {"since": now - GRACE_MICROS, "of_owner": OF_OWNER_MAX, "most": READ_MAX}
    found = []
    for claim_id, has_forged in db.execute(_STANDING, values).fetchall():
        claim = load(db, claim_id, forged=forged or not has_forged)
        if claim is None or claim.released is not None:
            continue
        is_over = claim.until <= now
        is_here = heartbeats.is_here(store, claim.owner[1] or "")
        if not is_over or (not is_here and claim.until > now - GRACE_MICROS):
            found.append(StandingClaim(claim, is_over=is_over, is_here=is_here))
    compare(found)
    return found


def load(db: sqlite3.Connection, claim_id: str, *, forged: bool = True) -> FoldedClaim | None:
    """Return one claim, folded from its lines; None if nothing begins it."""
    rows = db.execute(_LINES.format(but="" if forged else _NOT_FORGED), (claim_id, claim_fold.READ_MAX))
    lines = []
    for (body,) in rows.fetchall():
        line = body.encode()
        record = records.read_kind("claim", line)
        if record is not None:
            lines.append((record, line))
    return claim_fold.fold(lines)


def compare(found: Sequence[StandingClaim]) -> None:
    """Find the claims that are in each other's way, and note whose writer had seen which."""
    left = COMPARED_MAX
    for place, two in enumerate(found):
        for one in found[:place]:
            if one.is_over or two.is_over or not _may_conflict(one.claim, two.claim):
                continue
            left -= len(one.patterns) * len(two.patterns)
            if left < 0:
                return
            if not path_patterns.may_overlap(one.patterns, two.patterns):
                continue
            if one.claim.has_seen(two.claim) == two.claim.has_seen(one.claim):
                one.against.append(two)
                two.against.append(one)
            elif one.claim.has_seen(two.claim):
                one.before.append(two)
            else:
                two.before.append(one)


def are_in_conflict(one: StandingClaim, two: StandingClaim) -> bool:
    """Return whether two claims, one of them exclusive, may cover the same path for different owners and tasks."""
    return _may_conflict(one.claim, two.claim) and path_patterns.may_overlap(one.patterns, two.patterns)


def _may_conflict(ours: FoldedClaim, theirs: FoldedClaim) -> bool:
    task = ours.record.get("task_id")
    return (
        EXCLUSIVE in (ours.record["mode"], theirs.record["mode"])
        and ours.owner[0] != theirs.owner[0]
        and (task is None or task != theirs.record.get("task_id"))
    )
