"""The result of an import: counts of lines by kind and outcome, and the problems of lines."""

from __future__ import annotations

from ...agents import mailbox
from ...memory import write as record
from ...outcome import OneStep, Outcome, command
from ...text.name_matching import is_identity
from . import read_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...agents.caller import Caller
    from ...store import Store

SHOWN = 20
ADDRESSES_SHOWN = 5
COUNTED = ("read", "imported", "present", "differs", "repeated", "bad")


class LineNote(Outcome):
    """A problem or remark about a line. `line` is 0 for a whole file."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        self.file = file
        self.line = line
        self.reason = reason


class Imported(Outcome):
    """The outcome of an import.

    `counts` has for `nodes`, `relations`, `signals`, `receipts` and `delegations`: lines `read`, and of those `imported` now,
    `present` in the log already, `differs` (the log has the id with other content, and keeps it), `repeated` in the
    files, and `bad` (skipped). `unread` has the number of unread signals to each address that is no agent identity.
    `problems` describes skipped lines and `remarks` others: twenty of each, and the number
    of further ones.
    """

    def __init__(self, folder: str, dry_run: bool) -> None:
        self.folder = folder
        self.dry_run = dry_run
        self.counts: dict[str, dict[str, int]] = {
            kind: dict.fromkeys(COUNTED, 0) for kind in read_files.NAMES
        }
        self.unread: dict[str, int] = {}
        self.problems: list[LineNote] = []
        self.problems_more = 0
        self.remarks: list[LineNote] = []
        self.remarks_more = 0
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    def count_unread(self, addresses: Iterable[str]) -> None:
        """Count a signal that these addresses have not read. Sessions can have identities, but no other address."""
        for address in addresses:
            if not is_identity(address):
                self.unread[address] = self.unread.get(address, 0) + 1

    def unread_remark(self) -> str | None:
        """Return the sentence about signals to addresses that no session can have."""
        if not self.unread:
            return None
        named = [f"{address} ({count})" for address, count in list(self.unread.items())[:ADDRESSES_SHOWN]]
        more = f" and {len(self.unread) - len(named)} more" if len(self.unread) > len(named) else ""
        return (
            f"Unread signals to addresses that no session here has: {', '.join(named)}{more}. "
            f"Read them with --for {mailbox.IMPORTED_PREFIX}ADDRESS."
        )

    def problem(self, file: str, line: int, reason: str) -> None:
        """Add a problem of a line."""
        if len(self.problems) < SHOWN:
            self.problems.append(LineNote(file, line, reason))
        else:
            self.problems_more += 1

    def remark(self, file: str, line: int, reason: str) -> None:
        """Add a remark about a line."""
        if len(self.remarks) < SHOWN:
            self.remarks.append(LineNote(file, line, reason))
        else:
            self.remarks_more += 1


def format_count(count: int, kind: str) -> str:
    """Return a count with its noun: `1 node`, `2 nodes`."""
    return f"{count} {kind.removesuffix('s') if count == 1 else kind}"


def next_commands(found: Imported, folder: str) -> list[str]:
    """Return the commands to run next."""
    again = command("gitmem", "import", "lumenflow", folder)
    if found.dry_run:
        return [again]
    if not any(each["imported"] for each in found.counts.values()):
        return ["gitmem mem list"]
    others = [mailbox.imported_inbox(address) for address in list(found.unread)[:1]]
    return ["gitmem mem list", *others, "gitmem sync"]


def write(
    store: Store, caller: Caller, found: Imported, lines: Sequence[tuple[str, bytes]], lines_max: int
) -> None:
    """Commit the lines, in several commits if there are many."""
    counts = {kind: each["imported"] for kind, each in found.counts.items()}
    first = [format_count(counts[kind], kind) for kind in ("nodes", "signals", "delegations") if counts[kind]]
    others = [format_count(counts[kind], kind) for kind in ("relations", "receipts") if counts[kind]]
    what = ", ".join(first or others) or "readings"
    for start in range(0, len(lines), lines_max):
        of = -(-len(lines) // lines_max)
        part = (
            f", {start // lines_max + 1} of {of}:" if of > 1 else ""
        )  # first, because long subjects are cut
        some = lines[start : start + lines_max]
        with OneStep(store, "recording lines", start, start + len(some), len(lines)):
            done = record.record(
                store,
                caller,
                some,
                f"imports{part} {what} from LumenFlow",
                text="\n".join([*first, *others]),
            )
        found.commit = done.commit
        found.recorded = True
