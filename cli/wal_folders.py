"""The folders of write-ahead logs outside the repository, where an agent in a sandbox leaves lines."""

from __future__ import annotations

import os

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitmem.repo import Repo

# The folders for temporary files without $TMPDIR: folders in them are checked for owner, mode and links.
SHARED = ("/tmp", "/var/tmp")  # noqa: S108


def external_wals(repo: Repo) -> tuple[list[str], list[str]]:
    """Return the folders of write-ahead logs outside the repository: those to write to, by priority, and those to read.

    A sandbox that can't write to the git folder may have a $TMPDIR of its own; therefore the common folders are read,
    too. Only existing folders are read. None is written to if the git folder is writable.
    """
    is_writable = _is_writable(repo)
    if not is_writable and _is_denied(repo):
        return [], []  # the lines would never be committed: the append reports the error
    if is_writable and not any(map(os.path.isdir, (each for parents in _wal_parents() for each in parents))):
        return [], []
    own, shared = _wal_folders(repo)
    written = [] if is_writable else own
    found: dict[tuple[int, int], str] = {}  # a folder with two names is read once
    for folder in (*own, *shared):
        try:
            status = os.lstat(folder)
        except OSError:
            continue
        found.setdefault((status.st_dev, status.st_ino or len(found)), folder)
    return written, [folder for folder in found.values() if folder not in written]


def wal_folders(repo: Repo) -> list[str]:
    """Return every folder outside the repository where an agent in a sandbox may leave lines, existing or not."""
    own, shared = _wal_folders(repo)
    return [*own, *shared]


def wal_parents() -> list[str]:
    """Return the folders with the write-ahead logs of all of this user's repositories."""
    return list(dict.fromkeys(each for parents in _wal_parents() for each in parents))


def report_foreign(folders: Iterable[str]) -> None:
    """Report where lines of another repository wait, which can't be committed here."""
    for folder in folders:
        output.write_error(
            f"note: {output.sanitize(folder)} has uncommitted records of another repository; they are not committed here."
            " Run `gitmem doctor`."
        )


def warn_temporary(folder: str) -> None:
    """Warn if a line was written to a temporary folder."""
    if os.path.dirname(folder) != user_state():
        output.write_error(
            f"warning: the new records wait in {output.sanitize(folder)}, a temporary folder. Commands with a different one, such"
            " as in a container, cannot find them, and the folder may be cleared. Give this process write access to the git folder or"
            " your state folder."
        )


def _wal_folders(repo: Repo) -> tuple[list[str], list[str]]:
    """Return the folders that this process would write to, by priority, and the common ones."""
    from gitmem.digests import sha256

    project = sha256(os.fsencode(os.path.realpath(repo.common))).hexdigest()[:16]
    own, shared = ([os.path.join(each, project) for each in parents] for parents in _wal_parents())
    return own, shared


def _wal_parents() -> tuple[list[str], list[str]]:
    """Return their parents, which contain the folders of all repositories."""
    user = f"gitmem-{os.getuid()}"
    temporary = os.environ.get("TMPDIR") or SHARED[0]
    own = [user_state(), os.path.join(temporary, user)]
    shared = [os.path.join(folder, user) for folder in SHARED]
    return list(filter(os.path.isabs, own)), list(filter(os.path.isabs, shared))


def user_state() -> str:
    """Return gitmem's folder in the user's state folder, which may be missing."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(state):  # the standard says to ignore a relative path
        state = os.path.expanduser(os.path.join("~", ".local", "state"))
    return os.path.join(state, "gitmem")


def _is_writable(repo: Repo) -> bool:
    state = repo.state if os.path.isdir(repo.state) else repo.common
    return os.access(state, os.W_OK) and os.access(os.path.join(repo.common, "objects"), os.W_OK)


def _is_denied(repo: Repo) -> bool:
    """Return whether owner and mode of the git folder prevent this user from ever writing to it.

    Its owner could change the mode. If the mode allows it, a sandbox or a read-only disk is the cause: other processes
    may write there, and commit this process's lines.
    """
    groups = {os.getegid(), *os.getgroups()}
    state = repo.state if os.path.isdir(repo.state) else repo.common
    for folder in (state, os.path.join(repo.common, "objects")):
        try:
            found = os.stat(folder)
        except OSError:
            continue
        bit = 0o020 if found.st_gid in groups else 0o002
        if found.st_uid != os.geteuid() and not found.st_mode & bit and not os.access(folder, os.W_OK):
            return True
    return False
