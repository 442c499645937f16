"""Run the fixes in the order of their dependencies."""

from __future__ import annotations

from ..checks import clone_key_file
from . import fix_files, fix_index, fix_log, fix_packs, fix_refs
from .fix_result import FixResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from ..findings import Finding, Findings
    from ..installed import Installed

DRIVER = ("driver-missing", "driver-program", "driver-unused")
HOOKS = ("hooks-incomplete", "hooks-old", "hooks-program")


def fix(store: Store, found: Findings, installed: Installed | None) -> FixResult:  # noqa: C901  (one step for each group of findings)
    """Apply the fixes for the findings; a failed step does not stop the others."""
    done = FixResult()
    wanted = [finding for finding in found.listed() if finding.mends]
    codes = {finding.code for finding in wanted}
    store.log.committer = store.log.committer or store.committer()
    if codes & {*fix_refs.CODES}:
        done.attempt(lambda: fix_refs.fix(store, done), *fix_refs.CODES)
    if "wal-waits" in codes:
        done.attempt(lambda: fix_files.commit_waiting(store, done), "wal-waits")
    if found.damaged or codes & {"not-a-log", "broken-history", "damaged-copy"}:
        done.attempt(lambda: fix_refs.put_away_damaged(store, done), "missing-object")
    if codes & {*fix_log.CODES, "damaged-ref"}:
        done.attempt(lambda: fix_log.fix(store, done), *fix_log.CODES)
    if "damaged-copy" in codes:
        done.attempt(lambda: fix_refs.forget_damaged(store, done), "damaged-copy")
    if codes & {*fix_files.CODES}:
        done.attempt(lambda: fix_files.fix(store, done), *fix_files.CODES)
    if codes & {*clone_key_file.CODES}:
        done.attempt(lambda: clone_key_file.fix(store, done), *clone_key_file.CODES)
    if "index" in codes:
        done.attempt(lambda: fix_index.rebuild(store, done), "index")
    if "queue" in codes:
        done.attempt(lambda: fix_index.fill(store, done), "queue")
    if fix_packs.CODE in codes:
        done.attempt(lambda: fix_packs.fix(store, done), fix_packs.CODE)
    if installed is not None:
        _install(wanted, installed, done)
    return done


def _install(wanted: list[Finding], installed: Installed, done: FixResult) -> None:
    """Repair gitmem's entries in git's config and in clients' settings; add none that the user has not installed."""
    codes = {finding.code for finding in wanted}
    if codes.intersection(DRIVER):

        def driver() -> None:
            changed = installed.install_driver()
            for code in DRIVER:
                done.say(code, "", f"Installed again; changed {' and '.join(changed) or 'nothing'}.")

        done.attempt(driver, *DRIVER)
    if codes.intersection(HOOKS):
        done.attempt(lambda: _hooks(codes, installed, done), *HOOKS)


def _hooks(codes: set[str], installed: Installed, done: FixResult) -> None:
    status = installed.hooks()
    for client, scope in status.installed:
        if scope.state in ("incomplete", "outdated") or "hooks-program" in codes:
            changed = installed.install_hooks(client.client, scope.scope)
            for code in HOOKS:
                done.say(
                    code,
                    scope.files[-1] if scope.files else client.title,
                    f"Installed again: {', '.join(changed)}.",
                )
    done.say("hooks-program", "", "The hooks were installed again, with the program that runs now.")
    if status.pre_push == "outdated":
        installed.install_pre_push()
        done.say("hooks-old", "pre-push", "Installed again.")
