"""What an import answers: how many lines of each kind became what, and what was wrong with which."""

from __future__ import annotations

from ...outcome import Outcome
from ...text.shell_quote import command
from . import read_files

SHOWN = 20
COUNTED = ("read", "imported", "present", "differs", "repeated", "bad")


class Told(Outcome):
    """Something that is wrong with a line, or that one should know of it. `line` is 0 for a file."""

    __slots__ = ("file", "line", "reason")

    def __init__(self, file: str, line: int, reason: str) -> None:
        self.file = file
        self.line = line
        self.reason = reason


class Imported(Outcome):
    """What became of LumenFlow's lines.

    `counts` has for `nodes`, `relations`, `signals` and `receipts`: `read` lines, and of those `imported`
    now, `present` in the log already, `differs` (the log has that id with other content, and keeps it),
    `repeated` in the files, and `bad` ones that were skipped. `problems` tells of those that were skipped,
    `remarks` of what one should know of others: twenty of each, and how many there are besides.
    """

    __slots__ = (
        "folder", "dry_run", "counts", "problems", "problems_more", "remarks", "remarks_more", "commit", "recorded",
        "warnings", "next",
    )  # fmt: skip

    def __init__(self, folder: str, dry_run: bool) -> None:
        self.folder = folder
        self.dry_run = dry_run
        self.counts: dict[str, dict[str, int]] = {
            kind: dict.fromkeys(COUNTED, 0) for kind in read_files.NAMES
        }
        self.problems: list[Told] = []
        self.problems_more = 0
        self.remarks: list[Told] = []
        self.remarks_more = 0
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    def problem(self, file: str, line: int, reason: str) -> None:
        if len(self.problems) < SHOWN:
            self.problems.append(Told(file, line, reason))
        else:
            self.problems_more += 1

    def remark(self, file: str, line: int, reason: str) -> None:
        if len(self.remarks) < SHOWN:
            self.remarks.append(Told(file, line, reason))
        else:
            self.remarks_more += 1


def several(count: int, kind: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {kind.removesuffix('s') if count == 1 else kind}"


def onward(found: Imported, folder: str) -> list[str]:
    """The commands to run next."""
    again = command("gitmem", "import", "lumenflow", folder)
    if found.dry_run:
        return [again]
    if not any(each["imported"] for each in found.counts.values()):
        return ["gitmem mem list", "gitmem log"]
    return ["gitmem mem list", "gitmem log", "gitmem sync"]
