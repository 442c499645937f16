"""`gitmem mem show|list|ready|search|export`."""

from __future__ import annotations

from ...environment import Environment
from ...render import memory as render
from ...render import output
from ...values import half_life, named_unit, note_workspaces, number, parse_moment, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import (
        Archived,
        HalfLife,
        Lifecycle,
        ListLimit,
        NodeId,
        OnlyLane,
        OnlySession,
        OnlyTags,
        OnlyWu,
        Pager,
        Path,
        Priority,
        ReadyLimit,
        ReadyType,
        SearchLimit,
        TrackAccess,
        Type,
        Wu,
    )


def show(at: Environment, id: NodeId, half_life_: HalfLife = None, pager: Pager = False) -> int:
    """Show one node in full. Prints its text, relations and changes."""
    from gitmem.agents import presence
    from gitmem.memory import show_node

    found = show_node.show(at.store(), id, half_life=half_life(half_life_), private_of=at.caller_if_any)
    note_workspaces(at, presence.workspaces(at.store(), [found.node.sender_session]))
    output.answer(at.json, found, render.shown, page=at.pager(pager))
    return 1 if found.ambiguous else 0


def listing(
    at: Environment,
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    path: Path = None,
    session: OnlySession = None,
    lane: OnlyLane = None,
    priority: Priority = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="S", help="Only nodes with this status: active, closed, archived or deleted."
        ),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only nodes whose files changed since they were written.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="1h|ISO", help="Only nodes created after this time, such as 2d or 2026-11-21."
        ),
    ] = None,
    limit: ListLimit = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Oldest first.")] = False,
    include_archived: Archived = False,
    pager: Pager = False,
) -> None:
    """List nodes, newest first."""
    from gitmem.memory import listing as operation

    found = operation.listing(
        at.store(), wu=named_unit(at, wu), type=type, lifecycle=lifecycle, tags=parts(tag),
        path=at.paths([path])[0] if path else path, session=session, lane=lane, priority=priority,
        status=status, stale=stale, since=None if since is None else parse_moment(since),
        limit=number("--limit", limit, operation.LIMIT), reverse=reverse, include_archived=include_archived,
        private_of=at.caller_if_any,
    )  # fmt: skip
    output.answer(at.json, found, render.listed, page=at.pager(pager))


def ready(
    at: Environment,
    wu: Wu = None,
    type: ReadyType = None,
    limit: ReadyLimit = None,
    include_archived: Archived = False,
) -> None:
    """List nodes and tasks that can be taken up. Most important first, and what blocks the others of the work unit."""
    from gitmem.memory import listing as operation
    from gitmem.tasks import ready_tasks

    found = ready_tasks.ready_work(
        at.store(),
        at.caller_if_any(),
        named_unit(at, wu),
        type=type,
        limit=number("--limit", limit, operation.READY_LIMIT),
        include_archived=include_archived,
    )
    output.answer(at.json, found, render.ready)


def export(
    at: Environment,
    format: Annotated[
        str | None, typer.Option("--format", metavar="F", help="markdown, json or jsonl (default: markdown).")
    ] = None,
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    include_archived: Archived = False,
) -> None:
    """Print the memory as one document."""
    from gitmem.memory import listing as operation

    found = operation.export(
        at.store(), format=format or ("json" if at.json else "markdown"), wu=named_unit(at, wu), type=type, lifecycle=lifecycle,
        tags=parts(tag), include_archived=include_archived,
    )  # fmt: skip
    if at.json and found.format != "json":
        values = {
            "format": found.format,
            "count": found.count,
            "filters": found.filters,
            "document": found.document,
        }
        output.answer_values(True, values, (), found.next)
    elif at.json:
        output.answer(True, found, lambda _: ())
    elif found.document:
        output.write_lines([found.document])


def search(
    at: Environment,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="Words; quoted words must be adjacent."),
    ],
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    path: Path = None,
    limit: SearchLimit = None,
    include_archived: Archived = False,
    half_life_: HalfLife = None,
    by_decay: Annotated[
        bool, typer.Option("--by-decay", help="Weight age and priority fully instead of by an eighth.")
    ] = False,
    track_access: TrackAccess = False,
    pager: Pager = False,
) -> None:
    """Search nodes by words, best match first. Exit 0 even if nothing is found."""
    from gitmem.agents import presence
    from gitmem.memory import search as operation

    found = operation.search(
        at.store(), " ".join(query), reader=at.caller() if track_access else None, wu=named_unit(at, wu), type=type,
        lifecycle=lifecycle, tags=parts(tag), path=at.paths([path])[0] if path else path,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
        half_life=half_life(half_life_), by_decay=by_decay,
        private_of=at.caller_if_any,
    )  # fmt: skip
    note_workspaces(at, presence.workspaces(at.store(), [hit.node.sender_session for hit in found.hits]))
    output.answer(at.json, found, render.matching, page=at.pager(pager))
