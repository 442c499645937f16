"""Collect the findings of doctor."""

from __future__ import annotations

from ..moved_back import FIX
from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Where = str | Callable[[], str]

PER_CODE_MAX = 20
SYNC = "gitmem sync"
WRITING = (
    "gitmem init",
    "gitmem sync",
    "gitmem hooks",
    "gitmem session",
    "git update-ref",
    "git fetch",
    "rm ",
)
FOUND, FIXED, LEFT, NEEDS_YOU = "found", "mended", "left", "needs-you"


class Finding(Outcome):
    """One problem or note.

    Attributes:
        code: Short machine name.
        severity: `problem` (something is lost, ambiguous or will fail) or `note` (for information).
        what: A sentence about the finding.
        where: A file, a ref, or `<commit or ref>:<path>:<line number>`.
        fix: A sentence about the remedy.
        command: The command of the remedy, or "".
        mends: Whether `--fix` repairs it.
        state: `found`; after `--fix` `mended`, `left` (a note, nothing is wrong) or `needs-you`.
        did: What `--fix` did, or why it failed; "" if neither.
    """

    __slots__ = ("code", "severity", "what", "where", "fix", "command", "mends", "state", "did")

    def __init__(
        self, code: str, severity: str, what: str, where: str, fix: str, command: str, *, mends: bool
    ) -> None:
        self.code = code
        self.severity = severity
        self.what = what
        self.where = where
        self.fix = fix
        self.command = command
        self.mends = mends
        self.state = FOUND
        self.did = ""


class Findings:
    """A collector of findings. It keeps the first findings of each code and counts the rest.

    `where` may be a function, which is called only for findings that are kept.

    Args:
        sync: The command that syncs this repository, or "" without a remote.
        refetch: The command that fetches all objects of the log again, or "".
    """

    def __init__(self, sync: str = SYNC, refetch: str = "") -> None:
        self._sync = sync
        self.refetch = refetch
        self.damaged: set[str] = set()
        self._found: dict[str, list[Finding]] = {}
        self._more: dict[str, int] = {}
        self.checked: dict[str, int] = {"commits": 0, "files": 0, "lines": 0, "refs": 0}

    def problem(
        self, code: str, what: str, where: Where, fix: str, command: str = "", *, mends: bool = False
    ) -> None:
        """Report that something is lost, ambiguous, or will fail. With `mends`, the command is `doctor --fix`."""
        self._add(code, "problem", what, where, fix, command, mends)

    def note(
        self, code: str, what: str, where: Where, fix: str, command: str = "", *, mends: bool = False
    ) -> None:
        """Report information: nothing is lost and everything works."""
        self._add(code, "note", what, where, fix, command, mends)

    def _add(
        self, code: str, severity: str, what: str, where: Where, fix: str, command: str, mends: bool
    ) -> None:
        found = self._found.setdefault(code, [])
        if len(found) >= PER_CODE_MAX:
            self._more[code] = self._more.get(code, 0) + 1
            return
        if mends:
            command = FIX
        elif command == SYNC:
            command = self._sync
        place = where if isinstance(where, str) else where()
        found.append(Finding(code, severity, what, place, fix, command, mends=mends))

    def for_reading_only(self) -> None:
        """Move commands that write to the git folder, which would fail here, into the sentences of the findings."""
        for finding in (each for found in self._found.values() for each in found):
            if finding.mends or finding.command.startswith(WRITING):
                finding.fix = f"{finding.fix} Where the git folder can be written: `{finding.command}`."
                finding.command, finding.mends = "", False

    def listed(self) -> list[Finding]:
        """Return the findings, problems first; the last one of a code reports how many were omitted."""
        for code, count in self._more.items():
            last = self._found[code][-1]
            last.what = f"{last.what} And {count} more of these."
        self._more.clear()
        every = [finding for found in self._found.values() for finding in found]
        return sorted(every, key=lambda finding: finding.severity != "problem")
