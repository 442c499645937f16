"""`gitmem mem context|recover|profile`."""

from __future__ import annotations

from ...environment import Environment
from ...render import memory as render
from ...render import output
from ...values import half_life, named_unit, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated

    import typer

    from gitmem.memory.context import Context, Recovered

    from .options import (
        AsOf,
        HalfLife,
        MaxSize,
        NoRoster,
        Pager,
        ProfileLimit,
        ReaderLane,
        Tag,
        TrackAccess,
        Wu,
    )


def context(
    at: Environment,
    wu: Wu = None,
    lane: ReaderLane = None,
    max_size: MaxSize = None,
    by_decay: Annotated[
        bool, typer.Option("--by-decay", help="Sort by decay score instead of by age.")
    ] = False,
    half_life_: HalfLife = None,
    no_roster: NoRoster = False,
    track_access: TrackAccess = False,
    with_files: Annotated[
        bool, typer.Option("--with-files", help="Copy indexed files, too, instead of only naming them.")
    ] = False,
    as_of: AsOf = None,
    pager: Pager = False,
) -> None:
    """Print the nodes for a work unit. Fits them into a byte budget, for a prompt: the last checkpoint always, then the newest first (--by-decay: most relevant first). Who works on what is listed, too (--no-roster: not). With nothing to say it prints nothing."""
    from gitmem.memory import context as operation

    at.store().asks_once = True
    found = operation.context_at(
        at.store(),
        at.caller() if track_access else at.caller_if_any(),
        as_of=as_of,
        wu=named_unit(at, wu),
        lane=lane,
        max_size=number("--max-size", max_size, operation.MAX_SIZE),
        by_decay=by_decay,
        half_life=half_life(half_life_),
        roster=not no_roster,
        track_access=track_access,
        with_files=with_files,
    )
    _print_block(at, found, at.pager(pager))


def recover(
    at: Environment,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="The session to recover (default: yours)."),
    ] = None,
    wu: Wu = None,
    lane: ReaderLane = None,
    max_size: MaxSize = None,
    no_roster: NoRoster = False,
) -> None:
    """Restore context after compaction. Print your session, its last checkpoint, later events, and the memory context."""
    from gitmem.memory import context as operation
    from gitmem.memory.context import MAX_SIZE

    found = operation.recover(
        at.store(),
        at.caller() if session is None and wu is None else at.caller_if_any(),
        session=session,
        wu=named_unit(at, wu),
        lane=lane,
        max_size=number("--max-size", max_size, MAX_SIZE),
        roster=not no_roster,
    )
    _print_block(at, found)


def _print_block(
    at: Environment, found: Context | Recovered, page: Callable[[str], bool] | None = None
) -> None:
    """Print only the block, for a prompt: its size is limited, and nothing may be added to it."""
    if at.json:
        output.answer(True, found, render.block)
    elif found.block:
        (page or output.write)(found.block)


def profile(
    at: Environment,
    limit: ProfileLimit = None,
    tag: Tag = None,
) -> None:
    """Show the nodes of project scope. Newest first, with the number of uses of each tag."""
    from gitmem.memory import profile as operation

    found = operation.profile(at.store(), limit=number("--limit", limit, operation.LIMIT), tag=tag)
    output.answer(at.json, found, render.profile)
