"""`gitmem setup` and `gitmem remove`: all that gitmem adds to a repository and to clients, in one command each way; `gitmem mcp`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from importlib import import_module

from gitmem import local_files
from gitmem.errors import GitmemError, StoreError, UsageError
from gitmem.log.lock import Lock
from gitmem.outcome import Struct, command

from ..environment import Environment, user_state
from ..failure import needs_extra
from ..render import output
from ..render import repository as render
from ..values import choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Annotated

    from gitmem.clients.clients import ClientFolders
    from gitmem.clients.git_hook import GitHookResult, Hook
    from gitmem.clients.install import HookStatus
    from gitmem.doctor.findings import DriverStatus
    from gitmem.repo import Repo

    from .options import ClientOption, DryRun, Flag, GitHooks, InstalledOption, Option, Scope

if TYPE_CHECKING:
    import merge_driver.install

    installer = merge_driver.install
else:
    # `cli` beside `merge_driver` in the checkout, `gitmem_cli` beside `gitmem_merge_driver` when installed.
    installer = import_module(__package__.rpartition(".")[0].replace("cli", "merge_driver") + ".install")

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
    folders = client_folders(at, scope)
    names = [] if git and not client else _clients(folders, client, scope, asks=asks)
    hooks = chosen_git_hooks(at, git or [], new=True)
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
        merger = merge_program()
        found.log = init.init(store, publish=ref, consents=consents)
    with _alone():
        if found.log is not None:
            found.changed = installer.install(store.repo, merger)
        if found.log is not None and autosync is not None:
            found.changed += installer.set_autosync(store.repo, every)
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
        with contextlib.suppress(OSError, GitmemError):
            local_files.make_dirs(os.path.dirname(lock.path))
            end = time.monotonic() + WAIT_SECONDS
            while not lock.take() and time.monotonic() < end:
                time.sleep(0.05)
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
    whose = "its" if len(every) == 1 else "their"
    if asks and output.ask(f"Connect {titles}, so that {whose} agents see messages?", default=True) is False:
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

    program = None if found.dry_run else gitmem_program()
    if names:
        found.clients = operation.install(folders, names, scope, program=program, dry_run=found.dry_run)
    if found.dry_run:
        config = installer.files(at.store().repo) if folders.state is not None else []
        callers = [each.caller.path for hook in hooks for each in (hook, hook.also) if each is not None]
        found.changed = [*config, *callers]
    else:
        _each_hook(found, hooks, lambda hook: install_gate(at, hook))
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
    folders = client_folders(at, scope)
    whole = not client and not git
    every = whole or ALL_FOUND in (client or [])
    names = (
        list(CLIENTS) if every else [each.name for each in client_scope.chosen_clients(folders, client or [])]
    )
    hooks = chosen_git_hooks(at, git or [])
    if whole and scope != USER:
        hooks = [hook for hook in (git_hooks(at)[0] or {}).values() if git_hook.is_there(hook)]
    if not dry_run and (hooks or (whole and scope != USER)):
        _refuse_read_only(at.repo)
    if scope == USER or folders.worktree is not None:
        others = [each.name for each in operation.installed_clients(folders, scope) if each.name not in names]
        # Instructions first: a folder of hooks that setup has created is empty without them.
        found.instructions = agents_md.uninstall(folders, names, scope, others=others, dry_run=dry_run)
        found.clients = operation.uninstall(folders, [ALL_FOUND] if every else names, scope, dry_run=dry_run)
    _each_hook(found, hooks, lambda hook: uninstall_gate(at, hook, dry_run=dry_run))
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
        found.changed = installer.set_autosync(store.repo, None)
        syncs.switch(store.repo, False)
    found.changed += installer.uninstall(store.repo, dry_run=found.dry_run)
    found.changed = list(dict.fromkeys(found.changed))
    found.left = init.uninstall(store, dry_run=found.dry_run)
    found.remarks += found.left.remarks
    for top in operation.other_worktrees(folders):
        found.remarks.append(f"Files of gitmem stay in another worktree: {top}.")
        found.next.append(command("gitmem", "-C", top, "remove"))
    if operation.installed_clients(folders, USER):
        found.next.append(command("gitmem", "remove", "--scope", USER))


MERGE_PROGRAM = "gitmem-merge"


def merge_program() -> str:
    """Return the absolute path of the console script that git runs as merge driver.

    Raises:
        StoreError: The script does not exist.
    """
    beside = os.path.realpath(sys.argv[0])
    found = console_script(MERGE_PROGRAM, beside)
    if found is None:
        raise StoreError(
            f"Program {MERGE_PROGRAM} not found in the folder of gitmem ({beside}). Nothing was changed.",
            hint="Install gitmem with pip or pipx, which install this program too.",
            code="no-merge-program",
            next=["pip install gitmem-coord"],
        )
    return found


def console_script(name: str, beside: str) -> str | None:
    """Return the absolute path of one of our console scripts, or None.

    Args:
        beside: The running program. The script is in its folder, or in the folder where this Python installs scripts.
    """
    import sysconfig

    for folder in (os.path.dirname(beside), sysconfig.get_path("scripts")):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


PUBLISHES = "The log gets ids and patch ids of commits that sessions make here. `git config gitmem.commits off` ends that."


def client_folders(at: Environment, scope: str = "user") -> ClientFolders:
    """Return the folders and programs of clients, from the environment, the home folder and PATH.

    Args:
        at: The environment.
        scope: Only `project` needs a repository.

    Raises:
        UsageError: The scope is unknown; or it is `project`, outside of a repository.
    """
    import shutil

    from gitmem.clients.clients import CLIENTS, FOLDER_VARIABLES, SCOPES, USER, ClientFolders

    if scope not in SCOPES:
        raise UsageError(
            f"Invalid --scope: {scope}; choose from {', '.join(SCOPES)}. Nothing was written.",
            code="unknown-scope",
        )
    repo = _repo_or_none(at)
    if repo is None and scope != USER:
        raise UsageError(
            f"Not a git repository: {os.path.realpath(at.folder)}. Nothing was written.",
            hint="Run the command inside a repository, or name one with -C DIR. --scope user means your home folder.",
            code="not-a-repository",
        )
    home = os.path.expanduser("~")
    moved = {
        name: os.environ[key]
        for name, key in FOLDER_VARIABLES.items()
        if os.path.isabs(os.environ.get(key, ""))
    }
    settings = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(settings):
        moved["opencode"] = os.path.join(settings, "opencode")
    wanted = ["gitmem", *(each for client in CLIENTS.values() for each in client.programs)]
    programs = {name: path for name in wanted if (path := shutil.which(name))}
    linked = repo is not None and repo.git_dir != repo.common and os.path.basename(repo.common) == ".git"
    return ClientFolders(
        worktree=repo.worktree if repo is not None else None,
        main=os.path.dirname(repo.common) if repo is not None and linked else None,
        state=repo.state if repo is not None else None,
        user=user_state(),
        home=home,
        moved=moved,
        programs=programs,
    )


def _repo_or_none(at: Environment) -> Repo | None:
    """Return the repository, or None outside of one; raise StoreError if git does not trust it."""
    try:
        return at.trusted_repo()
    except UsageError as error:
        if error.code != "not-a-repository":
            raise
        return None


def gitmem_program() -> str | None:
    """Return the absolute path of the console script for hooks, or None if it does not exist."""
    return console_script("gitmem", os.path.abspath(sys.argv[0]))


def git_hooks(at: Environment) -> tuple[dict[str, Hook] | None, str | None]:
    """Return git's hooks by their names, and `core.hooksPath`; no hooks without a repository."""
    from gitmem.clients import git_hook as operation

    repo = _repo_or_none(at)
    if repo is None:
        return None, None
    try:
        configured = _configured(at)
    except GitmemError:  # a repository that can't have a log: clients' hooks may be installed nevertheless
        return None, None
    return {name: operation.Hook(repo, configured, name) for name in operation.NAMES}, configured


def _configured(at: Environment) -> str | None:
    """Return the value of `core.hooksPath` in this worktree, if any."""
    from gitmem.clients import git_hook as operation

    found = at.store().git.config(operation.CONFIG, at.repo.git_dir).get("core.hookspath")
    return os.path.expanduser(found) if found else None


def chosen_git_hooks(at: Environment, names: Sequence[str], *, new: bool = False) -> list[Hook]:
    """Return the git hooks of these names.

    Raises:
        UsageError: A name is unknown, or the repository is bare.
    """
    from gitmem.clients import git_hook as operation

    if wrong := [name for name in names if name not in operation.NAMES]:
        raise UsageError(
            f"Invalid git hook: {', '.join(wrong)}. Nothing was written.",
            hint=f"gitmem has three git hooks: {', '.join(operation.NAMES)}.",
            code="unknown-git-hook",
            next=[f"gitmem setup --git {name}" for name in operation.NAMES],
        )
    if new and names and at.repo.worktree is None:
        raise UsageError(
            f"{at.repo.common} is a bare repository, where a {names[0]} hook never runs. Nothing was written.",
            hint="Install it in the clones or worktrees that people and agents push from.",
            code="no-worktree",
            next=["git worktree list"],
        )
    return [operation.Hook(at.repo, _configured(at), name) for name in dict.fromkeys(names)]


def install_gate(at: Environment, hook: Hook) -> GitHookResult:
    """Install the gate in git's hook, and write the file of paths that the hook reads."""
    from gitmem.agents import heartbeats
    from gitmem.clients import client_scope, clients
    from gitmem.clients import git_hook as operation
    from gitmem.local_files import make_dirs

    make_dirs(at.repo.state)
    clients.write_paths(at.repo.state, user=user_state(), program=gitmem_program())
    found = operation.install(hook)
    if hook.name == operation.POST_COMMIT:
        heartbeats.set_commit_hook(at.repo.state, installed=operation.state(hook) == client_scope.INSTALLED)
        found.remarks += [] if heartbeats.are_commits_off(at.store()) else [PUBLISHES]
    return found


def uninstall_gate(at: Environment, hook: Hook, *, dry_run: bool = False) -> GitHookResult:
    """Remove a git hook."""
    from gitmem.agents import heartbeats
    from gitmem.clients import git_hook as operation

    if hook.name == operation.POST_COMMIT and not dry_run:
        heartbeats.set_commit_hook(at.repo.state, installed=False)
    return operation.uninstall(hook, dry_run=dry_run)


PACKAGES = ("mcp", "mcp_types", "anyio")


def mcp(
    at: Environment,
    tools: Annotated[str, Option("--tools", "day|all", "The ten tools of an agent's day, or all.")] = "day",
) -> None:
    """Serve an MCP client on standard input and output. MCP clients run this command. Answers are text; with --json they are fields (structuredContent), for a client that reads these."""
    if tools not in ("day", "all"):
        raise UsageError(f"Invalid --tools: {tools}; choose from day, all.", code="usage")
    with needs_extra(
        "mcp", PACKAGES, "'mcp>=2,<3'", "no-mcp", "The MCP SDK is not installed; gitmem mcp needs it."
    ):
        from ..mcp import server
    if sys.stdin is not None and sys.stdin.isatty():
        output.write_error("gitmem: waiting for an MCP client on standard input; press Ctrl-D to end.")
    server.run(at.directory, at.as_, fields=at.json, everything=tools == "all")


class LocalInstallation(Struct):
    """The merge driver and the hooks of clients, for doctor: their state, and how to install them."""

    at: Environment

    def driver(self) -> DriverStatus:
        """Return the state of the merge driver in git's config."""
        return installer.status(self.at.repo)

    def hooks(self) -> HookStatus:
        """Return the installed hooks of each client and of git."""
        from gitmem.clients import install as status

        return status.read_status(client_folders(self.at), *git_hooks(self.at))

    def install_driver(self) -> list[str]:
        """Install the merge driver; return what was changed."""
        return installer.install(self.at.repo, merge_program())

    def install_hooks(self, client: str, scope: str) -> list[str]:
        """Install a client's hooks; return the files that were written."""
        from gitmem.clients import install

        found = install.install(client_folders(self.at, scope), [client], scope, program=gitmem_program())
        for each in found.clients:
            if each.problem:
                raise StoreError(each.problem)
        return [path for each in found.clients for path in each.files]

    def install_git_hook(self, name: str) -> None:
        """Install one of git's hooks, if the repository has a folder for hooks."""
        hooks, _ = git_hooks(self.at)
        if hooks is not None and name in hooks:
            install_gate(self.at, hooks[name])
