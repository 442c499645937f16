"""Two sessions of this clone that edit the same path without a claim: both are told, once for each pair and path."""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..agents import edited_paths, presence, session_notices
from ..digests import sha256
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command
from . import standing_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.edited_paths import EditedPaths
    from ..store import Store

SHOWN_MAX = 5
TOLD = "told"  # below `edits/`: an empty file for each pair of worktrees and path
TOLD_MAX = 10_000  # files; then all are forgotten
COMPARED_MAX = 200  # common paths of two worktrees that are compared with claims


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
            session_notices.tell(store, session, _text(store, new, where, others))
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
