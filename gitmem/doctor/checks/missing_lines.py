"""Find lines that the log has lost: acknowledged lines, lines of earlier tips, and lines of its history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from ... import records, state_files
from ...errors import StoreError
from ...index import lost_lines
from ...log import committer, ledger, log_refs, recovery, ref, tree_union
from ...log import lines as form
from ...log.recovery import History, LogReadResult
from ...log.wal import READ_BYTES_MAX
from ...store import Store
from ..findings import Check, Finding, problem
from . import wal_content

STREAM = "restored"  # for lines without a known path


class MissingLines:
    """Lines that are missing from the log.

    Attributes:
        found: The path and the line by key (`ledger.key`), for lines whose bytes are in this clone; the path is "" for
            a line that was not committed.
        sources: The number of found lines by the description of their source.
        gone: Keys of acknowledged lines that are nowhere in this clone.
        heads: Earlier tips of the ref with some of these lines.
    """

    def __init__(self) -> None:
        self.found: dict[bytes, tuple[str, bytes]] = {}
        self.sources: dict[str, int] = {}
        self.gone: set[bytes] = set()
        self.heads: list[str] = []

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
        lost = find(self.store, self.run.tip, survey=self.run.seen)
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


def find(  # noqa: C901  (one source of lines after the other)
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

    def take(source: str, found: Iterable[tuple[str, bytes]], *, all: bool) -> int:
        before = len(losses.found)
        for path, line in found:
            key = ledger.key(line)
            if key in survey.keys or key in more or key in losses.found:
                continue
            if (all or key in missing) and form.validation_error(
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


def _waiting(store: Store) -> Iterator[bytes]:
    """Return the lines that wait for a commit."""
    return (line for _, line in committer.waiting_rows(store.log, deferred=True))


def _damaged(store: Store) -> Iterator[tuple[str, bytes]]:
    """Yield the whole lines in damaged files of write-ahead logs; an incomplete record does not count."""
    for wal in store.log.wals:
        for name in () if wal_content.is_foreign(wal) else wal_content.unreadable(wal):
            for row in re.split(
                rb"[\0\n]+", state_files.read(os.path.join(wal.folder, name), READ_BYTES_MAX)
            ):
                line = row.partition(b"\t")[2]
                if form.validation_error(line) is None:
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
        stream = records.STREAMS.get(record["kind"], STREAM) if record is not None else STREAM
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
