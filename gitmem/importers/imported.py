"""What every importer shares: the answer, the lines to write, and their commits."""

from __future__ import annotations

from .. import records
from ..agents import mailbox
from ..errors import UsageError
from ..log import ledger
from ..memory import stored_nodes
from ..outcome import OneStep, Outcome, Written
from ..text.sanitize import first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from ..agents.caller import Caller
    from ..store import Store

    Key = TypeVar("Key", str, bytes)
    T = TypeVar("T")


COMMIT_LINES_MAX = 10_000  # lines of one commit
AT_ONCE = 500  # values in one query, as in `memory.load`
_NOTHING = " Nothing was written."
_KNOWN = {
    "lines": "SELECT key FROM line WHERE key IN ({marks})",
    "nodes": "SELECT id FROM node WHERE id IN ({marks})",
    "signals": "SELECT DISTINCT signal_id FROM signal WHERE signal_id IN ({marks})",
    "delegations": "SELECT task_id FROM task WHERE task_id IN ({marks})",
}
SHOWN = 20
ADDRESSES_SHOWN = 5


class LineNote(Outcome):
    """A problem or remark about a line. `line` is 0 for a whole file."""

    file: str
    line: int
    reason: str


class Imported(Written, kw_only=True):
    """The outcome of an import.

    `counts` has for `nodes`, `relations`, `signals`, `receipts` and `delegations`, or `issues` and `memories`: lines `read`, and of those
    `imported` now, `present` in the log already, `differs` (the log has the id with other content, and keeps it), `repeated` in the
    files, and `bad` (skipped); of issues also `updated` (changed since), and `left` out (deleted or closed before they were here). `unread` has the number of unread signals to each address that is no agent identity.
    `problems` describes skipped lines and `remarks` others: twenty of each, and the number
    of further ones.
    """

    folder: str
    dry_run: bool
    counts: dict[str, dict[str, int]]
    unread: dict[str, int] = {}
    problems: list[LineNote] = []
    problems_more: int = 0
    remarks: list[LineNote] = []
    remarks_more: int = 0

    def unread_remark(self) -> str | None:
        """Return the sentence about signals to imported addresses, which name no writer: no session has them."""
        if not self.unread:
            return None
        named = first_of([f"{address} ({count})" for address, count in self.unread.items()], ADDRESSES_SHOWN)
        return (
            f"Unread signals to addresses that no session here has: {named}. "
            f"Read them with --for {mailbox.IMPORTED_PREFIX}ADDRESS."
        )

    def problem(self, file: str, line: int, reason: str) -> None:
        """Add a problem of a line."""
        self.problems_more += len(self.problems) >= SHOWN
        self.problems += [LineNote(file, line, reason)] if not self.problems_more else []

    def remark(self, file: str, line: int, reason: str) -> None:
        """Add a remark about a line."""
        self.remarks_more += len(self.remarks) >= SHOWN
        self.remarks += [LineNote(file, line, reason)] if not self.remarks_more else []


def format_count(count: int, kind: str) -> str:
    """Return a count with its noun: `1 node`, `2 nodes`."""
    return f"{count} {kind.removesuffix('s') if count == 1 else kind}"


def next_commands(found: Imported, again: str, *lists: str) -> list[str]:
    """Return the commands to run next.

    Args:
        again: The command that imports, after a dry run.
        lists: The commands that show what was imported.
    """
    if found.dry_run:
        return [again]
    is_new = any(each["imported"] for each in found.counts.values())
    others = [mailbox.imported_inbox(address) for address in list(found.unread)[:1]] if is_new else []
    return [*lists, *others, *(["gitmem sync"] if is_new else [])]


MAIN = ("nodes", "signals", "delegations", "issues", "memories")  # what the subject of a commit names first


def write_lines(
    store: Store,
    caller: Caller,
    found: Imported,
    lines: Sequence[tuple[str, bytes]],
    source: str,
    lines_max: int = COMMIT_LINES_MAX,
) -> None:
    """Commit the lines, in several commits if there are many.

    Args:
        source: The name of the other tool.
    """
    counts = {kind: each["imported"] for kind, each in found.counts.items() if each["imported"]}
    first = [format_count(count, kind) for kind, count in counts.items() if kind in MAIN]
    others = [format_count(count, kind) for kind, count in counts.items() if kind not in MAIN]
    what = ", ".join(first or others) or "changes"
    for start in range(0, len(lines), lines_max):
        of = -(-len(lines) // lines_max)
        # First, because long subjects are cut.
        part = f", {start // lines_max + 1} of {of}:" if of > 1 else ""
        some = lines[start : start + lines_max]
        with OneStep(store, "recording lines", start, start + len(some), len(lines)):
            text = "\n".join([*first, *others])
            done = stored_nodes.record(store, caller, some, f"imports{part} {what} from {source}", text=text)
            found.commit = done.commit
            found.recorded = True


class ImportRun:
    """One import: the lines to write, and the answer.

    Args:
        files: The name of the file of each kind, for problems and remarks.
        title: The name of the other tool.
    """

    def __init__(self, store: Store, found: Imported, files: Mapping[str, str], title: str) -> None:
        self.db = store.db()
        self.found = found
        self.files = files
        self.title = title
        self.allow_secret = store.allow_secret
        self.lines: list[tuple[str, bytes]] = []

    def bad(self, kind: str, number: int, why: str) -> None:
        """Count and report a bad line."""
        self.found.counts[kind]["bad"] += 1
        self.found.problem(self.files[kind], number, why.replace(_NOTHING, ""))

    def tried(self, kind: str, number: int, make: Callable[[], T]) -> T | None:
        """Return what a line is converted to; None if it is bad, which is counted and reported."""
        try:
            return make()
        except UsageError as error:
            self.bad(kind, number, error.message)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            self.bad(kind, number, f"its values are of another kind than {self.title} writes")
        return None

    def remark(self, kind: str, number: int, why: str) -> None:
        """Add a remark about a line."""
        self.found.remark(self.files[kind], number, why)

    def add(self, line: bytes) -> None:
        """Add a line to write."""
        record = records.read(line)
        assert record is not None
        self.lines.append((records.STREAMS[record["kind"]], line))

    def here(self, lines: Iterator[bytes] | Sequence[bytes]) -> set[bytes]:
        """Return those of the lines that the log has, byte for byte."""
        keys = {ledger.key(line): line for line in lines}
        return {keys[key] for key in self.known("lines", keys)}

    def known(self, kind: str, ids: Iterable[Key]) -> set[Key]:
        """Return those ids of a kind that the log has, asked for a part of them at a time; of lines their keys."""
        found: set[Key] = set()
        every = list(ids)
        for start in range(0, len(every), AT_ONCE):
            some = every[start : start + AT_ONCE]
            rows = self.db.execute(_KNOWN[kind].format(marks=", ".join("?" * len(some))), some)
            found |= {id for (id,) in rows}
        return found

    def is_related(self, ends: Sequence[str]) -> bool:
        """Return whether the log has a relation: from, type and to."""
        query = "SELECT 1 FROM relation_event WHERE from_id = ? AND type = ? AND to_id = ? LIMIT 1"
        return self.db.execute(query, ends).fetchone() is not None

    def is_received(self, reader: str, signal_id: str, state: str, otherwise: str) -> bool:
        """Return whether the log has a receipt in a state, or in another one."""
        query = "SELECT 1 FROM receipt WHERE reader = ? AND signal_id = ? AND state IN (?, ?) LIMIT 1"
        return self.db.execute(query, (reader, signal_id, state, otherwise)).fetchone() is not None
