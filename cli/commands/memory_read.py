"""`gitmem show` of a node, and `gitmem mem list|ready|search|export|context|recover|profile`."""

from __future__ import annotations

from ..environment import Environment
from ..render import memory as render
from ..render import output
from ..values import named_unit, note_workspaces, number, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from gitmem.memory.context import Context, Recovered

    from .options import (
        PLAIN,
        Archived,
        Argument,
        AsOf,
        Lifecycle,
        ListLimit,
        MaxSize,
        NodeId,
        NodeWu,
        NoRoster,
        OnlyTags,
        OnlyWu,
        Option,
        Path,
        ProfileLimit,
        ReadyLimit,
        ReadyType,
        SearchLimit,
        Tag,
        TrackAccess,
        Type,
    )


def show(at: Environment, id: NodeId) -> int:
    """Show one node in full. Prints its text, relations and changes."""
    from gitmem.agents import presence
    from gitmem.memory import listing as operation

    found = operation.show(at.memory(), id)
    note_workspaces(at, presence.workspaces(at.store(), [found.node.sender_session]))
    at.answer(found, render.shown)
    return 1 if found.ambiguous else 0


def listing(
    at: Environment,
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    path: Path = None,
    status: Annotated[
        str | None,
        Option("--status", "S", "Only nodes with this status: active, closed, archived or deleted."),
    ] = None,
    limit: ListLimit = None,
    include_archived: Archived = False,
) -> None:
    """List nodes, newest first."""
    from gitmem.memory import listing as operation

    found = operation.listing(
        at.memory(), wu=named_unit(at, wu), type=type, lifecycle=lifecycle, tags=parts(tag),
        path=at.paths([path])[0] if path else path,
        status=status,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
    )  # fmt: skip
    at.answer(found, render.listed)


def ready(
    at: Environment,
    wu: NodeWu = None,
    type: ReadyType = None,
    limit: ReadyLimit = None,
) -> None:
    """List nodes and tasks that can be taken up. Most important first, and what blocks the others of the work unit."""
    from gitmem.memory import listing as operation
    from gitmem.work import task_list

    found = task_list.ready_work(
        at.memory(),
        at.caller_if_any(),
        named_unit(at, wu),
        type=type,
        limit=number("--limit", limit, operation.READY_LIMIT),
    )
    at.answer(found, render.ready)


def export(
    at: Environment,
    format: Annotated[
        str | None, Option("--format", "F", "markdown, json or jsonl (default: markdown).")
    ] = None,
    wu: OnlyWu = None,
) -> None:
    """Print the memory as one document."""
    from gitmem.memory import listing as operation

    found = operation.export(
        at.store(), format=format or ("json" if at.json else "markdown"), wu=named_unit(at, wu),
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
        at.answer(found, lambda _: ())
    elif found.document:
        output.write_lines([found.document])


def search(
    at: Environment,
    text: Annotated[list[str], Argument("TEXT...", "Words; quoted words must be adjacent."), PLAIN],
    wu: Annotated[OnlyWu, PLAIN] = None,
    type: Type = None,
    tag: Annotated[OnlyTags, PLAIN] = None,
    path: Path = None,
    limit: SearchLimit = None,
    include_archived: Archived = False,
) -> None:
    """Search nodes by words, best match first. Exit 0 even if nothing is found."""
    from gitmem.agents import presence
    from gitmem.memory import search as operation

    found = operation.search(
        at.memory(), " ".join(text), wu=named_unit(at, wu), type=type,
        tags=parts(tag), path=at.paths([path])[0] if path else path,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
    )  # fmt: skip
    note_workspaces(at, presence.workspaces(at.store(), [hit.node.sender_session for hit in found.hits]))
    at.answer(found, render.matching)


def context(
    at: Environment,
    wu: NodeWu = None,
    max_size: MaxSize = None,
    no_roster: NoRoster = False,
    track_access: TrackAccess = False,
    as_of: AsOf = None,
) -> None:
    """Print the nodes for a work unit. Fits them into a byte budget, for a prompt: the last checkpoint always, then the newest first. Who works on what is listed, too (--no-roster: not). With nothing to say it prints nothing."""
    from gitmem.memory import context as operation

    at.store().asks_once = True
    found = operation.context_at(
        at.store(),
        at.caller() if track_access else at.caller_if_any(),
        as_of=as_of,
        wu=named_unit(at, wu),
        max_size=number("--max-size", max_size, operation.MAX_SIZE),
        roster=not no_roster,
        track_access=track_access,
    )
    _print_block(at, found)


def recover(
    at: Environment,
    session: Annotated[
        str | None, Option("--session", "ID", "The session to recover (default: yours).")
    ] = None,
    wu: NodeWu = None,
    max_size: MaxSize = None,
) -> None:
    """Restore context after compaction. Print your session, its last checkpoint, later events, and the memory context."""
    from gitmem.memory import context as operation
    from gitmem.memory.context import MAX_SIZE

    found = operation.recover(
        at.store(),
        at.caller() if session is None and wu is None else at.caller_if_any(),
        session=session,
        wu=named_unit(at, wu),
        max_size=number("--max-size", max_size, MAX_SIZE),
    )
    _print_block(at, found)


def _print_block(at: Environment, found: Context | Recovered) -> None:
    """Print only the block, for a prompt: its size is limited, and nothing may be added to it."""
    if at.json:
        at.answer(found, render.packed)
    elif found.block:
        output.write(found.block)


def profile(
    at: Environment,
    limit: ProfileLimit = None,
    tag: Tag = None,
) -> None:
    """Show the nodes of project scope. Newest first, with the number of uses of each tag."""
    from gitmem.memory import context as operation

    found = operation.profile(at.memory(), limit=number("--limit", limit, operation.PROFILE_LIMIT), tag=tag)
    at.answer(found, render.profile)
