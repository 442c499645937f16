"""Check the memory: references to missing nodes, ids with several contents, cycles.

The newly filled index has the current nodes and relations.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby

from ...memory import bulk_values, load, relations
from ...memory.cycles import find_cycles
from ...memory.node_fold import meaning
from ...text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from ..findings import Findings
    from .checked_line import LogLine

    Where = Callable[[bytes], str]

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


def check_patch(each: LogLine, record: Mapping[str, object], found: Findings) -> None:
    """Report values of a patch that are too large to count."""
    aside = bulk_values.ignored_fields(record)
    if aside:
        found.note(
            "left-aside",
            f"This patch names several nodes, and its {' and '.join(aside)} "
            f"{'are' if aside[1:] else 'is'} larger than the {bulk_values.SIZE_MAX} bytes that count there.",
            each.where,
            "Nobody's nodes take it over; the rest of the patch counts. Write it again, one node at a time.",
            "gitmem mem update --help",
        )


def check(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    """Report relations and patches of missing nodes, ambiguous ids, and nodes that block each other.

    Args:
        db: An index with all lines.
        where: Returns the location of a line.
    """
    _check_contents(db, where, found)
    _check_summaries(db, where, found)
    _check_patches(db, where, found)
    _check_relations(db, where, found)
    _check_cycles(db, where, found)


def _check_contents(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    for (id,) in db.execute("SELECT DISTINCT id FROM node_again ORDER BY id").fetchall():
        lines = load.lines_of(db, [id]).get(id, [])
        contents = {meaning(record) for record, _ in lines}
        if len(contents) > 1:
            found.problem(
                "two-contents",
                f"The node id {id} has {len(contents)} different contents: the lowest line counts.",
                partial(where, min(line for _, line in lines)),
                "Ask who wrote them what was meant, and write that as a new node.",
                command("gitmem", "mem", "show", id),
            )


def _check_patches(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    for number, rows in groupby(db.execute(_PATCHED), key=lambda row: row[0]):
        missing = [id for _, id in rows]
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        found.note(
            "unknown-id",
            f"This patch names {', '.join(missing[:3])}{more}, which this log does not have.",
            partial(_where, db, number, where),
            "They may come with the next sync; the patch counts then.",
            "gitmem sync",
        )


def _check_relations(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    for from_id, to_id, type, has_from, has_to in db.execute(_LOOSE).fetchall():
        missing = sorted({id for id, is_here in ((from_id, has_from), (to_id, has_to)) if not is_here})
        found.note(
            "unknown-id",
            f"{from_id} {type} {to_id}, and this log does not have {' and '.join(missing)}.",
            partial(_where_related, db, (from_id, to_id, type), where),
            "It may come with the next sync; until then it blocks nothing.",
            "gitmem sync",
        )


def _check_summaries(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    """Report cycles of nodes that are each other's summary: none of them hides another."""
    leads = {id: {into} for id, into in db.execute(_SUMMARIZED)}
    for circle in find_cycles(leads):
        found.note(
            "summary-circle",
            f"Nodes are each under a summary that is under the next: {' → '.join([*circle, circle[0]])}.",
            partial(_where_node, db, circle[0], where),
            "None of them hides anything. gitmem does not write such a thing; ask who did.",
            command("gitmem", "mem", "show", circle[0]),
        )


def _check_cycles(db: sqlite3.Connection, where: Where, found: Findings) -> None:
    leads: dict[str, set[str]] = {}
    for from_id, to_id in db.execute(_BLOCKS):
        leads.setdefault(from_id, set()).add(to_id)
    for circle in find_cycles(leads):
        first, second = circle[0], [*circle, circle[0]][1]
        found.note(
            "circle",
            f"Nodes block each other all the way round, so that none is ever ready: {' → '.join([*circle, first])}.",
            partial(_where_related, db, (first, second, "blocks"), where),
            "Take one of these relations back, or close one of the nodes.",
            command("gitmem", "mem", "relate", first, "blocks", second, "--remove"),
        )


def _where(db: sqlite3.Connection, number: int, where: Where) -> str:
    (body,) = db.execute("SELECT body FROM line WHERE id = ?", (number,)).fetchone()
    return where(str(body).encode())


def _where_node(db: sqlite3.Connection, id: str, where: Where) -> str:
    (number,) = db.execute("SELECT line FROM node WHERE id = ?", (id,)).fetchone()
    return _where(db, number, where)


def _where_related(db: sqlite3.Connection, triple: tuple[str, str, str], where: Where) -> str:
    last = relations.last_event(db, triple)
    return where(last.line) if last is not None else ""
