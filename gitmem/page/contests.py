"""Claims in each other's way on the page, each pair once, with the reason."""

from __future__ import annotations

from ..claims import path_patterns
from .texts import millis, put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..claims.path_patterns import Budget
    from ..claims.standing_claims import StandingClaim
    from .board_contract import Contest, ContestSide, Overlap
    from .lanes import Lanes

CONTESTS_MAX = 200
OVERLAPS_MAX = 10  # of one pair
STEPS_MAX = 100_000  # of all comparisons of paths


def contests(
    standing: Iterable[StandingClaim], shown: Collection[str], lanes: Lanes
) -> tuple[list[Contest], int]:
    """Return the pairs of claims in each other's way, of which the page shows one, the latest first, and how many are left out.

    Args:
        standing: All claims that stand.
        shown: The ids of those that are on the page.
        lanes: Who has claimed.
    """
    budget = path_patterns.Budget(STEPS_MAX)
    pairs: dict[frozenset[str], tuple[StandingClaim, StandingClaim]] = {}
    for each in standing:
        for first in each.before:
            pairs[frozenset((first.id, each.id))] = first, each
        for other in each.against:
            by_clock = sorted((each, other), key=lambda one: (one.claim.since, one.id))
            pairs.setdefault(frozenset((each.id, other.id)), (by_clock[0], by_clock[1]))
    found = [pair for ids, pair in pairs.items() if not ids.isdisjoint(shown)]
    found.sort(key=lambda pair: (-pair[1].claim.since, pair[1].id, pair[0].id))
    shown_pairs = [_contest(*pair, lanes, budget) for pair in found[:CONTESTS_MAX]]
    return shown_pairs, len(found) - len(shown_pairs)


def _contest(first: StandingClaim, second: StandingClaim, lanes: Lanes, budget: Budget) -> Contest:
    return {
        "sides": [_side(first, lanes), _side(second, lanes)],
        "overlaps": _overlaps(first, second, budget),
        "why": "behind" if first in second.before
        else "both" if first.claim.has_seen(second.claim)
        else "unseen",
    }  # fmt: skip


def _side(one: StandingClaim, lanes: Lanes) -> ContestSide:
    record = one.claim.record
    side: ContestSide = {
        "claim": one.id,
        "agent": lanes.of(one.claim.owner[0], None, record.get("sender_name")),
        "at": millis(one.claim.since),
    }
    put(side, "wu", record.get("wu_id"))
    return side


def _overlaps(first: StandingClaim, second: StandingClaim, budget: Budget) -> list[Overlap]:
    """Return the first patterns of the two that may cover the same path."""
    found: list[Overlap] = []
    for mine, ours in zip(first.claim.record["paths"], first.patterns, strict=False):
        for yours, theirs in zip(second.claim.record["paths"], second.patterns, strict=False):
            if len(found) == OVERLAPS_MAX:
                return found
            if path_patterns.may_overlap([ours], [theirs], budget):
                found.append((short(mine), short(yours)))
    return found
