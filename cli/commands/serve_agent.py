"""`gitmem serve-agent`: take the tasks of an agent, and run a program or function for each."""

from __future__ import annotations

import os

from ..environment import Environment
from ..render import output
from .call import TASK, committing, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated, NoReturn

    import typer

    from gitmem.invocation.runs import Run, Start
    from gitmem.invocation.served_task import ServedTask
    from gitmem.invocation.worktree_runs import WorktreeRuns
    from gitmem.sessions.session_result import SessionStarted
    from gitmem.store import Store

    from .options import ServeClient, ServeLease, ServeTrust, ServeWorktree


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
    trust: ServeTrust = False,
    lease: ServeLease = None,
    worktree: ServeWorktree = False,
    client: ServeClient = None,
) -> None:
    """Serve an agent: run its tasks, one at a time, until Ctrl-C."""
    from gitmem.agents import caller as callers
    from gitmem.agents.caller import CallerClaims
    from gitmem.invocation import agent_lookup, worker
    from gitmem.sessions import lifecycle

    from .. import autosync
    from .watch import WatchEnded

    lease_seconds = _lease(lease, worker.LEASE_SECONDS)
    store = committing(at, long_lived=True)
    session: list[str] = []
    if client is not None and exec_ is None and callable_ is None and not trust:
        start = _client(at, client, input_, session)
    else:
        if client is not None:
            _refuse_several()
        command = _command(store, name, exec_, callable_, trust=trust)
        start = _starter(at, command, callable_, input_, session)
    runs = _in_worktrees(at, store, start, callable_) if worktree else None
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
            if runs is not None:
                runs.clean()
            worker.Worker(
                store, own, runs or start, stop=stop, lease=lease_seconds, tick=lambda: autosync.start_if_due(at),
                report=_note,
            ).serve()  # fmt: skip
        finally:
            lifecycle.end(store, own())


def _command(store: Store, name: str, typed: str | None, function: str | None, *, trust: bool) -> str | None:
    """Return the command to run: the user's own, or the trusted one of the repository; None for a function."""
    from gitmem.errors import UsageError
    from gitmem.invocation import trusted_commands

    if typed is None and function is None:
        return trusted_commands.find(store, name, trust=trust)
    if trust:
        raise UsageError(
            "--trust is about the command of .gitmem/roles.toml: give it without --exec and --callable. Nothing was written.",
            code="bad-trust",
        )
    return typed


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
    from gitmem.invocation.served_task import FRAME, INPUT_FORMS

    if (command is None) == (function is None):
        _refuse_several()
    if form is not None and (form not in INPUT_FORMS or command is None):
        _refuse_form(form)
    if function is not None:
        return _function(at, function)
    from gitmem.invocation.child_process import ChildRun

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        assert command is not None
        return ChildRun(command, _input(task, form or FRAME), _variables(task, session[0]), folder)

    return start


def _client(at: Environment, typed: str, form: str | None, session: list[str]) -> Start:
    """Return what starts a task with the coding agent that `--client` names, and the words after it."""
    import shlex
    import shutil

    from gitmem.errors import UsageError
    from gitmem.invocation.client_run import CLIENT_PROGRAMS, ClientOutput, ClientRun
    from gitmem.invocation.served_task import FRAME, INPUT_FORMS

    try:
        name, *words = shlex.split(typed) or [""]
    except ValueError:
        name, words = typed, []
    program = CLIENT_PROGRAMS.get(name)
    if program is None:
        choices = ", ".join(CLIENT_PROGRAMS)
        raise UsageError(
            f"Invalid --client: {name}; choose from {choices}. Nothing was written.",
            hint="Any other program runs with --exec CMD.",
            code="bad-client",
        )
    if form is not None and form not in INPUT_FORMS:
        _refuse_form(form)
    if shutil.which(name) is None:
        raise UsageError(
            f"--client: the program {name} is not on PATH. Nothing was written.",
            hint="Install it, or put its folder on PATH.",
            code="no-client",
        )
    sessions: dict[str, str] = {}  # of tasks that may go on after an answer

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        id = task.task_id

        def ended(resumable: str | None) -> None:
            if resumable is not None:
                sessions[id] = resumable

        known = sessions.pop(id, None)
        return ClientRun(
            program.command(words, known), _input(task, form or FRAME), _variables(task, session[0]), folder,
            output=ClientOutput(program.read, task.progress), ended=ended, is_resumed=known is not None,
        )  # fmt: skip

    return start


def _input(task: ServedTask, form: str) -> bytes:
    return task.input(form).encode("utf-8", "backslashreplace")


def _variables(task: ServedTask, session: str) -> dict[str, str]:
    """Return the environment of a program that runs a task."""
    from gitmem.git.run import without_local

    return {**without_local(os.environ), TASK: task.task_id, "GITMEM_SESSION": session}


def _refuse_several() -> NoReturn:
    from gitmem.errors import UsageError

    raise UsageError(
        "serve-agent runs --exec CMD, --client NAME or --callable MODULE:FUNCTION, not both. Nothing was written.",
        code="no-command",
    )


def _refuse_form(form: str) -> NoReturn:
    from gitmem.errors import UsageError
    from gitmem.invocation.served_task import INPUT_FORMS

    raise UsageError(
        f"Invalid --input: {form}; choose from {', '.join(INPUT_FORMS)}, with --exec. Nothing was written.",
        code="bad-input-form",
    )


def _in_worktrees(
    at: Environment, store: Store, start: Callable[..., Run], function: str | None
) -> WorktreeRuns:
    """Return what starts a task with a program in a git work tree of its own, in the same folder of it as the command."""
    from gitmem.errors import UsageError
    from gitmem.invocation.worktree_runs import WorktreeRuns

    from ..wal_folders import user_state

    if function is not None:
        raise UsageError(
            "--worktree needs a program: give it with --exec or --client. Nothing was written.",
            code="bad-worktree",
        )
    inside = os.path.relpath(at.folder, store.repo.worktree or at.folder)

    def start_in(task: ServedTask, worktree: str) -> Run:
        folder = os.path.normpath(os.path.join(worktree, inside))
        return start(task, folder if os.path.isdir(folder) else worktree)

    return WorktreeRuns(store.repo, user_state(), start_in, _note)


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


def _lease(typed: str | None, otherwise: float) -> float:
    from gitmem.errors import UsageError
    from gitmem.tasks import LEASE_MAX_MICROS

    found = seconds(typed)
    if found is None:
        return otherwise
    if not 1 <= found <= LEASE_MAX_MICROS / 1_000_000:
        raise UsageError(
            f"Invalid time: --lease {typed}; it lasts 1s to 24h. Nothing was written.", code="bad-lease"
        )
    return found


def _note(text: str) -> None:
    output.write_error(f"gitmem: {output.sanitize(text)}")
