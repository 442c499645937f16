"""The program that hooks start, and the folders of write-ahead logs outside the repository.

Hooks need both before any Python runs. They are small files with one path a line. A shell reads them, so a path with a
line break is left out.

- `program`, `wal-folders`: in the repository's state folder.
- `programs`: the user's list of gitmem programs that hooks may start, in the user's own state folder. A git folder can
  come from a stranger, in an archive or on a shared disk; hooks therefore start a program that it names only if this
  list contains it, too. The scripts read the list with `is_listed` in `files/hook.sh`.
"""

from __future__ import annotations

import os
import stat

from .. import atomic_write, state_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "program"
WAL_FOLDERS = "wal-folders"
LISTED = "programs"
KEPT_MAX = 100  # above this number, programs that no longer exist are removed from the list


def write(
    state: str, *, user: str = "", program: str | None = None, wal_folders: Sequence[str] | None = None
) -> bool:
    """Write the given values where they differ from the files.

    Args:
        state: The folder of gitmem's own files; it must exist.
        user: gitmem's folder in the user's state folder, whose list must contain the program.
        program: The absolute path of the gitmem program that hooks run.
        wal_folders: All folders of write-ahead logs outside the repository.

    Returns:
        False if a value could not be written.
    """
    done = True
    if program is not None:
        done = add_to_list(user, program) and done
        done = _keep(os.path.join(state, PROGRAM), [program]) and done
    if wal_folders is not None:
        done = _keep(os.path.join(state, WAL_FOLDERS), wal_folders) and done
    return done


def program(state: str) -> str | None:
    """Return the program that hooks run, or None if none is noted."""
    found = _lines(os.path.join(state, PROGRAM))
    return found[0] if found else None


def wal_folders(state: str) -> list[str]:
    """Return the noted folders of write-ahead logs outside the repository."""
    return _lines(os.path.join(state, WAL_FOLDERS))


def is_listed(folder: str, program: str) -> bool:
    """Return whether the user's list contains a program.

    Args:
        folder: gitmem's folder in the user's state folder.
        program: The program's absolute path.
    """
    path = os.path.join(folder, LISTED)
    return _is_private(folder) and _is_private(path) and program in _lines(path)


def add_to_list(folder: str, program: str) -> bool:
    """Add a program that the user runs to the list.

    Args:
        folder: gitmem's folder in the user's state folder; created if missing.
        program: The program's absolute path.

    Returns:
        Whether the list contains it now. False if the list can't be written, or if other users could write to it.
    """
    if not os.path.isabs(program) or "\n" in program:
        return False
    if is_listed(folder, program):
        return True
    path = os.path.join(folder, LISTED)
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        if not _is_private(folder) or (os.path.lexists(path) and not _is_private(path)):
            return False
        known = _lines(path)
        if len(known) >= KEPT_MAX:
            known = [each for each in known if os.path.exists(each)][-KEPT_MAX // 2 :]
            atomic_write.replace(path, _content(known), private=True)
        descriptor = state_files.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, os.fsencode(program) + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return is_listed(folder, program)


def _is_private(path: str) -> bool:
    """Return whether a file or folder belongs to this user and no other user may write to it."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _keep(path: str, lines: Sequence[str]) -> bool:
    wanted = [line for line in dict.fromkeys(lines) if line and "\n" not in line and "\0" not in line]
    content = _content(wanted)
    return state_files.read(path) == content or atomic_write.try_replace(path, content)


def _lines(path: str) -> list[str]:
    return [os.fsdecode(line) for line in state_files.read(path).split(b"\n") if line]


def _content(lines: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)
