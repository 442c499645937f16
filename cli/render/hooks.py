"""Hooks of clients and the block in AGENTS.md as text."""

from __future__ import annotations

from .output import paint, sanitize
from .text import SEPARATOR, format_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.hooks.client_scope import ClientHooks
    from gitmem.clients.hooks.git_hook import GitHookResult
    from gitmem.clients.hooks.hook_test import HookTestResults
    from gitmem.clients.hooks.install import InstallResult
    from gitmem.clients.hooks.status import ClientStatus, HookStatus, ScopeStatus

_STATES = {
    "unchanged": "already installed; nothing was changed",
    "advised": "does not support hooks",
    "failed": "NOT installed",
    "absent": "had no gitmem hooks",
}
_HALF = "a checkout brought the file that calls it; not installed in this clone, so it does nothing"
_NOT_RUN = "installed, but git does not run the hook that calls it: that is missing or not executable"
_BLOCK_STATES = {
    "created": "{path}: created with gitmem's instructions",
    "added": "{path}: added gitmem's instructions at the end",
    "updated": "{path}: updated gitmem's instructions",
    "unchanged": "{path}: gitmem's instructions are already up to date",
    "removed": "{path}: removed gitmem's instructions",
    "deleted": "{path}: deleted; gitmem had created it, and it had no other content",
    "missing": "{path}: no instructions of gitmem",
    "current": "{path}: gitmem's instructions are up to date",
    "outdated": "{path}: gitmem's instructions are of another version",
}


def hooked(found: InstallResult) -> list[str]:
    """Return what an installation changed for each client and in git's hooks."""
    lines = [line for each in found.clients for line in _client(each)]
    return [*lines, *gated(found), *(sanitize(each) for each in found.remarks)]


def unhooked(found: InstallResult) -> list[str]:
    """Return what an uninstallation removed for each client and from git's hooks."""
    lines = [*(line for each in found.clients for line in _client(each)), *gated(found)]
    return [
        *(lines or ["No gitmem hooks are installed in this scope"]),
        *(sanitize(each) for each in found.remarks),
    ]


def _client(each: ClientHooks) -> list[str]:
    why = "" if each.why == "asked for" else f" ({sanitize(each.why, keep='')})"
    state = _STATES.get(
        each.state,
        f"{each.state} for this {each.scope}" if each.scope == "project" else f"{each.state} for this user",
    )
    return [
        f"{each.title}{why}: {state}",
        *(f"  {'' if each.state == 'removed' else 'wrote '}{sanitize(path, keep='')}" for path in each.files),
        *([f"  {sanitize(each.problem)}"] if each.problem else []),
        *(f"  {sanitize(remark)}" for remark in each.remarks),
    ]


def gated(found: InstallResult) -> list[str]:
    """Return the state of each git hook that was requested."""
    return [line for each in found.git for line in _git_hook(each)]


def _git_hook(found: GitHookResult) -> list[str]:
    text = {
        "installed": "hook installed",
        "updated": "hook updated",
        "unchanged": "hook already installed",
        "removed": "hook removed",
        "absent": "hook not installed; nothing was changed",
    }[found.state]
    name = (
        found.path.replace("\\", "/").rpartition("/")[2].removesuffix(".legacy")
    )  # as the tool pre-commit runs it
    lines = [f"{name} {text}: {sanitize(found.path, keep='')}"]
    if found.kept is not None:
        lines.append(f"the previous hook runs after it: {sanitize(found.kept, keep='')}")
    return [*lines, *(sanitize(each) for each in found.remarks)]


def status(found: HookStatus) -> list[str]:
    """Return the installed hooks of each client, their program, and their last run and error."""
    lines = [line for each in found.clients for line in _status(each)]
    if not lines:
        lines = ["No clients found, and no client hooks installed"]
    if found.installed:
        lines.append(_program(found))
    for name, state, what in (
        ("pre-push", found.pre_push, "gate"),
        ("pre-commit", found.pre_commit, "guard of claims"),
        ("post-commit", found.post_commit, "note of who commits"),
    ):
        if name in found.replaced:
            state = f"another tool has replaced gitmem's hook, and the {what} does not run"
        shown = {"foreign": f"another hook, without the {what}", "not run": _NOT_RUN, "only in files": _HALF}
        state = shown.get(state, state)
        if state != "not installed":
            lines.append(f"git {name}: {state}")
    if found.hooks_path is not None:
        lines.append(f"core.hooksPath: {sanitize(found.hooks_path, keep='')}")
    if found.manager is not None:
        lines.append(f"{found.manager} writes git's hooks here; `gitmem hooks install --git` uses its form")
    if found.last_run is not None:
        lines.append(f"last hook run: {format_ago(found.last_run)}")
    if found.last_error is not None:
        lines.append(f"last hook error: {sanitize(found.last_error)}")
    return lines


def _program(found: HookStatus) -> str:
    if found.program is None:
        return "program of the hooks: gitmem from the PATH" + ("" if found.program_works else ", not found")
    return f"program of the hooks: {sanitize(found.program, keep='')}" + (
        "" if found.program_works else ", not found"
    )


def _status(each: ClientStatus) -> list[str]:
    if not each.scopes:
        pulled = "" if each.pushed else "; does not support hooks: run `gitmem watch`"
        return [f"{each.title}: not installed ({sanitize(str(each.found), keep='')}){pulled}"]
    return [line for scope in each.scopes for line in _scope(each, scope)]


def _scope(each: ClientStatus, scope: ScopeStatus) -> list[str]:
    parts = [f"{each.title}: {scope.state}", f"{scope.scope} scope"]
    if scope.trust is not None:
        parts.append(_TRUST[scope.trust])
    lines = [SEPARATOR.join(parts)]
    if scope.problem:
        lines.append(f"  {sanitize(scope.problem)}")
        lines.append(
            f"  Correct that file: {each.title} may ignore its hooks, and `gitmem hooks install` rejects it."
        )
    return [*lines, *(f"  {sanitize(path, keep='')}" for path in scope.files)]


_TRUST = {
    "trusted": "reviewed and trusted",
    "untrusted": "NOT trusted yet: Codex skips it until you review it with /hooks",
    "changed": "changed since it was reviewed: Codex skips it until you review it again with /hooks",
    "elsewhere": "in a linked worktree Codex reads the main worktree's file, which has no gitmem hooks",
    "unknown": "cannot read whether Codex trusts it",
}


def tried(found: HookTestResults) -> Sequence[str]:
    """Return the result of each hook's test in a line, with its times."""
    lines = []
    for each in found.trials:
        name = f"{each.title} ({each.scope})"
        if each.works:
            times = f"{each.empty_ms:.1f} ms with nothing new, {each.signal_ms:.0f} ms with one signal"
            lines.append(f"{name}: {paint('works', 'good')}{SEPARATOR}{times}")
        else:
            lines.append(f"{name}: {paint('FAILED', 'bad')}{SEPARATOR}{sanitize(each.problem)}")
    return lines


def block(found: AgentsMdBlock) -> list[str]:
    """Return the state of gitmem's block in AGENTS.md."""
    text = _BLOCK_STATES[found.state].format(path=found.path)
    return [sanitize(text), *(f"note: {sanitize(each)}" for each in found.remarks)]
