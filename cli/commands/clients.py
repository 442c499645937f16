"""`gitmem hooks`, `agents-md` and `mcp`: what clients get of us; and our console scripts."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from gitmem.errors import GitmemError, StoreError, UsageError
from gitmem.outcome import Struct

from ..environment import Environment, user_state
from ..failure import needs_extra
from ..render import output
from ..render import repository as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Annotated

    import typer

    from gitmem.clients.clients import ClientFolders
    from gitmem.clients.git_hook import GitHookResult, Hook
    from gitmem.clients.install import HookStatus, InstallResult
    from gitmem.doctor.findings import DriverStatus
    from gitmem.repo import Repo

    from .options import ClientOption, GitHooks, InstalledOption, Scope


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


def install(
    at: Environment,
    client: ClientOption = None,
    scope: Scope = "project",
    git: GitHooks = None,
) -> int:
    """Install hooks that show signals to coding agents. Idempotent."""
    from gitmem.clients import install as operation

    hooks = chosen_git_hooks(at, git or [], new=True)
    found = operation.InstallResult([], gitmem_program())
    if client or not hooks:
        found = operation.install(
            client_folders(at, scope), client or ["all-found"], scope, program=gitmem_program()
        )
    with_git(found, hooks, lambda hook: install_gate(at, hook))
    at.answer(found, render.hooked)
    return found.status


def uninstall(
    at: Environment, client: InstalledOption = None, scope: Scope = "project", git: GitHooks = None
) -> int:
    """Remove what install added; every file is restored byte for byte."""
    from gitmem.clients import git_hook as gate
    from gitmem.clients import install as operation

    hooks = chosen_git_hooks(at, git or [])
    found = operation.InstallResult([], None)
    try:
        if client or not hooks:
            found = operation.uninstall(client_folders(at, scope), client or ["all-found"], scope)
    except GitmemError as error:
        error.next = [each.replace("hooks install", "hooks uninstall") for each in error.next]
        raise
    with_git(found, hooks, lambda hook: uninstall_gate(at, hook))
    if not hooks:
        for name, here in (git_hooks(at)[0] or {}).items():
            if gate.is_there(here):
                found.remarks.append(f"git's {name} hook is still installed.")
                found.next.insert(0, f"gitmem hooks uninstall --git {name}")
    at.answer(found, render.unhooked)
    return found.status


def status(at: Environment) -> int:
    """Show the installed hooks of each client, and whether they can run."""
    from gitmem.clients import install as operation

    found = operation.read_status(client_folders(at), *git_hooks(at))
    at.answer(found, render.hooks_status)
    return found.status


def test(at: Environment, client: InstalledOption = None) -> int:  # noqa: PT028  (a command, and no test)
    """Run the installed hooks as the client would, with a signal in a temporary repository; exit 1 on failure."""
    from gitmem.clients import client_scope as operation

    found = operation.try_hooks(
        client_folders(at), client or ["all-found"], dict(os.environ), gitmem_program()
    )
    at.answer(found, render.hooks_tried)
    return found.status


def client_folders(at: Environment, scope: str = "user") -> ClientFolders:
    """Return the folders and programs of clients, from the environment, the home folder and PATH.

    Args:
        at: The environment.
        scope: Only `project` needs a repository.

    Raises:
        UsageError: The scope is `project`, and there is no repository.
    """
    import shutil

    from gitmem.clients.clients import CLIENTS, FOLDER_VARIABLES, USER, ClientFolders

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
        f"Not a git repository: {os.path.realpath(at.folder)}. Project hooks need one. Nothing was written.",
        hint="Run the command inside a repository, or name one with -C DIR. --scope user installs the hooks in your home folder, for all your repositories.",
        code="not-a-repository",
        next=["gitmem hooks install --scope user"],
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
    return {name: operation.find_hook(repo, configured, name) for name in operation.NAMES}, configured


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
            next=[f"gitmem hooks install --git {name}" for name in operation.NAMES],
        )
    if new and names:
        operation.refuse_bare(at.repo, names[0])
    return [operation.find_hook(at.repo, _configured(at), name) for name in dict.fromkeys(names)]


def with_git(found: InstallResult, hooks: Sequence[Hook], change: Callable[[Hook], GitHookResult]) -> None:
    """Change git's hooks one after the other, and add the results and their next commands."""
    for hook in hooks:
        try:
            found.git.append(change(hook))
        except GitmemError as error:
            done = [each.title for each in found.clients if each.files] + [
                each.name for each in hooks[: len(found.git)]
            ]
            if done:
                error.message = (
                    error.message.replace(" Nothing was written.", "")
                    + f" Before it, changed as asked: {', '.join(done)}."
                )
            raise
    found.next += dict.fromkeys(step for each in found.git for step in each.next)


def install_gate(at: Environment, hook: Hook) -> GitHookResult:
    """Install the gate in git's hook, and write the file of paths that the hook reads."""
    from gitmem.agents import heartbeats
    from gitmem.clients import clients
    from gitmem.clients import git_hook as operation
    from gitmem.local_files import make_dirs

    make_dirs(at.repo.state)
    clients.write_paths(at.repo.state, user=user_state(), program=gitmem_program())
    found = operation.install(hook)
    if hook.name == operation.POST_COMMIT:
        heartbeats.set_commit_hook(at.repo.state, installed=operation.is_run(hook))
        found.remarks += [] if heartbeats.are_commits_off(at.store()) else [PUBLISHES]
    return found


def uninstall_gate(at: Environment, hook: Hook) -> GitHookResult:
    """Remove a git hook."""
    from gitmem.agents import heartbeats
    from gitmem.clients import git_hook as operation

    if hook.name == operation.POST_COMMIT:
        heartbeats.set_commit_hook(at.repo.state, installed=False)
    return operation.uninstall(hook)


def agents_md(
    at: Environment,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The file (default: AGENTS.md of this working tree)."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Add the instructions to FILE between markers, or update them."),
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the instructions from FILE.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 if the instructions are missing or of another version.")
    ] = False,
) -> int:
    """Print gitmem's instructions for agents, or write them to AGENTS.md."""
    from gitmem.clients import agents_md as operation

    wanted = [verb for verb, is_wanted in
              ((operation.write, write), (operation.remove, remove), (operation.check, check)) if is_wanted]  # fmt: skip
    if len(wanted) > 1 or (file is not None and not wanted):
        raise UsageError(
            "--write, --remove and --check are mutually exclusive. Nothing was written."
            if wanted
            else f"No action given for {file}. Nothing was written.",
            hint="Choose one: --write adds the instructions, --remove removes them, --check checks them.",
            next=["gitmem agents-md --write"],
        )
    if not wanted:
        found = operation.show()
        if at.json:
            at.answer(found, render.agents_md_block)
        else:  # the lines alone, so that they can be piped into a file
            output.write_lines([str(found.text).rstrip("\n")])
        return 0
    if file is None:
        path = operation.default(at.trusted_repo().worktree)
        named = os.path.relpath(path, at.folder)
    else:
        path, named = os.path.join(at.folder, file), file
        operation.refuse_outside(path, _worktree(at), writes=write)
    found = wanted[0](path, named, typed=file is not None)
    at.answer(found, render.agents_md_block)
    return int(check and found.state != "current")


def _worktree(at: Environment) -> str | None:
    """Return the top of the work tree; None outside of one, where FILE can still be given."""
    try:
        return at.trusted_repo().worktree
    except UsageError:
        return None


PACKAGES = ("mcp", "mcp_types", "anyio")


def mcp(
    at: Environment,
    tools: Annotated[
        str, typer.Option("--tools", metavar="day|all", help="The ten tools of an agent's day, or all.")
    ] = "day",
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
        return [path for each in found.clients for path in each.files]

    def install_git_hook(self, name: str) -> None:
        """Install one of git's hooks, if the repository has a folder for hooks."""
        hooks, _ = git_hooks(self.at)
        if hooks is not None and name in hooks:
            install_gate(self.at, hooks[name])
