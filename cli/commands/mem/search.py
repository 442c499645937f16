"""`gitmem mem search`."""

from __future__ import annotations

from ...render import out
from ...render.mem import search as render
from ...surroundings import Surroundings
from ...values import half_life, number, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import Archived, HalfLife, Lifecycle, OnlyTags, OnlyWu, Path, TrackAccess, Type


def search(
    at: Surroundings,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="Words; those in double quotes must stand together."),
    ],
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    path: Path = None,
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Nodes at most; 10.")] = None,
    include_archived: Archived = False,
    half_life_: HalfLife = None,
    by_decay: Annotated[
        bool, typer.Option("--by-decay", help="Let age and priority count in full, rather than a quarter.")
    ] = False,
    track_access: TrackAccess = False,
) -> None:
    """Find nodes by their words. The best match comes first. Nothing found is an answer, too: exit 0."""
    from gitmem.operations.memory import search as operation

    found = operation.search(
        at.store(), " ".join(query), reader=at.caller() if track_access else None, wu=wu, type=type,
        lifecycle=lifecycle, tags=parts(tag), path=at.paths([path])[0] if path else path,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
        half_life=half_life(half_life_), by_decay=by_decay,
    )  # fmt: skip
    out.answer(at.json, found, render.found)
