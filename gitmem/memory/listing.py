"""List nodes by filters: the last changed first, or all in order of creation."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError, check_limit
from ..outcome import Outcome
from ..records.ids import unit_key
from ..text.shell_quote import command
from . import anchors, load, node_fields, private_nodes, superseded
from .node_tables import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import TypedDict, Unpack

    from ..store import Store
    from .private_nodes import FindCaller
    from .versioned_node import VersionedNode

    class FilterOptions(TypedDict, total=False):
        """The arguments of `Filter`."""

        wu: str | None
        type: str | None
        lifecycle: str | None
        tags: Sequence[str]
        path: str | None
        session: str | None
        lane: str | None
        priority: str | None
        status: str | None
        since: int | None
        before: int | None
        include_archived: bool


LIMIT = 50
UNLINKED = "unlinked"  # means "no work unit"


class Listing(Outcome):
    """Nodes, last changed first.

    Attributes:
        stale: How much the files of a node have changed, by node id; the JSON form has it in the node.
        superseded: The live ends of superseded nodes, by node id; the JSON form has each in `superseded_by` of the node.
        total: The number of matching nodes; `more` of them are not shown.
    """

    def __init__(self, nodes: Sequence[VersionedNode], stale: Mapping[str, str], total: int) -> None:
        self.nodes = list(nodes)
        self.stale = {node.id: stale[node.id] for node in self.nodes if node.id in stale}
        self.superseded: dict[str, str] = {}
        self.total = total
        self.more = total - len(self.nodes)
        self.next: list[str] = []

    def as_json(self) -> dict[str, object]:
        """Return the JSON form; a node whose files have changed has the extent in `stale`."""
        facts = {"stale": self.stale, "superseded_by": self.superseded}
        return {
            "nodes": [
                node.as_json() | {name: of[node.id] for name, of in facts.items() if node.id in of}
                for node in self.nodes
            ],
            "total": self.total,
            "more": self.more,
            "next": list(self.next),
        }


class Filter:
    """A condition on the table `node n`; nodes must match every given filter.

    Args:
        wu: A work unit, or `unlinked`.
        type: A type, or an alias for a discovery with that tag.
        tags: All of them must match.
        path: From the root of the work tree: matches nodes of this path, of paths below it, and of folders above
            it.
        status: active, closed, archived or deleted; includes hidden nodes of that status.
        include_archived: Include archived and deleted nodes.
        since: Microseconds since the epoch: only nodes last changed at this time or later.
        before: Microseconds since the epoch: only nodes created before.

    Raises:
        UsageError: A value is unknown.
    """

    def __init__(  # noqa: C901  (one condition for each option)
        self,
        *,
        wu: str | None = None,
        type: str | None = None,
        lifecycle: str | None = None,
        tags: Sequence[str] = (),
        path: str | None = None,
        session: str | None = None,
        lane: str | None = None,
        priority: str | None = None,
        status: str | None = None,
        since: int | None = None,
        before: int | None = None,
        include_archived: bool = False,
    ) -> None:
        self._conditions: list[str] = []
        self.values: list[object] = []
        self.given = any((wu, type, lifecycle, tags, path, session, lane, priority, status, since, before))
        tags = [*tags]
        if type is not None:
            word, more = node_fields.node_type(type)
            self._add("n.type = ?", word)
            tags += more
        if wu == UNLINKED:
            self._add("n.wu_id IS NULL")
        elif wu is not None:
            self._add("n.wu_id = ?", unit_key(node_fields.work_unit(wu)))
        if lifecycle is not None:
            self._add("n.lifecycle = ?", node_fields.one_of("lifecycle", lifecycle, node_fields.LIFECYCLES))
        if priority is not None:
            self._add("n.priority = ?", node_fields.one_of("priority", priority, node_fields.PRIORITIES))
        for tag in tags:
            self._add("n.id IN (SELECT id FROM tag WHERE tag = ?)", node_fields.tag(tag))
        if path is not None:
            self._add_path(path)
        for column, text in (("session_id", session), ("lane", lane)):
            if text is not None:
                self._add(f"n.{column} = ?", text)
        if since is not None:
            self._add("n.touched >= ?", since)
        if before is not None:
            self._add("n.created < ?", before)
        if status is not None:
            word = node_fields.one_of("status", status, node_fields.STATUSES)
            self._add("n.state = ?", node_fields.STATUSES.index(word))
        else:
            # A literal, not a parameter: only then can SQLite use the partial indexes of visible nodes.
            self._add("1" if include_archived else f"n.state < {HIDDEN}")

    def _add(self, condition: str, *given: object) -> None:
        self._conditions.append(condition)
        self.values += given

    def _add_path(self, path: str) -> None:
        if not path:
            raise UsageError("The path is empty.", hint="Use a form such as src/parser.py.", code="bad-path")
        for place in anchors.validate_paths([path]) or [""]:
            if not place:  # the root: nodes with any path
                self._add("n.id IN (SELECT id FROM anchor)")
                continue
            parts = place.split("/")
            above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
            marks = ", ".join("?" * len(above))
            # In the order of bytes, "0" follows "/".
            self._add(
                f"n.id IN (SELECT id FROM anchor WHERE path IN ({marks}) OR (path >= ? AND path < ?))",
                *above, place + "/", place + "0",
            )  # fmt: skip

    @property
    def where(self) -> str:
        """The WHERE clause of all conditions."""
        return "WHERE " + " AND ".join(self._conditions)


def listing(
    store: Store,
    *,
    stale: bool = False,
    limit: int = LIMIT,
    reverse: bool = False,
    private_of: FindCaller | None = None,
    **filters: Unpack[FilterOptions],
) -> Listing:
    """Return the matching nodes, last changed first.

    Args:
        stale: Only nodes whose files changed since they were written or verified.
        limit: The maximum number of nodes.
        reverse: Oldest first.
        private_of: Returns the caller whose private nodes are listed, too.
        filters: Those of `Filter`.

    Raises:
        UsageError: A filter or the limit is invalid.
    """
    check_limit(limit)
    found = _matching(store, stale, limit, reverse, filters)
    own = private_nodes.of_caller(store, private_of)
    if own is not None:
        more = _matching(own, stale, limit, reverse, filters)
        private_nodes.mark(more.nodes)
        sign = 1 if reverse else -1
        nodes = private_nodes.merge(found.nodes, more.nodes, lambda node: sign * node.touched)
        total, stale_of, ends = (
            found.total + more.total,
            found.stale | more.stale,
            found.superseded | more.superseded,
        )
        found = Listing([*nodes][:limit], stale_of, total)
        found.superseded = {node.id: ends[node.id] for node in found.nodes if node.id in ends}
    found.next = _next(found)
    return found


def _matching(store: Store, stale: bool, limit: int, reverse: bool, filters: FilterOptions) -> Listing:
    """Return the matching nodes of one store, as `listing` does."""
    wanted = Filter(**filters)
    db = store.db()
    up = "ASC" if reverse else "DESC"
    order = f"ORDER BY n.touched {up}, n.id {up}"
    if stale:
        rows = db.execute(
            f"SELECT n.id FROM node n {wanted.where} AND n.id IN (SELECT id FROM anchor) {order}",
            wanted.values,
        )
        anchored = load.load(db, [id for (id,) in rows])
        moved = anchors.stale(store, anchored)
        chosen = [node for node in anchored if node.id in moved]
        found = Listing(chosen[:limit], moved, len(chosen))
    else:
        (total,) = db.execute(f"SELECT count(*) FROM node n {wanted.where}", wanted.values).fetchone()
        rows = db.execute(f"SELECT n.id FROM node n {wanted.where} {order} LIMIT ?", [*wanted.values, limit])
        nodes = load.load(db, [id for (id,) in rows])
        found = Listing(nodes, anchors.stale(store, nodes), total)
    found.superseded = superseded.ends_of(db, [node.id for node in found.nodes])
    return found


def _next(found: Listing) -> list[str]:
    if not found.nodes:
        return ["gitmem mem list --include-archived", "gitmem mem create --help"]
    return [command("gitmem", "mem", "show", found.nodes[0].id)]


def matching_ids(db: sqlite3.Connection, wanted: Filter) -> list[str]:
    """Return the matching ids in order of creation."""
    rows = db.execute(f"SELECT n.id FROM node n {wanted.where} ORDER BY n.created, n.id", wanted.values)
    return [id for (id,) in rows]


def all_nodes(store: Store, **filters: Unpack[FilterOptions]) -> list[VersionedNode]:
    """Return all matching nodes in order of creation; the filters are those of `Filter`.

    Raises:
        UsageError: A filter is invalid.
    """
    wanted = Filter(**filters)
    db = store.db()
    return load.load(db, matching_ids(db, wanted))


def by_wu(store: Store, wu: str, *, include_archived: bool = False) -> list[VersionedNode]:
    """Return the nodes of a work unit in order of creation."""
    return all_nodes(store, wu=wu, include_archived=include_archived)


def first_line(node: VersionedNode) -> str:
    """Return the first line of a node's content, sanitized for a terminal."""
    return sanitize(node.content.strip().split("\n", 1)[0].strip())
