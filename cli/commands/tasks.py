"""`gitmem task`, `delegate` and `handoff`: ask for work, do it, decide its outcome, and hand it over."""

from __future__ import annotations

from ..environment import Environment
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from gitmem.work.task_records import TaskChange

    from .options import (
        MODEL,
        PLAIN,
        TASK_ID,
        Argument,
        BlockedBy,
        Deadline,
        Flag,
        LastReason,
        LaunchAttempt,
        LaunchBranch,
        LaunchClient,
        LaunchModel,
        LaunchWorktree,
        Option,
        Priority,
        Quiet,
        TaskId,
        TaskLimit,
        TaskText,
        Wu,
    )


VERIFIED = {"matches": 0, "changed": 1, "missing": 2}  # exit statuses


def listing(
    at: Environment,
    id: Annotated[str | None, Argument("ID", TASK_ID)] = None,
    mine: Annotated[
        bool, Flag("--mine", "Only tasks that you wrote, hold, or are asked to do."), PLAIN
    ] = False,
    open: Annotated[
        bool, Flag("--open", "Only tasks without an outcome that no other task replaces."), PLAIN
    ] = False,
    stuck: Annotated[
        bool,
        Flag(
            "--stuck",
            "Only tasks that wait for somebody for half an hour or more; tells those concerned, once.",
        ),
        PLAIN,
    ] = False,
    tree: Annotated[
        bool, Flag("--tree", "By initiative and work unit, each above those within it; ID as root.")
    ] = False,
    stats: Annotated[
        bool, Flag("--stats", "Counts by state, outcome and role, and how long tasks wait and take.")
    ] = False,
    wu: Wu = None,
    limit: TaskLimit = None,
) -> None:
    """List tasks: open ones first, then by priority, the latest first."""
    from gitmem.work import stored_tasks

    from ..values import number

    tree = tree or id is not None
    _refuse_mixed({"--mine": mine, "--open": open, "--stuck": stuck, "--tree": tree, "--stats": stats})
    if stats:
        from gitmem.work import task_list

        at.answer(task_list.stats(at.store(), wu=wu), render.stats)
    elif tree:
        from gitmem.work import task_list

        most = number("--limit", limit, task_list.TREE_LISTED)
        found = task_list.tree(at.store(), id, wu=wu, limit=most)
        at.answer(found, render.tree)
    elif stuck:
        _stuck(at, mine, wu, number("--limit", limit, stored_tasks.LISTED))
    else:
        _list(at, mine, open, wu, number("--limit", limit, stored_tasks.LISTED))


VIEWS = ("--stats", "--tree", "--stuck")


def _refuse_mixed(given: dict[str, bool]) -> None:
    """Raise UsageError for filters that a view does not have.

    Args:
        given: Whether each view or filter is given, by its option.
    """
    from gitmem.errors import UsageError

    found = [name for name, is_given in given.items() if is_given]
    view = next((name for name in VIEWS if name in found), None)
    others = [name for name in found if name != view and not (view == "--stuck" and name == "--mine")]
    if view is not None and others:
        raise UsageError(
            f"{view} excludes {', '.join(others)}. Nothing was written.",
            hint="Stuck tasks are open, and do not wait for others." if view == "--stuck" else "",
            code="contradiction",
        )


def _list(at: Environment, mine: bool, is_open: bool, wu: str | None, limit: int) -> None:
    from gitmem.work import task_list

    caller = at.caller() if mine else None
    if caller is not None:
        from gitmem.work import task_decisions

        task_decisions.give_up_lost(at.store(), caller)
    found = task_list.list_tasks(at.store(), caller, open=is_open, wu=wu, limit=limit)
    at.answer(found, render.page)


def _stuck(at: Environment, mine: bool, wu: str | None, limit: int) -> None:
    from gitmem.work import stuck

    caller = at.caller() if mine else at.caller_if_any()
    found = stuck.find(at.store(), caller if mine else None, wu=wu, limit=limit)
    if caller is not None:
        stuck.escalate(at.store(), caller, found)
    at.answer(found, render.stuck)


def show(
    at: Environment,
    id: TaskId,
    check_brief: Annotated[
        bool, Flag("--check-brief", "Exit 1 if its brief is not as attested, 2 if that can't be compared.")
    ] = False,
) -> int:
    """Show a task with its state, its holder, its events, what it hands over, and whether its brief is as attested."""
    from gitmem import calls
    from gitmem.work import handoffs, task_roles

    found = handoffs.show_handoff(at.store(), id, at.caller_if_any())
    calls.attach_received(at.store(), found, found.task)
    status = VERIFIED[task_roles.verify_brief(at.store(), found.task["task_id"]).status] if check_brief else 0
    at.answer(found, render.detail)
    return status


def take(
    at: Environment,
    id: TaskId,
    lease: Annotated[
        str | None,
        Option("--for", "2h", "Time until others may take it, at most 24h (default: an hour)."),
        PLAIN,
    ] = None,
) -> None:
    """Take a task, so that others see who works on it, or accept a handoff; again to have it longer. Exit 1 if somebody else has it."""
    from gitmem import calls
    from gitmem.work import handoffs, task_rules

    from .. import values

    time = values.lease("--for", lease) if lease is not None else None
    found = handoffs.take_handoff(at.store(), at.caller(), id, lease=time)
    calls.attach_received(at.store(), found, task_rules.require(at.store(), found.task_id).record)
    _changed(at, found)


def release(at: Environment, id: TaskId, reason: LastReason = None) -> None:
    """Give a task back, so that somebody else may take it."""
    from gitmem.work import task_work

    _changed(at, task_work.release(at.store(), at.caller(), id, reason=reason))


def done(
    at: Environment,
    id: TaskId,
    text: TaskText,
    failed: Annotated[bool, Flag("--failed", "It failed; the text says why."), PLAIN] = False,
) -> None:
    """Report the result of a task that you have taken."""
    from gitmem.work import task_work

    from ..values import typed

    state, result = "failed" if failed else "completed", typed(text, "result")
    found = task_work.report(at.store(), at.caller(), id, state, result)
    _changed(at, found)


def message(
    at: Environment,
    id: TaskId,
    text: TaskText,
    ask: Annotated[
        bool, Flag("--ask", "A question to its writer: the task waits for the answer."), MODEL
    ] = False,
) -> None:
    """Write to the other side of a task: a question about one that you have taken, or the answer to it."""
    from gitmem.work import task_decisions, task_work

    from .. import a2a
    from ..values import typed

    store, caller, said = at.store(), at.caller(), typed(text, "message")
    if ask:
        found = task_work.report(store, caller, id, "input-required", said)
    else:
        is_asked = a2a.asks(store, id)  # by a server, whose token must be right before the answer is recorded
        found = task_decisions.message(store, caller, id, said)
        if is_asked:
            a2a.send_answer(store, found)
    _changed(at, found)


def reject(at: Environment, id: TaskId, reason: LastReason = None) -> None:
    """Refuse a task that is for you."""
    from gitmem.work import task_work

    _changed(at, task_work.reject(at.store(), at.caller(), id, reason))


def cancel(at: Environment, id: TaskId, reason: LastReason = None) -> None:
    """Cancel a task that nobody has taken, else ask its holder to stop."""
    from gitmem.work import task_decisions

    from .. import a2a

    found = task_decisions.cancel(at.store(), at.caller(), id, reason=reason)
    a2a.send_cancel(at.store(), found)
    _changed(at, found)


def accept(
    at: Environment,
    id: TaskId,
    reason: LastReason = None,
    failed: Annotated[
        bool, Flag("--failed", "End it without a result as failed; needs a reason."), MODEL
    ] = False,
) -> None:
    """Accept the result of a task that your session wrote: from now on nothing changes it. With a reason, end one whose writer has ended."""
    from gitmem.errors import UsageError
    from gitmem.work import task_decisions

    if failed and reason is None:
        raise UsageError(
            "--failed needs a reason, which is recorded. Nothing was written.",
            code="no-reason",
            next=["gitmem task accept --help"],
        )
    store, caller = at.store(), at.caller()
    if reason is not None and not failed:
        found = task_decisions.close(store, caller, id, reason)
    else:
        found = task_decisions.seal_task(store, caller, id, give_up=reason)
    _changed(at, found)


def _changed(at: Environment, found: TaskChange) -> None:
    at.answer(found, render.change)


def launch(
    at: Environment,
    id: TaskId,
    again: Annotated[
        str | None,
        Option("--again", "REASON", "Start another worker in the place of one that is gone, and why."),
    ] = None,
    attempt: LaunchAttempt = None,
    branch: LaunchBranch = None,
    worktree: LaunchWorktree = None,
    client: LaunchClient = None,
    model: LaunchModel = None,
) -> None:
    """Record that you start a worker for a task; exit 1 if somebody has it. No program is started."""
    from gitmem.work import task_decisions

    found = task_decisions.launch(
        at.store(), at.caller(), id, again=again, attempt=attempt, branch=branch, worktree=_folder(worktree), client=client,
        requested_model=model,
    )  # fmt: skip
    at.answer(found, render.launched)


def _folder(typed: str | None) -> str | None:
    """Return the name of a worktree's folder: its path is of interest to this machine only."""
    import os

    return os.path.basename(os.path.abspath(typed)) if typed else None


def delegate(
    at: Environment,
    text: TaskText,
    to: Annotated[
        str | None,
        Option("--to", "NAME|role:ROLE", "Who shall do it: an agent, or role:ROLE for any one with a role."),
        MODEL,
    ] = None,
    role: Annotated[
        str | None, Option("--role", "ROLE", "Role to work in (default: that of the addressee)."), MODEL
    ] = None,
    scope: Annotated[
        list[str] | None,
        Option(
            "--scope",
            "SCOPE",
            "What it covers: paths, or KEY=VALUE (default: the work unit, else that of the addressee).",
        ),
        MODEL,
    ] = None,
    brief: Annotated[
        str | None, Option("--brief", "FILE", "File with the details; its SHA-256 is recorded."), MODEL
    ] = None,
    model: Annotated[str | None, Option("--model", "M", "Model that it is for."), MODEL] = None,
    priority: Priority = None,
    deadline: Deadline = None,
    again: Annotated[
        bool, Flag("--again", "Allow an agent who is already in the chain of delegations."), MODEL
    ] = False,
    blocked_by: BlockedBy = None,
    wu: Wu = None,
    quiet: Quiet = False,
) -> None:
    """Ask an agent, or whoever has a role, to do something: a task, and a signal that tells about it."""
    from gitmem.work import new_task as tasks
    from gitmem.work import task_roles as briefs

    from ..values import duration, own_task, typed

    store = at.store()
    caller = at.caller()
    attested = (
        briefs.attest_brief(at.repo.worktree, at.paths([brief])[0], caller) if brief is not None else {}
    )
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
        within=own_task(),
        again=again,
        blocked_by=blocked_by,
        wu=wu,
        **attested,
    )
    at.answer(made, render.delegated, only=[str(made.task["task_id"])] if quiet else None)


def handoff(
    at: Environment,
    text: Annotated[
        str | None, Argument("TEXT", "The next steps (default: those of your last checkpoint)."), PLAIN
    ] = None,
    to: Annotated[
        str | None,
        Option("--to", "NAME|role:ROLE", "Who shall go on: an agent, or role:ROLE for any one with a role."),
        MODEL,
    ] = None,
    wu: Annotated[str | None, Option("--wu", "ID", "Only what belongs to this work unit."), PLAIN] = None,
    dry_run: Annotated[
        bool, Flag("--dry-run", "Write nothing; show what would be handed over."), MODEL
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Offer your checkpoint, tasks, claims and open threads to another agent, who accepts them with `gitmem task take`."""
    from gitmem.work import give_handoff

    from ..values import typed

    made = give_handoff.hand_over(
        at.store(),
        at.caller(),
        to,
        typed(text, "text") if text is not None else None,
        wu=wu,
        dry_run=dry_run,
    )
    at.answer(made, render.handoff_given, only=[str(made.task["task_id"])] if quiet else None)
