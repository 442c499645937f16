"""One page of an inbox: the signals as their reader sees them, within a budget of bytes."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence
from ..agents.descriptions import sender_name_from
from . import asks, conflicts, may_contradict, message_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ..records.record_types import ShownSignal, SignalRecord
    from .inbox_owner import InboxOwner
    from .task_records import TaskRecords
    from .thread_lines import ThreadCache


class PageLine:
    """A line as a reader sees it, and the reader's addresses that owe a receipt for it."""

    def __init__(self, line: bytes, fields: ShownSignal, addresses: Sequence[str]) -> None:
        self.line = line
        self.fields = fields
        self.addresses = addresses


class PageContext:
    """A reader's view of signals: makes the displayed fields of each."""

    def __init__(
        self,
        db: sqlite3.Connection,
        whose: InboxOwner,
        now: int,
        via: str = message_frame.PROGRAM,
        fold_most: int | None = None,
    ) -> None:
        """Prepare the view.

        Args:
            now: Microseconds.
            fold_most: Maximum bytes of lines of threads to fold, see `signals.thread_lines`; a signal of a thread
                beyond that is displayed without the results of the fold.
        """
        self._db = db
        self._now = now
        self._via = via
        self._names = presence.names_by_session(db)
        self._reader = whose.reader
        self._whose = whose
        self._fold_most = fold_most
        self._threads: ThreadCache | None = None
        self._tasks: TaskRecords | None = None

    def signal(self, signal_id: str, addresses: Sequence[str]) -> list[PageLine]:
        """Return the displayed lines of an id: one, or several that conflict. Omit unreadable lines.

        Args:
            addresses: The reader's addresses at which it is unread; empty if it was read before.
        """
        every = conflicts.versions(self._db, signal_id)
        if len(every) == 1:
            fields = self._fields(signal_id, every[0].line, addresses)
            return [] if fields is None else [PageLine(every[0].line, fields, addresses)]
        unread = conflicts.unread(self._db, addresses, signal_id)
        found = []
        for each in conflicts.chosen(every, {content for _, content in unread}):
            fields = self._fields(signal_id, each.line, (), each.content)
            if fields is not None:
                own = [address for address in addresses if (address, each.content) in unread]
                found.append(PageLine(each.line, fields, own))
        conflicts.mark(self._db, [each.fields for each in found], len(every))
        for shown_one in found:
            shown_one.fields.pop("reply_line", None)
        return found

    def _fields(
        self, signal_id: str, line: bytes, addresses: Sequence[str], content: bytes | None = None
    ) -> ShownSignal | None:
        record = records.read_kind("signal", line)
        if record is None:
            return None
        fields = records.shown(record)
        if asks(record) and (why := mailbox.settled(self._db, record.get("task_id"))):
            fields["settled"] = why
        if mailbox.is_overdue(self._db, record.get("task_id"), self._now):
            fields["overdue"] = True
        recorded = mailbox.delivery_states(self._db, signal_id, content).get(self._reader)
        fields["delivery_state"] = recorded
        if content is None:
            self._put_answers(fields, record, addresses)
        fields["sender_name"] = sender_name_from(self._names, record)
        if may_contradict(record):
            self._put_contradictions(fields, record)
        answers = None if self._whose.peek else self._reader  # a peek must not answer for the owner
        message_frame.stamp(fields, reader=answers, workspace=self._whose.workspace, via=self._via)
        return fields

    def _put_contradictions(self, fields: ShownSignal, record: SignalRecord) -> None:
        if self._tasks is None:
            from .task_records import TaskRecords

            self._tasks = TaskRecords(self._db)
        self._tasks.put(fields, record)

    def _put_answers(self, fields: ShownSignal, record: SignalRecord, addresses: Sequence[str]) -> None:
        """Set the reader's receipt state, and whether it owes an answer; flag a thread that is not folded."""
        signal_id = record["signal_id"]
        thread_id = record.get("thread_id") or signal_id
        if mailbox.is_only_signal(self._db, thread_id, signal_id):
            if record["recipients"] and asks(record):
                fields["owed"] = True
            return
        from . import threads
        from .thread_lines import ThreadCache

        if self._threads is None:
            self._threads = ThreadCache(self._db, self._fold_most)
        found = self._threads.of(thread_id)
        if found is None:
            fields["thread_too_large"] = thread_id
            return
        signal = found.signals.get(signal_id)
        if signal is None:
            return
        if signal.void:
            fields["decides"] = False
        state = threads.delivery_state(self._reader, signal, found, fields["delivery_state"])
        fields["delivery_state"] = state
        threads.put_settled(fields, found)
        names = filter(None, (self._reader, self._whose.session, *addresses))
        if about := found.asks_about(list(dict.fromkeys(names)), signal_id):
            fields["owed"] = True
            if about[0] != signal_id:
                fields["asks_about"] = about[0]


class PageBudget:
    """The budget of one page: whole signals only, but the first always fits and is cut if it is too long."""

    def __init__(
        self, max_bytes: int, max_text: int | None, measure: Callable[[ShownSignal], int] | None
    ) -> None:
        self._max_bytes = max_bytes
        self._max_text = max_text
        self._measure = measure
        self._bytes = self._text = 0

    def fitting(self, lines: Sequence[PageLine], *, first: bool) -> list[PageLine]:
        """Return the first of these lines that fit, and charge them to the budget.

        Args:
            first: Whether the page is still empty.
        """
        taken: list[PageLine] = []
        for each in lines:
            if not self.takes(each.line, each.fields, first=first and not taken):
                break
            taken.append(each)
        return taken

    def takes(self, line: bytes, fields: ShownSignal, *, first: bool) -> bool:
        """Charge a signal to the budget; return whether it fits."""
        if first:
            _cut(fields, fields["message"].encode()[: self._max_bytes].decode("utf-8", "ignore"))
            self._cut_text(fields)
        self._bytes += len(line)
        self._text += self._size(fields)
        return first or (self._bytes <= self._max_bytes and self._text <= (self._max_text or self._text))

    def _size(self, fields: ShownSignal) -> int:
        return self._measure(fields) if self._measure is not None else 0

    def _cut_text(self, fields: ShownSignal) -> None:
        """Cut the message to the longest beginning that fits `max_text`."""
        if self._max_text is None or self._size(fields) <= self._max_text:
            return
        message = fields["message"]
        fits, too_long = 0, len(message)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            _cut(fields, message[:middle])
            fits, too_long = (middle, too_long) if self._size(fields) <= self._max_text else (fits, middle)
        _cut(fields, message[:fits])


def _cut(fields: ShownSignal, message: str) -> None:
    if message != fields["message"]:
        fields["message"] = message
        fields["message_cut"] = True
