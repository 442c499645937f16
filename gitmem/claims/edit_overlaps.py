"""Two sessions of this clone that edit the same path without a claim: both are told, once for each pair and path."""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..agents import caller as callers
from ..agents import delivery, edited_paths, presence
from ..digests import sha256
from ..errors import GitmemError
from ..git import branches
from ..log.lines import CommitMessage, format_at
from ..memory import anchors
from ..outcome import command
from ..records import ids
from ..text import secrets
from ..text.sanitize import sanitize_for_model
from . import claim_work, path_patterns, standing_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..agents.edited_paths import EditedPaths
    from ..records.record_types import ClaimFields
    from ..store import Store
    from .standing_claims import StandingClaim

SHOWN_MAX = 5
TOLD = "told"  # below `edits/`: an empty file for each pair of worktrees and path
TOLD_MAX = 10_000  # files; then all are forgotten
COMPARED_MAX = 200  # common paths of two worktrees that are compared with claims

FOLDER = "published"
PATHS_MAX = 64  # in a line
LINES_MAX = 4  # in an hour, of a session
HOUR = 3600 * 1_000_000
LEASE = HOUR


def note(store: Store, *, seconds: float = edited_paths.STATUS_SECONDS) -> int:
    """Notice what this worktree has changed, and tell sessions that edit the same paths.

    Args:
        store: The store.
        seconds: The limit of git's status.

    Returns:
        The number of sessions that were told.

    Raises:
        OSError: It can't be written.
        StoreError: The log can't be read.
    """
    here = edited_paths.note(store, seconds=seconds)
    if here is None:
        return 0
    told = 0
    for other in edited_paths.worktrees(store):
        common = sorted(here.paths.keys() & other.paths.keys()) if other.worktree != here.worktree else []
        if common:
            told += _tell_both(store, here, other, _unclaimed(store, common[:COMPARED_MAX]))
    return told


def _unclaimed(store: Store, paths: Sequence[str]) -> list[str]:
    """Return the paths without a claim: claims have warnings of their own."""
    found = standing_claims.standing(store)
    return [path for path in paths if not any(each.covers(path) for each in found)]


def _tell_both(store: Store, one: EditedPaths, two: EditedPaths, paths: Sequence[str]) -> int:
    if not edited_paths.sessions_of(store, one) or not edited_paths.sessions_of(store, two):
        return 0
    new = [path for path in paths if _is_first(store.repo.state, one, two, path)]
    ours, theirs = _editors(store, one, new), _editors(store, two, new)
    for sessions, where, others in ((ours, two, theirs), (theirs, one, ours)):
        for session in sessions:
            delivery.tell(store, session, _text(store, new, where, others))
    return len(ours) + len(theirs)


def _editors(store: Store, where: EditedPaths, paths: Sequence[str]) -> list[str]:
    found = [session for path in paths for session in edited_paths.sessions_of(store, where, path)]
    return list(dict.fromkeys(found))


def _text(store: Store, paths: Sequence[str], where: EditedPaths, others: Sequence[str]) -> str:
    shown = ", ".join(sanitize_for_model(each) for each in paths[:SHOWN_MAX])
    more = f" and {len(paths) - SHOWN_MAX} more" if len(paths) > SHOWN_MAX else ""
    found = presence.get(store, others[0])
    who = found.name if found is not None else others[0]
    to = found.reader if found is not None else others[0]
    ask = command("gitmem", "signal", f"Do we both change {paths[0]}?", "--to", to)
    folder = os.path.basename(where.worktree)
    return (
        f"also edited, unclaimed: {shown}{more}, by {sanitize_for_model(who)} in the worktree {sanitize_for_model(folder)}. "
        f"Agree: `{sanitize_for_model(ask)}`, or claim it."
    )


def _is_first(state: str, one: EditedPaths, two: EditedPaths, path: str) -> bool:
    """Note that two worktrees were told about a path; return False if they were before."""
    folder = edited_paths.path(state, TOLD)
    pair = "\0".join([*sorted((one.worktree, two.worktree)), path])
    name = sha256(pair.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    state_files.make_dirs(folder)
    names = atomic_write.names_in(folder)
    for each in names if len(names) >= TOLD_MAX else ():
        atomic_write.remove_quietly(os.path.join(folder, each))
    try:
        os.close(state_files.open_file(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


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
    tracked = branches.tracked_files(repo.common, repo.git_dir, repo.worktree or "", plain, seconds)
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
