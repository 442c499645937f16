"""`gitmem schema`."""

from __future__ import annotations

from gitmem.records import KINDS, OBJECTS

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer


def schema(
    at: Environment,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND", help=f"{', '.join((*KINDS, *OBJECTS[:-1]))} or {OBJECTS[-1]} (default: all)."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of the records and of the objects in them. Needs no repository."""
    from gitmem import records

    if kind is not None:
        found = records.schema(kind)
    else:
        found = {each: records.schema(each) for each in (*KINDS, *OBJECTS)}
    if at.json:  # as in every JSON answer; without --json only the schema is printed
        found = {**found, "next": [] if kind else [f"gitmem schema {KINDS[0]}"]}
    output.write_json(found)
