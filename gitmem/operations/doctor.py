"""Doctor: look at everything, change nothing, and say for each finding what to do."""

from __future__ import annotations

from ..errors import UsageError
from ..log import ref, remote
from . import checks_clone, checks_hooks, checks_ids, checks_index, checks_lines, checks_log, checks_memory
from .findings import SYNC, Finding, Findings
from .outcome import Outcome
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from .hooks.status import HookStatus
    from .store import Store

    class DriverStatus(Protocol):
        """What the merge driver's installer says."""

        @property
        def driver(self) -> str | None: ...
        @property
        def ours(self) -> bool: ...
        @property
        def attributes(self) -> bool: ...
        @property
        def program(self) -> str | None: ...
        @property
        def runnable(self) -> bool: ...


class Report(Outcome):
    """What doctor found.

    Attributes:
        findings: Problems first, then notes.
        healthy: Whether there are only notes.
        checked: How many commits, files, lines and refs were looked at.
    """

    __slots__ = ("findings", "healthy", "checked", "next")

    def __init__(self, findings: Findings) -> None:
        found = findings.listed()
        self.findings: list[Finding] = found
        self.healthy = not any(finding.severity == "problem" for finding in found)
        self.checked = findings.checked
        commands = [finding.command for finding in found if finding.command]
        self.next = list(dict.fromkeys(commands))[:3] or ["gitmem log"]

    @property
    def status(self) -> int:
        """Exit status: 1 where there is a problem. Notes alone are no reason to stop."""
        return 0 if self.healthy else 1


def examine(store: Store, driver: DriverStatus | None = None, hooks: HookStatus | None = None) -> Report:
    """Check objects, every line, ids, history, spool, locks, refs, config, index, clock, merge driver and hooks.

    Args:
        driver: What the merge driver's installer says; None leaves that out.
        hooks: What is installed for clients; None leaves that out.
    """
    found = Findings(_sync(store))
    tip = store.git.tip(ref.LOG_REF)
    if tip is None:
        found.note(
            "no-log",
            "This clone has no log yet.",
            ref.LOG_REF,
            "The first record starts it; `gitmem init` brings the remote's.",
            "gitmem init",
        )
    elif checks_log.check_tip(store, tip, found):
        files = checks_log.read_files(store, tip, found)
        lines = checks_lines.check(store, files, found)
        checks_ids.check(lines, found)
        checks_memory.check(lines, found)
        checks_log.check_history(store, tip, {each.line for each in lines}, found)
        checks_index.check_index(store, found)
    checks_clone.check_refs(store, tip, found)
    checks_clone.check_spools(store, found)
    checks_clone.check_files(store, found)
    checks_clone.check_config(store, found)
    if driver is not None:
        checks_clone.check_driver(driver, found)
    if hooks is not None:
        checks_hooks.check(hooks, found)
    return Report(found)


def _sync(store: Store) -> str:
    """The command that syncs this repository, or "" where it has no remote."""
    try:
        remote.usual(store.place)
    except UsageError:
        known = remote.configured(store.place)
        return command("gitmem", "sync", known[0]) if known else ""
    return SYNC
