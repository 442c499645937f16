"""`gitmem mem archive|cleanup|delete|access`."""

from __future__ import annotations

from gitmem.errors import UsageError
from gitmem.outcome import command

from ...environment import Environment
from ...render import memory, output
from ...render import memory as render
from ...values import duration, half_life, named_unit, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import DryRun, Force, HalfLife, NodeIds, OnlyTags, OnlyWu, Reason


def archive(
    at: Environment,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these nodes (default: decayed ones).")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option("--threshold", metavar="N", help="Archive nodes with a lower score (default: 0.1)."),
    ] = None,
    half_life_: HalfLife = None,
    force: Force = False,
    dry_run: DryRun = False,
    reason: Reason = None,
) -> None:
    """Archive decayed nodes, or the named ones. --include-archived shows them. Project nodes, open P0 and P1 and last checkpoints are kept."""
    from gitmem.memory import upkeep as operation

    if ids:
        from gitmem.memory import edit

        if threshold is not None or half_life_ is not None or force or dry_run:
            raise UsageError(
                "The options about decay select nodes; they go without ids. Nothing was written.",
                code="usage",
                next=[command("gitmem", "mem", "archive", *ids)],
            )
        done = edit.change(at.store(), at.caller(), ids, archived=True, reason=reason)
        output.answer(at.json, done, memory.changed)
        return
    if reason is not None:
        raise UsageError(
            "--reason goes with ids. Nothing was written.", code="usage", next=["gitmem mem archive --help"]
        )
    archived = operation.archive(
        at.store(), at.caller(dry_run=dry_run), threshold=score(threshold), half_life=half_life(half_life_), force=force,
        dry_run=dry_run,
    )  # fmt: skip
    output.answer(at.json, archived, render.archived)


def cleanup(
    at: Environment,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="30d", help="Delete nodes older than this.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Delete this session's nodes of lifecycle `session`."),
    ] = None,
    decay: Annotated[bool, typer.Option("--decay", help="Also archive decayed nodes.")] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--decay-threshold",
            metavar="N",
            help="With --decay: archive nodes with a lower score (default: 0.1).",
        ),
    ] = None,
    half_life_: HalfLife = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Delete expired nodes. These are ephemeral and summarized nodes, and those selected by options."""
    from gitmem.memory import upkeep as operation

    cleaned = operation.cleanup(
        at.store(), at.caller(dry_run=dry_run), ttl=micros(ttl), session=session, decay=decay,
        decay_threshold=score(threshold), half_life=half_life(half_life_), force=force, dry_run=dry_run,
    )  # fmt: skip
    output.answer(at.json, cleaned, render.cleaned)


def delete(
    at: Environment,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Node ids or unique prefixes.")
    ] = None,
    tag: OnlyTags = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="30d", help="Only nodes older than this.")
    ] = None,
    wu: OnlyWu = None,
    reason: Reason = None,
    dry_run: DryRun = False,
) -> None:
    """Delete nodes by id or by filters. `gitmem mem update ID --clear deleted` restores a node."""
    from gitmem.memory import upkeep as operation

    deleted = operation.delete(
        at.store(), at.caller(dry_run=dry_run), ids or (), tags=parts(tag), older_than=micros(older_than), wu=named_unit(at, wu),
        reason=reason, dry_run=dry_run,
    )  # fmt: skip
    output.answer(at.json, deleted, render.deleted)


def access(
    at: Environment,
    ids: NodeIds,
    record: Annotated[bool, typer.Option("--record", help="Record one access of each node.")] = False,
    half_life_: HalfLife = None,
) -> None:
    """Show access counts and decay scores of nodes."""
    from gitmem.memory import accesses as operation

    life = half_life(half_life_)
    if record:
        found = operation.record(at.store(), at.caller(), ids, half_life=life)
    else:
        found = operation.accesses_of(at.store(), ids, half_life=life)
    output.answer(at.json, found, render.accessed)


def score(text: str | None) -> float:
    """Return a decay score, or the default. The operation checks that it is above 0.

    Raises:
        UsageError: The text is not a number.
    """
    from gitmem.memory.decay import THRESHOLD

    try:
        return THRESHOLD if text is None else float(text)
    except ValueError:
        raise UsageError(
            f"Invalid number: {text!r}. Nothing was written.",
            hint="Give a number above 0, such as 0.1 (the default).",
            code="bad-threshold",
        ) from None


def micros(text: str | None) -> int | None:
    """Return a duration in microseconds, or None.

    Raises:
        UsageError: The text is not a duration.
    """
    return None if text is None else int(duration(text) * 1_000_000)
