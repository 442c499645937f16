"""`gitmem call`, and `gitmem task wait|input`: agents call agents."""

from __future__ import annotations

from ..environment import Environment, variable
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.invocation.call_result import CallResult
    from gitmem.invocation.call_tasks import CallOptions
    from gitmem.store import Store

    from .. import shared_options as shared
    from .options import AllowSecret, CallKey, CallTimeout, TaskId, TaskIds, TaskText

TASK = "GITMEM_TASK"  # the variable with the task that a worker's program runs
TIMED_OUT = 6  # exit status: the work goes on


def call(
    at: Environment,
    agent: Annotated[str, typer.Argument(metavar="AGENT[,AGENT…]", help=shared.CALL_AGENTS.help)],
    text: TaskText,
    timeout: CallTimeout = None,
    join: Annotated[str | None, typer.Option("--join", metavar="all|any", help=shared.CALL_JOIN.help)] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the results.")] = False,
    with_context: Annotated[bool, typer.Option("--with-context", help=shared.CALL_CONTEXT.help)] = False,
    var: Annotated[list[str] | None, typer.Option("--var", metavar="K=V", help=shared.CALL_VAR.help)] = None,
    with_memory: Annotated[bool, typer.Option("--with-memory", help=shared.CALL_MEMORY.help)] = False,
    memory_query: Annotated[
        str | None, typer.Option("--memory-query", metavar="WORDS", help=shared.CALL_QUERY.help)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=shared.CALL_DRY_RUN.help)] = False,
    idempotency_key: CallKey = None,
    cancel_on_timeout: Annotated[
        bool, typer.Option("--cancel-on-timeout", help="Cancel what has no result in time.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Begin at most once, of all clones; offline nothing begins.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Call an agent that is in this chain of calls already.")
    ] = False,
    allow_secret: AllowSecret = False,
) -> int:
    """Call agents and wait for their results; exit 1 if one failed or asks something, 6 after the time limit."""
    import contextlib

    from gitmem.invocation import call as calls
    from gitmem.invocation import preview
    from gitmem.invocation.call_result import ALL, ANY
    from gitmem.outcome import command

    from .. import autosync, remote_call
    from ..values import choice, metadata, typed, words
    from .watch import WatchEnded

    store, message = committing(at), typed(text, "text")
    caller = at.caller(dry_run=dry_run and not (with_context or with_memory))  # else that is the caller's
    options: CallOptions = {
        "timeout": seconds(timeout), "join": choice("--join", join, (ALL, ANY)) or ALL, "wait": not no_wait, "idempotency_key": idempotency_key,
        "cancel_on_timeout": cancel_on_timeout, "again": again, "once": once, "within": variable(TASK), "allow_secret": allow_secret,
        "context": with_context, "variables": metadata(var, "--var") or None,
        "memory": memory_query if memory_query is not None else with_memory,
    }  # fmt: skip
    if dry_run:
        from gitmem.a2a import remote_links

        server = remote_links.identity_of(agent) if remote_call.is_url(agent) else None
        shown = preview.preview(store, caller, agent, options, server)
        given = {
            "--timeout": timeout, "--join": join, "--no-wait": no_wait, "--with-context": with_context, "--var": var,
            "--with-memory": with_memory, "--memory-query": memory_query, "--idempotency-key": idempotency_key,
            "--cancel-on-timeout": cancel_on_timeout, "--once": once, "--again": again, "--allow-secret": allow_secret,
        }  # fmt: skip
        shown.next = [command("gitmem", "call", agent, text, *words(given))]
        output.answer(at.json, shown, render.call_previewed)
        return 0
    with contextlib.ExitStack() as stack:
        options["stop"] = stack.enter_context(WatchEnded())
        options["tick"] = lambda: autosync.start_if_due(at)
        if is_remote := remote_call.is_url(agent):
            ids: set[str] = set()
            options["began"] = ids.update
            agent = stack.enter_context(remote_call.serving(store, agent, ids))
        found = calls.call(store, caller, agent, message, **options)
        if no_wait and is_remote:
            remote_call.wait_until_sent(store, found)
    return _answer(at, found, is_waiting=not no_wait)


def wait(at: Environment, ids: TaskIds, timeout: CallTimeout = None) -> int:
    """Wait for the results of tasks, and accept those that your session wrote; exit 6 after the time limit."""
    from gitmem.invocation import call as calls

    from .. import autosync, remote_call, remote_sends
    from .watch import WatchEnded

    store, caller = committing(at), at.caller()
    untold = remote_sends.cancel_there(store, ids)
    with WatchEnded() as stop, remote_call.following(store, ids):
        found = calls.wait(
            store, caller, ids, timeout=seconds(timeout), stop=stop, tick=lambda: autosync.start_if_due(at)
        )
    found.warnings += untold
    return _answer(at, found)


def input(
    at: Environment,
    id: TaskId,
    text: TaskText,
    timeout: CallTimeout = None,
    allow_secret: AllowSecret = False,
) -> int:
    """Answer the question of a task that you wrote, and wait for its result as `gitmem call` does."""
    from gitmem.errors import UsageError
    from gitmem.tasks import WAITING, find_task, task_decisions

    from .. import remote_call
    from ..values import typed

    store, caller, answer = committing(at), at.caller(), typed(text, "text")
    task = find_task.require(store, id, writing=True)
    if task.state not in WAITING:
        raise UsageError(
            f"{task.record['task_id']} asks nothing: it is {task.state}. Nothing was written.",
            hint="`gitmem task message` writes to whoever works on it.",
            code="no-question",
            next=[f"gitmem task show {task.record['task_id']}"],
        )
    remote_call.of_servers(store, [id])  # whose token must be right before the answer is recorded
    task_decisions.message(store, caller, id, answer, allow_secret=allow_secret)
    return wait(at, [task.record["task_id"]], timeout)


def committing(at: Environment, *, long_lived: bool = False) -> Store:
    """Return the store of a command that goes on after a record: what it records is committed meanwhile."""
    from .. import background

    store = at.store(long_lived=long_lived)
    store.after_record = lambda: background.start_committer(at)
    return store


def seconds(typed: str | None) -> float | None:
    """Return a duration as it was typed, in seconds."""
    from ..values import duration

    return duration(typed, "--timeout") if typed is not None else None


def _answer(at: Environment, found: CallResult, *, is_waiting: bool = True) -> int:
    """Print a result and return the exit status."""
    output.answer(at.json, found, render.call_result)
    if found.is_done or not is_waiting:
        return 0
    return TIMED_OUT if found.timed_out else 1
