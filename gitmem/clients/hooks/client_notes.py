"""Remarks for the user of each client, beside the files that install writes."""

from __future__ import annotations

import os

from ...errors import GitmemError
from ...text.shell_quote import command
from .client_scope import ABSENT, target_of
from .clients import CLIENTS, PROJECT, USER, Client, ClientFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .client_scope import ClientHooks

SIGNALS_FILE = ".aider.signals.md"


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


_SKIPPED = {
    "untrusted": "NOT trusted yet: Codex skips the hooks until you review them: start codex and type /hooks.",
    "changed": "Changed since they were reviewed: Codex skips the hooks until you review them again with /hooks.",
    "elsewhere": "In a linked worktree Codex reads the main worktree's file, which has no gitmem hooks.",
}


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
