"""Records that a remote lacks and that are not sent without consent to publish there.

Apart from `remote` and `sync_result`: `noop_check` uses it before it is known whether these are needed.
"""

from __future__ import annotations

from .. import commit_message, records
from ..outcome import Struct
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


NEWEST_MAX = 20  # lines that are kept of each kind


class WithheldLines(Struct):
    """The number of such records by kind, and the newest lines of each kind.

    Attributes:
        counts: The number of records of each kind.
        newest: At most `NEWEST_MAX` lines of each kind, oldest first.
    """

    counts: dict[str, int] = {}
    newest: dict[str, list[bytes]] = {}

    @property
    def total(self) -> int:
        """The number of all records."""
        return sum(self.counts.values())

    def add(self, lines: Iterable[bytes], kind_of: Callable[[bytes], str]) -> None:
        """Count lines.

        Args:
            lines: Lines of the log, none of them counted before.
            kind_of: Returns the kind of record in a line.
        """
        fresh: dict[str, list[bytes]] = {}
        for line in lines:
            fresh.setdefault(kind_of(line), []).append(line)
        for kind, found in fresh.items():
            self.counts[kind] = self.counts.get(kind, 0) + len(found)
            self.newest[kind] = sorted([*self.newest.get(kind, []), *found])[-NEWEST_MAX:]


# Records of people and agents precede those that gitmem wrote about them.
ORDER = (
    "signal", "task", "task_event", "node", "patch", "relation", "claim", "audit", "session", "name", "receipt", "access",
)  # fmt: skip
UNREADABLE = "unreadable"
RECORDS_MAX = 20


def kind_of(line: bytes) -> str:
    """Return the kind of record in a line; `unreadable` if the line is not a record."""
    record = records.read(line)
    return record["kind"] if record is not None else UNREADABLE


def counts_by_kind(found: WithheldLines) -> dict[str, int]:
    """Return the number of records of each kind, in the order of `ORDER`."""
    return {sanitize(kind): found.counts[kind] for kind in _ordered(found)}


def records_of(found: WithheldLines) -> list[dict[str, str]]:
    """Return at most `RECORDS_MAX` records: by kind in the order of `ORDER`, within a kind the newest first."""
    lines = [line for kind in _ordered(found) for line in reversed(found.newest[kind])]
    return [describe_line(line) for line in lines[:RECORDS_MAX]]


def _ordered(found: WithheldLines) -> list[str]:
    rank = {kind: place for place, kind in enumerate(ORDER)}
    return sorted(found.counts, key=lambda kind: (rank.get(kind, len(ORDER)), kind))


def describe_line(line: bytes) -> dict[str, str]:
    """Return a description of a line: `kind`, `id`, and a `text` of one line."""
    record: Any = records.read(line)
    if record is None:
        return {
            "kind": UNREADABLE,
            "id": "",
            "text": commit_message.cut(_plain(line), commit_message.COLUMNS),
        }
    kind = record["kind"]
    shown = records.shown(record, kind=True)
    id = str(shown[records.ID_FIELDS[kind]])
    named = (
        {"recipient_names": record.get("requested_to") or record["recipients"]} if kind == "signal" else {}
    )
    return {"kind": kind, "id": sanitize(id), "text": commit_message.describe({**shown, **named})}


def summary(count: int, url: str) -> str:
    """Return the sentence that reports unsent records, and who could read them after publishing."""
    what = "1 record was" if count == 1 else f"{count} records were"
    return (
        f"{what} not sent: nobody has agreed yet to publish this log to {url}, where everybody who can read that "
        "repository can read it."
    )


def _plain(line: bytes) -> str:
    return sanitize(line.decode("utf-8", "replace"))
