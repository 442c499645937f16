"""`gitmem call`, `gitmem task wait|input` and `gitmem serve-agent`: agents call agents."""

from __future__ import annotations

import os

from ..environment import Environment, variable
from ..render import calls as render
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.invocation.call_result import CallResult
    from gitmem.invocation.runs import Run, Start
    from gitmem.invocation.served_task import ServedTask
    from gitmem.sessions.session_result import SessionStarted
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
    again: Annotated[
        bool, typer.Option("--again", help="Call an agent that is in this chain of calls already.")
    ] = False,
    allow_secret: AllowSecret = False,
) -> int:
    """Call agents and wait for their results; exit 1 if one failed or asks something, 6 after the time limit."""
    from gitmem.invocation import call as calls
    from gitmem.invocation import preview

    from ..values import metadata, typed
    from .watch import WatchEnded

    store, caller, message = _committing(at), at.caller(), typed(text, "text")
    options: calls.CallOptions = {
        "timeout": _seconds(timeout), "join": join or "all", "wait": not no_wait, "idempotency_key": idempotency_key,
        "cancel_on_timeout": cancel_on_timeout, "again": again, "within": variable(TASK), "allow_secret": allow_secret,
        "context": with_context, "variables": metadata(var, "--var") or None,
        "memory": memory_query if memory_query is not None else with_memory,
    }  # fmt: skip
    if dry_run:
        output.answer(at.json, preview.preview(store, caller, agent, options), render.previewed)
        return 0
    with WatchEnded() as options["stop"]:
        found = calls.call(store, caller, agent, message, **options)
    return _answer(at, found, is_waiting=not no_wait)


def wait(at: Environment, ids: TaskIds, timeout: CallTimeout = None) -> int:
    """Wait for the results of tasks, and accept those that your session wrote; exit 6 after the time limit."""
    from gitmem.invocation import call as calls

    from .watch import WatchEnded

    store, caller = _committing(at), at.caller()
    with WatchEnded() as stop:
        found = calls.wait(store, caller, ids, timeout=_seconds(timeout), stop=stop)
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

    from ..values import typed

    store, caller, answer = _committing(at), at.caller(), typed(text, "text")
    task = find_task.require(store, id, writing=True)
    if task.state not in WAITING:
        raise UsageError(
            f"{task.record['task_id']} asks nothing: it is {task.state}. Nothing was written.",
            hint="`gitmem task message` writes to whoever works on it.",
            code="no-question",
            next=[f"gitmem task show {task.record['task_id']}"],
        )
    task_decisions.message(store, caller, id, answer, allow_secret=allow_secret)
    return wait(at, [task.record["task_id"]], timeout)


def serve_agent(
    at: Environment,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or identity of the agent to serve.")],
    exec_: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run CMD with sh for each task: the task on standard input, its result on standard output.",
        ),
    ] = None,
    callable_: Annotated[
        str | None,
        typer.Option("--callable", metavar="MODULE:FUNCTION", help="Run a Python function for each task."),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="frame|text",
            help="Standard input of CMD: the text in a frame that names the caller (default), or the bare text.",
        ),
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease",
            metavar="60s",
            help="Time until another worker may take a task of a dead one (default: 60s).",
        ),
    ] = None,
) -> None:
    """Serve an agent: run its tasks, one at a time, until Ctrl-C."""
    from gitmem.agents import caller as callers
    from gitmem.agents.caller import CallerClaims
    from gitmem.invocation import agent_lookup, worker
    from gitmem.sessions import lifecycle

    from .. import autosync
    from .watch import WatchEnded

    seconds = _lease(lease, worker.LEASE_SECONDS)
    store = _committing(at, long_lived=True)
    session: list[str] = []
    start = _starter(at, exec_, callable_, input_, session)
    identity = agent_lookup.identity_of(name)
    began = _start_session(store, name, identity)
    session.append(began.session_id)
    who = CallerClaims(as_=began.session_id, session=began.session_id)

    def own() -> callers.Caller:
        found = callers.find(store, who)
        assert found is not None
        return found

    with WatchEnded() as stop:
        _note(f"serving {name} as {began.display_name} ({identity}); press Ctrl-C to end")
        try:
            worker.Worker(
                store,
                own,
                start,
                stop=stop,
                lease=seconds,
                tick=lambda: autosync.start_if_due(at),
                report=_note,
            ).serve()
        finally:
            lifecycle.end(store, own())


def _start_session(store: Store, name: str, identity: str) -> SessionStarted:
    """Start the session of a worker; with a name of the pool if another worker of this agent has its name."""
    from gitmem.agents import presence
    from gitmem.agents.caller import CallerClaims
    from gitmem.errors import UsageError
    from gitmem.invocation import WORKER
    from gitmem.sessions import lifecycle
    from gitmem.text.name_matching import fold

    chosen = None if identity == name else name
    try:
        return lifecycle.start(store, CallerClaims(), agent_identity=identity, name=chosen, client=WORKER)
    except UsageError as error:
        holders = presence.of_name(store, fold(name))
        if error.code != "name-in-use" or any(each.agent_identity != identity for each in holders):
            raise
    return lifecycle.start(store, CallerClaims(), agent_identity=identity, client=WORKER)


def _starter(
    at: Environment, command: str | None, function: str | None, form: str | None, session: list[str]
) -> Start:
    """Return what starts a task: a program or a function.

    Args:
        session: The session of the worker, once it has started.
    """
    from gitmem.errors import UsageError
    from gitmem.invocation.served_task import FRAME, INPUT_FORMS

    if (command is None) == (function is None):
        raise UsageError("serve-agent needs --exec CMD or --callable MODULE:FUNCTION, and not both. Nothing was written.",
                         code="no-command")  # fmt: skip
    if form is not None and (form not in INPUT_FORMS or command is None):
        raise UsageError(
            f"Invalid --input: {form}; choose from {', '.join(INPUT_FORMS)}, with --exec. Nothing was written.",
            code="bad-input-form",
        )
    if function is not None:
        return _function(at, function)
    from gitmem.invocation.child_process import ChildRun

    def start(task: ServedTask) -> Run:
        assert command is not None
        given = task.input(form or FRAME).encode("utf-8", "backslashreplace")
        environment = {**os.environ, TASK: task.task_id, "GITMEM_SESSION": session[0]}
        return ChildRun(command, given, environment, at.folder)

    return start


def _function(at: Environment, typed: str) -> Start:
    """Return what starts a task with the function that `--callable` names, from the folder of the command."""
    import sys
    from importlib import import_module

    from gitmem.errors import UsageError
    from gitmem.invocation.runs import FunctionRun

    module, _, name = typed.partition(":")
    sys.path.insert(0, at.folder)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--callable: cannot import {typed} ({error}). Nothing was written.",
            hint="Name a module of this folder or of the environment, and a function: shop:prices.",
            code="bad-callable",
        ) from error
    if not callable(found):
        raise UsageError(f"--callable: {typed} is not a function. Nothing was written.", code="bad-callable")
    return lambda task: FunctionRun(found, task)


def _committing(at: Environment, *, long_lived: bool = False) -> Store:
    """Return the store of a command that goes on after a record: what it records is committed meanwhile."""
    from .. import background

    store = at.store(long_lived=long_lived)
    store.after_record = lambda: background.start_committer(at)
    return store


def _seconds(typed: str | None) -> float | None:
    from ..values import duration

    return duration(typed) if typed is not None else None


def _lease(typed: str | None, otherwise: float) -> float:
    from gitmem.errors import UsageError
    from gitmem.tasks import LEASE_MAX_MICROS

    seconds = _seconds(typed)
    if seconds is None:
        return otherwise
    if not 1 <= seconds <= LEASE_MAX_MICROS / 1_000_000:
        raise UsageError(
            f"Invalid time: --lease {typed}; it lasts 1s to 24h. Nothing was written.", code="bad-lease"
        )
    return seconds


def _answer(at: Environment, found: CallResult, *, is_waiting: bool = True) -> int:
    """Print a result and return the exit status."""
    output.answer(at.json, found, render.result)
    if found.is_done or not is_waiting:
        return 0
    return TIMED_OUT if found.timed_out else 1


def _note(text: str) -> None:
    output.write_error(f"gitmem: {output.sanitize(text)}")
