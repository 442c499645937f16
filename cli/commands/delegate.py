"""`gitmem delegate`: ask an agent, or whoever has a role, to do something."""

from __future__ import annotations

from ..environment import Environment
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .. import shared_options as shared
    from .options import AllowSecret, BlockedBy, Initiative, Lane, Quiet, ReplacedTasks, TaskKey, TaskText, Wu


def delegate(
    at: Environment,
    text: TaskText,
    to: Annotated[
        str | None, typer.Option("--to", metavar="NAME|role:ROLE", help=shared.DELEGATE.help)
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help=shared.REQUESTED_ROLE.help)
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="SCOPE", help=shared.REQUESTED_SCOPE.help)
    ] = None,
    brief: Annotated[str | None, typer.Option("--brief", metavar="FILE", help=shared.BRIEF.help)] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help=shared.REQUESTED_MODEL.help)
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="P0..P3", help=shared.PRIORITY.help)
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="2h", help=shared.DEADLINE.help)
    ] = None,
    within: Annotated[
        str | None, typer.Option("--within", metavar="TASK|none", help=shared.WITHIN.help)
    ] = None,
    again: Annotated[bool, typer.Option("--again", help=shared.AGAIN.help)] = False,
    blocked_by: BlockedBy = None,
    supersedes: ReplacedTasks = None,
    idempotency_key: TaskKey = None,
    wu: Wu = None,
    initiative: Initiative = None,
    lane: Lane = None,
    quiet: Quiet = False,
    allow_secret: AllowSecret = False,
) -> None:
    """Ask an agent, or whoever has a role, to do something: a task, and a signal that tells about it."""
    from gitmem.tasks import brief as briefs
    from gitmem.tasks import delegate as tasks

    from ..values import duration, own_task, typed

    store = at.store()
    caller = at.caller()
    attested = briefs.attest(at.repo.worktree, at.paths([brief])[0], caller) if brief is not None else {}
    made = tasks.delegate(
        store,
        caller,
        typed(text, "text"),
        to=to,
        role=role,
        scopes=scope or (),
        requested_model=model,
        priority=priority,
        deadline=store.now() + int(duration(deadline, "--deadline") * 1_000_000)
        if deadline is not None
        else None,
        within=own_task() if within is None else within,
        again=again,
        blocked_by=blocked_by,
        supersedes=supersedes,
        idempotency_key=idempotency_key,
        wu=wu,
        initiative=initiative,
        lane=lane,
        allow_secret=allow_secret,
        **attested,
    )
    output.answer(at.json, made, render.delegated, only=[str(made.task["task_id"])] if quiet else None)
