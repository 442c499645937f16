"""`gitmem call`, `task wait`, `serve-agent` and `a2a`: agents call agents, also those of other systems."""

from __future__ import annotations

import os

from gitmem.errors import UsageError

from ..environment import Environment, variable
from ..render import output
from ..render import tasks as render
from ..render.text import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated

    from gitmem.calls.a2a_files import Token, TokenList
    from gitmem.calls.call import CallOptions
    from gitmem.calls.call_result import CallResult
    from gitmem.calls.worker import Run, ServedTask, Start
    from gitmem.calls.worktree_runs import WorktreeRuns
    from gitmem.store import Store

    from .options import (
        MODEL,
        Argument,
        CallAgents,
        CallJoin,
        CallKey,
        CallTimeout,
        CallVariables,
        Flag,
        Option,
        ServeClient,
        ServeLease,
        ServeTrust,
        ServeWorktree,
        TaskIds,
        TaskText,
        WithContext,
        WithMemory,
    )


TASK = "GITMEM_TASK"  # the variable with the task that a worker's program runs
TIMED_OUT = 6  # exit status: the work goes on


def call(
    at: Environment,
    agent: CallAgents,
    text: TaskText,
    timeout: CallTimeout = None,
    join: CallJoin = None,
    no_wait: Annotated[bool, Flag("--no-wait", "Do not wait for the results."), MODEL] = False,
    with_context: WithContext = False,
    var: CallVariables = None,
    with_memory: WithMemory = False,
    dry_run: Annotated[
        bool,
        Flag("--dry-run", "Show what would be handed over, and what would be left out, without calling."),
    ] = False,
    idempotency_key: CallKey = None,
    once: Annotated[
        bool, Flag("--once", "Begin at most once, of all clones; offline nothing begins."), MODEL
    ] = False,
    again: Annotated[bool, Flag("--again", "Call an agent that is in this chain of calls already.")] = False,
) -> int:
    """Call agents and wait for their results; exit 1 if one failed or asks something, 6 after the time limit."""
    import contextlib

    from gitmem.calls import call as calls
    from gitmem.calls.call_result import ALL, ANY
    from gitmem.outcome import command

    from .. import a2a
    from ..values import choice, metadata, typed, words
    from .watch import WatchEnded

    _refuse_server(at, agent)
    store, message = committing(at), typed(text, "text")
    caller = at.caller(dry_run=dry_run and not (with_context or with_memory))  # else that is the caller's
    options: CallOptions = {
        "timeout": seconds(timeout), "join": choice("--join", join, (ALL, ANY)) or ALL, "wait": not no_wait, "idempotency_key": idempotency_key,
        "again": again, "once": once, "within": variable(TASK),
        "context": with_context, "variables": metadata(var, "--var") or None,
        "memory": with_memory,
    }  # fmt: skip
    if dry_run:
        server = a2a.server_address(agent, store.own_writer()) if a2a.is_url(agent) else None
        shown = calls.preview(store, caller, agent, options, server)
        given = {
            "--timeout": timeout, "--join": join, "--no-wait": no_wait, "--with-context": with_context, "--var": var,
            "--with-memory": with_memory, "--idempotency-key": idempotency_key,
            "--once": once, "--again": again,
        }  # fmt: skip
        shown.next = [command("gitmem", "call", agent, text, *words(given))]
        at.answer(shown, render.call_previewed)
        return 0
    with contextlib.ExitStack() as stack:
        options["stop"] = at.stop or stack.enter_context(WatchEnded())
        options["tick"] = at.sync_if_due
        if is_remote := a2a.is_url(agent):
            ids: set[str] = set()
            options["began"] = ids.update
            agent = stack.enter_context(a2a.serving_tasks_of(store, agent, ids))
        found = calls.call(store, caller, agent, message, **options)
        if no_wait and is_remote:
            a2a.wait_until_sent(store, found)
    return _answer(at, found, is_waiting=not no_wait)


def _refuse_server(at: Environment, agent: str) -> None:
    """Raise UsageError if a tool would call a server."""
    from .. import a2a

    if a2a.is_url(agent) and not at.calls_servers:
        raise UsageError(
            f"Not an agent of this log: {agent}; a tool calls no server by its URL. Nothing was written.",
            hint="What is handed over would leave this machine: ask your user to run `gitmem call` with it.",
            code="server-url",
        )


def wait(at: Environment, ids: TaskIds, timeout: CallTimeout = None) -> int:
    """Wait for the results of tasks, and accept those that your session wrote; exit 6 after the time limit."""
    from gitmem.calls import call as calls

    from .. import a2a
    from .watch import WatchEnded

    store, caller = committing(at), at.caller()
    untold = a2a.cancel_there(store, ids)
    with WatchEnded() as stop, a2a.following(store, ids):
        found = calls.wait(store, caller, ids, timeout=seconds(timeout), stop=stop, tick=at.sync_if_due)
    found.warnings += untold
    return _answer(at, found)


def committing(at: Environment, *, long_lived: bool = False) -> Store:
    """Return the store of a command that goes on after a record: what it records is committed meanwhile."""
    store = at.store(long_lived=long_lived)
    store.after_record = at.start_committer
    return store


def seconds(typed: str | None) -> float | None:
    """Return a duration as it was typed, in seconds."""
    from ..values import duration

    return duration(typed, "--timeout") if typed is not None else None


def _answer(at: Environment, found: CallResult, *, is_waiting: bool = True) -> int:
    """Print a result and return the exit status."""
    at.answer(found, render.call_result)
    if found.is_done or not is_waiting:
        return 0
    return TIMED_OUT if found.timed_out else 1


def serve_agent(
    at: Environment,
    name: Annotated[str, Argument("NAME", "Name or identity of the agent to serve.")],
    exec_: Annotated[
        str | None,
        Option(
            "--exec",
            "CMD",
            "Run CMD with sh for each task: the task on standard input, its result on standard output.",
        ),
    ] = None,
    callable_: Annotated[
        str | None, Option("--callable", "MODULE:FUNCTION", "Run a Python function for each task.")
    ] = None,
    input_: Annotated[
        str | None,
        Option(
            "--input",
            "frame|text",
            "Standard input of CMD: the text in a frame that names the caller (default), or the bare text.",
        ),
    ] = None,
    trust: ServeTrust = False,
    lease: ServeLease = None,
    worktree: ServeWorktree = False,
    client: ServeClient = None,
) -> None:
    """Serve an agent: run its tasks, one at a time, until Ctrl-C."""
    from gitmem.agents import lifecycle
    from gitmem.calls import worker

    from ..values import lease as leased
    from ..values import words
    from .watch import WatchEnded

    lease_seconds = (
        leased("--lease", lease, least=1) / 1_000_000 if lease is not None else worker.LEASE_SECONDS
    )
    store = committing(at, long_lived=True)
    store.allow_secret = False  # programs write here
    start, command = _starter(at, store, name, (exec_, client, callable_), input_, trust=trust)
    runs = _in_worktrees(at, store, start, callable_) if worktree else None
    options = {"--exec": exec_, "--client": client, "--callable": callable_, "--input": input_, "--lease": lease,
               "--worktree": worktree}  # fmt: skip
    began = worker.start_session(store, name, words(options))
    own = worker.acting(store, began.session_id)
    with WatchEnded() as stop:
        output.tell(f"serving {name} as {began.display_name} ({began.agent_identity}); press Ctrl-C to end")
        if trust:
            output.tell(f"trusted on this machine, and run for each task: {output.sanitize(command or '')}")
        try:
            if runs is not None:
                runs.clean()
            worker.Worker(
                store, own, runs or start, stop=stop, lease=lease_seconds, tick=at.sync_if_due,
                report=output.tell,
            ).serve()  # fmt: skip
        finally:
            lifecycle.end(store, own())


def _in_worktrees(
    at: Environment, store: Store, start: Callable[..., Run], function: str | None
) -> WorktreeRuns:
    """Return what starts a task with a program in a git work tree of its own, in the same folder of it as the command."""
    from gitmem.calls.worktree_runs import WorktreeRuns

    from ..environment import user_state

    if function is not None:
        raise UsageError(
            "--worktree needs a program: give it with --exec or --client. Nothing was written.",
            code="bad-worktree",
        )
    inside = os.path.relpath(at.folder, store.repo.worktree or at.folder)

    def start_in(task: ServedTask, worktree: str) -> Run:
        folder = os.path.normpath(os.path.join(worktree, inside))
        return start(task, folder if os.path.isdir(folder) else worktree)

    return WorktreeRuns(store.repo, user_state(), start_in, output.tell)


PREFIX, SESSION = "GITMEM_", "GITMEM_SESSION"  # of variables of our own


def _starter(
    at: Environment,
    store: Store,
    name: str,
    given: tuple[str | None, str | None, str | None],
    form: str | None,
    *,
    trust: bool,
) -> tuple[Start, str | None]:
    """Return what starts a task: the one of program, coding agent and function that is given, else the command of the repository; and the command.

    Args:
        given: `--exec`, `--client` and `--callable`.
        trust: Whether the user trusts the command of the repository.
    """
    from gitmem.calls.client_run import ChildRun, trusted_command
    from gitmem.calls.worker import FRAME, INPUT_FORMS, TEXT

    from ..values import choice

    if sum(each is not None for each in given) + trust > 1:
        raise UsageError(
            "serve-agent runs --exec CMD, --client NAME or --callable MODULE:FUNCTION, or with --trust the command of .gitmem/roles.toml, one of them. Nothing was written.",
            code="no-command",
        )
    command, client, function = given
    form = choice("--input", form, INPUT_FORMS) or FRAME
    if form == TEXT and (client or function):
        raise UsageError(
            "--input text is for programs: a coding agent would take the bare text of a peer for its user's, with commands and files that it names. Nothing was written.",
            hint="Leave it out.",
            code="bad-input-form",
        )
    if client is not None:
        return _client(at, client), None
    if function is not None:
        return _function(at, function), None
    command = trusted_command(store, name, trust=trust) if command is None else command

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        return ChildRun(command, _encoded(task.input(form)), variables(task), folder)

    return start, command


def _client(at: Environment, typed: str) -> Start:
    """Return what starts a task with the coding agent that `--client` names, and the words after it."""
    import shlex
    import shutil

    from gitmem.calls.client_run import CLIENT_PROGRAMS, ClientOutput, ClientRun, prompt

    try:
        name, *words = shlex.split(typed) or [""]
    except ValueError:
        name, words = typed, []
    program = CLIENT_PROGRAMS.get(name)
    if program is None or shutil.which(name) is None:
        choices = ", ".join(CLIENT_PROGRAMS)
        raise UsageError(
            f"--client: {name} is not on PATH. Nothing was written."
            if program is not None
            else f"Invalid --client: {name}; choose from {choices}. Nothing was written.",
            hint="Any other program runs with --exec CMD.",
            code="bad-client",
        )
    sessions: dict[str, str | None] = {}  # of tasks that may go on after an answer

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        def ended(resumable: str | None) -> None:
            sessions[task.task_id] = resumable

        known = sessions.pop(task.task_id, None)
        return ClientRun(
            program.command(words, known), _encoded(prompt(task)), variables(task), folder,
            output=ClientOutput(program.read, task.progress), ended=ended, is_resumed=known is not None,
        )  # fmt: skip

    return start


def _function(at: Environment, typed: str) -> Start:
    """Return what starts a task with the function that `--callable` names, from the folder of the command."""
    import sys
    from importlib import import_module

    from gitmem.calls.worker import FunctionRun

    module, _, name = typed.partition(":")
    # Imports are the user's here, so the folders that `__init__` has left out count again.
    sys.path[:0] = [at.folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def variables(task: ServedTask) -> dict[str, str]:
    """Return the environment of a program that runs a task.

    Of our own variables it gets the settings alone: the others have a token of the user's, or would make it act for somebody else. Variables of
    git that belong to one repository go, the user's own settings of git stay.
    """
    from gitmem.git.processes import without_local

    from ..background import COMMIT_AFTER

    kept = {
        name: value
        for name, value in without_local(os.environ).items()
        if name == COMMIT_AFTER or not name.upper().startswith(PREFIX)
    }
    return {**kept, TASK: task.task_id, SESSION: task.session}


def a2a_serve(
    at: Environment,
    agent: Annotated[list[str], Argument("AGENT", "Agents to serve; nobody else is reached.")],
    host: Annotated[
        str | None, Option("--host", "ADDRESS", "Address to listen on (default: 127.0.0.1).")
    ] = None,
    port: Annotated[str | None, Option("--port", "N", "Port (default: 4810; 0: a free one).")] = None,
    url: Annotated[str | None, Option("--url", "URL", "Where clients reach it, if behind a proxy.")] = None,
    no_token: Annotated[
        bool, Flag("--no-token", "Let every program of this machine in without a token.")
    ] = False,
    tenant: Annotated[
        list[str] | None,
        Option("--tenant", "NAME=DIR", "Another repository, for requests with this tenant; repeat for more."),
    ] = None,
    push: Annotated[
        str | None,
        Option(
            "--push",
            "public|private",
            "Send what happens to tasks to URLs of clients; private networks, too.",
        ),
    ] = None,
) -> None:
    """Serve agents of this repository to clients of the A2A protocol, over HTTP, and gRPC with its extra, until Ctrl-C."""
    from gitmem import __version__

    from .. import a2a
    from ..values import choice

    with a2a.needs_sdk("gitmem a2a serve"):
        from gitmem.calls import a2a_server, http_guard

    listen, notifies = host or a2a.LOOPBACK[0], choice("--push", push, (a2a.PUBLIC, a2a.PRIVATE))
    if no_token and listen not in a2a.LOOPBACK:
        raise UsageError(
            f"--no-token is refused with --host {output.sanitize(listen)}: other machines could give tasks to your agents.",
            hint="Make a token for each caller.",
            code="no-token",
            next=["gitmem a2a token --help"],
        )
    served = [a2a.served_agent(at, each) for each in agent]
    places = {"": at, **a2a.open_tenants(at, tenant or ())}
    logs = {name: a2a.served_log(each, notifies) for name, each in places.items()}
    by_token = {
        name: a2a.callers_by_token(each, name, listen, no_token=no_token) for name, each in places.items()
    }
    bound = a2a.bind(listen, a2a.port_of(port))
    number = bound.getsockname()[1]
    shown = f"[{listen}]" if ":" in listen else listen
    where = (url or f"http://{shown}:{number}").rstrip("/")
    app = a2a_server.application(
        a2a_server.Served(served, logs, by_token, url=where, hosts=a2a.hosts(shown, number, url), version=__version__,
                          anonymous=a2a.LOCAL if no_token else None, grpc=a2a.grpc_of(shown, number, url))
    )  # fmt: skip
    try:
        http_guard.server_of(app, lambda: output.tell(f"serving {', '.join(agent)} at {where}/")).run(
            sockets=[bound]
        )
    finally:
        bound.close()
        for each in places.values():
            each.close()


def token(
    at: Environment,
    name: Annotated[str | None, Argument("[NAME]", "Name of the caller.")] = None,
    revoke: Annotated[bool, Flag("--revoke", "Make the token of that caller invalid, at once.")] = False,
) -> None:
    """Make a token for a caller of `gitmem a2a serve`, and print it once; without a name list who has one."""
    from gitmem.calls.a2a_files import TokenList, Tokens

    store = at.store()
    kept = Tokens(store.repo.state)
    if name is None:
        if revoke:
            raise UsageError(
                "--revoke needs the name of a caller. Nothing was written.", next=["gitmem a2a token"]
            )
        at.answer(TokenList(kept.list()), _token_list)
    elif revoke:
        at.answer(kept.remove(name), _revoked)
    else:
        at.answer(kept.add(name, store.now()), _new_token)


def _new_token(found: Token) -> list[str]:
    return [
        found.token or "",
        f"note: it is shown only now, and is {found.name}'s: Authorization: Bearer TOKEN",
    ]


def _token_list(found: TokenList) -> list[str]:
    lines = [
        f"{each.name}{SEPARATOR}{each.created_at[:16]}Z{SEPARATOR}{each.identity}" for each in found.callers
    ]
    return lines or ["Nobody has a token."]


def _revoked(found: Token) -> list[str]:
    return [f"{found.name} has no valid token now."]
