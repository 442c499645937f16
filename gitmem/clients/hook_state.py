"""The files in the state folder by which hooks remember their state and errors, and the hooks' update of the index.

- `checkpoint-every`, `keep-prompts`: values of git's config, as of the last session start. Each call of git costs a
  process.
- `tool-calls/<client's session>`, `tool-calls/<client>-<worktree>`: a byte for each tool call since the last automatic
  checkpoint, while `checkpoint-every` exists.
- `here/<client>`, `here/<client>-<worktree>`: the sessions that hooks have started in a worktree, one id a line, for
  clients whose hooks don't get the id of their session. The hook script selects the flags to check by it.

Errors in hooks. A hook reports no error to the agent, but notes it in the state folder for the user.

- `hook-error`: the last error, one line.
- `hook-stuck`: exists while a hook could not do its work. The script then starts gitmem only once a turn, so no tool
  call waits in vain.
- `hook-left`: exists while entries outside the repository could not be committed. They are then no reason to start
  gitmem at each tool call.
"""

from __future__ import annotations

import os

from .. import local_files
from ..agents import descriptions, heartbeats
from ..errors import GitmemError
from ..index import catch_up, index_file
from ..index.index_file import sqlite3
from ..log.lines import format_at
from ..settings import CHECKPOINT_EVERY
from ..text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


ERROR, STUCK, LEFT = "hook-error", "hook-stuck", "hook-left"
SENTENCE_MAX = 500


def note_error(state: str, now: int, hook: str, sentence: str) -> None:
    """Write the last error. Never raises.

    Args:
        state: The folder of gitmem's own files.
        now: Microseconds since the epoch.
        hook: The client and its event.
        sentence: The error.
    """
    text = f"{format_at(now)} {hook}: {' '.join(sentence.split())}"
    content = (sanitize_for_model(text)[:SENTENCE_MAX] + "\n").encode("utf-8", "backslashreplace")
    local_files.try_replace(os.path.join(state, ERROR), content)


def read_error(state: str) -> str | None:
    """Return the last error with its time, or None."""
    text = local_files.read(os.path.join(state, ERROR), SENTENCE_MAX * 4).decode("utf-8", "replace")
    return sanitize_for_model(text.strip()) or None


def clear_if_fixed(state: str, client: str, known: str | None) -> None:
    """Remove the last error if it belongs to a client whose hooks have worked since.

    Args:
        state: The folder of gitmem's own files.
        known: The error that was noted before the test; a newer one stays.
    """
    if known is not None and known == read_error(state) and known.split(" ")[1:2] == [client]:
        local_files.remove_quietly(os.path.join(state, ERROR))


def mark(state: str, name: str, is_so: bool) -> None:
    """Create or remove `STUCK`, by which the script starts gitmem only once a turn, or `LEFT`, by which it does so for entries outside the repository."""
    local_files.try_mark(os.path.join(state, name), is_so)


EVERY = "checkpoint-every"
KEEP_PROMPTS = "keep-prompts"  # an empty file; the hook script stores prompts only while it exists
BUSY_MILLISECONDS = 500  # for which a hook that an agent waits for waits for the index
SEEN_MICROS = 24 * 3600 * 1_000_000  # without a heartbeat for longer, a session has died without its end hook


def update_index(store: Store, busy_milliseconds: int = BUSY_MILLISECONDS) -> bool:
    """Update the index, and return False if another process keeps it locked for longer than the timeout.

    A damaged or unwritable index file does not stop the hook: the store can do without it.

    Raises:
        StoreError: The log can't be read.
    """
    try:
        store.index.db.execute(f"PRAGMA busy_timeout = {int(busy_milliseconds)}")
        catch_up.catch_up(store.index, store.log)
    except sqlite3.DatabaseError as error:
        if index_file.is_busy(error):
            return False
    return True


def has_waiting_entries(store: Store) -> bool:
    """Return whether entries outside the repository still wait for a commit, or belong to another repository."""
    try:
        outside = {wal.folder for wal in (*store.log.elsewhere, *store.log.others)}
        if any(file.folder in outside for file in store.log.waiting()):
            return True
        return any(wal.is_of_other_repo() for wal in store.log.wals)
    except (GitmemError, OSError):
        return False


def remove_flag(store: Store, client_session: str) -> None:
    """Remove the flag of a client's session that has no session of ours: nobody would ever read the signals."""
    if heartbeats.is_safe(client_session):
        local_files.remove_quietly(heartbeats.flag(store.repo.state, client_session))


def cache_settings(store: Store) -> None:
    """Cache the current values of the git config. Never raises."""
    _keep_prompts(store)
    path = os.path.join(store.repo.state, EVERY)
    every = CHECKPOINT_EVERY.value(store.settings())
    content = f"{every}\n".encode()
    try:
        if not every:
            local_files.remove_quietly(path)
            return
        local_files.make_dirs(os.path.join(store.repo.state, heartbeats.TOOL_CALLS))
        if local_files.read(path, 20) != content:
            local_files.replace(path, content)
    except OSError:
        return


def _keep_prompts(store: Store) -> None:
    """Allow the hook script to store prompts if headlines may show them; otherwise remove stored prompts."""
    allowed = os.path.join(store.repo.state, KEEP_PROMPTS)
    if descriptions.shows_prompts(store):
        local_files.try_mark(allowed)
        return
    folder = os.path.join(store.repo.state, heartbeats.PROMPTS)
    local_files.remove_quietly(allowed)
    try:
        local_files.refuse_link(folder)
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_size:  # an empty file only has the time of the prompt
                local_files.remove_quietly(entry.path)
    except OSError:
        return


def _here(store: Store, client: str) -> str:
    """Return the file of this worktree, as the script names it."""
    repo = store.repo
    name = client if repo.git_dir == repo.common else f"{client}-{os.path.basename(repo.git_dir)}"
    return os.path.join(repo.state, heartbeats.HERE, name)


def forget_tool_calls(store: Store, client: str, client_session: str | None) -> None:
    """Count the tool calls of a client's session from 0. Never raises."""
    for name in (client_session or "", os.path.basename(_here(store, client))):
        if heartbeats.is_safe(name):
            local_files.remove_quietly(os.path.join(store.repo.state, heartbeats.TOOL_CALLS, name))


def add_session(store: Store, client: str, session_id: str) -> None:
    """Note that a session is active in this worktree, and remove inactive ones. Never raises."""
    others = [each for each in _sessions(store, client) if each != session_id]
    _write_sessions(store, client, [*others, session_id])


def remove_session(store: Store, client: str, session_id: str) -> None:
    """Remove a session that ended."""
    _write_sessions(store, client, [each for each in _sessions(store, client) if each != session_id])


def _sessions(store: Store, client: str) -> list[str]:
    known = local_files.read(_here(store, client)).decode("ascii", "replace").split("\n")
    oldest = store.now() - SEEN_MICROS
    return [each for each in known if each and heartbeats.last_seen(store, each) > oldest]


def _write_sessions(store: Store, client: str, ids: list[str]) -> None:
    content = "".join(f"{each}\n" for each in ids).encode()
    local_files.try_replace(_here(store, client), content, folders=True)
