"""Check the memory: references to missing nodes, ids with several contents, cycles.

The newly filled index has the current nodes and relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby

from ...memory import bulk_values, load, relations
from ...memory.node_fold import content_digest_text
from ...signals.graph import find_cycles
from ...text.shell_quote import command
from ..findings import Check, Examination, Finding, note, problem
from .record_ids import LogLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...records.record_types import PatchRecord

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
