"""What doctor finds, collected."""

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
FOUND, MENDED, LEFT, NEEDS_YOU = "found", "mended", "left", "needs-you"


class Finding(Outcome):
    """One thing that is not as it should be.

    Attributes:
        code: Short machine name.
        severity: `problem` (something is lost, ambiguous or will fail) or `note` (good to know).
        what: What it is, in a sentence.
        where: A file, a ref, or `<commit or ref>:<path>:<line number>`.
        fix: What to do, in a sentence.
        command: The command that does it, or "".
        mends: Whether `--fix` mends it.
        state: `found`; after `--fix` `mended`, `left` (good to know, and nothing is wrong) or `needs-you`.
        did: What `--fix` did about it, or what was in its way; "" where that is nothing.
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
    """Findings in the making. Of one code only the first are kept; the rest are counted.

    Where something is may be given as a function, which is asked for the findings that are kept alone.

    Args:
        sync: The command that syncs here, or "" where no remote is known.
        refetch: The command that brings every object of the log anew, or "".
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
        """Something is lost, ambiguous, or will fail. With `mends`, `doctor --fix` puts it right: that is the command."""
        self._add(code, "problem", what, where, fix, command, mends)

    def note(
        self, code: str, what: str, where: Where, fix: str, command: str = "", *, mends: bool = False
    ) -> None:
        """Good to know; nothing is lost and all works."""
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
        """Take the commands away that write to the git folder, which fail here; their sentences keep them."""
        for finding in (each for found in self._found.values() for each in found):
            if finding.mends or finding.command.startswith(WRITING):
                finding.fix = f"{finding.fix} Where the git folder can be written: `{finding.command}`."
                finding.command, finding.mends = "", False

    def listed(self) -> list[Finding]:
        """Problems first; where there were too many of a code, the last of them says how many more."""
        for code, count in self._more.items():
            last = self._found[code][-1]
            last.what = f"{last.what} And {count} more of these."
        self._more.clear()
        every = [finding for found in self._found.values() for finding in found]
        return sorted(every, key=lambda finding: finding.severity != "problem")
