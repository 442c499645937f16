"""Triage: list open discoveries, stale nodes, and live nodes that contradict each other.

A discovery is open until it is closed, hidden or summarized. A discovery that becomes a work unit is closed with
that reason, so it is not triaged twice. The specification of the unit is printed for the project's own plan: gitmem
does not manage work units.
"""

from __future__ import annotations

from itertools import chain, islice

from .. import records
from ..commit_message import cut, sanitize
from ..errors import UsageError, check_limit
from ..order.causal import find_cycles
from ..outcome import Outcome, Written, command
from ..records.ids import unit_key
from . import anchors, edit, node_fields, relations, stored_nodes
from .candidates import SEEN
from .listing import UNLINKED
from .stored_nodes import HAS_PATHS, IS_SUMMARIZED, has_tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import PatchContent
    from ..store import Store


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

    reason: str
    about: list[str]
    node_ids: list[str]
    more: int = 0


def find_contradictions(db: sqlite3.Connection, limit: int) -> list[Contradiction]:
    """Return the proposed contradictions, up to a number; each group of nodes once."""
    found: dict[frozenset[str], Contradiction] = {}
    for each in chain(_cycles(db), _disagreeing(db, chain(_successors(db), _decisions(db)))):
        found.setdefault(frozenset(each.node_ids), each)
        if len(found) >= limit:
            break
    return list(found.values())


def contradiction_commands(found: Contradiction) -> list[str]:
    """Return the commands that settle a contradiction, if the first of its nodes counts."""
    ends = (found.node_ids[0], "supersedes", found.node_ids[1])
    if found.reason == "cycle":
        return [command("gitmem", "mem", "relate", *ends, "--remove")]
    return [command("gitmem", "show", ends[0]), command("gitmem", "mem", "relate", *ends)]


def _successors(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield open or unknown nodes with several live ends, each with those that supersede it directly or through others."""
    for old, count in relations.with_several_ends(db):
        ends = relations.every_end(db, old, NODES_MAX)
        yield Contradiction("successors", [old], ends, max(0, count - NODES_MAX))


def _decisions(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield live decisions of one lane with the same paths, or with the same tags beside `decision`."""
    live = f"{SEEN}{relations.and_live(db)}"
    for reason, table, column in (("paths", "anchor", "path"), ("tags", "tag", "tag")):
        shared: dict[tuple[int, str, str], list[str]] = {}
        for id, lane, created, value in stored_nodes.values_of_tagged(db, DECISION, live, table, column):
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
    cache = stored_nodes.PatchCache()
    compared: set[tuple[str, ...]] = set()
    several = (each for each in groups if len(each.node_ids) > 1)
    while some := list(islice(several, GROUPS_AT_ONCE)):
        new = {id for each in some for id in each.node_ids} - texts.keys()
        for node in stored_nodes.load(db, sorted(new), cache, whole=False):
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
    related = relations.related_pairs(db, ids)

    def differ(one: str, other: str) -> bool:
        return texts[one] != texts[other] and not related & {(one, other), (other, one)}

    return [one for one in ids if any(differ(one, other) for other in ids)]


def _cycles(db: sqlite3.Connection) -> Iterator[Contradiction]:
    """Yield nodes that supersede each other."""
    leads: dict[str, set[str]] = {}
    for new, old in relations.superseding_edges(db):
        leads.setdefault(new, set()).add(old)
    for cycle in find_cycles(leads):
        yield Contradiction("cycle", [], cycle[:NODES_MAX], max(0, len(cycle) - NODES_MAX))


CONTRADICTIONS_MAX = 100

TITLE_MAX = 80
PRIORITY = "P2"  # of a work unit if its discovery has none
PREFIX = "WU-"


class Triaged(Outcome):
    """Open discoveries, most urgent first, then oldest first; and other nodes that are stale.

    Attributes:
        stale: How the files of a stale node changed, by id: `stale (3 commits behind in a.py)`.
        contradictions: Live nodes of which somebody should say which one counts, of the whole log.
        more: The number of nodes above the limit.
    """

    discoveries: Sequence[VersionedNode]
    stale_nodes: Sequence[VersionedNode]
    stale: dict[str, str]
    contradictions: list[Contradiction] = []
    more: int = 0
    next: list[str] = []

    def cut(self, limit: int) -> None:
        """Keep the first nodes, up to a limit."""
        every = len(self.discoveries) + len(self.stale_nodes)
        self.stale_nodes = self.stale_nodes[: max(0, limit - len(self.discoveries))]
        self.discoveries = self.discoveries[:limit]
        self.more = every - len(self.discoveries) - len(self.stale_nodes)
        kept = {node.id for node in (*self.discoveries, *self.stale_nodes)}
        self.stale = {id: why for id, why in self.stale.items() if id in kept}

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with the number of all nodes, also of those that are not shown."""
        return {**super().as_json(), "total": len(self.discoveries) + len(self.stale_nodes) + self.more}


class PromotedToUnit(Written, kw_only=True):
    """The specification of a work unit that a discovery becomes.

    Attributes:
        recorded: Whether the discovery is closed because it became the unit.
        already: Whether it was closed before.
    """

    node_id: str
    spec: WorkUnitSpec
    already: bool = False


def listing(
    store: Store,
    *,
    wu: str | None = None,
    tag: str | None = None,
    stale: bool = True,
    limit: int | None = None,
) -> Triaged:
    """Return the open discoveries and the stale nodes.

    Args:
        wu: Only nodes of this work unit, or `unlinked`: nodes without one.
        tag: Only nodes with this tag.
        stale: Include nodes of other types whose files changed since.
        limit: The maximum number of nodes; None for all.

    Raises:
        UsageError: The work unit, the tag or the limit is invalid.
    """
    check_limit(limit)
    db = store.db()
    where, given = _filter(wu, tag)
    which = "" if stale else " AND n.type = 'discovery'"
    every = stored_nodes.select(
        db,
        f"n.state = 0 AND NOT {IS_SUMMARIZED}{relations.and_live(db)}{where}{which}"
        f" AND (n.type = 'discovery' OR {HAS_PATHS})",
        given,
        order="coalesce(n.priority, 'P9'), n.created, n.id",
    )
    found = [node for node in every if _is_discovery(node)]
    others = [node for node in every if stale and not _is_discovery(node)]
    anchored = [node for node in found if node.paths]
    why = anchors.stale(store, [*anchored, *others]) if anchored or others else {}
    triaged = Triaged(found, [node for node in others if node.id in why], why)
    if wu is None and tag is None:
        triaged.contradictions = find_contradictions(db, CONTRADICTIONS_MAX if limit is None else limit)
    if limit is not None:
        triaged.cut(limit)
    triaged.next = _next(triaged)
    return triaged


def _is_discovery(node: VersionedNode) -> bool:
    """Return whether a node needs a decision: a node promoted from a discovery is knowledge and needs none."""
    return node.type == "discovery" and not node.metadata.get("promoted_from")


def _filter(wu: str | None, tag: str | None) -> tuple[str, list[str]]:
    where, given = "", []
    if wu == UNLINKED:
        where += " AND n.wu_id IS NULL"
    elif wu is not None:
        where += " AND n.wu_id = ?"
        given.append(unit_key(node_fields.work_unit(wu)))
    if tag is not None:
        where += f" AND {has_tag()}"
        given.append(node_fields.tag(tag))
    return where, given


def _next(found: Triaged) -> list[str]:
    if found.discoveries:
        first = found.discoveries[0].id
        return [
            command("gitmem", "show", first),
            command("gitmem", "mem", "triage", "promote", first),
            "gitmem mem triage --help",
        ]
    if found.stale_nodes:
        first_stale = found.stale_nodes[0]
        change = ["--verified"]
        if "is gone since" in found.stale[first_stale.id]:
            change = ["--status", "archived"]
        elif first_stale.metadata.get("source_path"):
            return ["gitmem mem index"]
        return [
            command("gitmem", "show", first_stale.id),
            command("gitmem", "mem", "update", first_stale.id, *change),
        ]
    if found.contradictions:
        return contradiction_commands(found.contradictions[0])
    return ["gitmem mem list"]


def promote(
    store: Store,
    caller: Caller,
    node: str,
    *,
    wu: str | None = None,
    lane: str | None = None,
    title: str | None = None,
) -> PromotedToUnit:
    """Return the specification of a work unit for a discovery; with `wu`, record that it became that unit.

    Args:
        node: An id, or a prefix of six characters or more after the dash.
        wu: The work unit that it became; the discovery is closed. Without it nothing is written, and the
            specification has the next unused number.
        lane: The lane of the unit; by default that of the node, or of the caller's session.
        title: By default the first sentence.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    db = store.db()
    source = stored_nodes.load_one(db, stored_nodes.find_node(db, node, writing=True))
    unit = node_fields.work_unit(wu) if wu is not None else None
    if source.is_hidden:
        raise UsageError(
            f"{source.id} is {source.status}. Nothing was written.",
            hint="Restore it first if that was a mistake.",
            code="hidden-node",
            next=[command("gitmem", "mem", "update", source.id, "--status", "active")],
        )
    before = source.metadata.get("promoted_to") if source.closed else None
    before = before if isinstance(before, str) and records.fits("node", "wu_id", before) else None
    if unit is not None and unit_key(before) not in ("", unit_key(unit)):
        raise UsageError(
            f"{source.id} was already promoted to {sanitize(str(before))[:80]}. Nothing was written.",
            hint="Reopen it if that was a mistake.",
            code="already-promoted",
            next=[command("gitmem", "mem", "update", source.id, "--status", "active")],
        )
    session_lane = (caller.record or {}).get("lane")
    spec = WorkUnitSpec(
        unit or (str(before) if before else next_unit(db)),
        source,
        title=title,
        lane=lane or source.lane or session_lane or None,
    )
    found = PromotedToUnit(node_id=source.id, spec=spec)
    found.warnings = [*filter(None, [caller.remark])]
    found.recorded = found.already = before is not None
    if unit is not None and before is None:
        marks: PatchContent = {"closed": True, "reason": f"became {unit}", "metadata": {"promoted_to": unit}}
        lines = stored_nodes.patch_lines(store, caller, [source.id], marks)
        subject = f"{source.id} became {unit}: {edit.summary_line(source)}"
        done = stored_nodes.record(
            store, caller, lines, subject, text=source.content, nodes=[source.id], wu=unit
        )
        found.recorded, found.commit = True, done.commit
    if found.recorded:
        found.next = [command("gitmem", "show", source.id), "gitmem mem triage"]
    else:
        found.next = [command("gitmem", "mem", "triage", "promote", source.id, "--wu", spec.id)]
    return found


def archive(store: Store, caller: Caller, node_ids: Sequence[str], *, reason: str) -> edit.NodesChanged:
    """Archive nodes with a reason. Nodes that are hidden already are unchanged.

    Raises:
        UsageError: A value is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    if not reason.strip():
        raise UsageError(
            "The reason is empty. Nothing was written.",
            hint="Give one line that explains why no action is needed, such as `--reason 'can no longer happen'`.",
            code="no-reason",
        )
    db = store.db()
    found = list(dict.fromkeys(stored_nodes.find_node(db, text, writing=True) for text in node_ids))
    hidden = [node for node in stored_nodes.load(db, found) if node.is_hidden]
    gone = {node.id for node in hidden}
    some = [id for id in found if id not in gone]
    changed = edit.NodesChanged(ids=[])
    if some or not found:  # without any id, `change` raises the error
        changed = edit.change(store, caller, some, archived=True, reason=reason.strip())
    else:
        changed.warnings = [*filter(None, [caller.remark])]
    changed.warnings += [f"{node.id} was already {node.status}." for node in hidden]
    changed.next = ["gitmem mem triage", command("gitmem", "show", found[0])]
    return changed


class WorkUnitSpec(Outcome):
    """A specification of a work unit, derived from a discovery."""

    def __init__(self, id: str, node: VersionedNode, *, title: str | None, lane: str | None) -> None:
        self.id = id
        self.title = title or first_sentence(node.content)
        self.lane = lane
        self.priority = node.priority or PRIORITY
        self.description = node.content
        self.code_paths = list(node.paths)
        self.tags = list(node.tags)
        self.discovered_from = node.id


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's first line as a title, at most 80 characters."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    ends = [at for mark in (". ", "! ", "? ") if (at := line.find(mark)) > 0]
    sentence = line[: min(ends) + 1] if ends else line
    return cut(sentence.removesuffix("."), TITLE_MAX)


def next_unit(db: sqlite3.Connection) -> str:
    """Return `WU-n`, one above the greatest number in the log."""
    greatest = 0
    for unit in stored_nodes.units(db):
        prefix, dash, number = unit_key(unit).partition("-")
        if prefix + dash == unit_key(PREFIX) and number.isascii() and number.isdigit() and len(number) <= 9:
            greatest = max(greatest, int(number))
    return f"{PREFIX}{greatest + 1}"
