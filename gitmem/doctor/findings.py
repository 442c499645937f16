"""The findings of doctor, what the checks of one run share, and the interface of a check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from ..clients.install import HookStatus
from ..errors import UsageError
from ..git.config import upstream_remote
from ..index.index_file import Index, sqlite3
from ..log import ref
from ..log.recovery import LogReadResult
from ..outcome import Outcome, command
from ..store import FIX, Store
from ..sync import remote

Where = str | Callable[[], str]
Fixed = tuple[str, str, str]  # code and location of the finding ("": every location), and what was done

PER_CODE_MAX = 20
SYNC = "gitmem sync"
WRITING = (
    "gitmem setup",
    "gitmem sync",
    "gitmem session",
    "git update-ref",
    "git fetch",
    "rm ",
)
FOUND, FIXED, LEFT, NEEDS_YOU = "found", "fixed", "left", "needs-you"


class Finding(Outcome):
    """One problem or note.

    Attributes:
        code: Short machine name.
        severity: `problem` (something is lost, ambiguous or will fail) or `note` (for information).
        what: A sentence about the finding.
        where: A file, a ref, or `<commit or ref>:<path>:<line number>`; a function until the finding is kept.
        fix: A sentence about the remedy.
        command: The command of the remedy, or "".
        fixable: Whether `--fix` repairs it; None until the finding is kept: then, whether its code has a fix.
        state: `found`; after `--fix` `fixed`, `left` (a note, nothing is wrong) or `needs-you`.
        did: What `--fix` did, or why it failed; "" if neither.
    """

    code: str
    severity: str
    what: str
    where: Where
    fix: str
    command: str = ""
    fixable: bool | None = None
    state: str = FOUND
    did: str = ""


class DriverStatus(Protocol):
    """The status of the merge driver.

    Attributes:
        driver: The command that git would run, from any config; None if there is none.
        ours: Whether gitmem installed that command.
        attributes: Whether git would use the driver for the log's files.
        program: The program in gitmem's command; None if the command is not gitmem's.
        runnable: Whether that program exists and is executable.
    """

    driver: str | None
    ours: bool
    attributes: bool
    program: str | None
    runnable: bool


class Installed(Protocol):
    """The merge driver and the hooks, which only the command line can check and install."""

    def driver(self) -> DriverStatus:
        """Return the status of the merge driver."""
        ...

    def hooks(self) -> HookStatus:
        """Return the status of the hooks of all clients."""
        ...

    def install_driver(self) -> list[str]:
        """Install the merge driver, and return the changed files."""
        ...

    def install_hooks(self, client: str, scope: str) -> list[str]:
        """Install the hooks of a client in a scope (`project`, `user`), and return the changed files."""
        ...

    def install_git_hook(self, name: str) -> None:
        """Install one of git's hooks: `pre-push`, `pre-commit` or `post-commit`."""
        ...


def problem(
    code: str, what: str, where: Where, fix: str, command: str = "", *, fixable: bool | None = None
) -> Finding:
    """Return the finding that something is lost, ambiguous, or will fail."""
    return Finding(code, "problem", what, where, fix, command, fixable)


def note(
    code: str, what: str, where: Where, fix: str, command: str = "", *, fixable: bool | None = None
) -> Finding:
    """Return a finding for information: nothing is lost and everything works."""
    return Finding(code, "note", what, where, fix, command, fixable)


def by(own: bool) -> Callable[..., Finding]:
    """Return `problem` for what this user wrote, else `note`: anybody can push such a line, and nobody here can repair it."""
    return problem if own else note


class Examination:
    """One run of all checks: what they share, and what they find.

    It keeps the first findings of each code and counts the rest.

    Attributes:
        installed: The merge driver and the hooks of clients; None skips their checks.
        fixes: The codes that have a fix. The command of such a finding is `doctor --fix`.
        step: The name of the pass over the lines, for showing progress.
        tip: The tip of the log; None without a log, and while its ref can't be read.
        seen: The lines and commits of the log, for the checks after those that read them.
        rebuilt: An index that is filled from the lines of the log.
        failure: Why `rebuilt` could not be filled, or None.
        damaged: The ids of unreadable objects.
        disk_error: Why the disk takes no more data, or "".
        refetch: The command that fetches all objects of the log again, or "" without a remote.
        checked: The numbers of checked commits, files, lines and refs.
        hooks: The hooks of clients and of git, once they have been read.
    """

    rebuilt: Index

    def __init__(self, store: Store, installed: Installed | None, fixes: Collection[str]) -> None:
        self.store = store
        self.fixes = fixes
        self.installed = installed
        self.tip: str | None = None
        self.step = ""
        self.seen = LogReadResult()
        self.failure: sqlite3.Error | None = None
        self.damaged: set[str] = set()
        self.disk_error = ""
        self.checked: dict[str, int] = {"commits": 0, "files": 0, "lines": 0, "refs": 0}
        self.hooks: HookStatus | None = None
        self._sync, self.refetch = _network(store)
        self._found: dict[str, list[Finding]] = {}
        self._more: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it."""
        found = self._found.setdefault(finding.code, [])
        if len(found) >= PER_CODE_MAX:
            self._more[finding.code] = self._more.get(finding.code, 0) + 1
            return
        if finding.fixable is None:
            finding.fixable = finding.code in self.fixes
        if finding.fixable:
            finding.command = FIX
        elif finding.command == SYNC:
            finding.command = self._sync
        if callable(finding.where):
            finding.where = finding.where()
        found.append(finding)

    def for_reading_only(self) -> None:
        """Move commands that write to the git folder, which would fail here, into the sentences of the findings."""
        for finding in (each for found in self._found.values() for each in found):
            if finding.fixable or finding.command.startswith(WRITING):
                finding.fix = f"{finding.fix} Once the git folder is writable, run `{finding.command}`."
                finding.command, finding.fixable = "", False

    def listed(self) -> list[Finding]:
        """Return the findings, problems first; the last one of a code reports how many were omitted."""
        for code, count in self._more.items():
            last = self._found[code][-1]
            last.what = f"{last.what} {count} more of this kind."
        self._more.clear()
        every = [finding for found in self._found.values() for finding in found]
        return sorted(every, key=lambda finding: finding.severity != "problem")


class Check:
    """A check for one kind of finding, or for the kinds that one pass finds, and the fix of these.

    Attributes:
        codes: The codes of its findings.
        fixes: The codes of the findings that `fix` repairs.
    """

    codes: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()

    def __init__(self, run: Examination) -> None:
        self.run = run
        self.store = run.store

    def check(self) -> Iterable[Finding]:
        """Yield the findings."""
        return ()

    def fix(self) -> Iterable[Fixed]:
        """Repair without loss, and yield what was done."""
        return ()


def _network(store: Store) -> tuple[str, str]:
    """Return the commands that sync this repository and that fetch its log's objects again; "" without a remote."""
    known = remote.configured(store.repo)
    try:
        usual = upstream_remote(store.repo)
        sync = SYNC
    except UsageError:
        usual = known[0] if known else ""
        sync = command("gitmem", "sync", usual) if usual else ""
    if not usual:
        return "", ""
    return sync, command("git", "fetch", "--refetch", "--no-write-fetch-head", usual, ref.BRANCH)
