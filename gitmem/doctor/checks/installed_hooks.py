"""Check the installed hooks of clients and the merge driver: they must be complete, and find a gitmem to run."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...clients.hooks.client_scope import OUTDATED
from ...clients.hooks.git_hook import HALF, KEPT, NOT_RUN, POST_COMMIT, PRE_COMMIT, PRE_PUSH
from ...clients.hooks.status import HookStatus, ScopeStatus
from ...log import ref
from ...outcome import command
from ...sync.consent_messages import init_command
from ..findings import Check, Finding, Fixed, note, problem

_UNREVIEWED = {
    "untrusted": "Codex silently skips the hooks: they have not been reviewed.",
    "changed": "Codex silently skips the hooks: they have changed since they were reviewed.",
    "elsewhere": "Codex runs no hooks here: in a linked worktree it reads only the main worktree's file.",
}


class Hooks(Check):
    """Hooks that are broken, incomplete or outdated, and the last error of a hook."""

    codes = (
        "hooks-broken",
        "hooks-incomplete",
        "hooks-old",
        "hooks-untrusted",
        "hooks-program",
        "hooks-error",
        "hooks-replaced",
        "hooks-not-run",
    )
    fixes = ("hooks-incomplete", "hooks-old", "hooks-program")

    def check(self) -> Iterator[Finding]:
        if self.run.installed is None:
            return
        hooks = self.run.installed.hooks()
        for client, scope in hooks.installed:
            again = command("gitmem", "hooks", "install", "--client", client.client, "--scope", scope.scope)
            yield from _check_scope(client.title, scope, again)
        if hooks.installed and not hooks.program_works:
            yield problem(
                "hooks-program",
                "The hooks cannot find gitmem: they do not deliver signals.",
                hooks.program or "gitmem",
                "--fix installs them again, from the gitmem that you use now.",
            )
        for name in _in_state(hooks, HALF, NOT_RUN):
            yield note(
                "hooks-not-run",
                f"Git does not run gitmem's {name} hook in this clone or worktree: the file that calls it, or the hook, is missing here.",
                name,
                "Install it again. Hooks of husky are there after its own installation in each worktree, such as by `npm install`.",
                command("gitmem", "hooks", "install", "--git", name),
            )
        for name in _in_state(hooks, OUTDATED):
            yield note(
                "hooks-old",
                f"The {name} hook is from another version of gitmem.",
                name,
                "--fix installs it again.",
            )
        for name in hooks.replaced:
            by = f", perhaps {hooks.manager}" if hooks.manager is not None else ""
            yield note(
                "hooks-replaced",
                f"Another tool{by} has replaced gitmem's {name} hook: it does not run.",
                name,
                "Install it again: where the tool is known, gitmem's hook is put into its settings. "
                f"Of another tool's hook and {name}{KEPT}, remove one before.",
                command("gitmem", "hooks", "install", "--git", name),
            )
        if hooks.last_error is not None:
            yield note(
                "hooks-error",
                f"A hook failed: {hooks.last_error}",
                "hook-error",
                "Hooks do not report errors to the agent. `gitmem hooks test` shows whether they work now.",
                "gitmem hooks test",
            )

    def fix(self) -> Iterator[Fixed]:
        """Repair gitmem's entries in clients' settings; add none that the user has not installed."""
        if self.run.installed is None:
            return
        status = self.run.installed.hooks()
        every = not status.program_works
        for client, scope in status.installed:
            if every or scope.state in ("incomplete", "outdated"):
                changed = self.run.installed.install_hooks(client.client, scope.scope)
                where = scope.files[-1] if scope.files else client.title
                for code in self.fixes:
                    yield code, where, f"Installed again: {', '.join(changed)}."
        yield "hooks-program", "", "The hooks were installed again, with the program that runs now."
        for name in _in_state(status, OUTDATED):
            self.run.installed.install_git_hook(name)
            yield "hooks-old", name, "Installed again."


def _in_state(hooks: HookStatus, *states: str) -> list[str]:
    """Return git's hooks that are in one of some states, see `HookStatus`."""
    found = ((PRE_PUSH, hooks.pre_push), (PRE_COMMIT, hooks.pre_commit), (POST_COMMIT, hooks.post_commit))
    return [name for name, state in found if state in states and name not in hooks.replaced]


def _check_scope(title: str, scope: ScopeStatus, again: str) -> Iterator[Finding]:
    where = scope.files[-1] if scope.files else title
    if scope.state == "broken":
        yield problem(
            "hooks-broken",
            f"Cannot read the hooks of {title}. {scope.problem}",
            where,
            "Correct the file.",
            again,
        )
    elif scope.state == "incomplete":
        yield problem(
            "hooks-incomplete",
            f"The hooks of {title} are incomplete: the script or the settings are missing or partial.",
            where,
            "--fix installs them again.",
        )
    elif scope.state == "outdated":
        yield note(
            "hooks-old",
            f"The hooks of {title} are from another version of gitmem.",
            where,
            "--fix installs them again.",
        )
    if scope.trust in _UNREVIEWED:
        yield note(
            "hooks-untrusted",
            _UNREVIEWED[scope.trust],
            where,
            "Start codex there, type /hooks and review them.",
        )


class MergeDriver(Check):
    """Problems of the merge driver, which is only for merging by hand."""

    codes = ("driver-missing", "driver-other", "driver-program", "driver-unused")
    fixes = ("driver-missing", "driver-program", "driver-unused")

    def check(self) -> Iterator[Finding]:
        if self.run.installed is None:
            return
        driver, init = self.run.installed.driver(), init_command(self.store)
        if driver.driver is None and driver.attributes:
            yield problem(
                "driver-missing",
                "The attributes name the merge driver, but git's config does not define it: a manual merge leaves conflict markers.",
                "merge.gitmem.driver",
                "--fix installs it again.",
            )
        elif driver.driver is None:
            # Syncs unite the log without it. Only a branch of the user's with the log can be merged by hand.
            if self.store.repo.worktree is None or self.store.git.tip(ref.BRANCH) is None:
                return
            yield note(
                "driver-missing",
                "Merging the local branch gitmem by hand may leave duplicates: the merge driver is not installed. Sync does not need it.",
                "merge.gitmem.driver",
                f"`{init}` installs it.",
                init,
                fixable=False,
            )
        elif not driver.ours:
            yield note(
                "driver-other",
                f"The merge driver is not the one that gitmem installs: {driver.driver}",
                "merge.gitmem.driver",
                "Keep it if it is yours; otherwise remove it with `git config --unset`, then run `gitmem init`.",
            )
        elif not driver.runnable:
            yield problem(
                "driver-program",
                f"The merge driver's program {driver.program} is missing or cannot be run: git's own union is used.",
                "merge.gitmem.driver",
                "--fix installs it again, from the gitmem that you use now.",
            )
        elif not driver.attributes:
            yield note(
                "driver-unused",
                "The merge driver is installed, but the attributes do not use it for the log's files.",
                os.path.join("info", "attributes"),
                "--fix restores the attribute.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Install it again."""
        if self.run.installed is not None:
            changed = self.run.installed.install_driver()
            for code in self.fixes:
                yield code, "", f"Installed again; changed {' and '.join(changed) or 'nothing'}."
