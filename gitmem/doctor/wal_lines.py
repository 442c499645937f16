"""Check the write-ahead logs and lines that wait for a missing key, and find lines that the log has lost: acknowledged lines, lines of earlier tips, and lines of its history."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from .. import commit_process, local_files, records
from ..errors import StoreError
from ..git import plumbing
from ..index import lost_lines
from ..log import committer, ledger, log_refs, recovery, ref, tree_union, write_ahead
from ..log import lines as form
from ..log.forgetting import Forgotten
from ..log.lines import CommitMessage, LogEntry, validation_error, writer_of
from ..log.local_log import LocalLog
from ..log.recovery import History, LogReadResult
from ..log.union import union
from ..log.write_ahead import READ_BYTES_MAX, WalFile, WriteAheadLog, owner_path_in
from ..outcome import Struct, command
from ..store import Store
from ..trust.keys import is_writer
from .clone_files import RESTORED, disk_error, is_writable, move_aside
from .findings import Check, Finding, Fixed, note, problem

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
    """Entries that wait for a commit too long, or that can't be committed now; not for a key, which is `LostKeys`' or `WriterKey`'s."""

    codes = fixes = ("wal-waits",)

    def check(self) -> Iterator[Finding]:
        stuck = not is_writable(self.store) or bool(self.run.disk_error)
        lacks_key = cache(lambda writer: self.store.writers.find(writer) is None)
        for wal in self.store.log.wals:
            if not os.path.isdir(wal.folder) or is_foreign(wal) or wal.is_of_other_repo():
                continue
            for file in wal.files():
                count = 0 if file.is_deferred or not file.size else _entries(wal, file, lacks_key)
                age = time.time() - write_ahead.modified_at(file)
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
        if waiting and self.store.commit_waiting(COMMIT_SECONDS) is not None:
            left = {file.path for file in self.store.log.waiting()}
            for path in waiting:
                if path not in left:
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
    names = [name for name in write_ahead.foreign(wal.folder) if not _is_young(wal.folder, name)]
    names += write_ahead.damaged(wal.folder)
    for file in wal.files():
        try:
            if file.size:
                wal.read(file)
        except (OSError, ValueError):
            names.append(file.name)
    return sorted(set(names))


def _check_files(wal: WriteAheadLog) -> Iterator[Finding]:
    for name in write_ahead.other_formats(wal.folder):
        yield problem(
            "wal-newer",
            f"A newer gitmem recorded it; this one reads {write_ahead.WAL} only, and writes nothing until it is committed.",
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
        for folder in (os.path.join(parent, name) for name in sorted(local_files.names_in(parent))):
            real = os.path.realpath(folder)
            waits = any(file.size for file in write_ahead.list_files(folder))
            if real in known or not waits or not write_ahead.is_private(folder):
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


def _entries(wal: WriteAheadLog, file: WalFile, lacks_key: Callable[[str], bool]) -> int:
    """Return how many entries of a file can be attested."""
    try:
        tail = wal.read(file)
        entries = [form.split_entry(payload)[1] for payload, _ in tail.entries] if tail else []
        writers = [{writer_of(form.parse_row(row)[1]) for row in rows} for rows in entries]
    except (OSError, ValueError):
        return 0
    return sum(not any(map(lacks_key, each - {""})) for each in writers)


def _is_young(folder: str, name: str) -> bool:
    """Return whether this may be a temporary file that another process is about to rename."""
    try:
        modified = os.lstat(os.path.join(folder, name)).st_mtime
    except OSError:
        return True
    return name.startswith(("tmp-", ".tmp-")) and time.time() - modified < YOUNG_SECONDS


_START, _END = "unattested-", ".jsonl"  # of the name of a file, around the writer


class LostKeys(Check):
    """Lines that wait for a key which is missing while another one writes here, and lines that were set aside for that."""

    codes = fixes = ("lost-key", "set-aside")

    def check(self) -> Iterator[Finding]:
        """Yield one for each writer."""
        for writer, count in sorted(self._waiting().items()):
            yield problem(
                "lost-key",
                f"{count} recorded line{'s wait' if count > 1 else ' waits'} for the key of the writer {writer}, which is missing: "
                "only this clone shows them, until that key signs them.",
                self.store.log.wal.folder,
                "Restore its key file, or let GITMEM_KEY_FILE name it. If it is lost, --fix moves the lines to "
                f"{aside_path(self.store, writer)}, where nobody sees them; then say again what matters.",
                fixable=not self.store.writers.problem(),
            )
        for writer, lines in set_aside(self.store).items():
            is_back = self.store.writers.find(writer) is not None
            yield note(
                "set-aside",
                f"{len(lines)} recorded line{'s are' if len(lines) > 1 else ' is'} set aside, because the key of the writer {writer} "
                f"was missing{'; it is back' if is_back else ''}.",
                aside_path(self.store, writer),
                f"{'Keep the file: with the key in its place again, ' if not is_back else ''}--fix records them again, byte for byte.",
                fixable=is_back,
            )

    def _waiting(self) -> Counter[str]:
        """Count the lines that wait by writer, where the key is missing and is not the one in force, which is `WriterKey`'s."""
        rows = committer.waiting_rows(self.store.log, deferred=True)
        found, writers = Counter(writer_of(line) for _, line in rows), self.store.writers
        but = ("", writers.describe()[0])
        return Counter(
            {each: found[each] for each in found if each not in but and writers.find(each) is None}
        )

    def fix(self) -> Iterator[Fixed]:
        """Record again what was set aside for a key that is here; set aside what waits for one that is not."""
        store = self.store
        for writer, lines in set_aside(store).items():
            if store.writers.find(writer) is not None:
                rows = [(records.STREAMS.get(_kind(line), RESTORED), line) for line in lines]
                subject = f"Take up {len(rows)} recorded lines, whose key is back"
                store.log.append(LogEntry(rows, CommitMessage("", subject)))
                path, did = aside_path(store, writer), "Recorded again."
                if len(lines) == len(_content(path).split(b"\n")) - 1:
                    os.unlink(path)
                else:
                    did = f"Recorded again, except what is not a valid line; all is kept in {move_aside(store, path)}."
                yield "set-aside", path, did
        if self._waiting() and not store.writers.problem():
            done = committer.commit_waiting(
                store.log, deferred=True, keep=lambda entries: _keep(store, entries)
            )
            store.refresh()
            if done is not None:
                yield "lost-key", store.log.wal.folder, "Set aside."
        else:
            store.commit_waiting(committer.WRITER_SECONDS, deferred=True)


def aside_path(store: Store, writer: str) -> str:
    """Return the path of the file for what waited for the key of a writer."""
    return os.path.join(store.repo.state, local_files.ASIDE, f"{_START}{writer}{_END}")


def set_aside(store: Store) -> dict[str, list[bytes]]:
    """Return the lines that are set aside, by writer.

    Raises:
        OSError: A file of them can't be read, or is too large.
    """
    found = {}
    for name in sorted(local_files.names_in(os.path.join(store.repo.state, local_files.ASIDE))):
        writer = name[len(_START) : -len(_END)]
        if name == os.path.basename(aside_path(store, writer)) and is_writer(writer):
            lines = _content(aside_path(store, writer)).split(b"\n")
            found[writer] = [line for line in lines if validation_error(line) is None]
    return {writer: lines for writer, lines in found.items() if lines}


def _content(path: str) -> bytes:
    return local_files.load_whole(path, READ_BYTES_MAX)


def _kind(line: bytes) -> str:
    record = records.read(line)
    return record["kind"] if record is not None else ""


def _keep(store: Store, entries: Sequence[LogEntry]) -> None:
    """Add the lines of entries to the files of their writers, on the disk."""
    by_writer: dict[str, list[bytes]] = {}
    for entry in entries:
        lines = [line for _, line in entry.lines]
        writer = next(each for each in map(writer_of, lines) if each and store.writers.find(each) is None)
        by_writer.setdefault(writer, []).extend(lines)
    folder = os.path.join(store.repo.state, local_files.ASIDE)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    local_files.adjust(folder)
    for writer, lines in by_writer.items():
        path = aside_path(store, writer)
        local_files.replace(path, union(_content(path), *lines), durable=True, private=True)
    for each in (folder, store.repo.state):
        local_files.fsync_dir(each)


class MissingLines(Struct):
    """Lines that are missing from the log.

    Attributes:
        found: The path and the line by key (`ledger.key`), for lines whose bytes are in this clone; the path is "" for
            a line that was not committed.
        sources: The number of found lines by the description of their source.
        gone: Keys of acknowledged lines that are nowhere in this clone.
        heads: Earlier tips of the ref with some of these lines.
    """

    found: dict[bytes, tuple[str, bytes]] = {}
    sources: dict[str, int] = {}
    gone: set[bytes] = set()
    heads: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.found or self.gone)

    def add(self, source: str, path: str, line: bytes, key: bytes) -> None:
        """Add a line of this clone that is missing from the log, and count it for its source."""
        self.found[key] = (path, line)
        self.sources[source] = self.sources.get(source, 0) + 1


class LostLines(Check):
    """Acknowledged lines, and lines of earlier tips, that are missing from the log and not yet reported."""

    codes = ("lost-lines", "gone-lines")

    def check(self) -> Iterator[Finding]:
        """Yield a finding for those that are still in this clone, and one for the others."""
        lost = find_missing(self.store, self.run.tip, survey=self.run.seen)
        if lost.found:
            one = len(lost.found) == 1
            yield problem(
                "lost-lines",
                f"{len(lost.found)} line{'' if one else 's'} that the log had {'is' if one else 'are'} missing from it: "
                f"its ref may have been moved back. {'It is' if one else 'They are'} still in {' and in '.join(lost.sources)}.",
                ref.LOG_REF,
                f"--fix restores {'it' if one else 'them'} byte for byte.",
            )
        if lost.gone:
            one = len(lost.gone) == 1
            yield problem(
                "gone-lines",
                f"{len(lost.gone)} line{'' if one else 's'} that this clone has acknowledged {'is' if one else 'are'} missing "
                f"from it; the first SHA-256 is {min(lost.gone).hex()}….",
                ref.LOG_REF,
                "A sync restores lines that were pushed before. Otherwise look for a copy of the .git folder.",
                "gitmem sync",
            )


def find_missing(  # noqa: C901  (one source of lines after the other)
    store: Store, tip: str | None, *, damaged: str | None = None, survey: LogReadResult | None = None
) -> MissingLines:
    """Compare a tip of the log with all sources of lines in this clone.

    Args:
        tip: The present or intended tip of the log; None without a log.
        damaged: The present tip, if it can't be read in full: its readable lines count.
        survey: The lines of the log that were read before; they are not searched.
    """
    log = store.log
    losses = MissingLines()
    survey = survey or LogReadResult()
    reader = recovery.RecoveredLines(store.git)
    # The order matters: later acknowledgments are ignored, and a line committed meanwhile is seen twice, not never.
    acknowledged, _ = ledger.acknowledged(log.repo)
    heads = recovery.history_ends(log, tip)
    more = {ledger.key(line) for line in _waiting(store)}
    for oid in (tip, store.git.tip(ref.LOG_REF) if damaged is None else None):
        if oid is not None and oid not in survey.commits:
            more.update(ledger.key(line) for _, line in reader.of_commit(oid))
    missing = {key for key in map(bytes.fromhex, acknowledged) if key not in survey.keys and key not in more}

    forgotten = _forgotten(log, tip)

    def take(source: str, found: Iterable[tuple[str, bytes]], *, all: bool) -> int:
        before = len(losses.found)
        for path, line in found:
            key = ledger.key(line)
            if key in survey.keys or key in more or key in losses.found or forgotten.covers(line):
                continue
            if (all or key in missing) and validation_error(
                line
            ) is None:  # anything that is not a line of a log may be removed
                losses.add(source, path, line, key)
        return len(losses.found) - before

    sound, ours = recovery.CompletenessCheck(log, survey.commits), recovery.projects(log, tip)
    for oid in heads if damaged is None else [damaged, *heads]:
        if oid in survey.commits:
            continue
        is_ours = recovery.belongs(log, sound, oid, ours)
        if is_ours and take("commits that the ref was at", reader.of_commit(oid), all=True):
            losses.heads.append(oid)
    kept = (
        lost_lines.all_known_lines(log)
        if damaged is not None or tip is None
        else lost_lines.lines(store.repo)
    )
    for each in kept:
        take("the index", [(each.path, each.line)], all=bool(each.path))
    take("the write-ahead log", _damaged(store), all=False)
    if missing - losses.found.keys():
        keys = missing - losses.found.keys()
        take("the index", ((each.path, each.line) for each in lost_lines.find(store.repo, keys)), all=False)
        for oid in _elsewhere(store):
            take("what remotes had at the last sync", reader.of_commit(oid), all=False)
    losses.gone = missing - losses.found.keys()
    return losses


def _forgotten(log: LocalLog, tip: str | None) -> Forgotten:
    """Return what records of a tip forget; nothing if an object is missing."""
    try:
        found = Forgotten(log, [log.git.commit(tip).tree] if tip is not None else [])
        return found if found.records else Forgotten(log, [])
    except KeyError:
        return Forgotten(log, [])


def _waiting(store: Store) -> Iterator[bytes]:
    """Yield the lines that wait for a commit, and those that are set aside because they can't be attested."""
    yield from (line for _, line in committer.waiting_rows(store.log, deferred=True))
    for lines in set_aside(store).values():
        yield from lines


def _damaged(store: Store) -> Iterator[tuple[str, bytes]]:
    """Yield the whole lines in damaged files of write-ahead logs; an incomplete record does not count."""
    for wal in store.log.wals:
        for name in () if is_foreign(wal) else unreadable(wal):
            for row in re.split(
                rb"[\0\n]+", local_files.read(os.path.join(wal.folder, name), READ_BYTES_MAX)
            ):
                line = row.partition(b"\t")[2]
                if validation_error(line) is None:
                    yield "", line


def _elsewhere(store: Store) -> list[str]:
    try:
        return list(log_refs.known_log_refs(store.log).values())
    except StoreError:
        return []


def path_of(store: Store, path: str, line: bytes) -> str | None:
    """Return the path for a restored line: its old path, else the path of a new line. None if it is not a line."""
    if path and tree_union.is_segment(path) and not path.startswith("/"):
        return path
    record = records.read(line)
    try:
        stream = records.STREAMS.get(record["kind"], RESTORED) if record is not None else RESTORED
        return ref.segment_path(stream, line, store.log.token())
    except (ValueError, IndexError):
        return None


def dropped(store: Store, tip: str, keys: set[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield path and line of lines that the history has and the tip lacks: they were deleted by hand.

    Anything that is not a line of a log, such as a conflict marker, may be deleted.

    Args:
        keys: The keys of the lines of the tip.
    """
    try:
        commits = store.git.history(tip)
    except (KeyError, StoreError):  # reported by the check of the history
        return
    for each in History(store.log, commits).dropped(keys):
        yield from ((each.path, line) for line in each.lines)
