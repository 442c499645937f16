"""List claims, and check paths against them."""

from __future__ import annotations

import os

from ..commit_message import sanitize
from . import path_patterns, standing_claims
from .claim_answers import ClaimCheck, ClaimPage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..store import Store

VISITED_MAX = 20_000  # files; a larger work tree is not searched further
_FORGED = (
    "SELECT DISTINCT e.claim_id, f.name FROM path_claim_event e JOIN forged f ON f.line = e.line"
    " JOIN path_claim c ON c.claim_id = e.claim_id WHERE c.until > ? ORDER BY e.claim_id LIMIT 20"
)


def list_claims(store: Store, caller: Caller | None = None, *, limit: int = 50) -> ClaimPage:
    """Return the claims that stand now, or those of a caller."""
    found = standing_claims.standing(store)
    if caller is not None:
        found = [each for each in found if each.is_of(caller.ids)]
    page = ClaimPage(found, limit)
    page.warnings = forged_warnings(store)
    return page


def check(store: Store, caller: Caller | None, paths: Sequence[str]) -> ClaimCheck:
    """Return who else claims some of these paths, which may be patterns. Forged claims don't count here.

    Raises:
        UsageError: A path is invalid.
    """
    from ..memory import anchors

    wanted = anchors.validate_paths(paths) or [path_patterns.DEEP]
    patterns = [path_patterns.PathPattern(each) for each in wanted]
    found = [
        each
        for each in standing_claims.standing(store, forged=False)
        if not (caller is not None and each.is_of(caller.ids))
        and path_patterns.may_overlap(patterns, each.patterns)
    ]
    answer = ClaimCheck(wanted, found)
    answer.warnings = forged_warnings(store)
    return answer


def forged_warnings(store: Store) -> list[str]:
    """Return warnings about records of claims that claim to be from this clone and are not."""
    rows = store.db().execute(_FORGED, (store.now(),)).fetchall()
    return [
        f"FORGED: a record of {sanitize(claim_id)} claims to be from {sanitize(name)} of this clone but was not written here. "
        "It has no effect on commands here; other clones count it."
        for claim_id, name in rows
    ]


def is_missing(top: str, pattern: str, visited_max: int = VISITED_MAX) -> bool:
    """Return whether a pattern covers nothing in a work tree. False if that would take long to find out."""
    if not path_patterns.is_pattern(pattern):
        return not os.path.lexists(os.path.join(top, pattern))
    prepared = path_patterns.PathPattern(pattern)
    visited = 0
    for folder, folders, files in os.walk(os.path.join(top, path_patterns.fixed_part(pattern))):
        folders[:] = [each for each in folders if each != ".git"]
        below = os.path.relpath(folder, top).replace(os.sep, "/")
        for name in (*files, *folders):
            visited += 1
            if visited > visited_max or prepared.matches(name if below == "." else f"{below}/{name}"):
                return False
    return True
