"""Select the nodes that a context may show, best first, and count the others.

Archived, deleted and closed nodes are left out, and nodes whose summary is visible.
"""

from __future__ import annotations

from ..commit_message import cut
from ..log.lines import format_at
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command
from . import anchors, authors, decay, load
from .budgeted_text import Section, quote_lines
from .node_tables import HIDDEN, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..store import Store
    from .versioned_node import VersionedNode

PROFILE, SUMMARIES, WORK, DISCOVERIES = "Project Profile", "Summaries", "WU Context", "Discoveries"
SECTIONS = (PROFILE, SUMMARIES, WORK, DISCOVERIES)
LINE_MIN = 32  # bytes of the shortest line that a node can have
LOAD_MIN = 128  # nodes to load at least: the report of omitted nodes must not depend on a small budget
CLOCK_SKEW_MAX = decay.DAY_MICROS  # how far a node's time may be ahead of the clock
TAGS_MAX = 3  # tags in the line of a node
NAME_MAX = 60  # characters of a writer's name
NAMES_MAX = 200  # characters of all writers of a node, with the identities of unconfirmed names
ROUNDS = 3  # of loading more nodes to replace stale ones
ROW_FACTOR = 4  # rows read for that, as a multiple of the rows that fit the budget

SEEN = f"n.state < {HIDDEN} AND n.state = 0 AND (n.summarized_into IS NULL OR NOT {IS_SUMMARIZED})"
_WANTED = f"n.id IS NOT :without AND {SEEN}"
_PROJECT = "n.lifecycle = 'project' AND (:lane IS NULL OR n.lane IS NULL OR n.lane = :lane)"
# A node is in the first section that matches.
_WORK_UNIT = f"n.wu_id IS :wu AND NOT ({_PROJECT})"
_SECTION = (
    f"CASE n.type WHEN 'summary' THEN '{SUMMARIES}' WHEN 'discovery' THEN '{DISCOVERIES}' ELSE '{WORK}' END"
)


class CandidateRow:
    """A node that may be shown. The greatest `value`, a time in microseconds, is the best."""

    __slots__ = ("id", "section", "value")

    def __init__(self, id: str, section: str, value: int) -> None:
        self.id = id
        self.section = section
        self.value = value


class Candidates:
    """Nodes as pieces of a text, and the numbers of further nodes by section."""

    __slots__ = ("pieces", "unread")

    def __init__(self, pieces: Sequence[Section], unread: Mapping[str, int]) -> None:
        self.pieces = list(pieces)
        self.unread = dict(unread)


def find(
    store: Store,
    *,
    wu: str | None,
    lane: str | None,
    max_size: int,
    by_decay: bool = False,
    half_life: int = decay.HALF_LIFE_MICROS,
    without: str | None = None,
) -> Candidates:
    """Return the nodes of the project and of a work unit that fit in `max_size` bytes.

    Args:
        wu: The work unit; None for nodes without one.
        lane: Leave out project nodes of other lanes; None includes every lane.
        by_decay: Rank by decay score instead of by time.
        half_life: In microseconds; a stale node is ranked as if it were older, by as much as halves its score.
        without: A node that is shown elsewhere.
    """
    most = max(max_size // LINE_MIN + 1, LOAD_MIN)
    rows, counts = _rows(store, (wu, lane, without), by_decay, half_life, ROW_FACTOR * most)
    rows.sort(key=lambda row: (-row.value, row.id))
    pieces = []
    best = list(_best(store, rows, most, half_life))
    # `promoted_from` of other writers is not reliable: it replaces the node only if the content is the same.
    promoted = {(str(node.metadata.get("promoted_from")), node.content) for _, node, _ in best}
    for row, node, stale in best:
        counts[row.section] -= 1
        if (node.id, node.content) not in promoted:
            pieces.append(piece(row.section, node, row.value, stale))
    return Candidates(pieces, counts)


def _rows(
    store: Store,
    asked: tuple[str | None, str | None, str | None],
    by_decay: bool,
    half_life: int,
    most: int,
) -> tuple[list[CandidateRow], dict[str, int]]:
    """Return the best rows, unordered, and their numbers by section. Only ranking by decay reads all rows."""
    db = store.db()
    wu, lane, without = asked
    values = {
        "wu": wu,
        "lane": lane,
        "without": without,
        "most": most + 1,
        "until": store.now() + CLOCK_SKEW_MAX,
    }
    counts = dict.fromkeys(SECTIONS, 0)
    found: list[CandidateRow] = []
    for where, section in ((_PROJECT, f"'{PROFILE}'"), (_WORK_UNIT, _SECTION)):
        if by_decay:
            every = db.execute(
                f"SELECT n.id, {section}, n.touched, n.priority, a.count FROM node n"
                f" LEFT JOIN access a ON a.id = n.id WHERE {where} AND {_WANTED}",
                values,
            )
            now = store.now()
            rows = [CandidateRow(id, name, _value(touched, priority, count or 0, now, half_life))
                    for id, name, touched, priority, count in every]  # fmt: skip
        else:
            # The index has this order, so SQLite stops at the limit.
            asked_of = (
                f"SELECT n.id, {section}, %s FROM node n WHERE {where} AND {_WANTED} AND n.touched %s :until"
            )
            best = db.execute(
                asked_of % ("n.touched", "<=") + " ORDER BY n.touched DESC, n.id LIMIT :most", values
            )
            rows = [CandidateRow(*row) for row in best]
            # Nodes of a future time (a wrong clock, or a forged time) must not rank first.
            rows += [CandidateRow(*row) for row in db.execute(asked_of % ("0", ">") + " LIMIT :most", values)]
        if not by_decay and len(rows) > most:
            # Group by the columns of the index in their order: no sort, and no access to the table.
            by = "n.lifecycle, n.type, n.lane" if where is _WORK_UNIT else "1"
            for name, count in db.execute(
                f"SELECT {section}, count(*) FROM node n WHERE {where} AND {_WANTED} GROUP BY {by}", values
            ):
                counts[name] += count
        else:
            for row in rows:
                counts[row.section] += 1
        found += rows
    if by_decay and len(found) > most:
        from heapq import nsmallest

        found = nsmallest(most, found, key=lambda row: (-row.value, row.id))
    return found, counts


def _value(touched: int, priority: str | None, count: int, now: int, half_life: int) -> int:
    """Return the time that a node of no priority and without accesses would need for the same score."""
    from math import log

    return min(touched, now) + int(half_life * log(decay.importance(priority) * (1 + decay.access(count))))


def _best(
    store: Store, rows: Sequence[CandidateRow], most: int, half_life: int
) -> Iterator[tuple[CandidateRow, VersionedNode, str | None]]:
    """Yield the best rows with their nodes and the text about stale files, unordered.

    A stale node ranks lower, so one more node is loaded for each that may be stale. One call of git checks all.
    """
    start, wanted = 0, most
    nodes: list[VersionedNode] = []
    for _ in range(ROUNDS):
        some = load.load(store.db(), [row.id for row in rows[start : start + wanted]])
        nodes += some
        start += wanted
        wanted = sum(1 for node in some if node.paths)
        if not wanted or start >= len(rows):
            break
    by_id = {row.id: row for row in rows[:start]}
    stale = anchors.stale(store, nodes)
    for node in nodes:
        row, words = by_id[node.id], stale.get(node.id)
        if words:
            row.value -= decay.stale_age(half_life)
        yield row, node, words


def piece(section: str, node: VersionedNode, value: int, stale: str | None) -> Section:
    """Format a node as `- [mem-…] (2026-11-20, Planck, P1): content`."""
    return Section(
        section,
        (NODES, -value, node.id),
        node.id,
        quote_lines(head(node, stale), node.content),
        more=show(node),
    )


THREADS, HERE, NODES, LAST = 2, 3, 4, 5  # the first number of ranks, in their order


_NO_BRACKETS = str.maketrans("()[]", "    ")  # a name must not close gitmem's brackets


def head(node: VersionedNode, stale: str | None = None) -> str:
    """Return the text before the content of a node. The date is that of its last change, in UTC."""
    who = cut(sanitize_for_model(authors.names(node)), NAMES_MAX)
    about = [format_at(node.touched)[:10], who, node.priority, *map(sanitize_for_model, node.tags[:TAGS_MAX])]
    about += [sanitize_for_model(stale)] if stale else []
    about += [sanitize_for_model(mark).translate(_NO_BRACKETS) for mark in authors.doubts(node)]
    return f"- [{node.id}] ({', '.join(part for part in about if part)}):"


def show(node: VersionedNode) -> str:
    """Return the command that shows a node."""
    return command("gitmem", "mem", "show", node.id)
