"""Check every line: its bytes, its form, its record, and the ids that it names.

All lines are read once in batches and not kept. Other checks use the index that is filled from them, and a small
summary of each signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from .. import records
from ..agents import mailbox
from ..index import entities
from ..index.catch_up import IndexFill
from ..index.index_file import sqlite3
from ..log import ledger, recovery, ref, tree_union
from ..log import lines as form
from ..log.union import canonical
from ..memory import relations
from ..memory.node_tables import NODE
from ..order.causal import find_cycles
from ..order.content import is_imported
from ..order.node import content_digest_text
from ..outcome import Struct, command
from ..records.lines import explain_unreadable as record_problem
from ..records.lines import read
from ..text.digests import hash_function_for
from ..text.sanitize import first_of
from . import log_ref
from .findings import Check, Examination, Finding, by, note, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


LATER = "It may arrive with the next sync; until then the reference is ignored."
_SHARED = (
    "SELECT signal_id FROM signal GROUP BY signal_id HAVING count(DISTINCT content) > 1 ORDER BY signal_id"
)
_LINES = "SELECT s.content, l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? ORDER BY l.body"
# Signals and receipts that name a signal, or its digest, which the log lacks; an answer without a digest is among them.
_LOOSE_IDS = (
    "SELECT body FROM (SELECT id, kind, body, json_extract(body, '$.answers_digest') AS named,"
    " json_extract(body, iif(kind = 'receipt', '$.signal_id', '$.reply_to')) AS answered"
    " FROM line WHERE kind IN ('signal', 'receipt')) WHERE (answered IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM signal s WHERE s.signal_id = answered AND lower(hex(s.digest)) = named))"
    " OR EXISTS (SELECT 1 FROM json_each(body, '$.after') j WHERE kind = 'signal'"
    " AND j.value NOT IN (SELECT signal_id FROM signal)) ORDER BY id"
)


class LogLine(Struct):
    """The first occurrence of a line in the log: its file, and its number in the file, counted from 1."""

    line: bytes
    path: str
    number: int
    file: int | None  # the file's number in the index, if the index reads it

    def where(self) -> str:
        """Return its location in the form of findings."""
        return f"{ref.LOG_REF}:{self.path}:{self.number}"


class RecordIds(Check):
    """Faults of ids of signals: those that lines name, and those that lines share.

    Args:
        where: Returns the location of a line.
    """

    codes = ("two-contents", "unknown-id", "swapped-content", "no-digest")

    def __init__(self, run: Examination, where: Callable[[bytes], str]) -> None:
        super().__init__(run)
        self._db = run.rebuilt.db
        self._where = where

    def check(self) -> Iterator[Finding]:
        """Yield ids with several contents, answers to missing content, and unknown ids."""
        for (id,) in self._db.execute(_SHARED).fetchall():
            found = [(content, str(body).encode()) for content, body in self._db.execute(_LINES, (id,))]
            read = [records.read_kind("signal", line) for _, line in found]
            senders = sorted({record["sender_identity"] for record in read if record is not None})
            finding = by(_is_own_ambiguity(found, self.store))
            yield finding(
                "two-contents",
                f"The id {id} has {len({content for content, _ in found})} different contents, by {first_of(senders, 3)}: "
                "its thread is ambiguous.",
                partial(self._where, found[0][1]),
                "Ask its sender what was meant and answer a new signal; no decision applies to either content.",
                command("gitmem", "thread", id),
            )
        for (body,) in self._db.execute(_LOOSE_IDS).fetchall():
            yield from self._check_named(str(body).encode())

    def _check_named(self, line: bytes) -> Iterator[Finding]:
        """Report the ids that a signal or a receipt names and the log lacks, and an answer to what it lacks."""
        record: Any = read(line)
        kind, id, digest = record["kind"], record["signal_id"], record.get("answers_digest")
        answered = id if kind == "receipt" else record.get("reply_to")
        names = {*record.get("after", ()), *([answered] if answered else [])}
        digests = mailbox.digests_of(self._db, names)
        missing, where = sorted(names - digests.keys()), partial(self._where, line)
        if missing:
            yield note(
                "unknown-id",
                f"This {kind} names {', '.join(missing[:3])}, missing from this log.",
                where,
                LATER,
                "gitmem sync",
            )
        if answered in digests and digest and bytes.fromhex(digest) not in digests[answered]:
            finding = by(form.writer_of(line) in self.store.own().writers)
            yield finding(
                "swapped-content",
                f"This {kind} answers a version of {answered} that is missing from this log.",
                where,
                "It has no effect until that version arrives.",
                "gitmem sync",
            )
        if answered in digests and not digest and not is_imported(record):
            yield note(
                "no-digest",
                f"This signal answers {answered} without naming its version.",
                where,
                "It has no effect. gitmem always names the version; ask the author.",
                command("gitmem", "thread", id),
            )


def _is_own_ambiguity(contents: Iterable[tuple[object, bytes]], store: Store) -> bool:
    """Return whether this user wrote several contents of one id; each comes with its line."""
    own = store.own().writers
    return len({content for content, line in contents if form.writer_of(line) in own}) > 1


T = TypeVar("T")


MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
AHEAD_MICROS = 60_000_000
LINES_AT_ONCE = 1_000
BYTES_AT_ONCE = 1024 * 1024
KEPT = "Nothing is lost: readers use the records and ignore the rest."

_IS_NODE = "EXISTS (SELECT 1 FROM node n WHERE n.id = {})"
_SEVERAL = "SELECT id FROM entity_line WHERE kind = 'node' AND event = 'node' GROUP BY id HAVING count(*) > 1 ORDER BY id"
_BLOCKING = _IS_NODE.format("{} AND n.state = 0 AND n.summarized_into IS NULL")
_PATCHED = f"SELECT line, id FROM entity_line p WHERE kind = 'node' AND event = 'patch' AND NOT {_IS_NODE.format('p.id')} ORDER BY line, id"
_LOOSE = (
    f"SELECT from_id, to_id, type, {_IS_NODE.format('from_id')}, {_IS_NODE.format('to_id')} FROM relation"
    " WHERE from_id NOT IN (SELECT id FROM node) OR to_id NOT IN (SELECT id FROM node)"
)
_BLOCKS = (
    "SELECT from_id, to_id FROM relation WHERE type = 'blocks'"
    f" AND {_BLOCKING.format('from_id')} AND {_BLOCKING.format('to_id')}"
)


class LogLines(Check):
    """One pass over the lines of the tip, for all checks and to fill an index."""

    codes = (
        *("crlf", "not-canonical", "odd-file", "deep-folder", "conflict-marker"),
        *("unreadable-line", "unknown-kind", "invalid-record", "future-line"),
    )

    def __init__(self, run: Examination) -> None:
        super().__init__(run)
        self._ids = RecordIds(run, self._where)
        self._nodes = MemoryNodes(run, self._where)
        self._fill = IndexFill(run.rebuilt)
        self._outside: set[bytes] = set()  # keys of lines that are only in files that the index does not read
        self._waiting: list[LogLine] = []
        self._size = 0
        self._limit = form.format_at(self.store.now() + AHEAD_MICROS)
        self._ahead = 0
        self._last_ahead: LogLine | None = None

    def check(self) -> Iterator[Finding]:
        """Yield the findings of every line, and of the references between lines."""
        progress = self.store.progress
        total = 0 if progress is None else self._count()
        for path, entry, content in log_ref.read_commits(self.run):
            if progress is not None:
                progress(self.run.step, len(self.run.seen.keys), max(total, len(self.run.seen.keys)))
            if entry.is_tree:
                self._filling(partial(self._fill.folder, path, entry.oid))
            else:
                yield from self._check_segment(path, entry.oid, content)
        if progress is not None:
            progress(self.run.step, len(self.run.seen.keys), len(self.run.seen.keys))
        yield from self._check_all(str(self.run.tip))
        self.store.git.close()  # a git process that has read every file holds 96 MB

    def _count(self) -> int:
        """Return how many lines the log has, as far as it can be read, for showing progress."""
        files = recovery.walk_contents(self.store.git, str(self.run.tip), lambda *_: None)
        return sum(content.count(b"\n") for path, _, content in files if tree_union.is_segment(path))

    def _check_segment(self, path: str, oid: str, content: bytes) -> Iterator[Finding]:
        """Check a segment and add its lines to the index."""
        yield from _check_form(content, f"{ref.LOG_REF}:{path}")
        file = self._filling(lambda: self._fill.segment(path, oid))
        seen, hashed = self.run.seen.keys, hash_function_for(LINES_AT_ONCE)
        lines = content.split(b"\n")
        if b"\r" in content:
            lines = [line.rstrip(b"\r") for line in lines]
        keys = [hashed(line).digest()[: ledger.KEY_BYTES] for line in lines]
        for number, (line, key) in enumerate(zip(lines, keys, strict=True), 1):
            if not line:
                continue
            if key not in seen:
                seen.add(key)
                self._waiting.append(LogLine(line, path, number, file))
                if file is None:
                    self._outside.add(key)
            elif file is not None and key in self._outside:
                self._outside.discard(key)
                self._filling(partial(self._fill.add, [(file, line)]))
        self._size += len(content)
        if len(self._waiting) >= LINES_AT_ONCE or self._size >= BYTES_AT_ONCE:
            yield from self._check_waiting()

    def _check_all(self, tip: str) -> Iterator[Finding]:
        """Run the checks that need all lines of the commit."""
        yield from self._check_waiting()
        self.run.checked["lines"] = len(self.run.seen.keys)
        # Without a tip, the next catch-up reads again what could not be read.
        self._filling(lambda: self._fill.end(None if self.run.damaged else tip))
        if self._last_ahead is not None:
            yield note(
                "future-line",
                f"{self._ahead} line{'s are' if self._ahead > 1 else ' is'} from the future, the last from "
                f"{self._last_ahead.line[7:34].decode()}: a clock is or was wrong.",
                self._last_ahead.where,
                "Set the clocks of all machines. Times affect only order and display.",
            )
        if self.run.failure is None:
            yield from self._ids.check()
            yield from self._nodes.check()
        else:
            yield problem(
                "not-checked",
                f"Cannot check references between records: {self.run.failure}.",
                "",
                "Free space for temporary files ($TMPDIR, /var/tmp), then run the command again.",
            )

    def _where(self, line: bytes) -> str:
        """Return the location of a line, from the index."""
        found = self._fill.segment_of(line)
        if found is None:
            return ref.LOG_REF
        path, oid = found
        every = [raw.rstrip(b"\r") for raw in self.store.git.blob(oid).split(b"\n")]
        return f"{ref.LOG_REF}:{path}:{every.index(line) + 1}"

    def _filling(self, step: Callable[[], T]) -> T | None:
        """Run a step that fills the index; skip it after a failure."""
        try:
            return step() if self.run.failure is None else None
        except sqlite3.Error as error:
            self.run.failure = error
            return None

    def _check_waiting(self) -> Iterator[Finding]:
        waiting, self._waiting, self._size = self._waiting, [], 0
        found = [read(each.line) for each in waiting]
        for each, record in zip(waiting, found, strict=True):
            if record is None or not _has_head(each.line):
                yield from self._check_unread(each)
            elif record["at"] > self._limit:
                self._ahead += 1
                if self._last_ahead is None or each.line > self._last_ahead.line:
                    self._last_ahead = each
        filled = [
            (each.file, each.line, record)
            for each, record in zip(waiting, found, strict=True)
            if each.file is not None
        ]
        lines = [(file, line) for file, line, _ in filled]
        self._filling(partial(self._fill.add, lines, [record for *_, record in filled]))

    def _check_unread(self, each: LogLine) -> Iterator[Finding]:
        """Report why a line is not a record of this version."""
        line = each.line
        if line.startswith(MARKERS):
            yield note(
                "conflict-marker",
                "A conflict marker, left by a merge without the merge driver.",
                each.where,
                f"{KEPT} `gitmem doctor` shows how to install the driver, which prevents this.",
            )
            return
        if form.validation_error(line) is not None:
            # Nobody can have attested it as it is.
            yield note(
                "unreadable-line",
                f"Not a valid line of the log: it {form.validation_error(line)}.",
                each.where,
                "If it was a record, its author's clone may have it complete: sync there. It is kept but not used.",
                "gitmem sync",
            )
            return
        reason = record_problem(line) or "it cannot be read"
        if "unknown" in reason or "schema_version" in reason:
            yield note(
                "unknown-kind",
                f"{reason}.",
                each.where,
                "A newer gitmem wrote it; upgrade to read it. It is kept.",
                "pip install --upgrade gitmem-coord",
            )
        else:
            yield note(
                "invalid-record",
                f"{reason}.",
                each.where,
                "Its author should write it again as a new record. It is kept but not used.",
            )


def _has_head(line: bytes) -> bool:
    """Return whether the time of a record ends as `form.problem` requires; `read` checks the rest."""
    return line[form.HEAD_BYTES - 2 : form.HEAD_BYTES] == b'",'


def _check_form(content: bytes, where: str) -> Iterator[Finding]:
    """Report a segment that is not canonical; it is read nevertheless."""
    if b"\r" in content:
        yield note(
            "crlf",
            "The file has carriage returns: an editor or a checkout changed its line endings.",
            where,
            f"{KEPT} The next union of this file removes them.",
        )
    elif content != canonical(content):
        yield note(
            "not-canonical",
            "The file's lines are not sorted, unique and newline-terminated.",
            where,
            f"{KEPT} The next union of this file corrects it.",
        )


class MemoryNodes(Check):
    """Faults of patches, nodes and relations.

    Args:
        where: Returns the location of a line.
    """

    codes = ("two-contents", "unknown-id", "circle")

    def __init__(self, run: Examination, where: Callable[[bytes], str]) -> None:
        super().__init__(run)
        self._db = run.rebuilt.db
        self._where = where

    def check(self) -> Iterator[Finding]:
        """Yield relations and patches of missing nodes, ambiguous ids, and nodes that block each other."""
        yield from self._check_contents()
        yield from self._check_patches()
        yield from self._check_relations()
        yield from self._check_cycles()

    def _check_contents(self) -> Iterator[Finding]:
        for (id,) in self._db.execute(_SEVERAL).fetchall():
            lines = entities.lines(self._db, NODE, id).of("node")
            contents = [(content_digest_text(row.record), row.line) for row in lines]
            several = len({content for content, _ in contents})
            if several > 1:
                finding = by(_is_own_ambiguity(contents, self.store))
                yield finding(
                    "two-contents",
                    f"The node id {id} has {several} different contents: the first in sort order is used.",
                    partial(self._where, lines[0].line),
                    "Ask the authors what was meant, and write that as a new node.",
                    command("gitmem", "show", id),
                )

    def _check_patches(self) -> Iterator[Finding]:
        for number, rows in groupby(self._db.execute(_PATCHED), key=lambda row: row[0]):
            missing = [id for _, id in rows]
            yield note(
                "unknown-id",
                f"This patch names {first_of(missing, 3)}, missing from this log.",
                partial(self._where_number, number),
                "They may arrive with the next sync; the patch is applied then.",
                "gitmem sync",
            )

    def _check_relations(self) -> Iterator[Finding]:
        for from_id, to_id, type, has_from, has_to in self._db.execute(_LOOSE).fetchall():
            missing = sorted({id for id, is_here in ((from_id, has_from), (to_id, has_to)) if not is_here})
            yield note(
                "unknown-id",
                f"{from_id} {type} {to_id}: this log lacks {' and '.join(missing)}.",
                partial(self._where_related, (from_id, to_id, type)),
                "It may arrive with the next sync; until then it has no effect.",
                "gitmem sync",
            )

    def _check_cycles(self) -> Iterator[Finding]:
        leads: dict[str, set[str]] = {}
        for from_id, to_id in self._db.execute(_BLOCKS):
            leads.setdefault(from_id, set()).add(to_id)
        for circle in find_cycles(leads):
            first, second = circle[0], [*circle, circle[0]][1]
            yield note(
                "circle",
                f"Cycle of blocking nodes, none of which can become ready: {' → '.join([*circle, first])}.",
                partial(self._where_related, (first, second, "blocks")),
                "Remove one of these relations, or close one of the nodes.",
                command("gitmem", "mem", "relate", first, "blocks", second, "--remove"),
            )

    def _where_number(self, number: int) -> str:
        (body,) = self._db.execute("SELECT body FROM line WHERE id = ?", (number,)).fetchone()
        return self._where(str(body).encode())

    def _where_related(self, relation_key: tuple[str, str, str]) -> str:
        last = relations.last_event(self._db, relation_key)
        return self._where(last.line) if last is not None else ""
