"""Install and remove hooks. Everything is read and checked before anything is written.

A failure of one client does not stop the others that were found.
"""

from __future__ import annotations

import os
from functools import partial

from ... import state_files
from ...errors import GitmemError, StoreError
from ...outcome import Outcome, command
from .. import hook_paths
from . import checked_scripts
from .client_scope import ABSENT, ClientHooks, bare, chosen, target_of
from .clients import ALL_FOUND, CLIENTS, PROJECT, USER, Client, ClientFolders
from .status import trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..user_files import FileChange
    from .git_hook import GitHookResult

SIGNALS_FILE = ".aider.signals.md"
_ALWAYS = {
    "cursor": ["Cursor may run Claude Code's hooks too (third-party skills): a signal is still shown once."],
    "cline": ["Enable hooks in Cline's settings. Signals are shown with a tool's result."],
    "opencode": ["OpenCode reads plugins when it starts: restart it."],
    "aider": [
        f"Aider has no hooks. Nothing was written. Run `gitmem watch --session NAME --write {SIGNALS_FILE}` in a side terminal, and start it with `aider --read {SIGNALS_FILE}`.",
        "NAME is the agent's session; without --session, the watch shows your own signals.",
        f"Add {SIGNALS_FILE} to .git/info/exclude or .gitignore; do not commit it.",
    ],
}
_IN_PROJECTS = {
    "claude-code": [
        "Claude Code reads project hooks from the folder it is started in: start it at the top of the worktree."
    ],
    "gemini": [
        "Gemini CLI runs a project's hooks only in a folder that you trust, started at the top of the worktree."
    ],
    "copilot": [
        "Copilot runs a project's hooks only in a folder that you trust. VS Code reads the same file."
    ],
}
_SKIPPED = {
    "untrusted": "NOT trusted yet: Codex skips the hooks until you review them: start codex and type /hooks.",
    "changed": "Changed since they were reviewed: Codex skips the hooks until you review them again with /hooks.",
    "elsewhere": "In a linked worktree Codex reads the main worktree's file, which has no gitmem hooks.",
}


class _Plan:
    """The planned changes for one client.

    Attributes:
        result: The result to report.
        target: The client in its scope; None if there is no file that we could write.
        changes: The changes of files.
        error: Why the plan failed, or None.
    """

    def __init__(self, folders: ClientFolders, client: Client, scope: str, why: str) -> None:
        self.result = ClientHooks(client, scope, why)
        self.target = target_of(folders, client, scope)
        self.changes: list[FileChange] = []
        self.error: GitmemError | None = None

    def read_install(self, wake: bool) -> None:
        """Plan the changes of an install."""
        if self.target is not None:
            self.changes = self.target.install(wake=wake)

    def read_uninstall(self) -> None:
        """Plan the changes of an uninstall."""
        if self.target is not None:
            self.changes = self.target.uninstall()

    def install(self) -> None:
        """Write the changes of an install."""
        if self.target is None:
            self.result.state = "advised"
            return
        is_update = self.target.state() != ABSENT
        self.result.files = self.target.write_install(self.changes)
        if self.result.files:
            self.result.state = "updated" if is_update else "installed"

    def uninstall(self) -> None:
        """Write the changes of an uninstall."""
        if self.error is None:
            self.result.files = self.target.write_uninstall(self.changes) if self.target is not None else []
            self.result.state = "removed" if self.result.files else "absent"

    def attempt(self, step: Callable[[], None], *, alone: bool, kept: Sequence[str] | None = None) -> None:
        """Take one step.

        Args:
            alone: Whether to raise its error, not to record it beside the others' results.
            kept: The codes of the errors that may be recorded; None for any.
        """
        if self.error is not None:
            return
        try:
            step()
        except GitmemError as error:
            if alone or (kept is not None and error.code not in kept):
                raise
            self.error = error
            self.result.state = "failed"
            self.result.problem = bare(error)
            self.result.remarks = [error.hint] if error.hint else []


def _status(plans: Sequence[_Plan]) -> int:
    return max((plan.error.status for plan in plans if plan.error is not None), default=0)


class _Ended(Outcome):
    """A result with an exit status, which is not a field of its JSON."""

    __slots__ = ("status",)


class InstallResult(_Ended):
    """The result of install or uninstall.

    Attributes:
        clients: Each selected client.
        git: The results for git's own hooks that were requested.
        program: The program that the hooks run; None if it can't be determined.
        remarks: Remarks for all clients.
        status: Exit status: that of the worst error of a client, 0 without one.
    """

    __slots__ = ("clients", "git", "program", "remarks", "next")

    def __init__(self, found: list[ClientHooks], program: str | None) -> None:
        self.clients = found
        self.git: list[GitHookResult] = []
        self.program = program
        self.status = 0
        self.remarks: list[str] = []
        self.next: list[str] = []


def install(
    folders: ClientFolders, names: Sequence[str], scope: str, *, program: str | None, wake: bool = False
) -> InstallResult:
    """Install hooks that show signals to the models of clients.

    Args:
        names: The clients' names; `all-found` means those in use here.
        program: The absolute path of the gitmem program that the hooks run.
        wake: Whether to include the background hook that wakes an idle session of Claude Code.

    Returns:
        The result. With several clients it reports an unwritable file of one, and with `all-found` every error of
        one, as `failed`; that client's changes are undone.

    Raises:
        UsageError: An unknown name or scope, no client found, or a file that can't be changed safely; nothing was
            written.
        StoreError: A file can't be read or written.
    """
    plans = [_Plan(folders, client, scope, why) for client, why in chosen(folders, names, scope)]
    alone = len(plans) == 1
    for plan in plans:
        plan.attempt(partial(plan.read_install, wake), alone=alone or ALL_FOUND not in names)
    for plan in plans:
        plan.attempt(plan.install, alone=alone)
        _add_remarks(plan, folders, wake=wake)
    found = InstallResult([plan.result for plan in plans], program)
    failed = [plan for plan in plans if plan.error is not None]
    found.status = _status(plans)
    if len(failed) < len(plans):
        _name_program(found, folders, scope)
    checked_scripts.remove_unused(folders)
    found.remarks += for_all(found.clients, scope, wake=wake)
    there = [each for each in found.clients if each.state != "failed"]
    found.next = [
        *(step for plan in failed[:1] for step in _next_after_failure(plan, scope)),
        *([command("gitmem", "hooks", "test")] if any(each.pushed for each in there) else []),
        *(["gitmem watch"] if not all(each.pushed for each in there) else []),
        "gitmem hooks status",
    ]
    return found


def uninstall(folders: ClientFolders, names: Sequence[str], scope: str) -> InstallResult:
    """Remove the entries and files of install, and nothing else.

    Args:
        names: The clients' names; `all-found` means every client.

    Raises:
        UsageError, StoreError: As in `install`. With `all-found`, a client whose files are too large, or behind a link
            out of the work tree, fails alone.
    """
    every = [(client, "asked for") for client in CLIENTS.values()]
    picked = every if ALL_FOUND in names else chosen(folders, names, scope)
    plans = [_Plan(folders, client, scope, why) for client, why in picked]
    for plan in plans:
        plan.attempt(plan.read_uninstall, alone=ALL_FOUND not in names, kept=("outside", "too-large"))
    for plan in plans:
        plan.uninstall()
    found = InstallResult(
        [plan.result for plan in plans if plan.changes or plan.error is not None or ALL_FOUND not in names],
        folders.noted_program(),
    )
    found.status = _status(plans)
    found.remarks += still_installed(folders, scope)
    removed = checked_scripts.remove_unused(folders)
    if removed:
        what = "1 checked copy" if len(removed) == 1 else f"{len(removed)} checked copies"
        found.remarks.append(f"Removed {what} of hook scripts from {os.path.dirname(removed[0])}.")
    found.next = ["gitmem hooks status"]
    return found


def _next_after_failure(plan: _Plan, scope: str) -> list[str]:
    """Return the next commands after a failure: inspect the unwritable file, and install that client again."""
    again = command("gitmem", "hooks", "install", "--client", plan.result.client, "--scope", scope)
    return [*(plan.error.next if isinstance(plan.error, StoreError) else []), again]


def _add_remarks(plan: _Plan, folders: ClientFolders, *, wake: bool) -> None:
    """Add the remarks for the user; for an unchanged client only that Codex does not run its hooks."""
    result, target = plan.result, plan.target
    if plan.error is None and result.state != "unchanged":
        result.remarks += remarks(result.client, result.scope, folders, wake=wake)
        file = target.attributes() if target is not None and target.lacks_attributes() else None
        if file is not None:
            result.remarks.append(
                f"{file.path} is yours and was not changed. With `* text eol=lf` there, checkouts with core.autocrlf keep the script as it is."
            )
    elif result.state == "unchanged" and result.client == "codex" and target is not None:
        result.remarks += untrusted(trust(folders, target))


def _name_program(found: InstallResult, folders: ClientFolders, scope: str) -> None:
    """Note the program that the hooks run, and add remarks if they may not find one."""
    program, on_path = found.program, folders.programs.get("gitmem")
    if folders.state is None:
        found.program = on_path
    elif program is None:
        found.remarks.append("The hooks use gitmem from the PATH: this one is not an installed program.")
    else:
        try:
            state_files.make_dirs(folders.state)
        except OSError:
            pass  # in an agent's sandbox: the hooks search the PATH
        if not hook_paths.write(folders.state, user=folders.user, program=program):
            found.remarks.append(
                "Cannot store the program's path in the git folder and your state folder; the hooks use gitmem from the PATH."
            )
    if on_path is None and scope == USER:
        found.remarks.append(
            "gitmem is not on the PATH: hooks find it only in repositories where a gitmem command has stored its path. Add it to the PATH of your clients."
        )


def remarks(name: str, scope: str, folders: ClientFolders, *, wake: bool) -> list[str]:
    """Return the remarks for one client after an install."""
    found = [*_ALWAYS.get(name, ()), *(_IN_PROJECTS.get(name, ()) if scope == PROJECT else ())]
    if name == "codex":
        found += _codex(scope, folders)
    elif name == "windsurf":
        found.append(
            "Windsurf supports project scope only: use --scope project. Nothing was written."
            if scope == USER
            else "Windsurf hooks cannot show text to the model. The installed rule asks the model to run `gitmem inbox`; `gitmem watch` in a side terminal shows signals to you."
        )
    if wake and name == "claude-code":
        found.append(
            "A signal wakes an idle session of Claude Code in a terminal, up to half an hour after it became idle."
        )
    if name in CLIENTS and CLIENTS[name].pushes and is_installed(folders, CLIENTS[name], _other(scope)):
        found.append(
            f"The hooks are also installed in {_other(scope)} scope: they run twice, and a signal is still shown once."
        )
    return found


def _codex(scope: str, folders: ClientFolders) -> list[str]:
    found = [
        "Codex silently skips a hook until you have reviewed it: start codex and type /hooks. `gitmem hooks status` shows which are trusted."
    ]
    if scope == PROJECT:
        found.append("It reads project hooks only if you trust the project.")
        if folders.main is not None:
            found.append(
                f"In a linked worktree it reads only the main worktree's hooks, and only if the linked worktree has a .codex folder: use --scope user, or run `{command('gitmem', '-C', folders.main, 'hooks', 'install', '--client', 'codex')}`."
            )
    common = os.path.dirname(folders.state) if folders.state is not None else "…/.git"
    found.append(
        f'Records written in its sandbox wait until a hook commits them. With writable_roots = ["{common}"] under [sandbox_workspace_write] in config.toml they are committed at once.'
    )
    return found


def untrusted(word: str) -> list[str]:
    """Return advice about hooks that Codex skips, none if it runs them; `word` is a result of `codex_trust`."""
    return [_SKIPPED[word]] if word in _SKIPPED else []


def for_all(done: Sequence[ClientHooks], scope: str, *, wake: bool) -> list[str]:
    """Return the remarks for all clients of an install."""
    found = []
    failed = [each.title for each in done if each.state == "failed"]
    if failed and len(failed) < len(done):
        there = [each.title for each in done if each.state not in ("failed", "advised")]
        found.append(f"Installed: {', '.join(there) or 'none'}. Not installed: {', '.join(failed)}.")
    if wake and all(each.client != "claude-code" for each in done):
        found.append("--wake is supported for Claude Code only.")
    if scope == PROJECT and any(each.files for each in done):
        found.append(
            "Commit these files to install the hooks in every worktree and clone; --scope user installs them for you only, in every repository."
        )
    return found


def still_installed(folders: ClientFolders, scope: str) -> list[str]:
    """Return a remark on clients that are still installed in the other scope after an uninstall."""
    other = _other(scope)
    still = [client.title for client in CLIENTS.values() if is_installed(folders, client, other)]
    return [f"Still installed in {other} scope: {', '.join(still)}."] if still else []


def is_installed(folders: ClientFolders, client: Client, scope: str) -> bool:
    """Return whether anything of ours is installed for a client in a scope."""
    try:
        target = target_of(folders, client, scope)
        return target is not None and target.state() != ABSENT
    except GitmemError:
        return False


def _other(scope: str) -> str:
    return USER if scope == PROJECT else PROJECT
