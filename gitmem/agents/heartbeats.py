"""Local files about the sessions that were started in this clone, their worktree and their heartbeat, and about new commits.

Each session has a file `<state>/sessions/<id>`; its modification time is when the session was last seen here. It names the
worktree that the session works in (`repo.tree_of`) and the client's own id for it. A heartbeat touches that file and never makes a
commit. Hooks touch `<state>/beats/<id>` instead, which needs no look-up: the id may be the client's own id for the session.
`<state>/beats/<client's id>+<git folder>` exists for each worktree in which gitmem has met a client's session, so that a hook tells
without Python that the session has come to another one. A folder that can't be written is not an error: others then see the time of
the last record.

Below `<state>/commits/`, for each worktree:

- `in-<git folder>`: exists once a session was started there, unless `gitmem.commits` is off. Its time is that of the reflog as it
  was last read, its content is how far it was read;
- `by-<git folder>`: a line for each commit, written by git's hooks post-commit and post-merge: the commit, and the variables of sessions. Once
  it is large it becomes `by-<git folder>.1`.
"""

from __future__ import annotations

import os

from .. import local_files, settings
from ..git import files
from ..records.ids import is_id
from ..repo import is_gone

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..repo import Repo
    from ..store import Store


BEATS, PROMPTS, EMPTY, TOOL_CALLS = "beats", "prompts", "empty", "tool-calls"
TURNS, WAKES = "turns", "wakes"  # see `waking`
FLAGS = "flags"
HERE = "here"  # see `clients.hook_state`
HERE_MAX = 64  # files; one for each client and worktree
VAIN_SECONDS = 15.0  # a hook that runs for longer has given up
ONLY_OWN = os.path.join("claims", "only-own")  # see `work.edit_guard`
# Marks of the index (`index_file.mark`): the signal up to which flags are raised, and the line up to which `work.edit_guard`
# has read claims, and when it looks again.
FLAGS_MARK = ("fed", "signal")
CLAIMS_MARK = ("claims", "entity_line WHERE kind = 'claim'")
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LABEL_MAX = 80
INACTIVE_MICROS = 30 * 24 * 3600 * 1_000_000


def are_claims_due(db: sqlite3.Connection, now: int) -> bool:
    """Return whether the files about claims must be made again: a line is new, or a claim has perhaps ended."""
    from ..index import index_file

    try:
        mark, newest = index_file.mark(db, *CLAIMS_MARK)
    except Exception:
        return False  # the index has no tables yet, or another process rebuilds it
    if newest is None:
        return mark is not None
    seen, _, again = (mark or "").partition(" ")
    return seen != str(newest) or (again != "" and now >= int(again))


def note_claims(db: sqlite3.Connection, newest: int | None, again: int | None) -> None:
    """Note that the files about claims were made from the claims up to this line, and when they are to be made again, if at all."""
    from ..index import index_file

    mark = None if newest is None else f"{newest} {'' if again is None else again}"
    index_file.set_mark(db, CLAIMS_MARK[0], mark)


def are_flags_raised(db: sqlite3.Connection, state: str) -> bool:
    """Return whether the flags are certainly raised for all signals of the index. Their folder may have been removed."""
    from ..index import index_file

    try:
        before, newest = index_file.mark(db, *FLAGS_MARK)
    except Exception:
        return False
    return newest is None or (before == str(newest) and has_flags(state))


def has_flags(state: str) -> bool:
    """Return whether the folder of the flags exists. A removed folder has lost its content."""
    folder = os.path.join(state, FLAGS)
    return os.path.isdir(folder) and not os.path.islink(folder)


def flag(state: str, name: str) -> str:
    """Return the path of a flag."""
    return os.path.join(state, FLAGS, name)


def is_flagged(state: str, name: str) -> bool:
    """Return whether signals may wait for a session."""
    return is_safe(name) and os.path.lexists(flag(state, name))


def raise_flags(state: str, names: Iterable[str], *, urgent: bool) -> None:
    """Create flags for waiting signals. An existing flag stays, and an urgent one stays urgent.

    Raises:
        OSError: A flag can't be written.
    """
    for name in names:
        path = flag(state, name)
        try:
            if os.stat(path).st_size or not urgent:
                continue
        except OSError:
            local_files.make_dirs(os.path.dirname(path))
        if urgent:
            local_files.replace(path, b"urgent\n")
        else:
            local_files.mark(path)


def is_served(state: str, session_id: str) -> bool:
    """Return whether hooks show signals to a session: they began it, and none ran in vain since its flag was raised.

    A hook that runs after a tool call touches the heartbeat before it shows the signals and removes the flag.
    """
    folder = os.path.join(state, HERE)
    names = local_files.names_in(folder)[:HERE_MAX]
    known = b"\n".join(local_files.read(os.path.join(folder, name)) for name in names)
    if session_id.encode() not in known.split(b"\n"):
        return False
    raised = local_files.modified(flag(state, session_id))
    return not raised or local_files.modified(os.path.join(state, BEATS, session_id)) <= raised + VAIN_SECONDS


def is_safe(name: str) -> bool:
    """Return whether a name from any source is safe as a file name."""
    return 0 < len(name) <= 128 and name[0] != "." and PLAIN.issuperset(name)


def flag_names(session_id: str, client_session: str | None) -> list[str]:
    """Return the names under which a session has flags and heartbeats."""
    return [name for name in dict.fromkeys((session_id, client_session or "")) if is_safe(name)]


def label(store: Store) -> str:
    """Return the worktree's published name: its folder name, without the path and unprintable characters."""
    parts = (store.repo.worktree or store.repo.git_dir).rstrip(os.sep).split(os.sep)
    if parts[-1] == ".git":
        parts.pop()
    text = "".join(char if char.isprintable() else "?" for char in (parts or [""])[-1])
    return text[:LABEL_MAX] or "worktree"


def start(store: Store, session_id: str, client_session: tuple[str, str] | None) -> None:
    """Record that a session starts in this worktree or comes to it, and forget those that were not seen for a month."""
    # Another session in this worktree: claims of the others are now somebody else's here.
    own_only = os.path.join(store.repo.state, ONLY_OWN, f"in-{os.path.basename(store.repo.git_dir)}")
    local_files.remove_quietly(own_only)
    if not bind(store, session_id, client_session[1] if client_session else ""):
        return
    touch(store, session_id)
    oldest = store.now() - INACTIVE_MICROS
    for known, at in all_last_seen(store).items():
        if at < oldest:
            end(store, known)


def bind(store: Store, session_id: str, client_id: str) -> bool:
    """Record that a session works in this worktree, under a client's own id or ""; return whether that could be written."""
    content = os.fsencode(store.repo.tree) + b"\0" + client_id.encode("utf-8", "replace")
    if not local_files.try_replace(os.path.join(_folder(store), session_id), content, folders=True):
        return False
    for name in local_files.names_in(os.path.join(store.repo.state, BEATS)) if is_safe(client_id) else ():
        if name.startswith(f"{client_id}+"):
            local_files.remove_quietly(os.path.join(store.repo.state, BEATS, name))
    meet(store, client_id)
    return True


def meet(store: Store, client_id: str) -> None:
    """Note that a client's session, or a subagent of it, works in this worktree. Never raises."""
    if is_safe(client_id):
        local_files.try_mark(_met(store, client_id))


def has_met(store: Store, client_id: str) -> bool:
    """Return whether a client's session or a subagent of it works in this worktree."""
    return is_safe(client_id) and os.path.lexists(_met(store, client_id))


def _met(store: Store, client_id: str) -> str:
    return os.path.join(store.repo.state, BEATS, f"{client_id}+{os.path.basename(store.repo.git_dir)}")


def touch(store: Store, session_id: str) -> None:
    """Touch the file of a session that acts here. A session that started elsewhere has none.

    If its worktree is gone, it works in this one from now on.
    """
    if not is_id("sess", session_id):
        return  # a client's own id: it has no file, and could be any path
    if is_homeless(store, session_id):
        bind(store, session_id, client_of(store, session_id))
    at = store.now() * 1000
    local_files.try_utime(os.path.join(_folder(store), session_id), (at, at))


def end(store: Store, session_id: str) -> str:
    """Forget a session and return the client's own id for it, or ""."""
    client_id = client_of(store, session_id)
    local_files.remove_quietly(os.path.join(_folder(store), session_id))
    return client_id


def last_seen(store: Store, session_id: str) -> int:
    """Return when a session was last seen here, in microseconds since the epoch; 0 if it started in another clone."""
    if not is_id("sess", session_id):
        return 0
    at = local_files.modified_ns(os.path.join(_folder(store), session_id)) // 1000
    return max(at, _heartbeat_of(store, session_id, _heartbeat_files(store))) if at else 0


def all_last_seen(store: Store) -> dict[str, int]:
    """Return when each session of this clone was last seen here, in microseconds since the epoch."""
    found = {}
    try:
        local_files.refuse_link(_folder(store))
        with os.scandir(_folder(store)) as entries:
            for entry in entries:
                if is_id("sess", entry.name):
                    found[entry.name] = entry.stat().st_mtime_ns // 1000
    except OSError:
        pass
    beats = _heartbeat_files(store) if found else set()
    return (
        {name: max(at, _heartbeat_of(store, name, beats)) for name, at in found.items()} if beats else found
    )


def _heartbeat_files(store: Store) -> set[str]:
    """Return the names that hooks have touched."""
    return set(local_files.names_in(os.path.join(store.repo.state, BEATS)))


def _heartbeat_of(store: Store, session_id: str, beats: set[str]) -> int:
    """Return when a hook last touched a name of a session, in microseconds since the epoch; 0 for never."""
    if not beats:
        return 0
    names = {session_id, _read(store, session_id)[1]} & beats
    beats_of = (os.path.join(store.repo.state, BEATS, name) for name in names)
    return max(map(local_files.modified_ns, beats_of), default=0) // 1000


def forget_old(store: Store, oldest: int) -> None:
    """Remove files of hooks written before a time, in microseconds since the epoch: dead sessions left them."""
    for kind in (BEATS, PROMPTS, EMPTY, TOOL_CALLS, TURNS, WAKES):
        folder = os.path.join(store.repo.state, kind)
        for name in local_files.names_in(folder):
            if local_files.modified_ns(os.path.join(folder, name)) // 1000 < oldest:
                local_files.remove_quietly(os.path.join(folder, name))


def _read(store: Store, session_id: str) -> tuple[str, str]:
    """Return the worktree that a session works in and the client's own id for it, from its file."""
    where, _, client_session = local_files.read(os.path.join(_folder(store), session_id)).partition(b"\0")
    return os.fsdecode(where), client_session.decode("utf-8", "replace")


def is_homeless(store: Store, session_id: str) -> bool:
    """Return whether the worktree of a session of this clone is gone."""
    return is_id("sess", session_id) and is_gone(_read(store, session_id)[0], store.repo.common)


def works_here(store: Store, session_id: str) -> bool:
    """Return whether a session of this clone works in this worktree."""
    return is_id("sess", session_id) and _read(store, session_id)[0] == store.repo.tree


def client_of(store: Store, session_id: str) -> str:
    """Return the client's own id for a session that was started in this clone, or ""."""
    return _read(store, session_id)[1] if is_id("sess", session_id) else ""


def is_here(store: Store, session_id: str) -> bool:
    """Return whether a session was started in this clone and has not been forgotten."""
    return is_id("sess", session_id) and os.path.exists(os.path.join(_folder(store), session_id))


def known_sessions(store: Store) -> dict[str, tuple[str, int]]:
    """Return every session that started in this clone: its worktree (`repo.tree_of`), and when it was last seen."""
    found = {}
    for session_id, at in all_last_seen(store).items():
        where, _ = _read(store, session_id)
        if where:
            found[session_id] = (where, at)
    return found


def _folder(store: Store) -> str:
    return os.path.join(store.repo.state, "sessions")


COMMITS, HOOKED = "commits", "hooked"


def commits_read(repo: Repo) -> str:
    """Return the file that says how far a worktree's reflog was read."""
    return os.path.join(repo.state, COMMITS, f"in-{os.path.basename(repo.git_dir)}")


def commit_notes(repo: Repo) -> str:
    """Return the file in which git's hooks note who commits."""
    return os.path.join(repo.state, COMMITS, f"by-{os.path.basename(repo.git_dir)}")


def are_commits_off(store: Store) -> bool:
    """Return whether the user does not want records of commits."""
    return settings.COMMITS.value(store.settings()) == settings.OFF


def begin_commits(store: Store, *, from_beginning: bool = False) -> None:
    """Create the file of this worktree, or remove it if the setting is off. Never raises.

    Args:
        from_beginning: Whether commits that were made before are read, too: the session was perhaps there already.
    """
    where = commits_read(store.repo)
    try:
        if are_commits_off(store):
            local_files.remove_quietly(where)
        elif store.repo.worktree is not None and not os.path.lexists(where):
            local_files.make_dirs(os.path.dirname(where))
            local_files.mark(where)
            # What was committed before is not of a session that begins here.
            at = 0 if from_beginning else commits_changed_at(store.repo)
            local_files.utime(where, (at, at))
    except OSError:
        return


def set_commit_hook(state: str, *, installed: bool) -> None:
    """Note whether git's post-commit hook is installed: then a commit without its note is nobody's. Never raises."""
    local_files.try_mark(os.path.join(state, COMMITS, HOOKED), installed, folders=True)


def has_commit_hook(repo: Repo) -> bool:
    """Return whether git's post-commit hook was installed."""
    return os.path.exists(os.path.join(repo.state, COMMITS, HOOKED))


def prompted_at(store: Store, session_id: str) -> int:
    """Return when a session's client last reported a prompt, in microseconds since the epoch; 0 if it never did."""
    names = flag_names(session_id, client_of(store, session_id))
    prompts = (os.path.join(store.repo.state, PROMPTS, name) for name in names)
    return max(map(local_files.modified_ns, prompts), default=0) // 1000


def commits_changed_at(repo: Repo) -> int:
    """Return when the reflog or the hook's notes were last written, in nanoseconds; 0 without any."""
    return max(map(local_files.modified_ns, (files.reflog(repo.git_dir), commit_notes(repo))))


def has_new_commits(repo: Repo) -> bool:
    """Return whether commits may have been made since the reflog was last read. It costs three looks at files."""
    try:
        before = os.stat(commits_read(repo)).st_mtime_ns
    except OSError:
        return False
    return commits_changed_at(repo) > before
