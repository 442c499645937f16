"""`gitmem hooks`."""

from __future__ import annotations

import os

from gitmem.errors import GitmemError, UsageError

from ..driver import script
from ..environment import Environment
from ..render import output
from ..render import repository as render
from ..wal_folders import user_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Annotated

    import typer

    from gitmem.clients.hooks.clients import ClientFolders
    from gitmem.clients.hooks.git_hook import GitHookResult, Hook
    from gitmem.clients.hooks.install import InstallResult
    from gitmem.repo import Repo

    from .options import ClientOption, GitHooks, InstalledOption, Scope

PUBLISHES = "The log gets ids and patch ids of commits that sessions make here. `git config gitmem.commits off` ends that."


def install(
    at: Environment,
    client: ClientOption = None,
    scope: Scope = "project",
    wake: Annotated[
        bool, typer.Option("--wake", help="Claude Code: also wake an idle session when a signal arrives.")
    ] = False,
    git: GitHooks = None,
) -> int:
    """Install hooks that show signals to coding agents. Idempotent."""
    from gitmem.clients.hooks import install as operation

    hooks = _git_hooks(at, git or [], new=True)
    found = operation.InstallResult([], program())
    if client or not hooks:
        found = operation.install(
            client_folders(at, scope), client or ["all-found"], scope, program=program(), wake=wake
        )
    _with_git(found, hooks, lambda hook: install_gate(at, hook))
    output.answer(at.json, found, render.hooked)
    return found.status


def uninstall(
    at: Environment, client: InstalledOption = None, scope: Scope = "project", git: GitHooks = None
) -> int:
    """Remove what install added; every file is restored byte for byte."""
    from gitmem.clients.hooks import git_hook as gate
    from gitmem.clients.hooks import install as operation

    hooks = _git_hooks(at, git or [])
    found = operation.InstallResult([], None)
    try:
        if client or not hooks:
            found = operation.uninstall(client_folders(at, scope), client or ["all-found"], scope)
    except GitmemError as error:
        error.next = [each.replace("hooks install", "hooks uninstall") for each in error.next]
        raise
    _with_git(found, hooks, lambda hook: _uninstall_gate(at, hook))
    if not hooks:
        for name, here in (git_hooks(at)[0] or {}).items():
            if gate.is_there(here):
                found.remarks.append(f"git's {name} hook is still installed.")
                found.next.insert(0, f"gitmem hooks uninstall --git {name}")
    output.answer(at.json, found, render.unhooked)
    return found.status


def status(at: Environment) -> int:
    """Show the installed hooks of each client, and whether they can run."""
    from gitmem.clients.hooks import status as operation

    found = operation.read_status(client_folders(at), *git_hooks(at))
    output.answer(at.json, found, render.hooks_status)
    return found.status


def test(at: Environment, client: InstalledOption = None) -> int:  # noqa: PT028  (a command, and no test)
    """Run the installed hooks as the client would, with a signal in a temporary repository; exit 1 on failure."""
    from gitmem.clients.hooks import hook_test as operation

    found = operation.run(client_folders(at), client or ["all-found"], dict(os.environ), program())
    output.answer(at.json, found, render.hooks_tried)
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

    from gitmem.clients.hooks.clients import CLIENTS, FOLDER_VARIABLES, USER, ClientFolders

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


def program() -> str | None:
    """Return the absolute path of the console script for hooks, or None if it does not exist."""
    import sys

    return script("gitmem", os.path.abspath(sys.argv[0]))


def git_hooks(at: Environment) -> tuple[dict[str, Hook] | None, str | None]:
    """Return git's hooks by their names, and `core.hooksPath`; no hooks without a repository."""
    from gitmem.clients.hooks import git_hook as operation

    repo = _repo_or_none(at)
    if repo is None:
        return None, None
    try:
        configured = _configured(at)
    except GitmemError:  # a repository that can't have a log: clients' hooks may be installed nevertheless
        return None, None
    return {name: operation.find(repo, configured, name) for name in operation.NAMES}, configured


def _configured(at: Environment) -> str | None:
    """Return the value of `core.hooksPath` in this worktree, if any."""
    from gitmem.clients.hooks import git_hook as operation

    found = at.store().git.config(operation.CONFIG, at.repo.git_dir).get("core.hookspath")
    return os.path.expanduser(found) if found else None


def _git_hooks(at: Environment, names: Sequence[str], *, new: bool = False) -> list[Hook]:
    """Return the git hooks of these names.

    Raises:
        UsageError: A name is unknown, or the repository is bare.
    """
    from gitmem.clients.hooks import git_hook as operation

    if wrong := [name for name in names if name not in operation.NAMES]:
        raise UsageError(
            f"Invalid git hook: {', '.join(wrong)}. Nothing was written.",
            hint=f"gitmem has three git hooks: {', '.join(operation.NAMES)}.",
            code="unknown-git-hook",
            next=[f"gitmem hooks install --git {name}" for name in operation.NAMES],
        )
    if new and names:
        operation.refuse_bare(at.repo, names[0])
    return [operation.find(at.repo, _configured(at), name) for name in dict.fromkeys(names)]


def _with_git(found: InstallResult, hooks: Sequence[Hook], change: Callable[[Hook], GitHookResult]) -> None:
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
    from gitmem.agents import commit_stamps
    from gitmem.clients import hook_paths
    from gitmem.clients.hooks import git_hook as operation
    from gitmem.state_files import make_dirs

    make_dirs(at.repo.state)
    hook_paths.write(at.repo.state, user=user_state(), program=program())
    found = operation.install(hook)
    if hook.name == operation.POST_COMMIT:
        commit_stamps.set_hook(at.repo.state, installed=operation.is_run(hook))
        found.remarks += [] if commit_stamps.is_off(at.store()) else [PUBLISHES]
    return found


def _uninstall_gate(at: Environment, hook: Hook) -> GitHookResult:
    """Remove a git hook."""
    from gitmem.agents import commit_stamps
    from gitmem.clients.hooks import git_hook as operation

    if hook.name == operation.POST_COMMIT:
        commit_stamps.set_hook(at.repo.state, installed=False)
    return operation.uninstall(hook)
