"""Delete nodes: only answers that ask for deleted nodes show them. The log keeps their lines, so it can be undone."""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from ..text.shell_quote import command
from . import load, private_nodes, resolve_node, write
from .archive import format_count, format_duration
from .listing import Filter, matching_ids
from .node_tables import DELETED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..store import Store

REASON = "deleted by hand"
UNDO_IDS_MAX = 10  # the most ids in a command that restores them


class Deleted(Outcome):
    """The nodes deleted, or to delete in a dry run. Nodes in `already` were deleted before; nothing is written."""

    def __init__(self, ids: Sequence[str], already: Sequence[str], *, dry_run: bool) -> None:
        self.ids = list(ids)
        self.already = list(already)
        self.dry_run = dry_run
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []


def delete(
    store: Store,
    caller: Caller,
    node_ids: Sequence[str] = (),
    *,
    tags: Sequence[str] = (),
    older_than: int | None = None,
    wu: str | None = None,
    reason: str | None = None,
    dry_run: bool = False,
) -> Deleted:
    """Delete nodes by id, or all nodes that match every given filter, including archived nodes.

    Args:
        node_ids: Ids, or prefixes of six characters or more after the dash.
        tags: Only nodes with all of these tags.
        older_than: Microseconds since a node was created.
        wu: A work unit, or `unlinked`.
        reason: The reason, in one line.
        dry_run: Only report what would be deleted.

    Raises:
        UsageError: Neither or both of ids and filters are given, or a value is invalid. Nothing was recorded.
        StoreError: The store could not be read or written. Nothing was recorded.
    """
    store = private_nodes.holding(store, caller, node_ids)
    db = store.db()
    by_filter = bool(tags or wu or older_than is not None)
    if bool(node_ids) == by_filter:
        raise UsageError(
            "Ids and filters are mutually exclusive. Nothing was written."
            if by_filter
            else "Missing ids or filters. Nothing was written.",
            hint="Give node ids, or filters as in `gitmem mem delete --tag T --older-than 30d`.",
            code="usage",
            next=["gitmem mem list", "gitmem mem delete --help"],
        )
    if by_filter:
        found = Deleted(_matching(store, tags, older_than, wu), (), dry_run=dry_run)
    else:
        named = list(dict.fromkeys(resolve_node.find(db, text, writing=True) for text in node_ids))
        gone = {node.id for node in load.load(db, named) if node.deleted}
        ids = [id for id in named if id not in gone]
        found = Deleted(ids, [id for id in named if id in gone], dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark]), *_lasting_node_warnings(store, found.ids)]
    if found.ids and not dry_run:
        lines = write.patches(store, caller, found.ids, {"deleted": True, "reason": reason or REASON})
        what = f"deletes {found.ids[0] if len(found.ids) == 1 else format_count(len(found.ids))}"
        done = write.record(store, caller, lines, what, text=reason or "", nodes=found.ids)
        found.commit, found.recorded = done.commit, True
    found.next = _next(found, tags, older_than, wu)
    return found


def _matching(store: Store, tags: Sequence[str], older_than: int | None, wu: str | None) -> list[str]:
    before = None
    if older_than is not None:
        if not 0 < older_than < float("inf"):
            raise UsageError(
                "The age must be more than 0. Nothing was written.",
                hint="Use a form such as `--older-than 30d`, 4w or 12h.",
                code="bad-duration",
            )
        before = store.now() - older_than
    wanted = Filter(tags=tags, before=before, wu=wu, include_archived=True)
    db = store.db()
    gone = {id for (id,) in db.execute("SELECT id FROM node WHERE state = ?", (DELETED,))}
    return [id for id in matching_ids(db, wanted) if id not in gone]


def _lasting_node_warnings(store: Store, ids: Sequence[str]) -> list[str]:
    """Return a warning if the nodes include project nodes or sensitive nodes."""
    nodes = load.load(store.db(), ids)
    lasting = [node.id for node in nodes if node.lifecycle == "project" or node.sensitive]
    if not lasting or len(nodes) == 1:
        return []
    verb = "is" if len(lasting) == 1 else "are"
    return [
        f"{format_count(len(lasting))} of these {verb} of the project or sensitive: {', '.join(lasting[:3])}."
    ]


def _next(found: Deleted, tags: Sequence[str], older_than: int | None, wu: str | None) -> list[str]:
    if not found.ids:
        return [command("gitmem", "mem", "show", id) for id in found.already[:1]] or ["gitmem mem list"]
    if not found.dry_run:
        undo = command("gitmem", "mem", "update", *found.ids, "--clear", "deleted")
        return [
            undo if len(found.ids) <= UNDO_IDS_MAX else "gitmem mem list --status deleted",
            "gitmem mem list",
        ]
    if not (tags or wu or older_than is not None):
        return [command("gitmem", "mem", "delete", *found.ids)] if len(found.ids) <= 20 else []
    options = [word for tag in tags for word in ("--tag", tag)]
    options += ["--older-than", format_duration(older_than)] if older_than is not None else []
    options += ["--wu", wu] if wu else []
    return [command("gitmem", "mem", "delete", *options), command("gitmem", "mem", "show", found.ids[0])]
