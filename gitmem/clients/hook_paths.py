"""The program that hooks start, and the folders of write-ahead logs outside the repository.

Hooks need both before any Python runs. They are two small files in the state folder with one path a line. A shell reads
them, so a path with a line break is left out.
"""

from __future__ import annotations

import os

from .. import atomic_write
from . import trusted_programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "program"
WAL_FOLDERS = "wal-folders"


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
        done = trusted_programs.add(user, program) and done
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


def _keep(path: str, lines: Sequence[str]) -> bool:
    wanted = [line for line in dict.fromkeys(lines) if line and "\n" not in line and "\0" not in line]
    content = b"".join(os.fsencode(line) + b"\n" for line in wanted)
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return True
    except OSError:
        pass  # not written yet
    try:
        atomic_write.replace(path, content)
    except OSError:
        return False
    return True


def _lines(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            return [os.fsdecode(line) for line in file.read().split(b"\n") if line]
    except OSError:
        return []
