"""Doctor's look at every line: its bytes, its form, and the record that it should be."""

from __future__ import annotations

from bisect import bisect_right
from sys import intern

from .. import records
from ..log import lines as form
from ..log import ref
from ..log.union import canon
from .findings import Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .store import Store

MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
AHEAD_MICROS = 60_000_000
KEPT = "Nothing is lost by it: readers take the records and leave the rest."


class Line:
    """A line of the log, where it stands, and the record that it is, if it is one."""

    __slots__ = ("line", "record", "where")

    def __init__(self, line: bytes, where: str, record: dict[str, Any] | None) -> None:
        self.line = line
        self.where = where
        self.record = record


def check(store: Store, files: Mapping[str, bytes], found: Findings) -> list[Line]:
    """Check every line of the current tree; the lines, each once."""
    every: dict[bytes, Line] = {}
    for path, content in files.items():
        place = f"{ref.LOG_REF}:{path}"
        _check_form(content, place, found)
        for number, raw in enumerate(content.split(b"\n"), 1):
            line = raw.rstrip(b"\r")
            if line and line not in every:
                every[line] = Line(line, f"{place}:{number}", _record(line))
    found.checked["lines"] = len(every)
    whole = sorted(line for line, each in every.items() if each.record is not None)
    for each in every.values():
        if each.record is None:
            _check_unread(each, whole, found)
    _check_times(store, [each for each in every.values() if each.record is not None], found)
    return list(every.values())


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None where it has none, or is no line of the log."""
    record = records.read(line)
    if record is None or line[form.HEAD_BYTES - 2 : form.HEAD_BYTES] != b'",':
        return None  # `read` asks for everything else that `form.problem` asks for
    return {
        intern(name): value for name, value in record.items()
    }  # one string for each name, not one for each line


def taken(lines: Iterable[Line]) -> Callable[[bytes], dict[str, Any] | None]:
    """Return a reader of records that gives each record of these lines once, and forgets it."""
    known = {each.line: each.record for each in lines if each.record is not None}

    def read(line: bytes) -> dict[str, Any] | None:
        return known.pop(line, None) or records.read(line)

    return read


def _check_form(content: bytes, where: str, found: Findings) -> None:
    """The bytes of a segment as a whole. One that isn't canonical is read all the same."""
    if b"\r" in content:
        found.note(
            "crlf",
            "The file has CRs: an editor or a work tree changed its line ends.",
            where,
            f"{KEPT} The next union of this file takes them out.",
            mends=True,
        )
    elif content != canon(content):
        found.note(
            "not-canonical",
            "The file's lines are not sorted, each once, with a newline after every one.",
            where,
            f"{KEPT} The next union of this file puts it right.",
            mends=True,
        )


def _check_unread(each: Line, whole: list[bytes], found: Findings) -> None:
    """A line that is no record of this version: why not."""
    line = each.line
    if line.startswith(MARKERS):
        found.note(
            "conflict-marker",
            "A conflict marker, left by a merge without the merge driver.",
            each.where,
            f"{KEPT} `gitmem doctor` says how to install the driver, so that it does not happen again.",
        )
        return
    why = form.problem(line)
    if why is not None:
        at = bisect_right(whole, line)
        if at < len(whole) and whole[at].startswith(line):
            found.note("torn-line", "The beginning of a line whose whole is there, too.", each.where, KEPT)
            return
        found.problem(
            "unreadable-line",
            f"It is no line of the log: it {why}.",
            each.where,
            "If it was a record, its author's clone may have it whole: sync there. It stays and is not read.",
            "gitmem sync",
        )
        return
    problem = records.problem(line) or "it can't be read"
    if "unknown" in problem or "schema_version" in problem:
        found.note(
            "unknown-kind",
            f"{problem}.",
            each.where,
            "A newer gitmem wrote it: install that to read it. It is kept.",
            "pip install --upgrade gitmem-coord",
        )
    else:
        found.problem(
            "invalid-record",
            f"{problem}.",
            each.where,
            "Whoever wrote it should write it again, as a new record. It stays and is not read.",
        )


def _check_times(store: Store, every: list[Line], found: Findings) -> None:
    limit = form.format_at(store.now() + AHEAD_MICROS)
    ahead = [each for each in every if str(each.record and each.record["at"]) > limit]
    if ahead:
        last = max(ahead, key=lambda each: each.line)
        found.note(
            "future-line",
            f"{len(ahead)} line{'s are' if len(ahead) > 1 else ' is'} from the future, the last from "
            f"{last.line[7:34].decode()}: a clock is or was wrong.",
            last.where,
            "Set the clocks of all machines. Times order and display; they decide nothing.",
        )
