"""The nodes that a context may show, best first, as pieces of its text, and the numbers of the others.

Indexed files are named, not copied. The sections of the project have few nodes, so that those of the work unit get room.
"""

from __future__ import annotations

from ..commit_message import cut
from ..log.lines import format_at
from ..signals import task_records
from ..signals.task_records import TaskRecords
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command
from . import anchors, authors, decay, load, superseded
from .budgeted_text import Section, quote_lines
from .candidate_rows import DISCOVERIES, PROFILE, SUMMARIES, WORK, RowReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from ..store import Store
    from .candidate_rows import CandidateRow, RowQueue, Selection
    from .versioned_node import VersionedNode

FILES = "Indexed Files"
UNIT_SECTIONS = (SUMMARIES, WORK, DISCOVERIES)
SECTIONS = (PROFILE, FILES, *UNIT_SECTIONS)
NODES_MAX = {PROFILE: 10, SUMMARIES: 5}  # as LumenFlow has them
LINE_MIN = 32  # bytes of the shortest line that a node can have
LOAD_MIN = 128  # nodes to load at least: the report of omitted nodes must not depend on a small budget
PROJECT_LOAD = 40  # nodes of the project to load first: some are stale
TAGS_MAX = 3  # tags in the line of a node
NAME_MAX = 60  # characters of a writer's name
NAMES_MAX = 200  # characters of all writers of a node, with the identities of unconfirmed names
ROUNDS = 3  # of loading more nodes to replace stale ones
REPLACED_MAX = 2  # superseded nodes in the lines of the node that supersedes them
REPLACED_TEXT_MAX = 100  # characters
THREADS, HERE, NODES, LAST = 2, 3, 4, 5  # the first number of ranks, in their order


class Candidates:
    """Nodes as pieces of a text, and the numbers of further nodes by section."""

    def __init__(self, pieces: Sequence[Section], unread: Mapping[str, int]) -> None:
        self.pieces = list(pieces)
        self.unread = dict(unread)


def find(store: Store, wanted: Selection, max_size: int) -> Candidates:
    """Return the nodes of the project and of a work unit that fit in `max_size` bytes."""
    most = max(max_size // LINE_MIN + 1, LOAD_MIN)
    reader = RowReader(store, wanted)
    # In this order: a node of the work unit that stands for one of the project is shown among its own.
    queues = [reader.of_work_unit(most), *reader.of_project(PROJECT_LOAD)]
    counts = {section: sum(queue.counts.get(section, 0) for queue in queues) for section in SECTIONS}
    best = sorted(_best(store, queues, wanted), key=lambda each: (-each[0].value, each[0].id))
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


def _best(
    store: Store, queues: Sequence[RowQueue], wanted: Selection
) -> Iterator[tuple[CandidateRow, VersionedNode, str | None]]:
    """Yield the best rows with their nodes and the text about stale files, unordered.

    A stale node ranks lower, so one more node is loaded for each that may be stale. One call of git checks all.
    """
    nodes: dict[str, VersionedNode] = {}
    taken: list[CandidateRow] = []
    for _ in range(ROUNDS):
        for queue in queues:
            rows = queue.take()
            taken += rows
            some = load.load(store.db(), [row.id for row in rows])
            nodes |= {node.id: node for node in some}
            queue.wanted = sum(1 for node in some if node.paths)
        if not any(queue.wanted for queue in queues):
            break
    stale = anchors.stale(store, nodes.values())
    for row in taken:
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
CHECKPOINT_PART = (
    2  # a last checkpoint gets at most 1/CHECKPOINT_PART of the budget while there are other pieces
)


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
    when = format_at(node.touched)[:16].replace("T", " ") + "Z"
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
    nodes = [load.load_one(db, id) for id in ids[:1]]
    pieces = []
    for node in (each for each in nodes if written is None or each.touched > written.touched):
        stat = str(node.metadata.get("gitDiffStat") or "").strip().rpartition("\n")[2].strip()
        text = "; ".join(filter(None, (node.content.partition("\n")[0].partition(": ")[2], stat)))
        when = format_at(node.touched)[:16].replace("T", " ") + "Z"
        why = sanitize_for_model(cut(str(node.metadata.get("trigger")), NAME_MAX))
        line = quote_lines(f"- [{node.id}] (saved {when}, {why}):", cut(text, REPLACED_TEXT_MAX))[:1]
        pieces.append(Section(section, (0, 1, node.id), node.id, line, more=show(node)))
    return pieces


def replaced_lines(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines about the nodes that these supersede, by the ids of those that do."""
    older = superseded.replaced_by(db, ids, REPLACED_MAX + 1)
    nodes = {node.id: node for node in load.load(db, [id for some in older.values() for id in some])}
    found = {}
    for id, some in older.items():
        lines = []
        for old in some[:REPLACED_MAX]:
            first = nodes[old].content.strip().partition("\n")[0]
            lines += quote_lines(f"  supersedes [{old}]:", cut(first, REPLACED_TEXT_MAX))[:1]
        lines += (
            [f"  supersedes others: {command('gitmem', 'mem', 'show', id)}"] if some[REPLACED_MAX:] else []
        )
        found[id] = lines
    return found


def contradictions(tasks: TaskRecords, node: VersionedNode) -> list[str]:
    """Return the lines about the tasks whose records say something else than a node."""
    found = tasks.of_node(node.wu_id, node.lane, node.metadata)
    return [f"  {line}" for line in task_records.lines(found)]


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
