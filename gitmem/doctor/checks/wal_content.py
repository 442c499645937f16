"""Check write-ahead logs: overdue entries, unreadable or foreign files, entries of other repositories."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ... import commit_process
from ...git import plumbing
from ...log import wal_files
from ...log.wal import WriteAheadLog, owner_path_in
from ...log.wal_files import WalFile
from ...outcome import command
from ...store import Store
from ..findings import Check, Finding, Fixed, note, problem
from .clone_files import disk_error, is_writable, move_aside

COMMIT_SECONDS = 5.0
WAITS_SECONDS = 60.0
YOUNG_SECONDS = 600


class ReadOnlyFolder(Check):
    """A git folder that can't be written."""

    codes = ("read-only",)

    def check(self) -> Iterator[Finding]:
        repo = self.store.repo
        left = plumbing.left_by_another(repo.common, plumbing.KEPT)
        if left is not None:
            yield problem("read-only", left.message, repo.common, left.hint, left.next[0])
        elif not is_writable(self.store):
            yield note(
                "read-only",
                "The git folder is not writable: new records wait outside of it, and nothing can be repaired.",
                repo.common,
                "Nothing is lost; the next command with write access commits them. Or give this process write access.",
                command("ls", "-ld", repo.common, repo.state),
            )


class FullDisk(Check):
    """A disk that takes no more data."""

    codes = ("disk-write",)

    def check(self) -> Iterator[Finding]:
        if not is_writable(self.store):
            return
        folder, self.run.disk_error = disk_error(self.store)
        if folder:
            yield problem(
                "disk-write",
                f"The disk takes no more data ({self.run.disk_error}): new records are refused or wait for their commit.",
                folder,
                "Free disk space, or correct the quota or limit that stops writes. Nothing that was recorded is lost.",
                command("df", "-h", folder),
            )


class WaitingEntries(Check):
    """Entries that wait for a commit too long, or that can't be committed now."""

    codes = fixes = ("wal-waits",)

    def check(self) -> Iterator[Finding]:
        stuck = not is_writable(self.store) or bool(self.run.disk_error)
        for wal in self.store.log.wals:
            if not os.path.isdir(wal.folder) or is_foreign(wal) or wal.is_of_other_repo():
                continue
            for file in wal.files():
                count = 0 if file.is_deferred or not file.size else _entries(wal, file)
                age = time.time() - wal_files.modified_at(file)
                if count and (stuck or age > WAITS_SECONDS):
                    reason = self.run.disk_error or commit_process.last_failure(self.store.repo)
                    why = f" ({reason})" if reason else ""
                    yield note(
                        "wal-waits",
                        f"{count} recorded {'entries wait' if count > 1 else 'entry waits'} for a commit since {age:.0f} seconds{why}.",
                        file.path,
                        "Nothing is lost; the next command that can read this folder and write the git folder commits them.",
                        fixable=not stuck,
                    )

    def fix(self) -> Iterator[Fixed]:
        """Commit them."""
        waiting = [file.path for file in self.store.log.waiting()]
        if waiting and commit_process.commit_waiting(self.store, COMMIT_SECONDS) is not None:
            for path in waiting:
                yield "wal-waits", path, "It was committed."


class WalFiles(Check):
    """Files that this clone can't commit, and folders of others."""

    codes = ("foreign-wal", "wal-of-another-repository", "wal-newer", "wal-file", "wal-left")
    fixes = ("wal-file",)

    def check(self) -> Iterator[Finding]:
        for wal in self.store.log.wals:
            if not os.path.isdir(wal.folder):
                continue
            if os.listdir(wal.folder) and is_foreign(wal):
                yield problem(
                    "foreign-wal",
                    "The folder is owned or writable by another user: nothing is read from it.",
                    wal.folder,
                    "Check its content, then remove the folder.",
                )
            elif wal.is_of_other_repo():
                whose = owner_path_in(wal.folder) or "unknown"
                yield problem(
                    "wal-of-another-repository",
                    f"This folder has uncommitted records of another repository ({whose}); they are not committed here.",
                    wal.folder,
                    "Move the folder to another path, or delete it if its content is not needed.",
                    command("ls", "-l", wal.folder),
                )
            else:
                yield from _check_files(wal)
        yield from _check_orphaned(self.store)

    def fix(self) -> Iterator[Fixed]:
        """Move unreadable files aside, after the log has their lines."""
        for wal in self.store.log.wals:
            for name in () if is_foreign(wal) else unreadable(wal):
                path = os.path.join(wal.folder, name)
                if os.path.lexists(path):
                    # Aside on the same file system, as files are moved and not copied.
                    near = None if os.path.dirname(wal.folder) == self.store.repo.state else wal.folder
                    yield "wal-file", path, f"Moved to {move_aside(self.store, path, folder=near)}."


def is_foreign(wal: WriteAheadLog) -> bool:
    """Return whether this is another user's folder."""
    return bool(wal.check_owner and not wal.is_ours())


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


def _check_files(wal: WriteAheadLog) -> Iterator[Finding]:
    for name in wal_files.other_formats(wal.folder):
        yield problem(
            "wal-newer",
            f"A newer gitmem recorded it; this one reads {wal_files.WAL} only, and writes nothing until it is committed.",
            os.path.join(wal.folder, name),
            "Upgrade gitmem, or run `gitmem log` with the newer one.",
        )
    for name in unreadable(wal):
        yield problem(
            "wal-file",
            "The file is damaged or not a write-ahead log: it cannot be committed.",
            os.path.join(wal.folder, name),
            "--fix moves it aside and adds its complete acknowledged lines to the log.",
        )


def _check_orphaned(store: Store) -> Iterator[Finding]:
    """Check for entries in this user's folders for repositories that are no longer at their paths."""
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
            path = owner_path_in(folder)
            if path and not os.path.isdir(path):
                yield note(
                    "wal-left",
                    f"Uncommitted records of a repository that is no longer at {path}.",
                    folder,
                    "Move that repository back and run gitmem there, or delete the folder.",
                )


def _entries(wal: WriteAheadLog, file: WalFile) -> int:
    try:
        tail = wal.read(file)
    except (OSError, ValueError):
        return 0
    return len(tail.entries) if tail else 0


def _is_young(folder: str, name: str) -> bool:
    """Return whether this may be a temporary file that another process is about to rename."""
    try:
        modified = os.lstat(os.path.join(folder, name)).st_mtime
    except OSError:
        return True
    return name.startswith(("tmp-", ".tmp-")) and time.time() - modified < YOUNG_SECONDS
