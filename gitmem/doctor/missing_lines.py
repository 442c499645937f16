"""What the log should have and has no more: acknowledged lines, what its ref was at, what its history has."""

from __future__ import annotations

import os

from .. import records
from ..errors import StoreError
from ..index import lost_lines
from ..log import committer, ledger, log_refs, recovery, ref, tree_union
from ..log import lines as form
from ..log.dropped_lines import History, Survey
from .checks import wal_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..store import Store

STREAM = "restored"  # for a line of which nothing says where it stood


class Losses:
    """Lines that are missing.

    Attributes:
        found: Key (`ledger.key`) → path and line, for those whose bytes are somewhere in this clone; the path is "" where
            it only waited for its commit.
        sources: Where they are, in words, and how many of them.
        gone: Keys of acknowledged lines that are nowhere in this clone.
        heads: Commits that the ref was at, and that have some of them.
    """

    __slots__ = ("found", "gone", "heads", "sources")

    def __init__(self) -> None:
        self.found: dict[bytes, tuple[str, bytes]] = {}
        self.sources: dict[str, int] = {}
        self.gone: set[bytes] = set()
        self.heads: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.found or self.gone)

    def add(self, source: str, path: str, line: bytes, key: bytes) -> None:
        self.found[key] = (path, line)
        self.sources[source] = self.sources.get(source, 0) + 1


def look(  # noqa: C901  (one source of lines after the other)
    store: Store, tip: str | None, *, damaged: str | None = None, survey: Survey | None = None
) -> Losses:
    """Compare a tip of the log with all that this clone knows of its lines.

    Args:
        tip: Where the log is, or is to go on from; None where it is nowhere.
        damaged: Where it is now, if that can't be read: all that can be of it counts.
        survey: What was read of the log before: lines that are not looked for.
    """
    log = store.log
    losses = Losses()
    survey = survey or Survey()
    reader = recovery.RecoveredLines(store.git)
    # In this order: what is acknowledged from now on counts nowhere, and what goes from a write-ahead log into a commit twice.
    acknowledged, _ = ledger.acknowledged(log.place)
    heads = recovery.heads(log, tip)
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
            if (all or key in missing) and form.problem(
                line
            ) is None:  # what is no line of a log may be taken out
                losses.add(source, path, line, key)
        return len(losses.found) - before

    sound, ours = recovery.Sound(log, survey.commits), recovery.projects(log, tip)
    for oid in heads if damaged is None else [damaged, *heads]:
        if oid in survey.commits:
            continue
        is_ours = recovery.belongs(log, sound, oid, ours)
        if is_ours and take("commits that the ref was at", reader.of_commit(oid), all=True):
            losses.heads.append(oid)
    kept = lost_lines.everything(log) if damaged is not None or tip is None else lost_lines.lines(store.place)
    for each in kept:
        take("the index", [(each.path, each.line)], all=bool(each.path))
    take("the write-ahead log", _damaged(store), all=False)
    if missing - losses.found.keys():
        keys = missing - losses.found.keys()
        take("the index", ((each.path, each.line) for each in lost_lines.find(store.place, keys)), all=False)
        for oid in _elsewhere(store):
            take("what remotes had at the last sync", reader.of_commit(oid), all=False)
    losses.gone = missing - losses.found.keys()
    return losses


def _waiting(store: Store) -> Iterator[bytes]:
    """The lines that wait for a commit."""
    return (line for _, line in committer.rows_waiting(store.log, deferred=True))


def _damaged(store: Store) -> Iterator[tuple[str, bytes]]:
    """The whole lines in files of a write-ahead log that are damaged: a record that lacks a byte is no record."""
    for wal in store.log.wals:
        for name in wal_content.unreadable(wal) if not wal.check_owner or wal.is_ours() else ():
            for row in _raw(wal.folder, name).replace(b"\0", b"\n").split(b"\n"):
                line = row.partition(b"\t")[2]
                if form.problem(line) is None:
                    yield "", line


def _raw(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def _elsewhere(store: Store) -> list[str]:
    try:
        return list(log_refs.known(store.log).values())
    except StoreError:
        return []


def path_of(store: Store, path: str, line: bytes) -> str | None:
    """Where a line is to stand: where it stood, else where it would go now. None for what is no line of a log."""
    if path and tree_union.is_segment(path) and not path.startswith("/"):
        return path
    record = records.read(line)
    try:
        stream = records.STREAMS.get(str(record["kind"]), STREAM) if record is not None else STREAM
        return ref.segment_path(stream, line, store.log.token())
    except (ValueError, IndexError):
        return None


def dropped(store: Store, tip: str, keys: set[bytes]) -> Iterator[tuple[str, bytes]]:
    """Path and line of what the log's history has and its tip does not: somebody deleted it by hand.

    What is no line of a log, such as a conflict marker, may be deleted.

    Args:
        keys: Those of the lines that the tip has.
    """
    try:
        commits = store.git.history(tip)
    except (KeyError, StoreError):  # told by the look at the history
        return
    for each in History(store.log, commits).dropped(keys):
        yield from ((each.path, line) for line in each.lines)
