"""Run all checks of doctor and report findings with remedies; with `fix`, apply those that lose nothing."""

from __future__ import annotations

from collections.abc import Iterator

from .. import records
from ..errors import GitmemError, StoreError
from ..index import fill
from ..log import ref
from ..outcome import Outcome
from ..store import Store
from .checks import (
    clone_files,
    index_content,
    installed_hooks,
    log_commits,
    log_lines,
    log_ref_files,
    missing_lines,
    senders,
    sync_state,
    wal_content,
)
from .findings import FIXED, LEFT, NEEDS_YOU, Check, Examination, Finding, Installed, Where, problem


class LogContent(Check):
    """The checks that read the log: each uses what those before it have read."""

    OF_LINES: tuple[type[Check], ...] = (
        log_lines.LogLines,
        log_commits.LogHistory,
        missing_lines.LostLines,
        index_content.IndexContent,
        index_content.Queues,
    )

    def check(self) -> Iterator[Finding]:
        """Yield the findings, as far as the log can be read."""
        try:
            self.run.tip = self.store.git.tip(ref.LOG_REF)
        except StoreError:  # reported by the check of the ref files
            return
        if self.run.tip is None:
            yield from log_commits.NoLog(self.run).check()
            yield from missing_lines.LostLines(self.run).check()
            return
        tip = log_commits.LogTip(self.run)
        yield from tip.check()
        if not tip.is_readable:
            return
        self.run.rebuilt = fill.open_temporary(self.store.views, records.read)
        try:
            for each in self.OF_LINES:
                yield from each(self.run).check()
        finally:
            self.run.rebuilt.close()


# In this order; findings of one severity are listed in the order of their checks.
CHECKS: tuple[type[Check], ...] = (
    log_ref_files.RefFiles,
    LogContent,
    log_ref_files.OtherRefs,
    log_ref_files.RemoteCopies,
    sync_state.UnreadFetch,
    sync_state.LeftOutboxes,
    wal_content.ReadOnlyFolder,
    wal_content.FullDisk,
    wal_content.WaitingEntries,
    wal_content.WalFiles,
    log_ref_files.StaleLocks,
    clone_files.Leftovers,
    clone_files.NamePins,
    clone_files.PrivateNodes,
    clone_files.HiddenLog,
    clone_files.Clock,
    clone_files.Repository,
    senders.CloneKey,
    senders.ReplacedKey,
    senders.ForgedLines,
    senders.UnprovenSessions,
    clone_files.GatewayFiles,
    sync_state.RoleFiles,
    sync_state.UnknownRoles,
    clone_files.Packs,
    sync_state.Autosync,
    installed_hooks.Hooks,
    installed_hooks.MergeDriver,  # the last: only people who merge by hand need it
)
DAMAGED_OBJECT = "damaged-object"  # stands for any unreadable object, of the tip or older
# In this order, with the codes that need a fix besides those that it repairs. Others read and move refs, so refs come
# first; files are moved aside after the log has their lines.
FIXES: dict[type[Check], tuple[str, ...]] = {
    log_ref_files.StaleLocks: (),
    log_ref_files.RefFiles: (),
    wal_content.WaitingEntries: (),
    log_commits.Objects: (DAMAGED_OBJECT, "not-a-log", "broken-history", "damaged-copy"),
    log_commits.LogTip: ("damaged-ref",),
    log_ref_files.RemoteCopies: (),
    wal_content.WalFiles: ("wal-waits",),
    clone_files.HiddenLog: (),
    clone_files.NamePins: (),
    clone_files.PrivateNodes: (),
    clone_files.Leftovers: (),
    clone_files.Clock: (),
    senders.CloneKey: (),
    index_content.IndexContent: (),
    index_content.Queues: (),
    clone_files.Packs: (),
    installed_hooks.MergeDriver: (),
    installed_hooks.Hooks: (),
}
FIXED_CODES = frozenset(code for kind in FIXES for code in kind.fixes)


class Report(Outcome):
    """The result of doctor.

    Attributes:
        findings: Problems first, then notes, then repaired findings.
        healthy: Whether no problem remains.
        checked: The numbers of checked commits, files, lines and refs.
        fixed: The number of repaired findings.
    """

    def __init__(self, run: Examination, fixed: list[Finding] | None = None) -> None:
        found = run.listed()
        self.findings: list[Finding] = [*found, *(fixed or ())]
        self.healthy = not any(finding.severity == "problem" for finding in found)
        self.checked = run.checked
        self.fixed = len(fixed or ())
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
        fixable = (
            finding.fixable or finding.code == "missing-object"
        )  # an older object may be in a pack as well
        if fixable and (finding.code, finding.where) not in still:
            finding.state, finding.command = FIXED, ""
            finding.did = done.about(finding)
            fixed.append(finding)
    return Report(after, fixed)


class _Fixes:
    """The fixes by code and location of the finding, and the failures by code."""

    def __init__(self) -> None:
        self._did: dict[tuple[str, Where], str] = {}
        self.failed: dict[str, str] = {}

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
    for kind in CHECKS:
        try:
            for finding in kind(run).check():
                run.add(finding)
        except StoreError as error:
            run.add(problem("not-checked", f"Some checks could not run: {error.message}", "", error.hint))
        except (OSError, KeyError) as error:
            what = f"cannot read object {error.args[0]}" if isinstance(error, KeyError) else str(error)
            hint = "Fix the other problems first."
            run.add(problem("not-checked", f"Some checks could not run: {what}.", "", hint))
    if not clone_files.is_writable(store):
        run.for_reading_only()
    return run
