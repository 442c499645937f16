"""The facts that a task is folded from: its events, and what a handoff adds to them."""

from __future__ import annotations

from ..log.lines import digest, parse_at
from . import LEASE_MAX_MICROS, TERMINAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records.record_types import TaskEventRecord, TaskRecord

    Sender = tuple[str, str | None]

_NAMED = ("take", "outcome", "launch", "relaunch_of")  # fields with an id that the writer must have seen


class TaskEvent:
    """An event of a task.

    Lines start with their time, so they sort by `(at, bytes)`. Of several lines of one id the lowest counts.

    Attributes:
        is_own: Whether this clone has surely written it, and it counts first of its id, for what this clone does.
        named: The ids of the events that its writer had seen.
        sender: Identity and session of its writer.
        replaces: Of the acceptance of a handoff: the giver's take that it replaces.
        giver: Of the acceptance of a handoff: the writer of the handoff.
        versions: The events of all lines with its id, itself first.
    """

    __slots__ = (
        "event", "giver", "id", "is_own", "line", "named", "record", "replaces", "sender", "versions",
    )  # fmt: skip

    def __init__(self, record: TaskEventRecord, line: bytes) -> None:
        self.record = record
        self.id = record["event_id"]
        self.event = record["event"]
        self.line = line
        self.is_own = False
        self.versions = [self]
        self.sender = sender_of(record)
        self.named = set(record.get("after") or ())
        for name in _NAMED:
            id = record.get(name)
            if id is not None:
                self.named.add(id)  # type: ignore[arg-type]
        self.replaces: str | None = None
        self.giver: Sender | None = None

    @property
    def at(self) -> int:
        """The time of its line in microseconds."""
        return micros(self.record["at"])

    @property
    def take(self) -> str | None:
        """The take under which it was written; for a take its own id."""
        return self.id if self.event == "take" else self.record.get("take")

    @property
    def state(self) -> str | None:
        """The state that it reports or decides."""
        return self.record.get("state")

    @property
    def until(self) -> int:
        """The end of the lease that it gives; leases longer than allowed are cut."""
        return min(micros(self.record.get("until")), self.at + LEASE_MAX_MICROS)

    @property
    def is_terminal(self) -> bool:
        """Whether it reports that the work has ended."""
        return self.event == "status" and self.state in TERMINAL

    @property
    def is_retryable(self) -> bool:
        """Whether it reports a failure after which somebody else may take the task."""
        error = self.record.get("payload", {}).get("error")
        return self.state == "failed" and isinstance(error, dict) and error.get("retryable") is True

    @property
    def is_rejection(self) -> bool:
        """Whether an addressee refuses the task with it, without a take."""
        return self.event == "status" and self.state == "rejected" and self.record.get("take") is None

    def version(self, wanted: str | None) -> TaskEvent | None:
        """Return the event of this id whose line has this digest; without one, of the lowest line."""
        if wanted is None:
            return self
        return next((each for each in self.versions if digest(each.line) == wanted), None)

    def accepting(self, replaces: str, giver: Sender) -> TaskEvent:
        """Return this take of a handoff as an event of a task that is handed over."""
        found = TaskEvent(self.record, self.line)
        found.named = {*self.named, replaces}
        found.replaces, found.giver = replaces, giver
        return found


def micros(at: str | None) -> int:
    """Return a time in microseconds; 0 without one, and for a date such as the 30th of February."""
    try:
        return parse_at(at) if at else 0
    except ValueError:
        return 0


def sender_of(record: TaskRecord | TaskEventRecord) -> Sender:
    """Return identity and session of a writer."""
    return record["sender_identity"], record.get("sender_session") or None


def by_id(events: Iterable[TaskEvent]) -> dict[str, TaskEvent]:
    """Return the lowest event of each id, with all its versions. An acceptance comes before an event with its id, then an own one."""
    found: dict[str, TaskEvent] = {}
    for each in sorted(events, key=lambda each: (each.replaces is None, not each.is_own, each.line)):
        if each.id not in found:
            found[each.id] = each
            each.versions = [each]
        else:
            found[each.id].versions.append(each)
    return found
