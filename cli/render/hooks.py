"""Hooks of clients and the block in AGENTS.md as text."""

from __future__ import annotations

from .output import sanitize
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
    "unchanged": "was installed already; nothing was changed",
    "advised": "takes no hooks",
    "failed": "NOT installed",
    "absent": "had nothing of ours",
}
_BLOCK_STATES = {
    "created": "{path} is new, with the lines of gitmem",
    "added": "{path} has the lines of gitmem at its end now",
    "updated": "{path} has the lines of this version now",
    "unchanged": "{path} has the lines of this version already",
    "removed": "{path} is as it was without the lines of gitmem",
    "deleted": "{path} had nothing but the lines of gitmem, which made it: it is gone",
    "missing": "{path} has no lines of gitmem",
    "current": "{path} has the lines of this version",
    "outdated": "{path} has lines of gitmem that are not those of this version",
}


def hooked(found: InstallResult) -> list[str]:
    """Return what an installation changed for each client and in git's pre-push hook."""
    lines = [line for each in found.clients for line in _client(each)]
    return [*lines, *_git(found), *(sanitize(each) for each in found.remarks)]


def unhooked(found: InstallResult) -> list[str]:
    """Return what an uninstallation removed for each client and from git's pre-push hook."""
    lines = [*(line for each in found.clients for line in _client(each)), *_git(found)]
    return [
        *(lines or ["Nothing of ours is installed in this scope"]),
        *(sanitize(each) for each in found.remarks),
    ]


def _git(found: InstallResult) -> list[str]:
    return gated(found.git) if found.git is not None else []


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


def gated(found: GitHookResult) -> list[str]:
    """Return the state of the gate in git's pre-push hook."""
    said = {
        "installed": "A push asks the gate first",
        "updated": "A push asks the gate first; the hook is up to date again",
        "unchanged": "A push asks the gate first, as before",
        "removed": "A push no longer asks the gate",
        "absent": "The gate was not in front of a push; nothing was changed",
    }[found.state]
    lines = [f"{said}: {sanitize(found.path, keep='')}"]
    if found.kept is not None:
        lines.append(f"the hook that was there before runs after it: {sanitize(found.kept, keep='')}")
    return [*lines, *(sanitize(each) for each in found.remarks)]


def status(found: HookStatus) -> list[str]:
    """Return the installed hooks of each client, their program, and their last run and error."""
    lines = [line for each in found.clients for line in _status(each)]
    if not lines:
        lines = ["No client was found here, and nothing is installed"]
    if found.installed:
        lines.append(_program(found))
    if found.pre_push != "not installed":
        lines.append(
            f"git pre-push: {found.pre_push if found.pre_push != 'foreign' else 'somebody else’s, without the gate'}"
        )
    if found.last_run is not None:
        lines.append(f"a hook ran last: {format_ago(found.last_run)}")
    if found.last_error is not None:
        lines.append(f"last trouble in a hook: {sanitize(found.last_error)}")
    return lines


def _program(found: HookStatus) -> str:
    if found.program is None:
        return "the hooks run: gitmem from the PATH" + (
            "" if found.program_works else ", where there is none"
        )
    return f"the hooks run: {sanitize(found.program, keep='')}" + (
        "" if found.program_works else ", which is not there"
    )


def _status(each: ClientStatus) -> list[str]:
    if not each.scopes:
        pulled = "" if each.pushed else "; it takes no hooks: run `gitmem watch`"
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
            f"  Correct that file first: {each.title} may read no hooks from it, and `gitmem hooks install` refuses it."
        )
    return [*lines, *(f"  {sanitize(path, keep='')}" for path in scope.files)]


_TRUST = {
    "trusted": "reviewed and trusted",
    "untrusted": "NOT yet trusted: Codex skips it until you have reviewed it with /hooks",
    "changed": "changed since it was reviewed: Codex skips it until you review it again with /hooks",
    "elsewhere": "in a linked worktree Codex reads the main worktree's file, which has none of ours",
    "unknown": "whether Codex trusts it can't be read",
}


def tried(found: HookTestResults) -> Sequence[str]:
    """Return the result of each hook's test in a line, with its times."""
    lines = []
    for each in found.trials:
        name = f"{each.title} ({each.scope})"
        if each.works:
            times = f"{each.empty_ms:.1f} ms with nothing new, {each.signal_ms:.0f} ms with one signal"
            lines.append(f"{name}: works{SEPARATOR}{times}")
        else:
            lines.append(f"{name}: FAILED{SEPARATOR}{sanitize(each.said)}")
    return lines


def block(found: AgentsMdBlock) -> list[str]:
    """Return the state of gitmem's block in AGENTS.md."""
    said = _BLOCK_STATES[found.state].format(path=found.path)
    return [sanitize(said), *(f"note: {sanitize(each)}" for each in found.remarks)]
