"""Check write-ahead logs: overdue entries, unreadable or foreign files, entries of other repositories."""

from __future__ import annotations

import os
import time

from ...log import wal_files, wal_owner
from ...text.shell_quote import command
from .clone_files import is_writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...log.wal import WriteAheadLog
    from ...log.wal_files import WalFile
    from ...store import Store
    from ..findings import Findings

WAITS_SECONDS = 60.0


def check_wals(store: Store, found: Findings) -> None:
    """Report entries that wait for a commit too long, and files that this clone can't commit."""
    stuck = not is_writable(store)
    if stuck:
        found.note(
            "read-only",
            "The git folder can't be written from here: what is recorded waits outside of it, and nothing can be repaired.",
            store.place.common,
            "Nothing is lost; the next command that may write there commits it. Else let this process write the folder.",
            command("ls", "-ld", store.place.common, store.place.state),
        )
    for wal in store.log.wals:
        if not os.path.isdir(wal.folder):
            continue
        if wal.check_owner and os.listdir(wal.folder) and not wal.is_ours():
            found.problem(
                "foreign-wal",
                "The folder belongs to somebody else, or others may write to it: nothing is read from it.",
                wal.folder,
                "Look at what is there, then remove the folder.",
            )
        elif wal.is_strange():
            _strange(wal, found)
        else:
            _files(store, wal, found, stuck)
    _check_orphaned(store, found)


def _files(store: Store, wal: WriteAheadLog, found: Findings, stuck: bool) -> None:
    for name in wal_files.other_formats(wal.folder):
        found.problem(
            "wal-newer",
            f"A newer gitmem recorded it; this one reads {wal_files.WAL} only, and writes nothing until it is committed.",
            os.path.join(wal.folder, name),
            "Upgrade gitmem, or run `gitmem log` with the newer one.",
        )
    for name in unreadable(wal):
        found.problem(
            "wal-file",
            "The file is damaged or none of a write-ahead log: it can't be committed as it is.",
            os.path.join(wal.folder, name),
            "It is moved aside, and whole lines in it that were acknowledged go into the log.",
            mends=True,
        )
    for file in wal.files():
        count = 0 if file.is_deferred or not file.size else _entries(wal, file)
        age = time.time() - wal_files.modified_at(file)
        if count and (stuck or age > WAITS_SECONDS):
            found.note(
                "wal-waits",
                f"{count} recorded {'entries wait' if count > 1 else 'entry waits'} for a commit since {age:.0f} seconds{_why(store)}.",
                file.path,
                "Nothing is lost; the next command that may write to the git folder, and finds this one, commits it.",
                mends=not stuck,
            )


def _why(store: Store) -> str:
    """Return the last failure of the committer in parentheses, or ""."""
    from ...commit_process import last_failure

    reason = last_failure(store.place)
    return f" ({reason})" if reason else ""


def _entries(wal: WriteAheadLog, file: WalFile) -> int:
    try:
        tail = wal.read(file)
    except (OSError, ValueError):
        return 0
    return len(tail.entries) if tail else 0


def unreadable(wal: WriteAheadLog) -> list[str]:
    """Return the names of the files that a committer can't read or has found damaged."""
    names = [name for name in wal_files.foreign(wal.folder) if not _is_young(wal.folder, name)]
    names += wal_files.damaged(wal.folder)
    for file in wal.files():
        try:
            if file.size:
                wal.read(file)
        except (OSError, ValueError):
            names.append(file.name)
    return sorted(set(names))


def _is_young(folder: str, name: str) -> bool:
    """Return whether this may be a temporary file that another process is about to rename."""
    try:
        return (
            name.startswith(("tmp-", ".tmp-"))
            and time.time() - os.lstat(os.path.join(folder, name)).st_mtime < 600
        )
    except OSError:
        return True


def _strange(wal: WriteAheadLog, found: Findings) -> None:
    """Report entries of another repository in the folder for the path of this repository."""
    whose = wal_owner.path_in(wal.folder) or "nothing says which"
    found.problem(
        "wal-of-another-repository",
        f"Recorded lines wait here that are of another repository ({whose}); none of them is committed here.",
        wal.folder,
        "Move the folder to where it can't be found by this path, or delete it if nobody needs what is in it.",
        command("ls", "-l", wal.folder),
    )


def _check_orphaned(store: Store, found: Findings) -> None:
    """Report entries in this user's folders for repositories that are no longer at their paths."""
    known = {os.path.realpath(wal.folder) for wal in store.log.wals}
    for parent in store.log.wal_parents:
        try:
            folders = [os.path.join(parent, name) for name in sorted(os.listdir(parent))]
        except OSError:
            continue
        for folder in folders:
            real = os.path.realpath(folder)
            waits = any(file.size for file in wal_files.list_files(folder))
            if real in known or not waits or not wal_files.is_private(folder):
                continue
            known.add(real)
            path = wal_owner.path_in(folder)
            if path and not os.path.isdir(path):
                found.note(
                    "wal-left",
                    f"Recorded lines wait for a repository that is no longer at {path}.",
                    folder,
                    "Put that repository back where it was and run gitmem there, or delete the folder.",
                )
