"""List claims, and check paths against them."""

from __future__ import annotations

import os

from ..agents import edited_paths, presence
from ..commit_message import sanitize
from . import owner_notices, path_patterns, standing_claims
from .claim_answers import ClaimCheck, ClaimPage, EditRow, paths_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .standing_claims import StandingClaim

FORGED_MAX = 20  # claims that forged records have ended
VISITED_MAX = 20_000  # files; a larger work tree is not searched further
_FORGED = (
    "SELECT DISTINCT e.claim_id, f.name FROM forged f CROSS JOIN path_claim_event e ON e.line = f.line"
    " JOIN path_claim c ON c.claim_id = e.claim_id WHERE c.until > ? ORDER BY e.claim_id LIMIT 20"
)


def list_claims(
    store: Store, caller: Caller | None = None, *, mine: bool = False, limit: int = 50, edited: bool = False
) -> ClaimPage:
    """Return the claims that stand now. Only those who have some are told how to release them.

    Args:
        store: The store.
        caller: Who asks, if known.
        mine: Whether to return only the caller's.
        limit: The number of claims.
        edited: Whether to list what sessions of this clone change without a claim, too.
    """
    every = standing_claims.standing(store)
    own = [each for each in every if caller is not None and each.is_of(caller.ids)]
    page = ClaimPage(own if mine else every, limit, own)
    page.edits = unclaimed_edits(store, every, caller if mine else None) if edited else []
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
    edits = unclaimed_edits(store, [], covered_by=patterns)
    answer.edits = [each for each in edits if caller is None or each.session_id != caller.session_id]
    answer.warnings = forged_warnings(store)
    return answer


def unclaimed_edits(
    store: Store,
    claims: Sequence[StandingClaim],
    caller: Caller | None = None,
    *,
    covered_by: Sequence[path_patterns.PathPattern] | None = None,
) -> list[EditRow]:
    """Return what sessions of this clone had changed without committing at the end of their last turn.

    Args:
        store: The store.
        claims: Paths that a session has claimed by one of these are left out.
        caller: Whose changes; None for all.
        covered_by: Patterns, one of which must cover a path; None for all paths.
    """
    found = []
    for session_id, paths in edited_paths.by_session(store).items():
        if caller is not None and session_id != caller.session_id:
            continue
        own = [each for each in claims if each.claim.owner[1] == session_id]
        paths = [path for path in paths if not any(each.covers(path) for each in own)]
        if covered_by is not None:
            paths = [path for path in paths if any(each.matches(path) for each in covered_by)]
        one = presence.get(store, session_id) if paths else None
        if one is not None:
            found.append(EditRow(session_id, one.name, one.worktree, paths))
    return found


def forged_warnings(store: Store) -> list[str]:
    """Return warnings about records of claims that claim to be from this clone and are not."""
    rows = store.db().execute(_FORGED, (store.now(),)).fetchall()
    ended = [sentence for _, sentence in owner_notices.ended_by_forgeries(store, store.db())[:FORGED_MAX]]
    return ended + [
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


def notes(store: Store, patterns: Sequence[str]) -> list[str]:
    """Return what its writer may not expect of a claim: what it does not cover, and what it does not cover yet."""
    top = store.repo.worktree
    if top is None:
        return []
    missing = [each for each in patterns if is_missing(top, each)]
    found = [f"Nothing matches yet: {paths_text(missing)}."] if missing else []
    links = [each for each in patterns if os.path.islink(os.path.join(top, each))]
    if links:
        found.append(f"A symbolic link, not what it leads to: {paths_text(links)}.")
    inside = sorted(filter(None, {_repository_of(top, each) for each in patterns}))
    if inside:
        found.append(
            f"Repositories of their own: {paths_text(inside)}. Their commits are not checked here; claim paths there, too."
        )
    return found


def _repository_of(top: str, pattern: str) -> str | None:
    """Return the folder of the submodule or other repository that a path lies in."""
    whole = path_patterns.fixed_part(pattern)
    folder = whole if path_patterns.is_pattern(pattern) else os.path.dirname(whole)
    while folder:
        if os.path.lexists(os.path.join(top, folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return None
