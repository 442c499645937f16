"""Run all checks of doctor and report findings with remedies; with `fix`, apply those that lose nothing."""

from __future__ import annotations

from .. import records
from ..errors import StoreError, UsageError
from ..index import fill
from ..log import ref
from ..log.dropped_lines import LogReadResult
from ..outcome import Outcome
from ..sync import consent_messages, remote
from ..text.shell_quote import command
from .checks import (
    autosync_state,
    clone_files,
    clone_key_file,
    index_content,
    installed_hooks,
    log_commits,
    log_lines,
    log_ref_files,
    packs,
    senders,
    wal_content,
)
from .findings import FIXED, LEFT, NEEDS_YOU, SYNC, Finding, Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..clients.hooks.status import HookStatus
    from ..store import Store
    from .fixes.fix_result import FixResult
    from .installed import DriverStatus, Installed


class Report(Outcome):
    """The result of doctor.

    Attributes:
        findings: Problems first, then notes, then repaired findings.
        healthy: Whether no problem remains.
        checked: The numbers of checked commits, files, lines and refs.
        mended: The number of repaired findings.
    """

    __slots__ = ("findings", "healthy", "checked", "mended", "next")

    def __init__(self, findings: Findings, mended: list[Finding] | None = None) -> None:
        found = findings.listed()
        self.findings: list[Finding] = [*found, *(mended or ())]
        self.healthy = not any(finding.severity == "problem" for finding in found)
        self.checked = findings.checked
        self.mended = len(mended or ())
        commands = [finding.command for finding in found if finding.command]
        self.next = list(dict.fromkeys(commands))[:3] or ["gitmem log"]

    @property
    def status(self) -> int:
        """The exit status: 1 if there is a problem; notes alone give 0."""
        return 0 if self.healthy else 1


def examine(store: Store, driver: DriverStatus | None = None, hooks: HookStatus | None = None) -> Report:
    """Check objects, lines, ids, history, write-ahead logs, locks, refs, config, index, clock, merge driver and hooks.

    Args:
        driver: The status of the merge driver; None skips its check.
        hooks: The status of the hooks of clients; None skips their check.
    """
    return Report(_run_checks(store, driver, hooks))


def fix(store: Store, installed: Installed | None = None) -> Report:
    """Examine, apply all fixes that lose nothing, and examine again. It is safe to repeat, and to kill.

    It changes only the log, gitmem's refs and gitmem's own files, and does not use the network.

    Args:
        installed: The merge driver and the hooks; None skips them.
    """
    from .fixes import fix_order

    def look() -> Findings:
        if installed is None:
            return _run_checks(store, None, None)
        return _run_checks(store, installed.driver(), installed.hooks())

    before = look()
    if not before.damaged and not any(finding.mends for finding in before.listed()):
        return Report(_set_states(before, None))
    done = fix_order.fix(store, before, installed)
    after = _set_states(look(), done)
    still = {(finding.code, finding.where) for finding in after.listed()}
    mended = []
    for finding in before.listed():
        mends = finding.mends or finding.code == "missing-object"  # an older object may be in a pack as well
        if mends and (finding.code, finding.where) not in still:
            finding.state, finding.command = FIXED, ""
            finding.did = done.about(finding.code, finding.where)
            mended.append(finding)
    return Report(after, mended)


def _set_states(found: Findings, done: FixResult | None) -> Findings:
    """Set `state` and `did` of the remaining findings."""
    for finding in found.listed():
        finding.state = NEEDS_YOU if finding.severity == "problem" else LEFT
        if finding.mends and done is not None:
            finding.did = done.why_not(finding.code)
    return found


def _run_checks(store: Store, driver: DriverStatus | None, hooks: HookStatus | None) -> Findings:
    found = Findings(*_network(store))

    def check(look: Callable[[], None]) -> None:
        """Run one check; report its failure as a finding."""
        try:
            look()
        except StoreError as error:
            found.problem(
                "not-checked", f"Not everything could be looked at: {error.message}", "", error.hint
            )
        except (OSError, KeyError) as error:
            what = f"the object {error.args[0]} can't be read" if isinstance(error, KeyError) else str(error)
            hint = "Mend what else is said here first."
            found.problem("not-checked", f"Not everything could be looked at: {what}.", "", hint)

    survey = LogReadResult()
    check(lambda: log_ref_files.check_names(store, found))
    tip, readable = log_ref_files.tip_of(store)
    if readable:
        check(lambda: _check_log(store, tip, survey, found))
    check(lambda: clone_files.check_refs(store, tip, found))
    check(lambda: log_ref_files.check_copies(store, survey, found))
    check(lambda: log_ref_files.check_outboxes(store, found))
    check(lambda: wal_content.check_wals(store, found))
    check(lambda: clone_files.check_files(store, found))
    check(lambda: clone_files.check_config(store, found))
    check(lambda: clone_key_file.check(store, found))
    check(lambda: clone_key_file.check_sessions(store, found))
    check(lambda: senders.check(store, found))
    check(lambda: packs.check(store, found))
    check(lambda: autosync_state.check(store, found))
    if hooks is not None:
        installed_hooks.check(hooks, found)
    if driver is not None:  # the last: only people who merge by hand need it
        clone_files.check_driver(driver, found, consent_messages.init_command(store))
    if not clone_files.is_writable(store):
        found.for_reading_only()
    return found


def _check_log(store: Store, tip: str | None, survey: LogReadResult, found: Findings) -> None:
    if tip is None:
        found.note(
            "no-log",
            "This clone has no log yet.",
            ref.LOG_REF,
            f"The first record starts it; `{consent_messages.init_command(store)}` brings the remote's.",
            consent_messages.init_command(store),
        )
        log_ref_files.check_missing_lines(store, None, survey, found)
    elif log_commits.check_tip(store, tip, found):
        anew = fill.open_temporary(store.views, records.read_groups)
        try:
            failure = log_lines.check(store, tip, anew, survey, found)
            store.git.close()  # a git process that has read every file holds 96 MB
            log_commits.check_history(store, tip, survey, found)
            log_ref_files.check_missing_lines(store, tip, survey, found)
            index_content.check_index(store, found, anew, failure)
        finally:
            anew.close()
        index_content.check_queue(store, found)


def _network(store: Store) -> tuple[str, str]:
    """Return the commands that sync this repository and that fetch its log's objects again; "" without a remote."""
    known = remote.configured(store.place)
    try:
        usual = remote.default_remote(store.place)
        sync = SYNC
    except UsageError:
        usual = known[0] if known else ""
        sync = command("gitmem", "sync", usual) if usual else ""
    if not usual:
        return "", ""
    return sync, command("git", "fetch", "--refetch", "--no-write-fetch-head", usual, ref.BRANCH)
