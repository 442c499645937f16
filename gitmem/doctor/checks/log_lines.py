"""Check every line: its bytes, its form, and its record.

All lines are read once in batches and not kept. Other checks use the index that is filled from them, and a small
summary of each signal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TypeVar

from ...digests import hash_function_for
from ...index.engine import sqlite3
from ...index.fill import IndexFill
from ...log import ledger, recovery, ref, tree_union
from ...log import lines as form
from ...log.union import canonical
from ...memory import bulk_values, load, relations
from ...memory.node_fold import content_digest_text
from ...order.cycles import find_cycles
from ...outcome import command
from ...records.lines import explain_unreadable as record_problem
from ...records.lines import read
from ..findings import Check, Examination, Finding, note, problem
from . import log_commits, record_ids
from .record_ids import LogLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...records.record_types import PatchRecord

T = TypeVar("T")


MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
AHEAD_MICROS = 60_000_000
LINES_AT_ONCE = 1_000
BYTES_AT_ONCE = 1024 * 1024
KEPT = "Nothing is lost: readers use the records and ignore the rest."

_IS_NODE = "EXISTS (SELECT 1 FROM node n WHERE n.id = {})"
_BLOCKING = _IS_NODE.format("{} AND n.state = 0 AND n.summarized_into IS NULL")
_PATCHED = f"SELECT line, id FROM patch_of p WHERE NOT {_IS_NODE.format('p.id')} ORDER BY line, id"
_LOOSE = (
    f"SELECT from_id, to_id, type, {_IS_NODE.format('from_id')}, {_IS_NODE.format('to_id')} FROM relation"
    " WHERE from_id NOT IN (SELECT id FROM node) OR to_id NOT IN (SELECT id FROM node)"
)
_BLOCKS = (
    "SELECT from_id, to_id FROM relation WHERE type = 'blocks'"
    f" AND {_BLOCKING.format('from_id')} AND {_BLOCKING.format('to_id')}"
)
_SUMMARIZED = (
    "SELECT id, summarized_into FROM node WHERE summarized_into IS NOT NULL AND summarized_into <> id"
)


class LogLines(Check):
    """One pass over the lines of the tip, for all checks and to fill an index."""

    codes = (
        *("crlf", "not-canonical", "odd-file", "conflict-marker", "torn-line", "unreadable-line"),
        *("unknown-kind", "invalid-record", "future-line"),
    )

    def __init__(self, run: Examination) -> None:
        super().__init__(run)
        self._ids = record_ids.RecordIds(run, self._where)
        self._nodes = MemoryNodes(run, self._where)
        self._fill = IndexFill(run.rebuilt)
        self._outside: set[bytes] = set()  # keys of lines that are only in files that the index does not read
        self._waiting: list[LogLine] = []
        self._size = 0
        self._torn: list[LogLine] = []  # invalid lines that may be the beginning of a line
        self._limit = form.format_at(self.store.now() + AHEAD_MICROS)
        self._ahead = 0
        self._last_ahead: LogLine | None = None

    def check(self) -> Iterator[Finding]:
        """Yield the findings of every line, and of the references between lines."""
        progress = self.store.progress
        total = 0 if progress is None else self._count()
        for path, entry, content in log_commits.read(self.run):
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
        if self._torn:
            yield from self._check_torn(tip)
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
        records = [read(each.line) for each in waiting]
        by_kind: dict[str, list[tuple[LogLine, Any]]] = {}
        unread = []
        for each, record in zip(waiting, records, strict=True):
            if record is None or not _has_head(each.line):
                unread.append(each)
                continue
            by_kind.setdefault(record["kind"], []).append((each, record))
            if record["at"] > self._limit:
                self._ahead += 1
                if self._last_ahead is None or each.line > self._last_ahead.line:
                    self._last_ahead = each
        for kind in ("signal", "receipt"):
            self._ids.add(kind, [found for found in by_kind.get(kind, ()) if found[0].file is not None])
        for each, patch in by_kind.get("patch", ()):
            yield from self._nodes.check_patch(each, patch)
        for each in unread:
            yield from self._check_unread(each)
        filled = [
            (each.file, each.line, record)
            for each, record in zip(waiting, records, strict=True)
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
            if len(line) > form.LINE_MAX_BYTES:
                yield _unreadable(each)
            else:
                self._torn.append(each)
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
            yield problem(
                "invalid-record",
                f"{reason}.",
                each.where,
                "Its author should write it again as a new record. It is kept but not used.",
            )

    def _check_torn(self, tip: str) -> Iterator[Finding]:
        """Report invalid lines: as torn if the log has the whole line, else as unreadable."""
        files = recovery.walk_contents(self.store.git, tip, lambda *_: None)
        lines = (
            raw.rstrip(b"\r")
            for path, entry, content in files
            if tree_union.is_plain_segment(path, entry)
            for raw in content.split(b"\n")
        )
        found = torn((each.line for each in self._torn), lines, _is_record)
        for each in self._torn:
            if each.line in found:
                what = "A truncated copy of a line that is also present in full."
                yield note("torn-line", what, each.where, KEPT)
            else:
                yield _unreadable(each)


def torn(suspects: Iterable[bytes], lines: Iterable[bytes], is_whole: Callable[[bytes], bool]) -> set[bytes]:
    """Return the suspects that are the beginning of a whole line.

    If such a line exists, the first whole line that sorts after the suspect is one. So only the first of the lines
    between two suspects is kept.

    Args:
        suspects: Lines that are not whole.
        lines: All lines, in any order.
        is_whole: Returns whether a line is whole; called for few lines.
    """
    every = sorted(suspects)
    first: dict[int, bytes] = {}  # n: the first whole line between the suspects n and n + 1
    for line in lines:
        at = bisect_left(every, line)
        known = first.get(at)
        if at and (known is None or line < known) and is_whole(line):
            first[at] = line
    found: set[bytes] = set()
    following: bytes | None = None
    for number in range(len(every), 0, -1):
        following = first.get(number, following)
        if following is not None and following.startswith(every[number - 1]):
            found.add(every[number - 1])
    return found


def _unreadable(each: LogLine) -> Finding:
    return problem(
        "unreadable-line",
        f"Not a valid line of the log: it {form.validation_error(each.line)}.",
        each.where,
        "If it was a record, its author's clone may have it complete: sync there. It is kept but not used.",
        "gitmem sync",
    )


def _is_record(line: bytes) -> bool:
    return read(line) is not None and _has_head(line)


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

    codes = ("left-aside", "two-contents", "unknown-id", "summary-circle", "circle")

    def __init__(self, run: Examination, where: Callable[[bytes], str]) -> None:
        super().__init__(run)
        self._db = run.rebuilt.db
        self._where = where

    def check_patch(self, each: LogLine, record: PatchRecord) -> Iterator[Finding]:
        """Report values of a patch that are too large to count."""
        aside = bulk_values.ignored_fields(record)
        if aside:
            yield note(
                "left-aside",
                f"This patch names several nodes, and its {' and '.join(aside)} "
                f"{'are' if aside[1:] else 'is'} larger than the {bulk_values.SIZE_MAX} bytes that count there.",
                each.where,
                "These fields are ignored; the rest of the patch is applied. Write them again, one node at a time.",
                "gitmem mem update --help",
            )

    def check(self) -> Iterator[Finding]:
        """Yield relations and patches of missing nodes, ambiguous ids, and nodes that block each other."""
        yield from self._check_contents()
        yield from self._check_summaries()
        yield from self._check_patches()
        yield from self._check_relations()
        yield from self._check_cycles()

    def _check_contents(self) -> Iterator[Finding]:
        for (id,) in self._db.execute("SELECT DISTINCT id FROM node_again ORDER BY id").fetchall():
            lines = load.lines_of(self._db, [id]).get(id, [])
            contents = {content_digest_text(record) for record, _ in lines}
            if len(contents) > 1:
                yield problem(
                    "two-contents",
                    f"The node id {id} has {len(contents)} different contents: the first in sort order is used.",
                    partial(self._where, min(line for _, line in lines)),
                    "Ask the authors what was meant, and write that as a new node.",
                    command("gitmem", "mem", "show", id),
                )

    def _check_patches(self) -> Iterator[Finding]:
        for number, rows in groupby(self._db.execute(_PATCHED), key=lambda row: row[0]):
            missing = [id for _, id in rows]
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            yield note(
                "unknown-id",
                f"This patch names {', '.join(missing[:3])}{more}, missing from this log.",
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

    def _check_summaries(self) -> Iterator[Finding]:
        """Report cycles of nodes that are each other's summary: none of them hides another."""
        leads = {id: {into} for id, into in self._db.execute(_SUMMARIZED)}
        for circle in find_cycles(leads):
            yield note(
                "summary-circle",
                f"Cycle of summaries: {' → '.join([*circle, circle[0]])}.",
                partial(self._where_node, circle[0]),
                "None of these summaries takes effect. gitmem does not write such records; ask the author.",
                command("gitmem", "mem", "show", circle[0]),
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

    def _where_node(self, id: str) -> str:
        (number,) = self._db.execute("SELECT line FROM node WHERE id = ?", (id,)).fetchone()
        return self._where_number(number)

    def _where_related(self, relation_key: tuple[str, str, str]) -> str:
        last = relations.last_event(self._db, relation_key)
        return self._where(last.line) if last is not None else ""
