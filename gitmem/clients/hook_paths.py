"""What hooks must know before anything of ours runs: which program to start, and where lines wait outside the repository.

Two small files in the state folder, one path a line. A shell reads them, so a path with a line break in it
is left out.
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
    """Keep what is given, where it differs from what is there. False where that can't be written.

    Args:
        state: The folder of gitmem's own files; it must be there.
        user: gitmem's folder in the user's state folder, whose list must have the program.
        program: Absolute path of the gitmem program that hooks run.
        wal_folders: The folders of write-ahead logs outside the repository, all of them.
    """
    done = True
    if program is not None:
        done = trusted_programs.add(user, program) and done
        done = _keep(os.path.join(state, PROGRAM), [program]) and done
    if wal_folders is not None:
        done = _keep(os.path.join(state, WAL_FOLDERS), wal_folders) and done
    return done


def program(state: str) -> str | None:
    """The program that hooks run, or None where none was kept."""
    found = _lines(os.path.join(state, PROGRAM))
    return found[0] if found else None


def wal_folders(state: str) -> list[str]:
    """Return the folders of write-ahead logs outside the repository that were kept."""
    return _lines(os.path.join(state, WAL_FOLDERS))


def _keep(path: str, lines: Sequence[str]) -> bool:
    wanted = [line for line in dict.fromkeys(lines) if line and "\n" not in line and "\0" not in line]
    content = b"".join(os.fsencode(line) + b"\n" for line in wanted)
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return True
    except OSError:
        pass  # not there yet
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
