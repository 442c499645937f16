"""The nodes that a context may show, best first, as pieces of its text; and a text of sections and pieces within a budget.

Indexed files are named, not copied. The sections of the project have few nodes, so that those of the work unit get room.
Only lines of gitmem itself start at the margin. Text of others follows a prefix of gitmem's or a bar, so it cannot imitate a
heading, the frame or another piece.
"""

from __future__ import annotations

from ..commit_message import clip, cut
from ..errors import UsageError
from ..log.lines import format_at
from ..order.node import STATUS, SUMMARY
from ..outcome import Struct, command
from ..records.ids import unit_key
from ..signals import task_records
from ..signals.task_records import TaskRecords
from ..text.sanitize import minute, sanitize_for_model
from ..text.strict_json import json_list
from . import anchors, decay, relations, stored_nodes
from .node_tables import HIDDEN
from .stored_nodes import CLOCK_SKEW_MAX, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..order.node import VersionedNode
    from ..store import Store

    FormatOmitted = Callable[[Mapping[str, int], int | None], str]


HEAD = "- "
BAR = "  | "
CUT_MARK = "…"
CUT_MIN = 120  # bytes of a cut line
PART = 4  # a piece gets at most 1/PART of the budget while others compete for it


class Section:
    """Lines to print in a section. The first line starts with words of gitmem.

    Args:
        rank: The lowest is selected first; ranks must be unique.
        id: The name of the piece in the result.
        more: The command that shows the whole piece; without it the piece is printed whole or not at all.
        part: The piece gets at most 1/part of the budget while others compete for it.
        cuts_line: Cut the first line if not even that fits, instead of printing nothing.
    """

    def __init__(
        self,
        section: str,
        rank: tuple[int, int, str],
        id: str,
        lines: Sequence[str],
        *,
        more: str | None = None,
        part: int = PART,
        cuts_line: bool = False,
    ) -> None:
        self.section = section
        self.rank = rank
        self.id = id
        self.lines = list(lines)
        self.more = more
        self.part = part
        self.cuts_line = cuts_line
        self.sizes = [size(line) for line in self.lines]
        self.whole = sum(self.sizes)

    def within(self, room: int) -> list[str] | None:
        """Return the lines that fit in `room` bytes.

        Returns:
            All lines, or the first ones and a note with the number of the others; None if not even one fits, or with
            `cuts_line` not even a part of the first.
        """
        if self.whole <= room:
            return self.lines
        if self.more is None:
            return None
        left = room - size(self._note(len(self.lines)))
        count = 0
        while count < len(self.lines) - 1 and self.sizes[count] <= left:
            left -= self.sizes[count]
            count += 1
        if not count and self.cuts_line:
            start = (
                self.lines[0]
                .encode("utf-8", "backslashreplace")[: left - size(CUT_MARK)]
                .decode(errors="ignore")
            )
            return [start + CUT_MARK, self._note(len(self.lines))] if left > CUT_MIN else None
        return [*self.lines[:count], self._note(len(self.lines) - count)] if count else None

    def _note(self, count: int) -> str:
        return f"  ({count} more line{'s' if count > 1 else ''}: {self.more})"


class BudgetedText(Struct):
    """The printed text.

    Attributes:
        text: Without a newline at its end; with one it is within the budget.
        included: Ids by section, without empty sections.
        left_out: Numbers of omitted pieces by section, without empty sections.
        shortened: Ids of pieces of which only the first lines are shown.
    """

    text: str = ""
    included: dict[str, list[str]] = {}
    left_out: dict[str, int] = {}
    shortened: list[str] = []


def size(line: str) -> int:
    """Return the bytes of a line with its newline."""
    return len(line.encode("utf-8", "backslashreplace")) + 1


def quote_lines(head: str, text: str) -> list[str]:
    """Return somebody's text as lines: gitmem's `head` before the first line, a bar before the others."""
    safe = sanitize_for_model(text.replace("\r\n", "\n"), keep="\n\t")
    lines = [line.rstrip() for line in safe.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return [f"{head} {lines[0]}" if lines else head, *((BAR + line).rstrip() for line in lines[1:])]


def pack(
    pieces: Iterable[Section],
    *,
    frame: Sequence[str],
    sections: Sequence[str],
    max_size: int,
    omitted: FormatOmitted,
    unread: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
    always: bool = False,
) -> BudgetedText:
    """Select and print the pieces that fit.

    1. If everything fits whole, print everything.
    2. Else select by rank; each piece gets at most its part of the budget, and each section at most its own.
    3. Pieces that were too long for that get the remaining space, by rank.

    Args:
        frame: The lines before everything else, whatever the budget.
        sections: The headings, in print order.
        max_size: Bytes of UTF-8, with the newline at the end.
        omitted: Formats the line about omitted pieces, given their numbers by section and the budget that would be
            enough (None if unknown).
        unread: Numbers of further pieces by section; the caller did not load these.
        limits: The most bytes of a section while others compete for the budget.
        always: Print the frame even without pieces; otherwise the text is empty then.

    Raises:
        UsageError: The frame and the line about omitted pieces do not fit.
    """
    every = sorted(pieces, key=lambda piece: piece.rank)
    packing = _Packing(every, frame, sections, max_size, omitted, dict(unread or {}))
    if not always and not any(packing.left.values()):
        return BudgetedText()
    if packing.enough + packing.size_of_unread() <= max_size:
        for piece in every:
            packing.take(piece, piece.lines)
        return packing.block()
    packing.check()
    later = []
    for piece in every:
        limit = (limits or {}).get(piece.section, max_size) - packing.used.get(piece.section, 0)
        room = min(packing.room(piece), max_size // piece.part, limit)
        shown = piece.within(room)
        if shown is None:
            later.append(piece)
        else:
            packing.take(piece, shown)
    for piece in later:
        shown = piece.within(packing.room(piece))
        if shown is not None:
            packing.take(piece, shown)
    return packing.block()


class _Packing:
    """The state of a text while pieces are added."""

    def __init__(
        self,
        every: Sequence[Section],
        frame: Sequence[str],
        sections: Sequence[str],
        max_size: int,
        omitted: FormatOmitted,
        unread: dict[str, int],
    ) -> None:
        self.every = every
        self.frame = list(frame)
        self.sections = sections
        self.max_size = max_size
        self.omitted = omitted
        self.unread = unread
        self.shown: dict[str, list[str]] = {}
        self.left = {section: unread.get(section, 0) for section in sections}
        self.used: dict[str, int] = {}  # bytes by section, without its heading
        for piece in every:
            self.left[piece.section] += 1
        self.framed = sum(map(size, frame))
        self.printed = self.framed
        present = {piece.section for piece in every}
        self.enough = self.framed + sum(piece.whole for piece in every) + sum(map(self._heading, present))

    def _heading(self, section: str) -> int:
        return size(f"## {section}") + 1  # 1: the empty line before it

    def _last(self, left: Mapping[str, int]) -> list[str]:
        """Return the end of the text: an empty line, and the line about omitted pieces."""
        if not any(left.values()):
            return []
        enough = None if any(self.unread.values()) else self.enough
        return ["", self.omitted({name: count for name, count in left.items() if count}, enough)]

    def size_of_unread(self) -> int:
        """Return the bytes of the line about the items that the caller did not load."""
        return sum(map(size, self._last(self.unread)))

    def check(self) -> None:
        """Check that something fits.

        Raises:
            UsageError: Nothing fits.
        """
        least = self.framed + sum(map(size, self._last(self.left)))
        if not any(self.unread.values()):
            least = min(least, self.enough)  # a short text may be shorter than the line about its omission
        if least > self.max_size:
            raise UsageError(
                f"The budget of {self.max_size} bytes is too small for one line.",
                hint=f"The minimum here is --max-size {least}.",
                code="budget-too-small",
            )

    def room(self, piece: Section) -> int:
        """Return the bytes left for the lines of a piece, after the line about the pieces that remain omitted."""
        left = {**self.left, piece.section: self.left[piece.section] - 1}
        heading = 0 if piece.section in self.used else self._heading(piece.section)
        return self.max_size - self.printed - heading - sum(map(size, self._last(left)))

    def take(self, piece: Section, lines: list[str]) -> None:
        if piece.section not in self.used:
            self.printed += self._heading(piece.section)
        taken = piece.whole if lines is piece.lines else sum(map(size, lines))
        self.used[piece.section] = self.used.get(piece.section, 0) + taken
        self.printed += taken
        self.left[piece.section] -= 1
        self.shown[piece.id] = lines

    def block(self) -> BudgetedText:
        block = BudgetedText()
        lines = list(self.frame)
        for section in self.sections:
            chosen = [piece for piece in self.every if piece.section == section and piece.id in self.shown]
            if chosen:
                lines += ["", f"## {section}"]
                block.included[section] = [piece.id for piece in chosen]
            for piece in chosen:
                lines += self.shown[piece.id]
                if self.shown[piece.id] is not piece.lines:
                    block.shortened.append(piece.id)
        block.left_out = {name: count for name, count in self.left.items() if count}
        block.text = "\n".join([*lines, *self._last(self.left)])
        return block


PROFILE, SUMMARIES, WORK, DISCOVERIES = "Project Profile", "Summaries", "WU Context", "Discoveries"
# Nodes of other clones, and of one writer of them, that rank beside those of this clone.
OTHERS_MAX, OTHER_MAX = 5, 3
AFTER_MICROS = 10**18  # how far the others rank below: more than any value
ROW_FACTOR = 7  # rows read, as a multiple of those that are loaded: the best of other writers may rank below

SEEN = f"n.state < {HIDDEN} AND n.state = 0 AND (n.summarized_into IS NULL OR NOT {IS_SUMMARIZED})"
_PROJECT = "n.lifecycle = 'project' AND (:lane IS NULL OR n.lane IS NULL OR n.lane = :lane)"
# A summary of the work unit belongs to its sections, whatever its lifecycle.
_OWN_SUMMARY = "n.wu_id = :wu AND n.type = 'summary'"
_WORK_UNIT = f"n.wu_id IS :wu AND (NOT ({_PROJECT}) OR {_OWN_SUMMARY})"
# Copies of files, see `candidates.is_indexed_file`. The text is searched first: that costs less than reading JSON.
_FILE = (
    "EXISTS (SELECT 1 FROM line l WHERE l.id = n.line AND instr(l.body, '\"source_path\"')"
    " AND json_type(l.body, '$.metadata.source_path') = 'text')"
)
_OWN = "n.session_id IN (SELECT name FROM own)"
# Who wrote a node: "" for a session of this clone.
_AUTHOR = f"CASE WHEN {_OWN} THEN '' ELSE coalesce(n.sender, n.session_id, '?') END"
_SECTION = (
    f"CASE n.type WHEN 'summary' THEN '{SUMMARIES}' WHEN 'discovery' THEN '{DISCOVERIES}' ELSE '{WORK}' END"
)


_OF_CONTEXT = "(n.wu_id IS :wu OR n.lifecycle = 'project')"
_HIDDEN_BY_OTHERS = (
    f"SELECT count(*) FROM node n WHERE n.hidden_by_other AND {_OF_CONTEXT} AND ((n.state >= {HIDDEN}"
    f" AND n.hidden_by_other & {STATUS}) OR (n.hidden_by_other & {SUMMARY} AND {IS_SUMMARIZED}))"
)
# Not superseded by its author: the writer of the relation counts, not that of the node that supersedes.
_REPLACED_BY_OTHERS = (
    f"SELECT count(*) FROM superseded u CROSS JOIN node n ON n.id = u.id WHERE {_OF_CONTEXT} AND {SEEN} AND NOT EXISTS"
    " (SELECT 1 FROM relation r JOIN node o ON o.id = r.from_id AND o.state = 0"
    " JOIN relation_event v ON v.from_id = r.from_id AND v.to_id = r.to_id AND v.type = r.type"
    " JOIN line l ON l.id = v.line WHERE r.to_id = n.id AND r.type = 'supersedes'"
    " AND json_extract(l.body, '$.sender_identity') = n.sender AND json_extract(l.body, '$.removed') IS NOT 1)"
)


def count_hidden(db: sqlite3.Connection, wu: str | None) -> int:
    """Count the nodes of a work unit and of the project that others than their authors have hidden."""
    values = {"wu": unit_key(wu) or None}
    (changed,) = db.execute(_HIDDEN_BY_OTHERS, values).fetchone()
    (replaced,) = db.execute(_REPLACED_BY_OTHERS, values).fetchone()
    return int(changed) + int(replaced)


def paths_of(db: sqlite3.Connection, wu: str, most: int) -> list[str]:
    """Return the files that the nodes of a work unit are about, the most frequent first, up to a number."""
    rows = db.execute(
        f"SELECT a.path, count(*), max(n.touched) FROM node n JOIN anchor a ON a.id = n.id WHERE n.wu_id = ? AND {SEEN}"
        " GROUP BY a.path ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?",
        (unit_key(wu), most),
    )
    return [path for path, _, _ in rows]


def of_project(db: sqlite3.Connection) -> str:
    """Return the condition on a row `n` of `node` that it is shown as one of the project, or in place of one of them."""
    own = f"n.lifecycle = 'project' AND {SEEN}"
    if not relations.is_any_superseded(db):
        return own
    return (
        f"({own}{relations.and_live(db)} OR n.id IN (SELECT e.id FROM superseded u CROSS JOIN node o ON o.id = u.id"
        f"{relations.IN_PLACE} WHERE {own.replace('n.', 'o.')}))"
    )


class Selection(Struct):
    """Which nodes a context may show, and their order.

    Attributes:
        wu: The work unit; None for nodes without one.
        lane: Leave out project nodes of other lanes; None includes every lane.
        by_decay: Rank by decay score instead of by time.
        half_life: In microseconds; a stale node is ranked as if it were older, by as much as halves its score.
        without: Nodes that are shown elsewhere.
        with_files: Show indexed files as other nodes of the project instead of naming them.
    """

    wu: str | None
    lane: str | None
    by_decay: bool = False
    half_life: int = decay.HALF_LIFE_MICROS
    without: Sequence[str] = ()
    with_files: bool = False


class CandidateRow(Struct):
    """A node that may be shown. The greatest `value`, a time in microseconds, is the best.

    Attributes:
        author: Who wrote it; "" for a session of this clone.
        is_file: Whether it is an indexed file of the project, to be named only.
    """

    id: str
    section: str
    value: int
    author: str = ""
    is_file: bool = False


def _best_rows(rows: Iterable[CandidateRow], wanted: int) -> list[CandidateRow]:
    """Return a number of rows, the best first."""
    given = sorted(rows, key=_order)
    if any(not row.author for row in given):
        _rank_others(given)
    return sorted(given, key=_order)[:wanted]


def _order(row: CandidateRow) -> tuple[int, str]:
    return -row.value, row.id


def _rank_others(rows: Sequence[CandidateRow]) -> None:
    """Rank nodes of other clones, but for a share, below those of this clone: nobody's number of nodes pushes ours out.

    Args:
        rows: Best first.
    """
    written: dict[str, int] = {}
    left = OTHERS_MAX
    for row in rows:
        written[row.author] = written.get(row.author, 0) + 1
        if row.author and (left <= 0 or written[row.author] > OTHER_MAX):
            row.value -= AFTER_MICROS
        left -= bool(row.author) and written[row.author] <= OTHER_MAX


class RowReader:
    """Reads the rows of a selection. Only ranking by decay reads all of them."""

    def __init__(self, store: Store, wanted: Selection) -> None:
        self._db = store.db()
        self._now = store.now()
        self._wanted = wanted
        without = json_list(wanted.without)
        until = self._now + CLOCK_SKEW_MAX
        self._values: dict[str, str | int | None] = {
            "wu": unit_key(wanted.wu) or None,
            "lane": wanted.lane,
            "without": without,
            "until": until,
        }
        self._seen = SEEN
        if wanted.without:
            self._seen += " AND n.id NOT IN (SELECT value FROM json_each(:without))"
        self._live = relations.and_live(self._db)

    def of_project(self, wanted: int) -> tuple[list[CandidateRow], dict[str, int]]:
        """Return the best rows of the project, without summaries of the work unit; and the number of all of them.

        Indexed files that are only named come on top: no number of them keeps the others from being read.
        """
        file = "0" if self._wanted.with_files else _FILE
        every, count = self._rows(f"{_PROJECT} AND ({_OWN_SUMMARY}) IS NOT 1", f"'{PROFILE}'", wanted, file)
        counts = {PROFILE: len(every)}
        if count:
            # Counted by the columns of an index: the number of all, less that of the summaries of the work unit.
            counts = {PROFILE: self._count(_PROJECT) - self._count(f"{_PROJECT} AND {_OWN_SUMMARY}")}
        rows, files = ([row for row in every if row.is_file is named] for named in (False, True))
        self._add_live_ends(_PROJECT, f"'{PROFILE}'", rows, counts)
        return [*_best_rows(rows, wanted), *_best_rows(files, wanted)], counts

    def of_work_unit(self, wanted: int) -> tuple[list[CandidateRow], dict[str, int]]:
        """Return the best rows of the work unit, with its summaries of any lifecycle; and the number of all by section."""
        rows, count = self._rows(_WORK_UNIT, _SECTION, wanted)
        counts: dict[str, int] = {}
        for row in rows:
            counts[row.section] = counts.get(row.section, 0) + 1
        if count:
            # Group by the columns of the index in their order: no sort, and no access to the table.
            asked = f"SELECT {_SECTION}, count(*) FROM node n WHERE {_WORK_UNIT} AND {self._seen}{self._live}"
            grouped = self._db.execute(f"{asked} GROUP BY n.lifecycle, n.type, n.lane", self._values)
            counts = {}
            for name, number in grouped:
                counts[name] = counts.get(name, 0) + number
        self._add_live_ends(_WORK_UNIT, _SECTION, rows, counts)
        return _best_rows(rows, wanted), counts

    def _count(self, where: str) -> int:
        return stored_nodes.count(self._db, f"{where} AND {self._seen}{self._live}", self._values)

    def _rows(
        self, where: str, section: str, wanted: int, file: str = "0"
    ) -> tuple[list[CandidateRow], bool]:
        """Return the best rows, unordered, and whether there may be others that must be counted.

        Args:
            file: Tells which of them are files to be named only; as many of these are read besides the others.
        """
        where = f"{where} AND {self._seen}{self._live}"
        if self._wanted.by_decay:
            every = self._db.execute(
                f"SELECT n.id, {section}, {_AUTHOR}, {file}, n.touched, n.priority, a.count FROM node n"
                f" LEFT JOIN access a ON a.id = n.id WHERE {where}",
                self._values,
            )
            return [
                CandidateRow(id, name, self._value(*rest), author, bool(is_file))
                for id, name, author, is_file, *rest in every
            ], False
        most = ROW_FACTOR * wanted
        asked = (
            f"SELECT n.id, {section}, %s, {_AUTHOR}, {file} FROM node n WHERE {where} AND n.touched %s :until"
        )
        # The index has this order, so SQLite reads only the rows that are taken.
        best = self._db.execute(asked % ("n.touched", "<=") + " ORDER BY n.touched DESC, n.id", self._values)
        rows: list[CandidateRow] = []
        left = [most + 1, most + 1]  # others and files
        for id, name, touched, author, is_file in best:
            left[is_file] -= 1
            if left[is_file] >= 0:
                rows.append(CandidateRow(id, name, touched, author, bool(is_file)))
            if not left[0]:
                break
        best.close()
        values = {**self._values, "most": most + 1}
        if not left[0]:  # others may have written so many that none of this clone was read
            known = {row.id for row in rows}
            own = self._db.execute(
                asked % ("n.touched", "<=") + f" AND {_OWN} ORDER BY n.touched DESC, n.id LIMIT :most", values
            )
            rows += [
                CandidateRow(id, name, touched, author, bool(is_file))
                for id, name, touched, author, is_file in own
                if id not in known
            ]
        # Nodes of a future time (a wrong clock, or a forged time) must not rank first.
        for id, name, value, author, is_file in self._db.execute(asked % ("0", ">") + " LIMIT :most", values):
            rows.append(CandidateRow(id, name, value, author, bool(is_file)))
        return rows, len(rows) > most

    def _value(self, touched: int, priority: str | None, count: int | None) -> int:
        """Return the time that a node of no priority and without accesses would need for the same score."""
        from math import log

        weight = decay.importance(priority) * (1 + decay.access(count or 0))
        return min(touched, self._now) + int(self._wanted.half_life * log(weight))

    def _add_live_ends(
        self, where: str, section: str, rows: list[CandidateRow], counts: dict[str, int]
    ) -> None:
        """Add what is shown in place of superseded nodes of the selection, unless it is of the selection itself."""
        if not self._live:
            return
        itself = f"({where}) AND {SEEN}".replace("n.", "e.")
        found = self._db.execute(
            f"SELECT e.id, min({section}), {_AUTHOR.replace('n.', 'e.')}, e.touched, e.priority, a.count FROM superseded u CROSS JOIN node n ON n.id = u.id"
            f"{relations.IN_PLACE} LEFT JOIN access a ON a.id = e.id WHERE {where} AND {self._seen}"
            f" AND ({itself}) IS NOT 1 AND e.id NOT IN (SELECT value FROM json_each(:without)) GROUP BY e.id",
            self._values,
        )
        for id, name, author, touched, priority, count in found:
            counts[name] = counts.get(name, 0) + 1
            value = self._value(touched, priority, count) if self._wanted.by_decay else touched
            rows.append(CandidateRow(id, name, value if touched <= self._values["until"] else 0, author))


FILES = "Indexed Files"
UNIT_SECTIONS = (SUMMARIES, WORK, DISCOVERIES)
SECTIONS = (PROFILE, FILES, *UNIT_SECTIONS)
NODES_MAX = {PROFILE: 10, SUMMARIES: 5}  # as LumenFlow has them
LINE_MIN = 32  # bytes of the shortest line that a node can have
LOAD_MIN = 128  # nodes to load at least: the report of omitted nodes must not depend on a small budget
PROJECT_LOAD = 40  # nodes of the project to load: some are stale
TAGS_MAX = 3  # tags in the line of a node
NAME_MAX = 60  # characters of a writer's name
NAMES_MAX = 200  # characters of all writers of a node, with the identities of unconfirmed names
REPLACED_MAX = 2  # superseded nodes in the lines of the node that supersedes them
REPLACED_TEXT_MAX = 100  # characters
THREADS, HERE, NODES, LAST = 2, 3, 4, 5  # the first number of ranks, in their order


class Candidates(Struct):
    """Nodes as pieces of a text, and the numbers of further nodes by section."""

    pieces: Sequence[Section]
    unread: Mapping[str, int]


def find(store: Store, wanted: Selection, max_size: int) -> Candidates:
    """Return the nodes of the project and of a work unit that fit in `max_size` bytes."""
    most = max(max_size // LINE_MIN + 1, LOAD_MIN)
    reader = RowReader(store, wanted)
    # In this order: a node of the work unit that stands for one of the project is shown among its own.
    own, counts = reader.of_work_unit(most)
    project, of_project = reader.of_project(PROJECT_LOAD)
    counts = {section: counts.get(section, 0) + of_project.get(section, 0) for section in SECTIONS}
    best = sorted(_with_nodes(store, [*own, *project], wanted), key=lambda each: _order(each[0]))
    nodes = [node for _, node, _ in best]
    again = repeated(nodes)
    replaced = replaced_lines(store.db(), [node.id for node in nodes])
    shown: dict[str, list[str]] = {section: [] for section in SECTIONS}
    tasks = TaskRecords(store.db())
    pieces = []
    for row, node, stale in best:
        counts[row.section] -= 1
        if node.id in again or any(node.id in ids for ids in shown.values()):
            continue
        is_named = is_indexed_file(node) and not wanted.with_files
        section = FILES if is_named else row.section
        if len(shown[section]) >= NODES_MAX.get(section, most):
            counts[section] += 1
            continue
        shown[section].append(node.id)
        if is_named:
            pieces.append(_file_piece(node, row.value, stale))
        else:
            further = [*replaced.get(node.id, ()), *contradictions(tasks, node)]
            pieces.append(piece(section, node, row.value, stale, further))
    return Candidates(pieces, counts)


def repeated(nodes: Sequence[VersionedNode]) -> set[str]:
    """Return the nodes whose text another one of these has: sources of promoted nodes, and repeated promotions.

    `promoted_from` of other writers is not reliable: a node stands for another one only if the content is the same.

    Args:
        nodes: Of several that were promoted from one node, the first is kept.
    """
    kept: dict[tuple[str, str], str] = {}
    found = set()
    for node in nodes:
        source = node.metadata.get("promoted_from")
        if isinstance(source, str) and kept.setdefault((source, node.content), node.id) != node.id:
            found.add(node.id)
    found.update(node.id for node in nodes if kept.get((node.id, node.content), node.id) != node.id)
    return found


def is_indexed_file(node: VersionedNode) -> bool:
    """Return whether a node is the copy of a file that `mem index` or LumenFlow made."""
    return isinstance(node.metadata.get("source_path"), str)


def _with_nodes(
    store: Store, rows: Sequence[CandidateRow], wanted: Selection
) -> Iterator[tuple[CandidateRow, VersionedNode, str | None]]:
    """Yield rows with their nodes and the text about stale files, unordered: a stale node ranks lower."""
    nodes = {node.id: node for node in stored_nodes.load(store.db(), [row.id for row in rows])}
    stale = anchors.stale(store, nodes.values())
    for row in rows:
        if row.id in nodes:
            words = stale.get(row.id)
            row.value -= decay.stale_age(wanted.half_life) if words else 0
            yield row, nodes[row.id], words


def piece(
    section: str,
    node: VersionedNode,
    value: int,
    stale: str | None,
    further: Sequence[str] = (),
    *,
    rank: int = NODES,
) -> Section:
    """Format a node as `- [mem-…] (2026-11-20, Planck, P1): content`, with further lines of gitmem's."""
    return Section(
        section,
        (rank, -value, node.id),
        node.id,
        [*quote_lines(head(node, stale), node.content), *further],
        more=show(node),
    )


def _file_piece(node: VersionedNode, value: int, stale: str | None) -> Section:
    """Format an indexed file as `- [mem-…] README.md`."""
    about = f" ({sanitize_for_model(stale)})" if stale else ""
    line = quote_lines(f"- [{node.id}]{about}", cut(str(node.metadata["source_path"]), REPLACED_TEXT_MAX))
    return Section(FILES, (LAST, -value, node.id), node.id, line[:1])


# Metadata of a checkpoint and their labels, most useful first.
METADATA_LABELS = (("nextSteps", "next steps"), ("progress", "progress"))
DIFF_STAT = ("gitDiffStat", "uncommitted then")
# A last checkpoint gets at most 1/CHECKPOINT_PART of the budget while there are other pieces.
CHECKPOINT_PART = 2


def checkpoint_piece(
    section: str,
    node: VersionedNode,
    labels: Sequence[tuple[str, str]] = METADATA_LABELS,
    further: Sequence[str] = (),
) -> Section:
    """Format the last checkpoint: time, writer, content and metadata. It is printed before all other pieces.

    Args:
        labels: The keys of the metadata to print, with their labels.
        further: Further lines of gitmem's.
    """
    when = minute(format_at(node.touched))
    lines = quote_lines(head(node).replace(format_at(node.touched)[:10], when, 1), node.content)
    for key, name in labels:
        value = node.metadata.get(key)
        if value:
            text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines += quote_lines(f"  {name}:", "\n".join(line.strip() for line in text.split("\n")))
    rank = (0, 0, node.id)
    return Section(
        section, rank, node.id, [*lines, *further], more=show(node), part=CHECKPOINT_PART, cuts_line=True
    )


def automatic_piece(
    section: str, db: sqlite3.Connection, ids: Sequence[str], written: VersionedNode | None
) -> list[Section]:
    """Return one line about the last automatic checkpoint, if it is newer than the written one.

    Args:
        ids: The automatic checkpoints, last first.
        written: The last written checkpoint.
    """
    nodes = [stored_nodes.load_one(db, id) for id in ids[:1]]
    pieces = []
    for node in (each for each in nodes if written is None or each.touched > written.touched):
        stat = str(node.metadata.get("gitDiffStat") or "").strip().rpartition("\n")[2].strip()
        text = "; ".join(filter(None, (node.content.partition("\n")[0].partition(": ")[2], stat)))
        when = minute(format_at(node.touched))
        why = sanitize_for_model(cut(str(node.metadata.get("trigger")), NAME_MAX))
        line = quote_lines(f"- [{node.id}] (saved {when}, {why}):", cut(text, REPLACED_TEXT_MAX))[:1]
        pieces.append(Section(section, (0, 1, node.id), node.id, line, more=show(node)))
    return pieces


def replaced_lines(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines about the nodes that these supersede, by the ids of those that do."""
    older = relations.replaced_by(db, ids, REPLACED_MAX + 1)
    nodes = {node.id: node for node in stored_nodes.load(db, [id for some in older.values() for id in some])}
    found = {}
    for id, some in older.items():
        lines = []
        for old in some[:REPLACED_MAX]:
            first = nodes[old].content.strip().partition("\n")[0]
            lines += quote_lines(f"  supersedes [{old}]:", cut(first, REPLACED_TEXT_MAX))[:1]
        lines += [f"  supersedes others: {command('gitmem', 'show', id)}"] if some[REPLACED_MAX:] else []
        found[id] = lines
    return found


def contradictions(tasks: TaskRecords, node: VersionedNode) -> list[str]:
    """Return the lines about the tasks whose records say something else than a node."""
    found = tasks.of_node(node.wu_id, node.lane, node.metadata)
    return [f"  {line}" for line in task_records.lines(found)]


def head(node: VersionedNode, stale: str | None = None) -> str:
    """Return the text before the content of a node. The date is that of its last change, in UTC."""
    who = clip(sanitize_for_model(stored_nodes.writer_names(node)), NAMES_MAX)
    about = [format_at(node.touched)[:10], who, node.priority, *map(sanitize_for_model, node.tags[:TAGS_MAX])]
    about += [sanitize_for_model(stale)] if stale else []
    about += [
        sanitize_for_model(mark).translate(stored_nodes.NO_BRACKETS)
        for mark in stored_nodes.conflict_marks(node)
    ]
    return f"- [{node.id}] ({', '.join(part for part in about if part)}):"


def show(node: VersionedNode) -> str:
    """Return the command that shows a node."""
    return command("gitmem", "show", node.id)
