"""Publish what a session edits as shared claims, if `git config gitmem.claims` is `publish`. It is off by default.

Only tracked files that are not ignored and whose names look like no secret are published. The lines wait for a commit that other
records cause. In the state folder `edits/published/<session id>` has when the session has published.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..agents import caller as callers
from ..agents import edited_paths, presence
from ..errors import GitmemError
from ..git import branch_changes
from ..log.entry import CommitMessage
from ..log.lines import format_at
from ..memory import anchors
from ..records import ids, secrets
from . import claim_work, path_patterns, standing_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..records.record_types import ClaimFields
    from ..store import Store
    from .standing_claims import StandingClaim

FOLDER = "published"
PATHS_MAX = 64  # in a line
LINES_MAX = 4  # in an hour, of a session
HOUR = 3600 * 1_000_000
LEASE = HOUR


def publish(store: Store, session_id: str, *, seconds: float = edited_paths.STATUS_SECONDS) -> str | None:
    """Publish the paths that a session edits and that it has not claimed; return the claim's id, or None if there is nothing new.

    Raises:
        OSError: The time can't be noted. Nothing was written.
        StoreError: It can't be recorded.
    """
    one = presence.get(store, session_id) if edited_paths.is_published(store) else None
    paths = edited_paths.by_session(store).get(session_id, [])
    if one is None or not paths or not _has_room(store, session_id):
        return None
    known = standing_claims.standing(store, forged=False)
    new = _allowed(store, _free(known, one.reader, paths), seconds)
    if not new:
        return None
    _note(store, session_id)
    caller = callers.of_session(one, "harness")
    fields: ClaimFields = {
        "claim_id": ids.new_id("claim", store.random), "event": "claim", "paths": new, "mode": "shared",
        "until": format_at(store.now() + LEASE), "workspace_id": caller.workspace, "sender_identity": caller.reader,
        "sender_session": caller.session_id, "sender_name": caller.name, "wu_id": caller.wu_id,
    }  # fmt: skip
    patterns = path_patterns.prepared(new)
    fields["after"] = [
        each.id for each in known if not each.is_over and path_patterns.may_overlap(patterns, each.patterns)
    ][: claim_work.AFTER_MAX]
    message = CommitMessage(
        caller.author, f"{caller.name or caller.reader} edits files", "", caller.trailers()
    )
    store.record([store.line("claim", fields)], message, deferred=True)
    return fields["claim_id"]


def _free(known: Sequence[StandingClaim], owner: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that neither the session's agent nor somebody else, alone, has claimed."""
    taken = [
        each
        for each in known
        if each.claim.owner[0] == owner or each.claim.record["mode"] == standing_claims.EXCLUSIVE
    ]
    return [path for path in paths if not any(each.covers(path) for each in taken)]


def _allowed(store: Store, paths: Iterable[str], seconds: float) -> list[str]:
    """Return the paths that may be published: tracked, not ignored, and neither a pattern nor perhaps a secret."""
    plain = [path for path in paths if not path_patterns.is_pattern(path) and _is_valid(path)][:PATHS_MAX]
    repo = store.repo
    tracked = branch_changes.tracked_files(repo.common, repo.git_dir, repo.worktree or "", plain, seconds)
    return [path for path in plain if path in tracked and secrets.find_secret(path) is None]


def _is_valid(path: str) -> bool:
    try:
        path.encode()
        return path.isprintable() and anchors.validate_paths([path]) == [path]
    except (GitmemError, UnicodeEncodeError):
        return False


def _has_room(store: Store, session_id: str) -> bool:
    return len(_times(store, session_id)) < LINES_MAX


def _times(store: Store, session_id: str) -> list[int]:
    """Return when a session has published in the last hour."""
    words = state_files.read(edited_paths.path(store.repo.state, FOLDER, session_id), 1_024).split()
    return [int(each) for each in words if each.isdigit() and int(each) > store.now() - HOUR]


def _note(store: Store, session_id: str) -> None:
    where = edited_paths.path(store.repo.state, FOLDER, session_id)
    state_files.make_dirs(os.path.dirname(where))
    times = [*_times(store, session_id), store.now()]
    atomic_write.replace(where, " ".join(map(str, times)).encode())
