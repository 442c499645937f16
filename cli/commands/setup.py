"""`gitmem setup` and `gitmem remove`: all that gitmem adds to a repository and to clients, in one command each way."""

from __future__ import annotations

import os

from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import command

from .. import syncing
from ..environment import Environment
from ..render import output
from ..render import setup as render
from ..values import duration
from . import clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated

    import typer

    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.clients import ClientFolders
    from gitmem.clients.git_hook import Hook

    from .options import AllowForeign, ClientOption, GitHooks, Scope, Timeout

INTERVAL = "30s"
PUBLISHED = "Everybody who can read it can then read all records: messages, memory, agreements, names and mail addresses"


def setup(
    at: Environment,
    client: ClientOption = None,
    scope: Scope = "project",
    git: GitHooks = None,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Consent to publish the log to the remote, now and in later syncs."),
    ] = False,
    no_publish: Annotated[
        bool, typer.Option("--no-publish", help="Withdraw that consent: sync only fetches.")
    ] = False,
    ref: Annotated[
        str | None,
        typer.Option("--ref", metavar="branch|hidden", help="Where remotes store the log, for all clones."),
    ] = None,
    autosync: Annotated[
        str | None,
        typer.Option("--autosync", metavar="30s|off", help="Sync automatically at this interval, or off."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take the defaults.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
    allow_foreign: AllowForeign = False,
    timeout: Timeout = syncing.TIMEOUT,
) -> int:
    """Set up this repository and your agents: log, merge driver, hooks, instructions, sync. Repairs when run again."""
    from gitmem.sync import autosync as syncs

    if publish and no_publish:
        raise UsageError("--publish and --no-publish are mutually exclusive. Nothing was written.")
    every = syncs.normalize_interval(autosync) if autosync is not None else None
    store = at.store(long_lived=True)
    asks = not (yes or dry_run or syncing.is_agent(at))
    found = render.Setup(dry_run)
    folders = clients.client_folders(at, scope)
    names = _clients(folders, client, scope, asks=asks)
    hooks = clients.chosen_git_hooks(at, git or [], new=True)
    if dry_run:
        _preview(at, found, folders, names, scope)
        at.answer(found, render.setup)
        return 0
    consents = True if publish else False if no_publish else _may_publish(at, asks=asks)
    if autosync is None and _may_sync(at, consents, asks=asks, yes=yes):
        autosync = every = INTERVAL
    merger = clients.merge_program()
    from gitmem.sync import init as operation

    found.log = operation.init(
        store,
        publish=ref,
        consents=consents,
        allow_foreign=allow_foreign,
        timeout=duration(timeout, "--timeout"),
    )
    found.changed = clients.installer.install(store.repo, merger)
    if autosync is not None:
        found.changed += clients.installer.set_autosync(store.repo, every)
        operation.apply_autosync(store, found.log, every)
    found.changed = list(dict.fromkeys(found.changed))
    _connect(at, found, folders, names, scope, hooks)
    found.next = ["gitmem roster", *(step for step in found.log.next if "sync" in step.split())]
    if syncing.is_agent(at):  # the agent's user decides what is published
        found.next = [each for each in found.next if "--publish" not in each.split()]
    at.answer(found, render.setup)
    return found.status


def _clients(folders: ClientFolders, named: list[str] | None, scope: str, *, asks: bool) -> list[str]:
    """Return the clients to connect: the named ones, else those found here, unless the person at the terminal says no."""
    from gitmem.clients import client_scope
    from gitmem.clients.clients import ALL_FOUND, CLIENTS, PROJECT

    if named:
        return [client.name for client, _ in client_scope.chosen_clients(folders, named, scope)]
    if scope == PROJECT and folders.worktree is None:
        return []
    try:
        every = client_scope.chosen_clients(folders, [ALL_FOUND], scope)
    except UsageError as error:
        if error.code != "no-client":
            raise
        return []
    titles = ", ".join(CLIENTS[client.name].title for client, _ in every)
    if asks and output.ask(f"Connect {titles}, so that their agents see messages?", default=True) is False:
        return []
    return [client.name for client, _ in every]


def _may_publish(at: Environment, *, asks: bool) -> bool | None:
    """Return whether the person at the terminal agrees to publish now; None leaves it as it is."""
    from gitmem.sync import consent

    found = _destination(at) if asks else None
    if found is None or consent.is_given(at.store().repo, found[1]):
        return None
    name, url = found
    return output.ask(f"Publish the log to {name} ({url})? {PUBLISHED}.") or None


def _may_sync(at: Environment, consents: bool | None, *, asks: bool, yes: bool) -> bool:
    """Return whether to sync by itself from now on: where that is not chosen yet, and the log is published."""
    from gitmem.sync import autosync, consent

    store = at.store()
    url = _destination(at)
    publishes = consents or (consents is None and url is not None and consent.is_given(store.repo, url[1]))
    if url is None or not publishes or autosync.configured_interval(store.repo) is not None:
        return False
    wanted = output.ask(f"Sync by itself, every {INTERVAL}?", default=True) if asks else None
    return bool(consents) or yes if wanted is None else wanted


def _destination(at: Environment) -> tuple[str, str] | None:
    """Return the usual remote and the URL of pushes to it; None without one."""
    from gitmem.sync import consent
    from gitmem.sync.remote import choose

    store = at.store()
    try:
        names, _ = choose(store, (), all=False)
        return names[0], consent.destination(store.repo, names[0])
    except UsageError:
        return None


def _connect(
    at: Environment,
    found: render.Setup,
    folders: ClientFolders,
    names: list[str],
    scope: str,
    hooks: list[Hook],
) -> None:
    """Install hooks and instructions, and try a message through each hook."""
    from gitmem.clients import agents_md, client_scope
    from gitmem.clients import install as operation
    from gitmem.clients.clients import CLIENTS

    program = clients.gitmem_program()
    found.clients = operation.InstallResult([], program)
    if names:
        found.clients = operation.install(folders, names, scope, program=program, keep_going=True)
    clients.with_git(found.clients, hooks, lambda hook: clients.install_gate(at, hook))
    _each_file(at, found, agents_md.files_of(folders, names, scope), folders, scope, agents_md.write)
    working = [
        each.client
        for each in found.clients.clients
        if each.state != "failed" and CLIENTS[each.client].pushes
    ]
    if working:
        found.tried = client_scope.try_hooks(folders, working, dict(os.environ), program, scope)


def _preview(
    at: Environment, found: render.Setup, folders: ClientFolders, names: list[str], scope: str
) -> None:
    """Say which files would be written."""
    from gitmem.clients import agents_md
    from gitmem.clients import install as operation
    from gitmem.clients.clients import PROJECT

    found.changed = clients.installer.files(at.store().repo)
    found.clients = operation.InstallResult([], None)
    if names:
        found.clients = operation.install(folders, names, scope, program=None, dry_run=True, keep_going=True)
    _each_file(at, found, agents_md.files_of(folders, names, scope), folders, scope, agents_md.preview)
    clients_named = [part for name in names for part in ("--client", name)]
    found.next = [
        command("gitmem", "setup", *clients_named, *(["--scope", scope] if scope != PROJECT else []))
    ]


def _each_file(
    at: Environment,
    found: render.Setup | render.Removed,
    paths: list[str],
    folders: ClientFolders,
    scope: str,
    do: Callable[[str, str], AgentsMdBlock],
) -> None:
    """Do something with the instructions in each file; one that can't be read or changed stops no other."""
    from gitmem.clients import agents_md
    from gitmem.clients.client_scope import bare_message
    from gitmem.clients.clients import PROJECT

    for path in paths:
        try:
            agents_md.refuse_outside(path, folders.worktree if scope == PROJECT else None, writes=True)
            found.instructions.append(do(path, _named(at, path)))
        except GitmemError as error:
            found.problems.append(f"{bare_message(error)} {error.hint or ''}".strip())


def _named(at: Environment, path: str) -> str:
    """Return a file as commands name it: relative to the current folder where it is below it."""
    named = os.path.relpath(path, at.folder)
    return path if named.startswith(os.pardir) else named


def remove(
    at: Environment,
    scope: Scope = "project",
) -> int:
    """Take out all that setup added to this repository, byte for byte, and say what stays and how to delete it."""
    from gitmem.clients import agents_md, git_hook
    from gitmem.clients import install as operation
    from gitmem.clients.clients import ALL_FOUND, USER
    from gitmem.sync import autosync as syncs
    from gitmem.sync import init

    found = render.Removed()
    folders = clients.client_folders(at, scope)
    found.clients = operation.InstallResult([], None)
    if scope == USER or folders.worktree is not None:
        found.clients = operation.uninstall(folders, [ALL_FOUND], scope, keep_going=True)
    if scope != USER:
        store = at.store(long_lived=True)
        there = [hook for hook in (clients.git_hooks(at)[0] or {}).values() if git_hook.is_there(hook)]
        clients.with_git(found.clients, there, lambda hook: clients.uninstall_gate(at, hook))
        found.changed = list(
            dict.fromkeys(
                [*clients.installer.set_autosync(store.repo, None), *clients.installer.uninstall(store.repo)]
            )
        )
        syncs.switch(store.repo, False)
        found.left = init.uninstall(store)
        found.remarks += found.left.remarks
    _each_file(at, found, agents_md.written(folders, scope), folders, scope, agents_md.remove)
    found.next = [command("gitmem", "remove")] if scope == USER and folders.state is not None else []
    if scope != USER and operation.still_installed(folders, scope):
        found.next = [command("gitmem", "remove", "--scope", USER)]
    at.answer(found, render.removed)
    return found.status
