"""`gitmem serve-agent`: take the tasks of an agent, and run a program or function for each."""

from __future__ import annotations

import os

from ..environment import Environment
from ..render import output
from .call import committing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated

    import typer

    from gitmem.agents.caller import Caller
    from gitmem.invocation.runs import Run
    from gitmem.invocation.served_task import ServedTask
    from gitmem.invocation.worktree_runs import WorktreeRuns
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
    from gitmem.agents import lifecycle
    from gitmem.invocation import worker, worker_session

    from .. import autosync, task_programs
    from ..values import lease as leased
    from ..values import words
    from .watch import WatchEnded

    lease_seconds = (
        leased("--lease", lease, least=1) / 1_000_000 if lease is not None else worker.LEASE_SECONDS
    )
    store = committing(at, long_lived=True)
    session: list[str] = []
    if client is not None and exec_ is None and callable_ is None and not trust:
        start = task_programs.client(at, client, input_, session)
    else:
        if client is not None:
            task_programs.refuse_several()
        command = _command(store, name, exec_, callable_, trust=trust)
        start = task_programs.starter(at, command, callable_, input_, session)
    runs = _in_worktrees(at, store, start, callable_) if worktree else None
    options = {"--exec": exec_, "--client": client, "--callable": callable_, "--input": input_, "--lease": lease,
               "--worktree": worktree}  # fmt: skip
    began = worker_session.start(store, name, words(options))
    session.append(began.session_id)
    own = _acting(store, began.session_id)
    with WatchEnded() as stop:
        _note(f"serving {name} as {began.display_name} ({began.agent_identity}); press Ctrl-C to end")
        if trust:
            _note(f"trusted on this machine, and run for each task: {command}")
        try:
            if runs is not None:
                runs.clean()
            worker.Worker(
                store, own, runs or start, stop=stop, lease=lease_seconds, tick=lambda: autosync.start_if_due(at),
                report=_note,
            ).serve()  # fmt: skip
        finally:
            lifecycle.end(store, own())


def _acting(store: Store, session: str) -> Callable[[], Caller]:
    """Return what finds the session of the worker as it is now."""
    from gitmem.agents import caller as callers
    from gitmem.agents.caller import CallerClaims

    who = CallerClaims(as_=session, session=session)

    def own() -> Caller:
        found = callers.find(store, who)
        assert found is not None
        return found

    return own


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


def _note(text: str) -> None:
    output.write_error(f"gitmem: {output.sanitize(text)}")
