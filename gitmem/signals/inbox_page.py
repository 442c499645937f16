"""What of an inbox is shown at once: each signal as its reader sees it, and how many of them there is room for."""

from __future__ import annotations

from .. import records
from ..agents import presence
from ..agents.serialize import named
from ..mailbox import mailbox_view, receipts
from ..outcome import shown
from ..text.shell_quote import quote
from . import conflicts, message_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from .inbox_owner import InboxOwner
    from .thread_lines import Conversations


class PageLine:
    """A line as a reader sees it, and the reader's addresses that a receipt for it is due from."""

    __slots__ = ("addresses", "fields", "line")

    def __init__(self, line: bytes, fields: dict[str, object], addresses: Sequence[str]) -> None:
        self.line = line
        self.fields = fields
        self.addresses = addresses


class PageContext:
    """Signals as one reader sees them."""

    def __init__(
        self,
        db: sqlite3.Connection,
        whose: InboxOwner,
        via: str = message_frame.PROGRAM,
        fold_most: int | None = None,
    ) -> None:
        """
        Args:
            fold_most: Bytes of lines to read of threads, see `signals.thread_lines`; a signal of a thread that is beyond
                that is shown without what the thread makes of it.
        """
        self._db = db
        nobody = whose.caller is None and whose.peek is None  # a reader that was taken at its word
        self._via = f"{via} --as {quote(whose.reader)}" if nobody else via
        self._names = presence.names_by_session(db)
        self._reader = whose.reader
        self._whose = whose
        self._fold_most = fold_most
        self._threads: Conversations | None = None

    def signal(self, signal_id: str, addresses: Sequence[str]) -> list[PageLine]:
        """What is shown of an id: its one line, or several that conflict. Lines that can't be read are left out.

        Args:
            addresses: Those of the reader that have it unread; none where it was read before.
        """
        every = conflicts.versions(self._db, signal_id)
        if len(every) == 1:
            fields = self._fields(signal_id, every[0].line)
            return [] if fields is None else [PageLine(every[0].line, fields, addresses)]
        unread = conflicts.unread(self._db, addresses, signal_id)
        found = []
        for each in conflicts.chosen(every, {content for _, content in unread}):
            fields = self._fields(signal_id, each.line, each.content)
            if fields is not None:
                own = [address for address in addresses if (address, each.content) in unread]
                found.append(PageLine(each.line, fields, own))
        conflicts.mark(self._db, [each.fields for each in found], len(every))
        for shown_one in found:
            shown_one.fields.pop("reply_line", None)
        return found

    def _fields(self, signal_id: str, line: bytes, content: bytes | None = None) -> dict[str, object] | None:
        record = records.read(line)
        if record is None:
            return None
        fields = shown(record)
        fields.pop(message_frame.UNFOLDED, None)
        thread_id = str(record.get("thread_id") or signal_id)
        if content is None:
            fields["delivery_state"] = self._state(fields, signal_id, thread_id)
        else:
            fields["delivery_state"] = receipts.states(self._db, signal_id, content).get(self._reader)
        fields["sender_name"] = named(self._names, record)
        answers = (
            None if self._whose.peek else self._reader
        )  # who looks at another's mail can't answer for it
        message_frame.stamp(fields, reader=answers, workspace=self._whose.workspace, via=self._via)
        return fields

    def _state(self, fields: dict[str, object], signal_id: str, thread_id: str) -> str | None:
        """The reader's receipt for a signal; None where it has none. Marks a signal whose thread is not folded."""
        recorded = receipts.states(self._db, signal_id).get(self._reader)
        if mailbox_view.is_alone(self._db, thread_id, signal_id):
            return recorded
        from . import threads
        from .thread_lines import Conversations

        if self._threads is None:
            self._threads = Conversations(self._db, self._fold_most)
        found = self._threads.of(thread_id)
        if found is None:
            fields[message_frame.UNFOLDED] = thread_id
            return recorded
        if signal_id not in found.said:
            return recorded
        if found.said[signal_id].void:
            fields["decides"] = False
        return threads.delivery_state(self._reader, found.said[signal_id], found, recorded)


class PageBudget:
    """How much is shown at once: whole signals; the first is taken in any case, and cut where it is too long."""

    def __init__(
        self, max_bytes: int, max_text: int | None, measure: Callable[[dict[str, object]], int] | None
    ) -> None:
        self._max_bytes = max_bytes
        self._max_text = max_text
        self._measure = measure
        self._bytes = self._text = 0

    def fitting(self, lines: Sequence[PageLine], *, first: bool) -> list[PageLine]:
        """The first of these lines for which there is room; it takes their room.

        Args:
            first: Whether nothing was taken before them.
        """
        taken: list[PageLine] = []
        for each in lines:
            if not self.takes(each.line, each.fields, first=first and not taken):
                break
            taken.append(each)
        return taken

    def takes(self, line: bytes, fields: dict[str, object], *, first: bool) -> bool:
        """Whether a signal still fits, and takes its room."""
        if first:
            _cut(fields, str(fields.get("message", "")).encode()[: self._max_bytes].decode("utf-8", "ignore"))
            self._cut_text(fields)
        self._bytes += len(line)
        self._text += self._size(fields)
        return first or (self._bytes <= self._max_bytes and self._text <= (self._max_text or self._text))

    def _size(self, fields: dict[str, object]) -> int:
        return self._measure(fields) if self._measure is not None else 0

    def _cut_text(self, fields: dict[str, object]) -> None:
        """The longest beginning of the message with which its text fits."""
        if self._max_text is None or self._size(fields) <= self._max_text:
            return
        message = str(fields.get("message", ""))
        fits, too_long = 0, len(message)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            _cut(fields, message[:middle])
            fits, too_long = (middle, too_long) if self._size(fields) <= self._max_text else (fits, middle)
        _cut(fields, message[:fits])


def _cut(fields: dict[str, object], message: str) -> None:
    if message != fields.get("message", ""):
        fields["message"] = message
        fields["message_cut"] = True
