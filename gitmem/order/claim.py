"""Reduce the records of one claim: whose it is, what it covers, and until when.

Claims are advice. Whether two of them are in each other's way is decided by what their writers had seen, never by clocks: see
docs/format.md section 16.
"""

from __future__ import annotations

from .task import micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records.record_types import ClaimRecord


LEASE_MAX_MICROS = 24 * 3600 * 1_000_000
AHEAD_MICROS = 24 * 3600 * 1_000_000  # lines with a later time do not count yet: no clock is so wrong
READ_MAX = 1_000  # lines of one claim that readers read: a peer may have written any number


class FoldedClaim:
    """A claim.

    Attributes:
        owner: Identity and session of its writer.
        record: Its first record, which says paths, mode, reason, task and work unit.
        line: The line of that record.
        until: Its end in microseconds.
        renewed: The time of the record that gave this end.
        since: When it began, or began again: a renewal after the end is a new claim.
        released: The record that released it, or None.
        after: The ids of the claims that its writer had seen when it began.
        left_out: The number of lines that are not read, because there are too many.
    """

    def __init__(self, record: ClaimRecord, line: bytes) -> None:
        self.owner: tuple[str, str | None] = record["sender_identity"], record.get("sender_session") or None
        self.record = record
        self.line = line
        self.since = self.renewed = micros(record["at"])
        self.until = end_of(record)
        self.released: ClaimRecord | None = None
        self.after = frozenset(record.get("after") or ())
        self.left_out = 0

    def has_seen(self, other: FoldedClaim) -> bool:
        """Return whether its writer knew of another claim when it began."""
        return other.record["claim_id"] in self.after


def fold(lines: Iterable[tuple[ClaimRecord, bytes]], ahead: int | None = None) -> FoldedClaim | None:
    """Fold the lines of one claim id, in any order; None if no line of them begins it.

    Args:
        ahead: The time after which beginnings and renewals do not count yet; None to count all.
    """
    every = sorted(lines, key=lambda each: each[1])
    if ahead is not None:
        every = [each for each in every if each[0]["event"] == "release" or micros(each[0]["at"]) <= ahead]
    begun = next((each for each in every if each[0]["event"] == "claim"), None)
    if begun is None:
        return None
    found = FoldedClaim(*begun)
    for record, _ in every:
        if (record["sender_identity"], record.get("sender_session") or None) == found.owner and record[
            "event"
        ] == "renew":
            if micros(record["at"]) > found.until:
                found.since = micros(record["at"])
                found.after = frozenset(record.get("after") or ())
            if end_of(record) > found.until:
                found.until, found.renewed = end_of(record), micros(record["at"])
        elif record["event"] == "release" and found.released is None and _may_release(record, found):
            found.released = record
    return found


def end_of(record: ClaimRecord) -> int:
    """Return the end that a record gives; a claim lasts at most 24 hours from each of its records."""
    at = micros(record["at"])
    return min(micros(record.get("until")) or at, at + LEASE_MAX_MICROS)


def _may_release(record: ClaimRecord, claim: FoldedClaim) -> bool:
    """Return whether a release counts: that of any session of the owner's agent, and of others with a reason."""
    return record["sender_identity"] == claim.owner[0] or bool(record.get("reason"))
