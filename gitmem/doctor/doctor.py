"""Run all checks of doctor and report findings with remedies; with `fix`, apply those that lose nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .. import records
from ..clients.client_scope import OUTDATED
from ..clients.git_hook import HALF, NOT_RUN, POST_COMMIT, PRE_COMMIT, PRE_PUSH
from ..clients.install import SKIPPED, TRUST, HookStatus, ScopeStatus
from ..errors import GitmemError, StoreError
from ..index import index_file
from ..log import ref
from ..outcome import Outcome, Struct, command
from ..store import Store
from . import clone_files, log_lines, log_ref, wal_lines
from .findings import (
    FIXED,
    LEFT,
    NEEDS_YOU,
    Check,
    Examination,
    Finding,
    Fixed,
    Installed,
    Where,
    note,
    problem,
)


class Hooks(Check):
    """Hooks that are broken, incomplete or outdated, the last error of a hook, and instructions of models."""

    codes = (
        "hooks-broken",
        "hooks-incomplete",
        "hooks-old",
        "hooks-untrusted",
        "hooks-program",
        "hooks-error",
        "hooks-replaced",
        "hooks-not-run",
        "instructions-old",
    )
    fixes = ("hooks-incomplete", "hooks-old", "hooks-program")

    def check(self) -> Iterator[Finding]:
        if self.run.installed is None:
            return
        hooks = self.run.hooks = self.run.installed.hooks()
        for client, scope in hooks.installed:
            again = command("gitmem", "setup", "--client", client.client, "--scope", scope.scope)
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
                command("gitmem", "setup", "--git", name),
            )
        for name in _in_state(hooks, OUTDATED):
            yield note(
                "hooks-old",
                f"The {name} hook is from another version of gitmem.",
                name,
                "--fix installs it again.",
            )
        for name in hooks.replaced:
            by = f", perhaps of {hooks.manager}," if hooks.manager is not None else ""
            yield note(
                "hooks-replaced",
                f"Another hook{by} has the place of gitmem's {name} hook, which does not run.",
                name,
                "Install it again: that adds the line which calls gitmem's hook, or says what to add to it.",
                command("gitmem", "setup", "--git", name),
            )
        if hooks.last_error is not None:
            yield note(
                "hooks-error",
                f"A hook failed: {hooks.last_error}",
                "hook-error",
                "Hooks do not report errors to the agent. `gitmem setup` tries whether they work now.",
                "gitmem setup",
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


INSTRUCTIONS = {"missing": "are missing", "outdated": "are of another version"}  # states that setup ends


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
    if scope.trust in SKIPPED:
        yield note(
            "hooks-untrusted",
            f"{TRUST[scope.trust]}.",
            where,
            "Start codex there, type /hooks and review them.",
        )
    text = scope.instructions
    if text is not None and text.state != "current":
        says = INSTRUCTIONS.get(text.state, "cannot be read")
        yield note(
            "instructions-old",
            f"The instructions for {title} {says}. {text.problem}".rstrip(),
            text.path,
            "Without them its model learns of gitmem only by hooks.",
            again if text.state in INSTRUCTIONS else "",
        )


class MergeDriver(Check):
    """Problems of the merge driver, which is only for merging by hand."""

    codes = ("driver-missing", "driver-other", "driver-program", "driver-unused")
    fixes = ("driver-missing", "driver-program", "driver-unused")

    def check(self) -> Iterator[Finding]:
        if self.run.installed is None:
            return
        driver = self.run.installed.driver()
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
                "`gitmem setup` installs it.",
                "gitmem setup",
                fixable=False,
            )
        elif not driver.ours:
            yield note(
                "driver-other",
                f"The merge driver is not the one that gitmem installs: {driver.driver}",
                "merge.gitmem.driver",
                "Keep it if it is yours; otherwise remove it with `git config --unset`, then run `gitmem setup`.",
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


class LogContent(Check):
    """The checks that read the log: each uses what those before it have read."""

    codes = ("no-log",)
    OF_LINES: tuple[type[Check], ...] = (
        log_lines.LogLines,
        log_ref.LogHistory,
        wal_lines.LostLines,
        clone_files.IndexContent,
    )

    def check(self) -> Iterator[Finding]:
        """Yield the findings, as far as the log can be read."""
        try:
            self.run.tip = self.store.git.tip(ref.LOG_REF)
        except StoreError:  # reported by the check of the ref files
            return
        if self.run.tip is None:
            yield note(
                "no-log",
                "This clone has no log yet.",
                ref.LOG_REF,
                "The first record creates it; `gitmem setup` fetches the remote's.",
                "gitmem setup",
            )
            yield from wal_lines.LostLines(self.run).check()
            return
        tip = log_ref.LogTip(self.run)
        yield from tip.check()
        if not tip.is_readable:
            return
        self.run.rebuilt = index_file.in_memory(self.store.views, records.read, spills=True)
        try:
            for each in self.OF_LINES:
                yield from each(self.run).check()
        finally:
            self.run.rebuilt.close()


# In this order; findings of one severity are listed in the order of their checks.
CHECKS: tuple[type[Check], ...] = (
    log_ref.RefFiles,
    LogContent,
    log_ref.OtherRefs,
    log_ref.EarlierEpochs,
    log_ref.RemoteCopies,
    wal_lines.ReadOnlyFolder,
    wal_lines.FullDisk,
    wal_lines.WaitingEntries,
    wal_lines.WalFiles,
    log_ref.StaleLocks,
    clone_files.Leftovers,
    clone_files.PrivateNodes,
    clone_files.Repository,
    clone_files.CloneKey,
    clone_files.WriterKey,
    wal_lines.LostKeys,
    clone_files.HeldLines,
    clone_files.OtherKeys,
    clone_files.GatewayFiles,
    log_ref.Roles,
    clone_files.Settings,
    log_ref.Autosync,
    Hooks,
    MergeDriver,  # the last: only people who merge by hand need it
)
DAMAGED_OBJECT = "damaged-object"  # stands for any unreadable object, of the tip or older
# In this order, with the codes that need a fix besides those that it repairs. Others read and move refs, so refs come
# first; files are moved aside after the log has their lines.
FIXES: dict[type[Check], tuple[str, ...]] = {
    log_ref.StaleLocks: (),
    log_ref.RefFiles: (),
    wal_lines.WaitingEntries: (),
    log_ref.Objects: (DAMAGED_OBJECT, "not-a-log", "broken-history", "damaged-copy"),
    log_ref.LogTip: ("damaged-ref",),
    log_ref.RemoteCopies: (),
    wal_lines.WalFiles: ("wal-waits",),
    clone_files.PrivateNodes: (),
    clone_files.Leftovers: (),
    clone_files.CloneKey: (),
    wal_lines.LostKeys: (),  # before a new key is made: whose lines wait was said before
    clone_files.WriterKey: (),
    clone_files.IndexContent: (),
    MergeDriver: (),
    Hooks: (),
}
FIXED_CODES = frozenset(code for kind in FIXES for code in kind.fixes)


class Report(Outcome):
    """The result of doctor.

    Attributes:
        findings: Problems first, then notes, then repaired findings.
        healthy: Whether no problem remains.
        checked: The numbers of checked commits, files, lines and refs.
        fixed: The number of repaired findings.
        writer: The id of the key that writes here; None if none was needed yet.
        hooks: The state of the hooks and instructions of each client, and of git's hooks; None if they were not asked for.
    """

    def __init__(self, run: Examination, fixed: list[Finding] | None = None) -> None:
        found = run.listed()
        self.findings: list[Finding] = [*found, *(fixed or ())]
        self.healthy = not any(finding.severity == "problem" for finding in found)
        self.checked = run.checked
        self.fixed = len(fixed or ())
        self.writer = run.store.writers.describe()[0] or None
        self.hooks = run.hooks
        commands = [finding.command for finding in found if finding.command]
        self.next = list(dict.fromkeys(commands))[:3]

    @property
    def status(self) -> int:
        """The exit status: 1 if there is a problem; notes alone give 0."""
        return 0 if self.healthy else 1


def examine(store: Store, installed: Installed | None = None) -> Report:
    """Check objects, lines, ids, history, write-ahead logs, locks, refs, config, index, clock, merge driver and hooks.

    Args:
        installed: The merge driver and the hooks; None skips them.
    """
    return Report(_run_checks(store, installed))


def fix(store: Store, installed: Installed | None = None) -> Report:
    """Examine, apply all fixes that lose nothing, and examine again. It is safe to repeat, and to kill.

    It changes only the log, gitmem's refs and gitmem's own files, and does not use the network.

    Args:
        installed: The merge driver and the hooks; None skips them.
    """
    before = _run_checks(store, installed)
    codes = {finding.code for finding in before.listed() if finding.fixable}
    if before.damaged:
        codes.add(DAMAGED_OBJECT)
    done = _Fixes()
    if codes:
        store.log.committer = store.log.committer or store.committer()
    for kind, others in FIXES.items():
        if codes.intersection((*kind.fixes, *others)):
            done.apply(kind(before))
    after = _run_checks(store, installed, step="checking lines again") if codes else before
    for finding in after.listed():
        finding.state = NEEDS_YOU if finding.severity == "problem" else LEFT
        if finding.fixable:
            finding.did = done.failed.get(finding.code, "")
    if not codes:
        return Report(after)
    still = {(finding.code, finding.where) for finding in after.listed()}
    fixed = []
    for finding in before.listed():
        # An older object may be in a pack as well.
        fixable = finding.fixable or finding.code == "missing-object"
        if fixable and (finding.code, finding.where) not in still:
            finding.state, finding.command = FIXED, ""
            finding.did = done.about(finding)
            fixed.append(finding)
    return Report(after, fixed)


class _Fixes(Struct):
    """The fixes by code and location of the finding, and the failures by code."""

    _did: dict[tuple[str, Where], str] = {}
    failed: dict[str, str] = {}

    def apply(self, check: Check) -> None:
        """Apply a fix; its failure does not stop the others."""
        try:
            for code, where, what in check.fix():
                self._did[code, where] = what
        except (GitmemError, OSError, KeyError) as error:
            why = error.message if isinstance(error, GitmemError) else str(error)
            self.failed.update(dict.fromkeys(check.fixes, why))

    def about(self, finding: Finding) -> str:
        """Return what was fixed for a finding, or ""."""
        return self._did.get((finding.code, finding.where)) or self._did.get((finding.code, "")) or ""


def _run_checks(store: Store, installed: Installed | None, *, step: str = "checking lines") -> Examination:
    """Run each check; report its failure as a finding. Progress has the name of the step."""
    run = Examination(store, installed, FIXED_CODES)
    run.step = step
    failures = {}  # a damaged ref stops several checks, and is said once
    for kind in CHECKS:
        try:
            for finding in kind(run).check():
                run.add(finding)
        except StoreError as error:
            failures[error.message] = error.hint
        except (OSError, KeyError) as error:
            what = f"cannot read object {error.args[0]}" if isinstance(error, KeyError) else str(error)
            failures[f"{what}."] = "Fix the other problems first."
    for what, hint in failures.items():
        run.add(problem("not-checked", f"Some checks could not run: {what}", "", hint))
    if not clone_files.is_writable(store):
        run.for_reading_only()
    return run
