"""`gitmem setup` and `gitmem remove`: all that gitmem adds to a repository and to clients, in one command each way."""

from __future__ import annotations

import contextlib
import os
import time

from gitmem import local_files
from gitmem.errors import GitmemError, StoreError, UsageError
from gitmem.log.lock import Lock
from gitmem.outcome import command

from ..environment import Environment, user_state
from ..render import output
from ..render import repository as render
from ..values import choice
from . import clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Annotated

    from gitmem.clients.clients import ClientFolders
    from gitmem.clients.git_hook import GitHookResult, Hook
    from gitmem.repo import Repo

    from .options import ClientOption, DryRun, Flag, GitHooks, InstalledOption, Option, Scope

INTERVAL = "30s"
WAIT_SECONDS = 60
PUBLISHED = "Everybody who can read it can then read all records: messages, memory, agreements, names and mail addresses"


def setup(
    at: Environment,
    client: ClientOption = None,
    scope: Scope = "project",
    git: GitHooks = None,
    publish: Annotated[
        str | None,
        Option(
            "--publish", "yes|no", "Consent to publish the log to the remote, now and in later syncs, or not."
        ),
    ] = None,
    ref: Annotated[
        str | None, Option("--ref", "branch|hidden", "Where remotes store the log, for all clones.")
    ] = None,
    autosync: Annotated[
        str | None, Option("--autosync", "30s|off", "Sync automatically at this interval, or off.")
    ] = None,
    yes: Annotated[bool, Flag("--yes -y", "Ask nothing: take the defaults.")] = False,
    dry_run: DryRun = False,
) -> int:
    """Set up this repository and your agents: log, merge driver, hooks, instructions, sync. Repairs when run again."""
    from gitmem.clients.install import InstallResult
    from gitmem.sync import autosync as syncs
    from gitmem.sync import init

    choice("--publish", publish, ("yes", "no"))
    every = syncs.normalize_interval(autosync) if autosync is not None else None
    asks = not (yes or dry_run or at.is_agent())
    found = render.Setup(dry_run, InstallResult([], None))
    folders = clients.client_folders(at, scope)
    names = [] if git and not client else _clients(folders, client, scope, asks=asks)
    hooks = clients.chosen_git_hooks(at, git or [], new=True)
    # Without a repository, only this user's clients are set up.
    has_log = folders.state is not None or not (publish is ref is autosync is None)
    if dry_run:
        _connect(at, found, folders, names, scope, hooks)
        found.next = [_again("setup", names, scope, [hook.name for hook in hooks])]
        at.answer(found, render.setup)
        return 0
    if has_log:
        store = at.store(long_lived=True)
        consents = publish == "yes" if publish is not None else _may_publish(at, asks=asks)
        if autosync is None and _may_sync(at, consents, asks=asks, yes=yes):
            autosync = every = INTERVAL
        merger = clients.merge_program()
        found.log = init.init(store, publish=ref, consents=consents)
    with _alone():
        if found.log is not None:
            found.changed = clients.installer.install(store.repo, merger)
        if found.log is not None and autosync is not None:
            found.changed += clients.installer.set_autosync(store.repo, every)
            init.apply_autosync(store, found.log, every)
        found.changed = list(dict.fromkeys(found.changed))
        _connect(at, found, folders, names, scope, hooks)
    if found.log is not None:
        found.next = ["gitmem roster", *(step for step in found.log.next if "sync" in step.split())]
    if found.status:
        found.next = ["gitmem doctor"]
    at.answer(found, render.setup)
    return found.status


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let this user's other setups finish first, for a minute at most; in a sandbox that has no place for a lock, go on without."""
    with Lock(os.path.join(user_state(), "setup-lock")) as lock:
        try:
            local_files.make_dirs(os.path.dirname(lock.path))
            end = time.monotonic() + WAIT_SECONDS
            while not lock.take() and time.monotonic() < end:
                time.sleep(0.05)
        except (OSError, GitmemError):
            pass
        yield


def _clients(folders: ClientFolders, named: list[str] | None, scope: str, *, asks: bool) -> list[str]:
    """Return the clients to connect: the named ones, else those found here, unless the person at the terminal says no."""
    from gitmem.clients import client_scope
    from gitmem.clients.clients import ALL_FOUND, CLIENTS, PROJECT

    if named:
        return [client.name for client in client_scope.chosen_clients(folders, named)]
    if scope == PROJECT and folders.worktree is None:
        return []
    every = client_scope.chosen_clients(folders, [ALL_FOUND])
    if not every:
        return []
    titles = ", ".join(CLIENTS[client.name].title for client in every)
    if asks and output.ask(f"Connect {titles}, so that their agents see messages?", default=True) is False:
        return []
    return [client.name for client in every]


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
    """Install hooks and instructions, and try a message through each hook; in a dry run say which files would be written."""
    from gitmem.clients import agents_md, client_scope
    from gitmem.clients import install as operation
    from gitmem.clients.clients import CLIENTS

    program = None if found.dry_run else clients.gitmem_program()
    if names:
        found.clients = operation.install(folders, names, scope, program=program, dry_run=found.dry_run)
    if found.dry_run:
        config = clients.installer.files(at.store().repo) if folders.state is not None else []
        found.changed = [*config, *(hook.caller.path for hook in hooks)]
    else:
        _each_hook(found, hooks, lambda hook: clients.install_gate(at, hook))
    found.instructions = agents_md.install(folders, names, scope, dry_run=found.dry_run)
    working = [
        each.client
        for each in found.clients.clients
        if each.state != "failed" and CLIENTS[each.client].pushes
    ]
    if working and not found.dry_run:
        found.tried = client_scope.try_hooks(folders, working, dict(os.environ), program, scope)


def _again(name: str, names: Sequence[str], scope: str, hooks: Sequence[str]) -> str:
    """Return the command that does what a dry run has shown."""
    words = [part for each in names for part in ("--client", each)]
    words += ["--scope", scope] if scope != "project" else []
    return command("gitmem", name, *words, *(part for each in hooks for part in ("--git", each)))


def _each_hook(
    found: render.Setup | render.Removed, hooks: Sequence[Hook], change: Callable[[Hook], GitHookResult]
) -> None:
    """Change git's hooks; one that can't be changed stops no other."""
    from gitmem.clients.managed_files import problem_of

    for hook in hooks:
        try:
            found.clients.git.append(change(hook))
        except GitmemError as error:
            found.problems.append(problem_of(error))


def remove(
    at: Environment,
    client: InstalledOption = None,
    scope: Scope = "project",
    git: GitHooks = None,
    dry_run: DryRun = False,
) -> int:
    """Take out all that setup added to this repository, or what is named, byte for byte. Says what stays and how to delete it."""
    from gitmem.clients import agents_md, client_scope, git_hook
    from gitmem.clients import install as operation
    from gitmem.clients.clients import ALL_FOUND, CLIENTS, USER

    found = render.Removed(dry_run, operation.InstallResult([], None))
    folders = clients.client_folders(at, scope)
    whole = not client and not git
    every = whole or ALL_FOUND in (client or [])
    names = (
        list(CLIENTS) if every else [each.name for each in client_scope.chosen_clients(folders, client or [])]
    )
    hooks = clients.chosen_git_hooks(at, git or [])
    if whole and scope != USER:
        hooks = [hook for hook in (clients.git_hooks(at)[0] or {}).values() if git_hook.is_there(hook)]
    if not dry_run and (hooks or (whole and scope != USER)):
        _refuse_read_only(at.repo)
    if scope == USER or folders.worktree is not None:
        others = [each.name for each in operation.installed_clients(folders, scope) if each.name not in names]
        # Instructions first: a folder of hooks that setup has created is empty without them.
        found.instructions = agents_md.uninstall(folders, names, scope, others=others, dry_run=dry_run)
        found.clients = operation.uninstall(folders, [ALL_FOUND] if every else names, scope, dry_run=dry_run)
    _each_hook(found, hooks, lambda hook: clients.uninstall_gate(at, hook, dry_run=dry_run))
    if whole:
        _remove_rest(at, found, folders, scope)
    if dry_run:
        found.next = [_again("remove", client or [], scope, git or [])]
    at.answer(found, render.removed)
    return found.status


def _refuse_read_only(repo: Repo) -> None:
    """Refuse to begin where the git folder can't be written: a part of what setup has added would stay.

    Raises:
        StoreError: `read-only`; nothing was changed.
    """
    for folder in (repo.common, os.path.join(repo.common, "hooks"), repo.state):
        if os.path.isdir(folder) and not os.access(folder, os.W_OK):
            raise StoreError(
                f"{folder} cannot be written, so not all that setup added could be removed. Nothing was changed.",
                hint="Correct its permissions, then run the command again.",
                code="read-only",
                next=[command("ls", "-ld", folder)],
            )


def _remove_rest(at: Environment, found: render.Removed, folders: ClientFolders, scope: str) -> None:
    """Take out what is not a client's, and say what stays: the log, other worktrees' files, those of the other scope."""
    from gitmem.clients import install as operation
    from gitmem.clients.clients import USER
    from gitmem.sync import autosync as syncs
    from gitmem.sync import init

    if scope == USER:
        found.next = [command("gitmem", "remove")] if folders.state is not None else []
        return
    store = at.store(long_lived=True)
    if not found.dry_run:
        found.changed = clients.installer.set_autosync(store.repo, None)
        syncs.switch(store.repo, False)
    found.changed += clients.installer.uninstall(store.repo, dry_run=found.dry_run)
    found.changed = list(dict.fromkeys(found.changed))
    found.left = init.uninstall(store, dry_run=found.dry_run)
    found.remarks += found.left.remarks
    for top in operation.other_worktrees(folders):
        found.remarks.append(f"Files of gitmem stay in another worktree: {top}.")
        found.next.append(command("gitmem", "-C", top, "remove"))
    if operation.installed_clients(folders, USER):
        found.next.append(command("gitmem", "remove", "--scope", USER))
