"""Check the references between records: conflicting contents, answers, and causal order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ... import records
from ...log import ref
from ...order.content import content_of, digest_bytes, is_imported
from ...order.cycles import cyclic_components
from ...outcome import command
from ..findings import Check, Examination, Finding, note, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...records.record_types import ReceiptRecord, SignalRecord

LATER = "It may arrive with the next sync; until then the reference is ignored."
_LINES = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ?"


class LogLine:
    """The first occurrence of a line in the log: its file, and its number in the file, counted from 1."""

    def __init__(self, line: bytes, path: str, number: int, file: int | None) -> None:
        self.line = line
        self.path = path
        self.number = number
        self.file = file  # the file's number in the index, if the index reads it

    def where(self) -> str:
        """Return its location in the form of findings."""
        return f"{ref.LOG_REF}:{self.path}:{self.number}"


class RecordIds(Check):
    """Faults of ids, by a digest of each signal of a log, and the ids that each names.

    Args:
        where: Returns the location of a line.
    """

    codes = ("two-contents", "unknown-id", "swapped-content", "no-digest", "cycle")

    def __init__(self, run: Examination, where: Callable[[bytes], str]) -> None:
        super().__init__(run)
        self._db = run.rebuilt.db
        self._where = where
        self._digests: dict[str, bytes | set[bytes]] = {}
        self._named: dict[str, tuple[str, ...]] = {}
        self._waiting: list[tuple[LogLine, _Reference]] = []  # to lines that were not added yet

    def add(self, kind: str, read: Iterable[tuple[LogLine, Any]]) -> None:
        """Add signals, or receipts: the records of this kind."""
        if kind == "receipt":
            digest_of = self._digests.get
            odd = [
                (each, record)
                for each, record in read
                if digest_of(record["signal_id"]) != bytes.fromhex(record["answers_digest"])
            ]
        else:
            odd = [(each, record) for each, record in read if self._add_signal(each.line, record)]
        for each, record in odd:
            reference = _Reference(record)
            if self._fault(reference) is not None:
                self._waiting.append((each, reference))

    def _add_signal(self, line: bytes, record: SignalRecord) -> bool:
        """Add a signal, and return whether it names others."""
        id, digest = record["signal_id"], digest_bytes(line)
        known = self._digests.setdefault(id, digest)
        if isinstance(known, set):
            known.add(digest)
        elif known != digest:
            self._digests[id] = {known, digest}
        named = _named(record)
        if named:
            self._named[id] = named
        return bool(named)

    def check(self) -> Iterator[Finding]:
        """Yield ids with several contents, answers to missing content, unknown ids, and cycles."""
        for id in [id for id, digests in self._digests.items() if isinstance(digests, set)]:
            yield from self._check_contents(id)
        for each, reference in self._waiting:
            fault = self._fault(reference)
            if fault is not None:
                yield from _tell(each, reference, fault)
        edges = {id: [name for name in named if name in self._named] for id, named in self._named.items()}
        for id in sorted({id for component in cyclic_components(edges) for id in component}):
            yield note(
                "cycle",
                f"{id} names itself, directly or through others, as seen before it.",
                partial(self._where_id, id),
                "These references are ignored. gitmem does not write such records; ask the author.",
                command("gitmem", "thread", id),
            )

    def _check_contents(self, id: str) -> Iterator[Finding]:
        """Report an id with several contents; keep the names of its effective line."""
        lines = self._lines(id)
        read = [records.read_kind("signal", line) for line in lines]
        self._named.pop(id, None)
        if read and read[0] is not None and (named := _named(read[0])):
            self._named[id] = named
        contents = {content_of(record, digest_bytes(line)) for record, line in zip(read, lines, strict=True)}
        if len(contents) > 1:
            senders = sorted({record["sender_identity"] for record in read if record is not None})
            more = f" and {len(senders) - 3} more" if senders[3:] else ""
            yield problem(
                "two-contents",
                f"The id {id} has {len(contents)} different contents, by {', '.join(senders[:3])}{more}: "
                "its thread is ambiguous.",
                partial(self._where, lines[0]),
                "Ask its sender what was meant and answer a new signal; no decision applies to either content.",
                command("gitmem", "thread", id),
            )

    def _fault(self, of: _Reference) -> _Fault | None:
        """Return the faults of a reference, among the lines added so far, or None."""
        fault = _Fault()
        digests = self._digests.get(of.answered) if of.answered else None
        fault.missing = sorted({name for name in of.names if name not in self._digests})
        if of.digest and digests is not None:
            given = bytes.fromhex(of.digest)
            fault.is_other = given != digests if isinstance(digests, bytes) else given not in digests
        fault.lacks_digest = digests is not None and not of.digest and not of.is_imported
        return fault if fault.missing or fault.is_other or fault.lacks_digest else None

    def _lines(self, id: str) -> list[bytes]:
        """Return the lines of a signal, the effective one first."""
        return sorted(str(body).encode() for (body,) in self._db.execute(_LINES, (id,)))

    def _where_id(self, id: str) -> str:
        return self._where(self._lines(id)[0])


class _Reference:
    """The signals that a record names: the answered one, the digest of its line, and all of them."""

    def __init__(self, record: SignalRecord | ReceiptRecord) -> None:
        self.kind = record["kind"]
        self.signal_id = record["signal_id"]
        self.digest = record.get("answers_digest")
        self.answered: str | None = self.signal_id
        self.names: tuple[str, ...] = (self.signal_id,)
        self.is_imported = False
        if record["kind"] == "signal":
            self.answered, self.names = record.get("reply_to"), _named(record)
            self.is_imported = is_imported(record)


class _Fault:
    """Faults of a record: missing ids, an answer to other content, or an answer without a digest."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.is_other = False
        self.lacks_digest = False


def _named(record: SignalRecord) -> tuple[str, ...]:
    """Return the ids of the signals that the writer of a signal had seen."""
    answered = record.get("reply_to")
    return (*record.get("after", ()), *((answered,) if answered else ()))


def _tell(each: LogLine, reference: _Reference, fault: _Fault) -> Iterator[Finding]:
    kind, answered = reference.kind, reference.answered
    if fault.missing:
        yield note(
            "unknown-id",
            f"This {kind} names {', '.join(fault.missing[:3])}, missing from this log.",
            each.where,
            LATER,
            "gitmem sync",
        )
    if fault.is_other:
        yield problem(
            "swapped-content",
            f"This {kind} answers a version of {answered} that is missing from this log.",
            each.where,
            "It has no effect until that version arrives.",
            "gitmem sync",
        )
    if fault.lacks_digest:
        yield note(
            "no-digest",
            f"This signal answers {answered} without naming its version.",
            each.where,
            "It has no effect. gitmem always names the version; ask the author.",
            command("gitmem", "thread", reference.signal_id),
        )
