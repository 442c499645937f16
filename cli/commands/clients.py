"""What clients get of us, for setup, remove and doctor; `gitmem mcp`; and our console scripts."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from gitmem.errors import GitmemError, StoreError, UsageError
from gitmem.outcome import Struct

from ..environment import Environment, user_state
from ..failure import needs_extra
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Annotated

    from gitmem.clients.clients import ClientFolders
    from gitmem.clients.git_hook import GitHookResult, Hook
    from gitmem.clients.install import HookStatus
    from gitmem.doctor.findings import DriverStatus
    from gitmem.repo import Repo

    from .options import Option

if TYPE_CHECKING:
    import merge_driver.install

    installer = merge_driver.install
else:
    # `cli` beside `merge_driver` in the checkout, `gitmem_cli` beside `gitmem_merge_driver` when installed.
    installer = import_module(__package__.rpartition(".")[0].replace("cli", "merge_driver") + ".install")

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
        raise _no_project(at)
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


def _no_project(at: Environment) -> UsageError:
    return UsageError(
        f"Not a git repository: {os.path.realpath(at.folder)}. Nothing was written.",
        hint="Run the command inside a repository, or name one with -C DIR. --scope user means your home folder.",
        code="not-a-repository",
    )


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
    if new and names:
        operation.refuse_bare(at.repo, names[0])
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
