"""What the log should have and has no more: acknowledged lines, what its ref was at, what its history has."""

from __future__ import annotations

import os

from .. import records
from ..errors import StoreError
from ..index import lost
from ..log import ledger, places, recovery, ref, trees
from ..log import lines as form
from ..log.spool import parse_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from .store import Store

STREAM = "restored"  # for a line of which nothing says where it stood


class Losses:
    """Lines that are missing.

    Attributes:
        found: Digest (as the ledger has it) → path and line, for those whose bytes are somewhere in this clone; the
            path is "" where only a spool had it.
        sources: Where they are, in words, and how many of them.
        gone: Digests of acknowledged lines that are nowhere in this clone.
        heads: Commits that the ref was at, and that have some of them.
    """

    __slots__ = ("found", "gone", "heads", "sources")

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, bytes]] = {}
        self.sources: dict[str, int] = {}
        self.gone: set[str] = set()
        self.heads: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.found or self.gone)

    def add(self, source: str, path: str, line: bytes, key: str) -> None:
        self.found[key] = (path, line)
        self.sources[source] = self.sources.get(source, 0) + 1


def look(store: Store, tip: str | None, *, damaged: str | None = None, told: Iterable[bytes] = ()) -> Losses:
    """Compare a tip of the log with all that this clone knows of its lines.

    Args:
        tip: Where the log is, or is to go on from; None where it is nowhere.
        damaged: Where it is now, if that can't be read: all that can be of it counts.
        told: Lines that are not looked for.
    """
    log = store.log
    losses = Losses()
    reader = recovery.Lines(store.git)
    # In this order: what is acknowledged from now on counts nowhere, and what goes from a spool into a commit twice.
    acknowledged, _ = ledger.acknowledged(log)
    heads = recovery.heads(log, tip)
    have = {ledger.digest(line) for line in [*_spooled(store), *told]}
    for oid in (tip, store.git.tip(ref.LOG_REF) if damaged is None else None):
        have.update(ledger.digest(line) for _, line in (reader.of_commit(oid) if oid is not None else ()))
    missing = acknowledged - have

    def take(source: str, found: Iterable[tuple[str, bytes]], *, all: bool) -> int:
        before = len(losses.found)
        for path, line in found:
            key = ledger.digest(line)
            wanted = key not in have and key not in losses.found and (all or key in missing)
            if wanted and form.problem(line) is None:  # what is no line of a log may be taken out
                losses.add(source, path, line, key)
        return len(losses.found) - before

    sound, ours = recovery.Sound(log), recovery.projects(log, tip)
    for oid in heads if damaged is None else [damaged, *heads]:
        is_ours = recovery.belongs(log, sound, oid, ours)
        if is_ours and take("commits that the ref was at", reader.of_commit(oid), all=True):
            losses.heads.append(oid)
    kept = lost.everything(log) if damaged is not None or tip is None else lost.lines(store.place)
    for each in kept:
        take("the index", [(each.path, each.line)], all=bool(each.path))
    take("the spool", _torn(store), all=True)
    if missing - losses.found.keys():
        keys = [bytes.fromhex(key) for key in missing - losses.found.keys()]
        take("the index", ((each.path, each.line) for each in lost.find(store.place, keys)), all=False)
        for oid in _elsewhere(store):
            take("what remotes had at the last sync", reader.of_commit(oid), all=False)
    losses.gone = missing - losses.found.keys()
    return losses


def _spooled(store: Store) -> Iterator[bytes]:
    """The lines that wait for a commit."""
    for spool in store.log.spools:
        for name in spool.names():
            try:
                yield from (line for _, line in spool.read(name).lines)
            except (OSError, ValueError):
                continue


def _torn(store: Store) -> Iterator[tuple[str, bytes]]:
    """The whole lines of spool files that are no entries any more: what is withdrawn is no file."""
    for spool in store.log.spools:
        for name in spool.names():
            try:
                parse_name(name)
            except ValueError:
                continue  # none of ours
            try:
                spool.read(name)
            except ValueError:
                lines = [item.partition(b"\t")[2] for item in _raw(spool.folder, name).split(b"\n")]
                yield from (("", line) for line in lines if form.problem(line) is None)
            except OSError:
                continue


def _raw(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def _elsewhere(store: Store) -> list[str]:
    try:
        return list(places.known(store.log).values())
    except StoreError:
        return []


def path_of(store: Store, path: str, line: bytes) -> str | None:
    """Where a line is to stand: where it stood, else where it would go now. None for what is no line of a log."""
    if path and trees.is_segment(path) and not path.startswith("/"):
        return path
    record = records.read(line)
    try:
        stream = records.STREAMS.get(str(record["kind"]), STREAM) if record is not None else STREAM
        return ref.segment_path(stream, line, store.log.token())
    except (ValueError, IndexError):
        return None


def dropped(store: Store, tip: str, present: Collection[bytes]) -> Iterator[tuple[str, bytes]]:
    """Path and line of what the log's history has and its tip does not: somebody deleted it by hand.

    What is no line of a log, such as a conflict marker, may be deleted.
    """
    try:
        commits = store.git.history(tip)
    except (KeyError, StoreError):  # told by the look at the history
        return
    reader = recovery.Lines(store.git)
    told = set(present)
    for oid in reversed(commits):
        for path, line in reader.of_commit(oid):
            if line not in told:
                told.add(line)
                if form.problem(line) is None:
                    yield path, line
