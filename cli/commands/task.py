"""`gitmem task`: list tasks, take and do them, and decide their outcome."""

from __future__ import annotations

from ..environment import Environment
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.tasks.append import TaskChange

    from .. import shared_options as shared
    from .options import AllowSecret, Quiet, Reason, TaskId, TaskText, Wu

VERIFIED = {"matches": 0, "changed": 1, "missing": 2}  # exit statuses


def listing(
    at: Environment,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only tasks that you wrote, hold, or are asked to do.")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Only tasks without an outcome that no other task replaces.")
    ] = False,
    blocked: Annotated[bool, typer.Option("--blocked", help="Only tasks that wait for others.")] = False,
    stuck: Annotated[
        bool,
        typer.Option(
            "--stuck",
            help="Only tasks that wait for somebody for half an hour or more; tells those concerned, once.",
        ),
    ] = False,
    wu: Wu = None,
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.TASK_LIMIT.help)] = None,
) -> None:
    """List tasks: open ones first, then by priority, the latest first."""
    from gitmem.tasks import task_list

    from ..values import number

    if stuck:
        _stuck(at, mine, open_ or blocked, wu, number("--limit", limit, task_list.LISTED))
        return
    caller = at.caller() if mine else None
    if caller is not None:
        from gitmem.tasks import give_up

        give_up.look(at.store(), caller)
    found = task_list.list_tasks(
        at.store(),
        caller,
        open=open_,
        blocked=blocked,
        wu=wu,
        limit=number("--limit", limit, task_list.LISTED),
    )
    output.answer(at.json, found, render.page)


def _stuck(at: Environment, mine: bool, is_restricted: bool, wu: str | None, limit: int) -> None:
    from gitmem.errors import UsageError
    from gitmem.tasks import escalate
    from gitmem.tasks import stuck as tasks

    if is_restricted:
        raise UsageError(
            "--stuck excludes --open and --blocked. Nothing was written.",
            hint="Stuck tasks are open, and do not wait for others.",
            code="contradiction",
        )
    caller = at.caller() if mine else at.caller_if_any()
    found = tasks.find(at.store(), caller if mine else None, wu=wu, limit=limit)
    if caller is not None:
        escalate.escalate(at.store(), caller, found)
    output.answer(at.json, found, render.stuck)


def show(at: Environment, id: TaskId) -> None:
    """Show a task with its state, its holder, its events, and what it hands over."""
    from gitmem.handoffs import detail
    from gitmem.invocation import received

    found = detail.show(at.store(), id, at.caller_if_any())
    received.attach(at.store(), found, found.task)
    output.answer(at.json, found, render.detail)


def verify(
    at: Environment,
    id: TaskId,
    brief: Annotated[
        str | None,
        typer.Option(
            "--brief", metavar="FILE", help="File to compare (default: the one that the task names)."
        ),
    ] = None,
) -> int:
    """Compare a task's brief with what its writer attested; exit 1 if it differs, 2 if it can't be compared."""
    from gitmem.tasks import brief as briefs

    path = at.paths([brief])[0] if brief is not None else None
    found = briefs.verify(at.store(), id, path)
    output.answer(at.json, found, render.brief)
    return VERIFIED[found.status]


def take(
    at: Environment,
    id: TaskId,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="2h", help="Time until others may take it, at most 24h (default: an hour)."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Take a task, so that others see who works on it, or accept a handoff; exit 1 if somebody else has it."""
    from gitmem.handoffs import accept
    from gitmem.invocation import received
    from gitmem.tasks import find_task

    from ..values import lease

    time = lease("--for", for_) if for_ is not None else None
    found = accept.take(at.store(), at.caller(), id, lease=time)
    received.attach(at.store(), found, find_task.require(at.store(), found.task_id).record)
    _changed(at, found, quiet)


def renew(at: Environment, id: TaskId, quiet: Quiet = False) -> None:
    """Extend the time for which you have a task."""
    from gitmem.tasks import task_work

    _changed(at, task_work.renew(at.store(), at.caller(), id), quiet)


def release(at: Environment, id: TaskId, reason: Reason = None, quiet: Quiet = False) -> None:
    """Give a task back, so that somebody else may take it."""
    from gitmem.tasks import task_work

    _changed(at, task_work.release(at.store(), at.caller(), id, reason=reason), quiet)


def done(
    at: Environment,
    id: TaskId,
    text: TaskText,
    failed: Annotated[bool, typer.Option("--failed", help="It failed; the text says why.")] = False,
    quiet: Quiet = False,
    allow_secret: AllowSecret = False,
) -> None:
    """Report the result of a task that you have taken."""
    from gitmem.tasks import task_work

    from ..values import typed

    state, result = "failed" if failed else "completed", typed(text, "result")
    found = task_work.report(at.store(), at.caller(), id, state, result, allow_secret=allow_secret)
    _changed(at, found, quiet)


def ask(
    at: Environment, id: TaskId, text: TaskText, quiet: Quiet = False, allow_secret: AllowSecret = False
) -> None:
    """Ask whoever wrote a task that you have taken; it waits for the answer."""
    from gitmem.tasks import task_work

    from ..values import typed

    question = typed(text, "question")
    found = task_work.report(
        at.store(), at.caller(), id, "input-required", question, allow_secret=allow_secret
    )
    _changed(at, found, quiet)


def message(
    at: Environment, id: TaskId, text: TaskText, quiet: Quiet = False, allow_secret: AllowSecret = False
) -> None:
    """Write to the other side of a task, such as the answer to a question."""
    from gitmem.tasks import task_decisions

    from .. import remote_sends
    from ..values import typed

    store, caller, said = at.store(), at.caller(), typed(text, "message")
    is_asked = remote_sends.asks(
        store, id
    )  # by a server, whose token must be right before the answer is recorded
    found = task_decisions.message(store, caller, id, said, allow_secret=allow_secret)
    if is_asked:
        remote_sends.send_answer(store, found)
    _changed(at, found, quiet)


def reject(at: Environment, id: TaskId, reason: Reason = None, quiet: Quiet = False) -> None:
    """Refuse a task that is for you."""
    from gitmem.tasks import task_work

    _changed(at, task_work.reject(at.store(), at.caller(), id, reason), quiet)


def cancel(at: Environment, id: TaskId, reason: Reason = None, quiet: Quiet = False) -> None:
    """Cancel a task that nobody has taken, else ask its holder to stop."""
    from gitmem.tasks import task_decisions

    from .. import remote_sends

    found = task_decisions.cancel(at.store(), at.caller(), id, reason=reason)
    remote_sends.send_cancel(at.store(), found)
    _changed(at, found, quiet)


def seal(
    at: Environment,
    id: TaskId,
    give_up: Annotated[
        str | None,
        typer.Option("--give-up", metavar="TEXT", help="Seal a task without a result as failed, and why."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Accept the result of a task that your session wrote: from now on nothing changes it."""
    from gitmem.tasks import task_decisions

    _changed(at, task_decisions.seal(at.store(), at.caller(), id, give_up=give_up), quiet)


def close(at: Environment, id: TaskId, reason: Reason = None, quiet: Quiet = False) -> None:
    """Close a task whose writer has ended; needs --reason."""
    from gitmem.tasks import task_decisions

    _changed(at, task_decisions.close(at.store(), at.caller(), id, reason or ""), quiet)


def _changed(at: Environment, found: TaskChange, quiet: bool) -> None:
    output.answer(at.json, found, render.change, only=[found.task_id] if quiet else None)
