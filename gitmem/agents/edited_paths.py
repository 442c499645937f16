"""Paths that the worktrees of this clone have changed and not committed, as of the last end of a turn: never in the log.

Below `edits/` in the state folder, which all worktrees of the clone share:

- `wanted`: exists while several sessions are at work, so that the paths concern somebody;
- `inputs/in-<git folder>/`: exists for a worktree with several sessions: the hook script keeps the inputs of edits there until
  the end of a turn, when `by/` is written from them;
- `in-<git folder>`: the paths of a worktree, each with when it was first noticed;
- `by/<session id>`: paths that a session in such a worktree has edited, a JSON text a line.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from .. import local_files
from ..errors import GitmemError
from ..git import branches
from ..repo import tree_at
from . import heartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..repo import Repo
    from ..store import Store

FOLDER, WANTED, INPUTS, BY = "edits", "wanted", "inputs", "by"
PATHS_MAX = 2_000  # of a worktree; further ones are only counted
PATH_MAX = 1_024  # characters; longer paths are left out
WORKTREES_MAX = 64
FILE_MAX = 8 * 1024 * 1024  # bytes of one of the files
BY_MAX = 64 * 1024  # bytes that are noted for one session
INPUTS_MAX = 200  # kept inputs of a worktree; at the next edit they are read
INPUT_MAX_BYTES = 16 * 1024  # of an input that are kept; clients name the path before the content
STATUS_SECONDS = 5.0
SLOW_MICROS = 10 * 60 * 1_000_000
AT_WORK_MICROS = 24 * 3600 * 1_000_000


class EditedPaths(NamedTuple):
    """What one worktree has changed.

    Attributes:
        worktree: Its top folder.
        at: When it was noticed, in microseconds.
        paths: Each path with when it was first noticed.
        more: The number of further paths; -1 if there are too many to count.
    """

    worktree: str
    at: int
    paths: dict[str, int]
    more: int


def path(state: str, *names: str) -> str:
    """Return a path in the folder of edited paths."""
    return os.path.join(state, FOLDER, *names)


def update_flags(store: Store) -> None:
    """Tell the hook script by files whether anybody wants to know what is edited. Never raises."""
    state, now = store.repo.state, store.now()
    at_work = [where for where, at in heartbeats.known_sessions(store).values() if at > now - AT_WORK_MICROS]
    shared = at_work.count(store.repo.tree) > 1
    try:
        for name in (INPUTS, BY):
            local_files.make_dirs(path(state, name))
        local_files.mark(path(state, WANTED), len(at_work) > 1)
        _set_folder(inputs(store.repo), shared)
        for name in local_files.names_in(path(state, INPUTS)):
            git_folder = name.removeprefix("in-")
            linked = os.path.join(store.repo.common, "worktrees", git_folder)
            if git_folder != os.path.basename(store.repo.common) and not os.path.isdir(linked):
                _set_folder(path(state, INPUTS, name), False)
        for name in local_files.names_in(path(state, BY)):
            if not heartbeats.is_here(store, name):
                local_files.remove_quietly(path(state, BY, name))
    except OSError:
        return


def inputs(repo: Repo) -> str:
    """Return the folder for the inputs of edits in this worktree."""
    return path(repo.state, INPUTS, _name(repo))


def is_shared(repo: Repo) -> bool:
    """Return whether several sessions work in this worktree."""
    return _is_folder(inputs(repo))


def note(store: Store, *, seconds: float = STATUS_SECONDS) -> EditedPaths | None:
    """Ask git what this worktree has changed, and keep it.

    After git did not answer in time, or named too many paths, it is not asked again for a while, and None is returned.

    Raises:
        OSError: It can't be written.
    """
    repo = store.repo
    if repo.worktree is None:
        return None
    before, now = _load(path(repo.state, _name(repo))), store.now()
    kept = before.paths if before is not None else {}
    if before is not None and before.more < 0 and before.at > now - SLOW_MICROS:
        return None  # git needed too long a moment ago
    try:
        names = branches.uncommitted_files(repo.common, repo.git_dir, repo.worktree, seconds)
    except (branches.TooManyFilesError, GitmemError):
        names = None  # too many, or git does not answer in time
    if names is None:
        found = EditedPaths(repo.worktree, now, kept, -1)
    else:
        short = sorted({each.rstrip("/") for each in names if len(each) <= PATH_MAX})
        paths = {each: kept.get(each, now) for each in short[:PATHS_MAX]}
        found = EditedPaths(repo.worktree, now, paths, len(names) - len(paths))
    local_files.make_dirs(path(repo.state))
    local_files.replace(path(repo.state, _name(repo)), json.dumps(found._asdict()).encode())
    return found


def note_edit(store: Store, session_id: str, paths: Iterable[str]) -> None:
    """Note which paths a session is about to edit, in a worktree with several sessions. Never raises."""
    where = path(store.repo.state, BY, session_id)
    known = set(_noted(where))
    lines = "".join(
        json.dumps(each) + "\n"
        for each in dict.fromkeys(paths)
        if each not in known and len(each) <= PATH_MAX
    )
    if not lines or not heartbeats.is_safe(session_id):
        return
    try:
        if not os.path.exists(where) or os.stat(where).st_size < BY_MAX:
            with os.fdopen(local_files.open_file(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "w") as file:
                file.write(lines)
    except OSError:
        return


def worktrees(store: Store) -> list[EditedPaths]:
    """Return what each worktree of this clone has changed, those that are gone left out."""
    found = []
    for name in sorted(local_files.names_in(path(store.repo.state)))[:WORKTREES_MAX]:
        each = _load(path(store.repo.state, name)) if name.startswith("in-") else None
        if (
            each is not None
            and each.at > store.now() - AT_WORK_MICROS
            and os.path.exists(os.path.join(each.worktree, ".git"))
        ):
            found.append(each)
    return found


def sessions_of(store: Store, found: EditedPaths, edited: str | None = None) -> list[str]:
    """Return the sessions at work in a worktree; of several only those that edited a path, if hooks noted who did."""
    oldest, tree = store.now() - AT_WORK_MICROS, tree_at(found.worktree)
    known = heartbeats.known_sessions(store).items()
    here = [session for session, (where, at) in known if where == tree and at > oldest]
    if len(here) < 2 or edited is None:
        return here
    editors = [each for each in here if edited in _noted(path(store.repo.state, BY, each))]
    return editors or here


def by_session(store: Store) -> dict[str, list[str]]:
    """Return the edited paths of each session of this clone."""
    found: dict[str, list[str]] = {}
    for each in worktrees(store):
        here = sessions_of(store, each)
        for session in here:
            own = set(_noted(path(store.repo.state, BY, session))) if len(here) > 1 else None
            paths = [name for name in each.paths if own is None or name in own]
            if paths:
                found[session] = paths
    return found


def _name(repo: Repo) -> str:
    return f"in-{os.path.basename(repo.git_dir)}"


def _noted(where: str) -> list[str]:
    found = []
    for line in local_files.read(where, 2 * BY_MAX).splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, str):
            found.append(value)
    return found


def _load(where: str) -> EditedPaths | None:
    """Return the content of a file, or None if it is missing or damaged."""
    try:
        found = EditedPaths(**json.loads(local_files.read(where, FILE_MAX)))
        paths = {str(name): int(at) for name, at in list(found.paths.items())[:PATHS_MAX]}
        return EditedPaths(str(found.worktree), int(found.at), paths, int(found.more))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _set_folder(where: str, wanted: bool) -> None:
    """Create a folder, or remove it with its files."""
    if wanted:
        local_files.make_dirs(where)
    elif _is_folder(where):
        for name in local_files.names_in(where):
            local_files.remove_quietly(os.path.join(where, name))
        os.rmdir(where)


def _is_folder(where: str) -> bool:
    """Return whether there is a folder, and no link to one: in a repository that several users share, anybody can put one there."""
    return os.path.isdir(where) and not os.path.islink(where)
