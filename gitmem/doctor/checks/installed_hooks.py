"""Check the installed hooks of clients: they must be complete, and find a gitmem to run."""

from __future__ import annotations

from ...text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...clients.hooks.status import HookStatus, ScopeStatus
    from ..findings import Findings

_UNREVIEWED = {
    "untrusted": "Codex skips the hooks without a word: nobody has reviewed them.",
    "changed": "Codex skips the hooks without a word: they have changed since they were reviewed.",
    "elsewhere": "Codex runs no hook here: in a linked worktree it reads the main worktree's file alone.",
}


def check(hooks: HookStatus, found: Findings) -> None:
    """Report hooks that are broken, incomplete or outdated, and the last error of a hook."""
    for client, scope in hooks.installed:
        again = command("gitmem", "hooks", "install", "--client", client.client, "--scope", scope.scope)
        _check_scope(client.title, scope, again, found)
    if hooks.installed and not hooks.program_works:
        found.problem(
            "hooks-program",
            "The hooks find no gitmem to run: signals reach no agent by themselves.",
            hooks.program or "gitmem",
            "They are installed again, from the gitmem that you use now.",
            mends=True,
        )
    if hooks.pre_push == "outdated":
        found.note(
            "hooks-old",
            "The hook in front of a push is that of another gitmem.",
            "pre-push",
            "It is installed again.",
            mends=True,
        )
    if hooks.last_error is not None:
        found.note(
            "hooks-error",
            f"A hook met trouble: {hooks.last_error}",
            "hook-error",
            "A hook says nothing to its agent, so it stands here. `gitmem hooks test` shows whether they work now.",
            "gitmem hooks test",
        )


def _check_scope(title: str, scope: ScopeStatus, again: str, found: Findings) -> None:
    where = scope.files[-1] if scope.files else title
    if scope.state == "broken":
        found.problem(
            "hooks-broken",
            f"The hooks of {title} can't be read. {scope.problem}",
            where,
            "Correct that file.",
            again,
        )
    elif scope.state == "incomplete":
        found.problem(
            "hooks-incomplete",
            f"The hooks of {title} are there in part only: its script or its settings lack something.",
            where,
            "They are installed again.",
            mends=True,
        )
    elif scope.state == "outdated":
        found.note(
            "hooks-old",
            f"The hooks of {title} are those of another gitmem.",
            where,
            "They are installed again.",
            mends=True,
        )
    if scope.trust in _UNREVIEWED:
        found.note(
            "hooks-untrusted",
            _UNREVIEWED[scope.trust],
            where,
            "Start codex there, type /hooks and review them.",
        )
