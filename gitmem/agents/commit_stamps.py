"""The files by which hooks and commands tell without starting anything whether a worktree has new commits.

Below `commits/` in the state folder, which all worktrees of the clone share, for each worktree:

- `in-<git folder>`: exists once a session was started there, unless `gitmem.commits` is off. Its time is that of the reflog as it
  was last read, its content is how far it was read;
- `by-<git folder>`: a line for each commit, written by git's hooks post-commit and post-merge: the commit, and the variables of sessions. Once
  it is large it becomes `by-<git folder>.1`.
"""

from __future__ import annotations

import os

from .. import local_files
from ..git import files
from . import heartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo
    from ..store import Store

FOLDER, HOOKED = "commits", "hooked"
SETTING = "gitmem.commits"
OFF, EXACT = "off", "exact"
_OFF = (OFF, "false", "no", "0")


def read_to(repo: Repo) -> str:
    """Return the file that says how far a worktree's reflog was read."""
    return os.path.join(repo.state, FOLDER, f"in-{os.path.basename(repo.git_dir)}")


def noted(repo: Repo) -> str:
    """Return the file in which git's hooks note who commits."""
    return os.path.join(repo.state, FOLDER, f"by-{os.path.basename(repo.git_dir)}")


def is_off(store: Store) -> bool:
    """Return whether the user does not want records of commits."""
    return store.settings().get(SETTING, "").lower() in _OFF


def update(store: Store, *, from_beginning: bool = False) -> None:
    """Create the file of this worktree, or remove it if the setting is off. Never raises.

    Args:
        from_beginning: Whether commits that were made before are read, too: the session was perhaps there already.
    """
    where = read_to(store.repo)
    try:
        if is_off(store):
            local_files.remove_quietly(where)
        elif store.repo.worktree is not None and not os.path.lexists(where):
            local_files.make_dirs(os.path.dirname(where))
            os.close(local_files.open_file(where, os.O_WRONLY | os.O_CREAT))
            # What was committed before is not of a session that begins here.
            at = 0 if from_beginning else changed_at(store.repo)
            local_files.utime(where, (at, at))
    except OSError:
        return


def set_hook(state: str, *, installed: bool) -> None:
    """Note whether git's post-commit hook is installed: then a commit without its note is nobody's. Never raises."""
    where = os.path.join(state, FOLDER, HOOKED)
    try:
        if installed:
            local_files.make_dirs(os.path.dirname(where))
            os.close(local_files.open_file(where, os.O_WRONLY | os.O_CREAT))
        else:
            local_files.remove_quietly(where)
    except OSError:
        return


def has_hook(repo: Repo) -> bool:
    """Return whether git's post-commit hook was installed."""
    return os.path.exists(os.path.join(repo.state, FOLDER, HOOKED))


def prompted_at(store: Store, session_id: str) -> int:
    """Return when a session's client last reported a prompt, in microseconds since the epoch; 0 if it never did."""
    names = heartbeats.flag_names(session_id, heartbeats.client_of(store, session_id))
    return (
        max((_time(os.path.join(store.repo.state, heartbeats.PROMPTS, name)) for name in names), default=0)
        // 1000
    )


def changed_at(repo: Repo) -> int:
    """Return when the reflog or the hook's notes were last written, in nanoseconds; 0 without any."""
    return max(map(_time, (files.reflog(repo.git_dir), noted(repo))))


def has_news(repo: Repo) -> bool:
    """Return whether commits may have been made since the reflog was last read. It costs three looks at files."""
    try:
        before = os.stat(read_to(repo)).st_mtime_ns
    except OSError:
        return False
    return changed_at(repo) > before


def _time(where: str) -> int:
    try:
        return os.stat(where).st_mtime_ns
    except OSError:
        return 0
