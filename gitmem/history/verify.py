"""Verify for an auditor, afresh from a commit of the log: which writers attested which lines, with which keys, and what they did not attest."""

from __future__ import annotations

from itertools import pairwise

from .. import records
from ..agents import other_keys, signers
from ..agents.session_view import SESSION
from ..errors import UsageError
from ..index import catch_up, entities, resolve_id
from ..log import attestations
from ..log.lines import line_hash, writer_of
from ..log.ref import LOG_REF
from ..memory import as_of, stored_nodes
from ..memory.node_tables import NODE
from ..outcome import Outcome, Struct
from ..signals import history
from ..signals.threads import ThreadLines
from ..work.tables import CLAIM, TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..store import Store


THREAD = "thread"
# The entity of a record that has further lines: of other records those with their id.
_ENTITIES = {each.name: each for each in (TASK, CLAIM, NODE, SESSION)}
_FIELDS = {kind: field for entity in _ENTITIES.values() for kind, field in entity.of.items()}
_SENDERS = ("sender_identity", "reader_identity", "agent_identity", "session_id")


class Gap(Outcome):
    """Attestations of a clone that are missing: the first and the last number."""

    clone: str
    first: int
    last: int


class Fork(Outcome):
    """A number of attestations of a clone of which there are several, or were: the next one names another predecessor."""

    clone: str
    number: int


class Writer(Outcome, kw_only=True):
    """A writer of what was asked about.

    Attributes:
        you: Whether the key is this user's.
        since: The time of its first attestation, which its own clock gave.
        lines: How many of the lines it has attested.
        clones: In how many clones it has attested anything.
        known_for: Words under which `.gitmem/signers` of the work tree knows it.
    """

    writer: str
    you: bool
    since: str
    lines: int
    clones: int
    gaps: list[Gap]
    forks: list[Fork]
    known_for: list[str]


class JudgedLine(Outcome, kw_only=True):
    """A line: what it says of itself, with its sender, and its writer with the time since when its key is known.

    Attributes:
        writer: The writer that it names; None if it names none.
        attested: The time of that writer's attestation; None without one.
    """

    kind: str
    event: str | None
    id: str
    at: str
    sender: str
    writer: str | None
    since: str | None
    attested: str | None


class Verified(Outcome, kw_only=True):
    """Whether every line that decides anything was attested by the writer that it names.

    What anybody can push changes no verdict: held lines count for nothing, and unsigned ones are of other tools and decide nothing about
    what has a writer.

    Attributes:
        verified: Whether all lines were read, and those of what was asked about are there and signed.
        asked: The id of what was asked about; None for the whole log.
        commit: The commit of the log whose lines were read.
        lines: The lines of what was asked about; none for the whole log.
        unsigned: How many lines name no writer, by kind.
        held: Lines that name a writer who has not attested them, or none and that nobody has attested: they count for nothing.
        left_out: The number of lines that were not read, because there are too many.
        signers: The path of `.gitmem/signers`, if the work tree has one.
        problems: What of it does not count, in sentences.
    """

    verified: bool
    asked: str | None
    commit: str | None
    writers: list[Writer]
    lines: list[JudgedLine]
    unsigned: dict[str, int]
    held: list[JudgedLine]
    left_out: int
    signers: str | None
    problems: list[str]
    next: list[str]

    @property
    def status(self) -> int:
        """The exit status: 0 if it is verified, else 1."""
        return 0 if self.verified else 1


class _Attested:
    """What the attestations of an index say.

    Attributes:
        times: The first attestation of each line by each writer, by the digest of the line and the writer.
        since: The first attestation of each writer.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.times: dict[tuple[bytes, str], str] = {}
        self.since: dict[str, str] = {}
        self._present: dict[str, dict[str, list[int]]] = {}
        # Digests by place: also of predecessors that are missing.
        self._named: dict[tuple[str, str, int], set[str]] = {}
        for line in entities.bodies(db, "l.kind = 'attestation'", ()):
            found = attestations.read(line)
            if found is not None:
                at, writer, clone = line[7:34].decode(), found.writer, found.clone
                self.since.setdefault(writer, at)
                for digest in found.digests:
                    self.times.setdefault((digest, writer), at)
                self._present.setdefault(writer, {}).setdefault(clone, []).append(found.number)
                self._named.setdefault((writer, clone, found.number), set()).add(found.digest)
                if found.before:
                    self._named.setdefault((writer, clone, found.number - 1), set()).add(found.before)
        self._forks = sorted(place for place, digests in self._named.items() if len(digests) > 1)

    def writer(self, writer: str, lines: int, known_for: list[str], *, you: bool) -> Writer:
        """Return a writer, with the gaps and forks of its clones."""
        clones = self._present[writer]
        return Writer(
            writer=writer, you=you, since=self.since[writer], lines=lines, clones=len(clones),
            gaps=[Gap(clone, a + 1, b - 1) for clone in sorted(clones)
                  for a, b in pairwise([0, *sorted(clones[clone])]) if b > a + 1],
            forks=[Fork(clone, number) for whose, clone, number in self._forks if whose == writer],
            known_for=known_for,
        )  # fmt: skip

    def judged(self, line: bytes) -> JudgedLine:
        """Return what is known of a line."""
        record: Any = records.read(line)
        writer = record.get("writer") or ""
        return JudgedLine(
            kind=record["kind"],
            event=record.get("event") or record.get("intent"),
            id=record[records.ID_FIELDS[record["kind"]]],
            at=record["at"],
            sender=next(filter(None, map(record.get, _SENDERS)), ""),
            writer=writer or None,
            since=self.since.get(writer),
            attested=self.times.get((line_hash(line), writer)),
        )


class _Asked(Struct):
    """The lines of what was asked about, the ids by which held lines are of it, and how many lines were not read."""

    id: str
    names: set[str]
    lines: Sequence[bytes]
    left_out: int = 0


def verify(store: Store, id: str | None = None) -> Verified:
    """Verify the lines of the log's last commit, or those of one signal, thread, task, node, session, claim or other record.

    Nothing that another process has verified counts: the commit is read and its attestations are verified again.

    Args:
        id: The id, or the beginning of one; None for the whole log.

    Raises:
        UsageError: There is no log yet, or no such id in it.
    """
    past = as_of.at(store, LOG_REF)
    try:
        db = past.db()
        known, held = _Attested(db), catch_up.held_lines(db)
        asked = None if id is None else _asked(past, id, held)
        if asked is not None:
            held = [line for line in held if not asked.names.isdisjoint(_ids(line))]
        every = _every(db) if asked is None else asked.lines
        counts, unsigned = _counted(known, every)
        yours = store.own().writers
        left_out = asked.left_out if asked is not None else 0
        writers = counts if asked is not None else {**dict.fromkeys(known.since, 0), **counts}
        file = signers.read(past)
        shown = [
            known.writer(each, writers[each], other_keys.known_for(past, file, each), you=each in yours)
            for each in sorted(writers)
        ]
        return Verified(
            verified=not left_out and (asked is None or bool(counts and not unsigned)),
            asked=asked.id if asked is not None else None,
            commit=past.index.tip,
            writers=shown,
            lines=[known.judged(line) for line in asked.lines] if asked is not None else [],
            unsigned=dict(sorted(unsigned.items())),
            held=[known.judged(line) for line in held],
            left_out=left_out,
            signers=file.path,
            problems=file.sentences(),
            next=["gitmem sync", "gitmem doctor"] if held else [],
        )
    finally:
        past.close()


def _every(db: sqlite3.Connection) -> Iterable[bytes]:
    return entities.bodies(db, "l.kind NOT IN ('', 'attestation')", (), order="l.id")


def _counted(known: _Attested, lines: Iterable[bytes]) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many lines each writer has attested, and how many nobody has, by kind."""
    counts: dict[str, int] = {}
    unsigned: dict[str, int] = {}
    for line in lines:
        writer = writer_of(line)
        if (line_hash(line), writer) in known.times:
            counts[writer] = counts.get(writer, 0) + 1
        else:
            kind = known.judged(line).kind
            unsigned[kind] = unsigned.get(kind, 0) + 1
    return counts, unsigned


def _asked(store: Store, id: str, held: Sequence[bytes]) -> _Asked:
    """Return the lines of what an id names; of what only held lines name none."""
    db = store.db()
    try:
        kind, id = resolved(store, id)
    except UsageError as error:
        if not error.code.startswith("unknown-") or not any(id in _ids(line) for line in held):
            raise
        return _Asked(id, {id}, [])
    if kind in (THREAD, "signal"):
        thread = resolve_id.thread_of(db, id)
        reader = ThreadLines(db)
        found = reader.load(thread) or {}
        chosen = found if kind == THREAD else {id: found[id]} if id in found else {}
        lines = sorted(line for signal in chosen.values() for line in signal.lines)
        return _Asked(id, {id, *chosen}, lines, reader.left_out.get(thread, 0))
    if kind in _ENTITIES:
        rows = entities.lines(db, _ENTITIES[kind], id)
        return _Asked(id, {id}, [row.line for row in rows], rows.left_out)
    named = resolve_id.records_named(db, kind, records.ID_FIELDS[kind], id, begins=False)
    return _Asked(id, {id}, [line for _, line in named])


def resolved(store: Store, id: str) -> tuple[str, str]:
    """Return the kind and the whole id of what an id or the beginning of one names, as commands that show it find it."""
    db = store.db()
    if id.startswith("mem-"):
        return NODE.name, stored_nodes.find_node(db, id)
    if id.startswith(f"{THREAD}-") or resolve_id.beginning(
        db, "signal", "thread", f"{id.partition('@')[0]}@"
    ):
        found = resolve_id.resolve(db, id)
        return THREAD, resolve_id.thread_of(db, found)
    one = history.show(store, id)
    return one.kind, str(one.record[records.ID_FIELDS[one.kind]])


def _ids(line: bytes) -> set[str]:
    """Return the ids of what a line is of."""
    record: Any = records.read(line)
    kind = record["kind"]
    value = record[_FIELDS.get(kind, records.ID_FIELDS[kind])]
    thread = record.get("thread_id") if kind == "signal" else None
    return {*([value] if isinstance(value, str) else value), *([thread] if thread else [])}
