"""Move claims to another owner: of each a release by the new owner, and a new claim with the same end."""

from __future__ import annotations

from ..log.lines import format_at
from ..records import ids
from . import claim_view, standing_claims
from .claim_answers import text_of
from .standing_claims import BEHIND, PERHAPS_RENEWED, StandingClaim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..order import claim
    from ..store import Store

AFTER_MAX = 64  # claims that a claim names as seen
_FINISHED = "SELECT 1 FROM task WHERE task_id = ? AND decided_by IS NOT NULL"


class MovedClaims:
    """The lines that move claims.

    Attributes:
        moved: The old and the new id, the paths, the end and the mode of each claim that moves.
        kept: The id of each that does not, and why.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self.moved: list[tuple[str, str, Sequence[str], int, str]] = []
        self.kept: list[tuple[str, str]] = []


def move(
    store: Store, caller: Caller, owner: tuple[str, str | None], claim_ids: Iterable[str], task_id: str
) -> MovedClaims:
    """Return the lines with which a caller takes over claims of an owner. Hold the lock of claims until they are recorded.

    A claim moves also if its session has ended since, and not if it was released, is over, is of somebody else, or if somebody else
    claims its paths now.

    Args:
        owner: Identity and session of the present owner.
        task_id: The task by which it gives them, named in the release.

    Raises:
        RecordError: A value is invalid. Nothing was written.
    """
    found = MovedClaims()
    known = standing_claims.standing(store, forged=False)
    for claim_id in claim_ids:
        claim = claim_view.folded(store.db(), claim_id, forged=False)
        if claim is None:
            found.kept.append((claim_id, "is not in this log"))
        elif why := why_not(
            store,
            claim.owner,
            owner,
            claim.until,
            claim.record.get("task_id"),
            is_released=claim.released is not None,
        ):
            found.kept.append((claim_id, why))
        elif other := _in_the_way(claim, known, caller):
            found.kept.append((claim_id, f"is lost: {text_of(other)}"))
        else:
            _add(store, caller, claim, task_id, found)
    return found


def reason_of(task_id: str) -> str:
    """Return the reason of a release by which a claim moves."""
    return f"handed over by {task_id}"


def why_not(
    store: Store,
    owner: tuple[str, str | None],
    giver: tuple[str, str | None],
    until: int,
    task_id: str | None,
    *,
    is_released: bool,
) -> str | None:
    """Return why a claim is not a giver's to hand over, or None if it is. It is also if its session has ended."""
    if owner != giver:
        return "is not the giver's"
    if is_released:
        return "was released"
    if until <= store.now():
        return "has ended"
    return (
        "has ended with its task"
        if task_id and store.db().execute(_FINISHED, (task_id,)).fetchone()
        else None
    )


def _in_the_way(
    claim: claim.FoldedClaim, known: Collection[StandingClaim], caller: Caller
) -> StandingClaim | None:
    """Return a claim of a third agent on the same paths, if this one does not stand: its session has ended; None without one."""
    if any(each.id == claim.record["claim_id"] for each in known):
        return None  # whatever is in its way stays so
    wanted = StandingClaim(claim, is_over=False, is_here=True)
    others = (
        each for each in known if each.status not in (PERHAPS_RENEWED, BEHIND) and not each.is_of(caller.ids)
    )
    return next((each for each in others if standing_claims.are_in_conflict(wanted, each)), None)


def _add(store: Store, caller: Caller, claim: claim.FoldedClaim, task_id: str, found: MovedClaims) -> None:
    """Add the two lines. The new claim has seen what the old one had: claims that contested the old one contest it."""
    old = claim.record
    new_id = ids.new_id("claim", store.random)
    same: Any = {
        "paths": list(old["paths"]), "mode": old["mode"], "sender_identity": caller.reader,
        "sender_session": caller.session_id, "sender_name": caller.name,
    }  # fmt: skip
    release: Any = {
        **same,
        "claim_id": old["claim_id"],
        "event": "release",
        "reason": reason_of(task_id),
    }
    taken: Any = {
        **same, "claim_id": new_id, "event": "claim", "until": format_at(claim.until), "reason": old.get("reason"),
        "task_id": old.get("task_id"), "wu_id": old.get("wu_id"), "workspace_id": caller.workspace,
        "after": [old["claim_id"], *sorted(claim.after)][:AFTER_MAX],
    }  # fmt: skip
    found.lines += [store.line("claim", each, allow_secret=True) for each in (release, taken)]  # no new text
    found.moved.append((old["claim_id"], new_id, list(old["paths"]), claim.until, old["mode"]))
