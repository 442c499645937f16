"""Propose contradictions: live nodes of which somebody should say which one counts.

Nothing here decides: two live nodes that supersede one node, two live decisions about the same files or with the same
tags, and nodes that supersede each other. A relation `supersedes` settles the first two, a relation `related` says that
both hold.
"""

from __future__ import annotations

from itertools import chain, islice

from ..order.cycles import find_cycles
from ..outcome import Outcome
from ..text.shell_quote import command
from . import load, superseded
from .candidate_rows import SEEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

DECISION = "decision"
NODES_MAX = 20  # nodes of one contradiction that are compared
GROUPS_AT_ONCE = 300  # that are loaded together: patches that they share are ordered once


class Contradiction(Outcome):
    """Live nodes that may contradict each other, newest first.

    Attributes:
        reason: `successors`, `paths`, `tags` or `cycle`.
        about: The node that they supersede, or the paths or tags that they share.
        more: The number of further nodes.
    """

    def __init__(self, reason: str, about: list[str], node_ids: list[str], more: int = 0) -> None:
        self.reason = reason
        self.about = about
        self.node_ids = node_ids
        self.more = more


def find(db: sqlite3.Connection, limit: int) -> list[Contradiction]:
    """Return the proposed contradictions, up to a number; each group of nodes once."""
    found: dict[frozenset[str], Contradiction] = {}
    for each in chain(_cycles(db), _disagreeing(db, chain(_successors(db), _decisions(db)))):
        found.setdefault(frozenset(each.node_ids), each)
        if len(found) >= limit:
            break
    return list(found.values())


def next_commands(found: Contradiction) -> list[str]:
    """Return the commands that settle a contradiction, if the first of its nodes counts."""
    ends = (found.node_ids[0], "supersedes", found.node_ids[1])
    if found.reason == "cycle":
        return [command("gitmem", "mem", "relate", *ends, "--remove")]
    return [command("gitmem", "mem", "show", ends[0]), command("gitmem", "mem", "relate", *ends)]


def _successors(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield open or unknown nodes with several live ends, each with those that supersede it directly or through others."""
    rows = db.execute(
        "SELECT r.to_id, count(DISTINCT coalesce(u.live, r.from_id)) FROM relation r"
        " JOIN superseded old ON old.id = r.to_id JOIN node n ON n.id = r.from_id AND n.state = 0"
        " LEFT JOIN superseded u ON u.id = r.from_id LEFT JOIN node o ON o.id = r.to_id"
        " WHERE r.type = 'supersedes' AND coalesce(o.state, 0) = 0"
        " GROUP BY r.to_id HAVING count(DISTINCT coalesce(u.live, r.from_id)) > 1 ORDER BY r.to_id"
    ).fetchall()
    for old, count in rows:
        ends = db.execute(
            "SELECT DISTINCT e.id, e.created FROM relation r JOIN node n ON n.id = r.from_id AND n.state = 0"
            " LEFT JOIN superseded u ON u.id = r.from_id JOIN node e ON e.id = coalesce(u.live, r.from_id)"
            " WHERE r.to_id = ? AND r.type = 'supersedes' AND r.from_id <> r.to_id ORDER BY e.created DESC, e.id LIMIT ?",
            (old, NODES_MAX),
        )
        yield Contradiction("successors", [old], [id for id, _ in ends], max(0, count - NODES_MAX))


def _decisions(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield live decisions of one lane with the same paths, or with the same tags beside `decision`."""
    live = f"d.tag = '{DECISION}' AND {SEEN}{superseded.and_live(db)}"
    for reason, table, column in (("paths", "anchor", "path"), ("tags", "tag", "tag")):
        shared: dict[tuple[int, str, str], list[str]] = {}
        rows = db.execute(
            f"SELECT n.id, n.lane, n.created, v.{column} FROM tag d JOIN node n ON n.id = d.id JOIN {table} v ON v.id = n.id"
            f" WHERE {live} AND v.{column} <> '{DECISION}' ORDER BY 4"
        )
        for id, lane, created, value in rows:
            shared.setdefault((-created, id, lane or ""), []).append(value)
        groups: dict[tuple[str, ...], list[str]] = {}
        for (_, id, lane), values in sorted(shared.items()):
            groups.setdefault((lane, *values), []).append(id)
        for (_, *about), ids in groups.items():
            yield Contradiction(reason, about, ids[:NODES_MAX], max(0, len(ids) - NODES_MAX))


def _disagreeing(db: sqlite3.Connection, groups: Iterator[Contradiction]) -> Iterator[Contradiction]:
    """Yield the groups whose nodes disagree, each without the others.

    Two nodes may be in thousands of groups, so each node is loaded once, and each group of the same nodes compared once.
    """
    texts: dict[str, int] = {}  # the number of each node's text
    numbers: dict[str, int] = {}
    parsed: load.Parsed = {}
    compared: set[tuple[str, ...]] = set()
    several = (each for each in groups if len(each.node_ids) > 1)
    while some := list(islice(several, GROUPS_AT_ONCE)):
        new = {id for each in some for id in each.node_ids} - texts.keys()
        for node in load.load(db, sorted(new), parsed, whole=False):
            texts[node.id] = numbers.setdefault(node.content, len(numbers))
        for each in some:
            ids = tuple(id for id in each.node_ids if id in texts)
            if ids not in compared:
                compared.add(ids)
                each.node_ids = _differing(db, ids, texts)
                if each.node_ids:
                    yield each


def _differing(db: sqlite3.Connection, ids: Sequence[str], texts: Mapping[str, int]) -> list[str]:
    """Return those of a few nodes that have another text than one of the others, and no relation `related` to it."""
    if len({texts[id] for id in ids}) < 2:
        return []
    marks = ", ".join("?" * len(ids))
    related = set(
        db.execute(
            f"SELECT from_id, to_id FROM relation WHERE from_id IN ({marks}) AND to_id IN ({marks}) AND type = 'related'",
            [*ids, *ids],
        )
    )

    def differ(one: str, other: str) -> bool:
        return texts[one] != texts[other] and not related & {(one, other), (other, one)}

    return [one for one in ids if any(differ(one, other) for other in ids)]


def _cycles(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield nodes that supersede each other."""
    leads: dict[str, set[str]] = {}
    rows = db.execute(
        "SELECT r.from_id, r.to_id FROM relation r JOIN node n ON n.id = r.from_id AND n.state = 0"
        " WHERE r.type = 'supersedes' AND r.from_id <> r.to_id"
    )
    for new, old in rows:
        leads.setdefault(new, set()).add(old)
    for cycle in find_cycles(leads):
        yield Contradiction("cycle", [], cycle[:NODES_MAX], max(0, len(cycle) - NODES_MAX))
