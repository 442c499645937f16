"""What doctor finds, collected."""

from __future__ import annotations

from .outcome import Outcome

PER_CODE_MAX = 20
SYNC = "gitmem sync"


class Finding(Outcome):
    """One thing that is not as it should be.

    Attributes:
        code: Short machine name.
        severity: `problem` (something is lost, ambiguous or will fail) or `note` (good to know).
        what: What it is, in a sentence.
        where: A file, a ref, or `<commit or ref>:<path>:<line number>`.
        fix: What to do, in a sentence.
        command: The command that does it, or "".
    """

    __slots__ = ("code", "severity", "what", "where", "fix", "command")

    def __init__(self, code: str, severity: str, what: str, where: str, fix: str, command: str = "") -> None:
        self.code = code
        self.severity = severity
        self.what = what
        self.where = where
        self.fix = fix
        self.command = command


class Findings:
    """Findings in the making. Of one code only the first are kept; the rest are counted.

    Args:
        sync: The command that syncs here, or "" where no remote is known.
    """

    def __init__(self, sync: str = SYNC) -> None:
        self._sync = sync
        self._found: dict[str, list[Finding]] = {}
        self._more: dict[str, int] = {}
        self.checked: dict[str, int] = {"commits": 0, "files": 0, "lines": 0, "refs": 0}

    def problem(self, code: str, what: str, where: str, fix: str, command: str = "") -> None:
        """Something is lost, ambiguous, or will fail."""
        self._add(Finding(code, "problem", what, where, fix, command))

    def note(self, code: str, what: str, where: str, fix: str, command: str = "") -> None:
        """Good to know; nothing is lost and all works."""
        self._add(Finding(code, "note", what, where, fix, command))

    def _add(self, finding: Finding) -> None:
        if finding.command == SYNC:
            finding.command = self._sync
        found = self._found.setdefault(finding.code, [])
        if len(found) < PER_CODE_MAX:
            found.append(finding)
        else:
            self._more[finding.code] = self._more.get(finding.code, 0) + 1

    def listed(self) -> list[Finding]:
        """Problems first; where there were too many of a code, the last of them says how many more."""
        for code, count in self._more.items():
            last = self._found[code][-1]
            last.what = f"{last.what} And {count} more of these."
        self._more.clear()
        every = [finding for found in self._found.values() for finding in found]
        return sorted(every, key=lambda finding: finding.severity != "problem")
