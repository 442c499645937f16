"""The notes of git's hooks post-commit and post-merge: which variables of sessions each commit's process had, and which session they name.

A line is the commit and words `NAME=VALUE`, with `?` for a value of other characters than those of ids. Names in capitals are variables
with an id, `hook` is the hook if it was post-merge, others are clients whose marker was set.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..agents import commit_stamps, own_sessions
from ..git.objects import is_oid
from ..git.reflog import POST_COMMIT, read_tail
from ..records.ids import is_id
from ..trust import sender_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..agents.presence import Presence
    from ..repo import Repo
    from ..store import Store

    Variables = frozenset[tuple[str, str]]

READ_MAX = 256 * 1024
ROTATE_BYTES = 128 * 1024
FILES_MAX = 40  # of notes: two for each worktree
SESSION, TASK, HOOK = "GITMEM_SESSION", "GITMEM_TASK", "hook"
ODD = "?"
SECOND = 1_000_000


def read(repo: Repo) -> dict[str, set[Variables]]:
    """Return the variables of each run of the hook, by the commit that it saw at HEAD, in the order of their first notes."""
    where = commit_stamps.noted(repo)
    found = _notes(f"{where}.1")
    for oid, notes in _notes(where).items():
        found.setdefault(oid, set()).update(notes)
    return found


def _notes(path: str) -> dict[str, set[Variables]]:
    found: dict[str, set[Variables]] = {}
    for line in read_tail(path, READ_MAX)[0].decode("ascii", "replace").splitlines():
        oid, *words = line.split(" ")
        if is_oid(oid):
            variables = frozenset((name, value) for name, _, value in (word.partition("=") for word in words))
            found.setdefault(oid, set()).add(variables)
    return found


def without_session(repo: Repo, commit: str) -> bool:
    """Return whether git's hook has noted a commit in a worktree of this clone, by a process without a variable of any session."""
    prefix = os.path.basename(commit_stamps.noted(repo)).removesuffix(os.path.basename(repo.git_dir))
    folder = os.path.dirname(commit_stamps.noted(repo))
    paths = [os.path.join(folder, name) for name in atomic_write.names_in(folder) if name.startswith(prefix)]
    found: set[Variables] = set()
    for path in sorted(paths)[:FILES_MAX]:
        found |= _notes(path).get(commit, set())
    return bool(found) and all({name for name, _ in each} <= {HOOK} for each in found)


def rotate(repo: Repo) -> None:
    """Keep a large file of notes as the former one. Never raises."""
    where = commit_stamps.noted(repo)
    try:
        if os.stat(where).st_size > ROTATE_BYTES:
            state_files.refuse_link(os.path.dirname(where))
            os.replace(where, f"{where}.1")
    except OSError:
        return


def task_of(notes: Collection[Variables]) -> str | None:
    """Return the task that the variables name, if they name one."""
    named = {value for each in notes for name, value in each if name == TASK and is_id("task", value)}
    return named.pop() if len(named) == 1 else None


def of_hook(notes: Collection[Variables], hook: str) -> bool:
    """Return whether all notes are of the hook that git runs after the commit: another one saw the HEAD of somebody else."""
    return all(dict(each).get(HOOK, POST_COMMIT) == hook for each in notes)


class NamedSessions:
    """Which session variables name, each asked once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[Variables, Presence | None] = {}

    def of_notes(self, notes: Collection[Variables], seconds: int) -> Presence | None:
        """Return the session that every run of the hook for one commit names, if it was open at that time; else None."""
        named = [self._of(each) for each in notes]
        first = named[0] if named else None
        if first is None or any(each is None or each.session_id != first.session_id for each in named):
            return None
        return first if was_open(first, seconds) else None

    def _of(self, variables: Variables) -> Presence | None:
        if variables not in self._known:
            self._known[variables] = (
                self._find(dict(variables)) if len(dict(variables)) == len(variables) else None
            )
        return self._known[variables]

    def _find(self, values: dict[str, str]) -> Presence | None:
        """Return the session of this clone that all variables name.

        A session in GITMEM_SESSION that no client has started may be passed on to a client, whose own id then names nothing here. Of
        two clients, one has started the other: nobody knows which of them runs git.
        """
        values.pop(TASK, None)
        values.pop(HOOK, None)
        session = values.pop(SESSION, None)
        clients = [value for name, value in values.items() if name.isupper()]
        markers = {name for name in values if not name.isupper()}
        if ODD in clients or session == ODD or len(set(clients)) > 1 or len(markers) > 1:
            return None
        of_clients = [self._of_client(value) for value in clients]
        found = self._own(session) if session is not None else next(iter(of_clients), None)
        if found is None:
            return None
        passed_on = session is not None and found.harness_session is None
        for one in of_clients:
            if one.session_id != found.session_id if one is not None else not passed_on:
                return None
        client = found.record.get("client")
        return None if client and markers - {client} else found

    def _own(self, session_id: str) -> Presence | None:
        if not is_id("sess", session_id) or not sender_tables.is_own(self._store.db(), session_id):
            return None
        return own_sessions.trusted(self._store, session_id)

    def _of_client(self, client_id: str) -> Presence | None:
        found = own_sessions.of_client(self._store, client_id)
        return found or own_sessions.of_client(self._store, client_id, ended=True)


def was_open(one: Presence, seconds: int) -> bool:
    """Return whether a session had started and not ended in that second."""
    started, ended = one.started // SECOND, None if one.ended is None else one.ended // SECOND
    return started <= seconds and (ended is None or seconds <= ended)
