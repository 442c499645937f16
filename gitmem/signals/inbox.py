"""The inbox: whose it is, a page of its unread signals within a budget of bytes, and the receipts for those displayed."""

from __future__ import annotations

from .. import records
from ..agents import delivery, heartbeats, mailbox, presence
from ..errors import StoreError, UsageError, check_limit
from ..log.lines import digest, format_at
from ..order.content import asks, check_intent, has_conflict, may_contradict
from ..outcome import Outcome, PartOfAnswer, Struct, command
from ..records.ids import unit_key
from ..store import add_lost_records
from ..sync import whereabouts
from ..text.sanitize import sanitize
from . import message_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..records.record_types import ShownSignal, SignalRecord
    from ..store import Store
    from .task_records import TaskRecords
    from .threads import ThreadCache


class InboxOwner(Struct):
    """The owner of an inbox; `peek` is the reason why reading marks nothing, or None.

    `is_imported` selects the imported signals to `reader`, an address that no session here has.
    """

    reader: str
    session: str | None
    workspace: str | None
    caller: Caller | None = None
    peek: str | None = None
    remark: str | None = None
    is_imported: bool = False


def resolve_owner(store: Store, caller: Caller | None, for_: str | None) -> InboxOwner:
    """Return the owner of the inbox that is read.

    Args:
        caller: The caller, or None if unknown.
        for_: The reader; another reader than the caller's is a peek, which marks nothing.

    Raises:
        UsageError: Neither a caller nor a reader is given, or the reader is unknown.
    """
    if for_ is None:
        if caller is None:
            raise UsageError(
                "Missing reader: cannot tell whose inbox to show.",
                hint="Name a reader with --for.",
                code="who",
            )
        found = InboxOwner(caller.reader, caller.session_id, caller.workspace)
        found.remark = caller.remark
        if caller.who is not None:
            from ..agents import caller as callers

            found.peek = callers.peek_reason(store, caller)
        found.caller = caller if found.peek is None else None
        return found
    address = mailbox.imported_address(for_)
    if address is not None:
        return _imported_owner(store, address)
    resolved = _reader(store, for_)
    address = resolved.address
    latest = next(iter(presence.of_identity(store, address)), None) or presence.get(store, address)
    found = InboxOwner(address, *((latest.session_id, latest.workspace) if latest else (None, None)))
    if caller is not None and resolved.address in (caller.reader, caller.session_id):
        found.caller = caller
    else:
        found.peek = f"Inbox of {resolved.display_name or resolved.address}. Nothing is marked as delivered."
    return found


def _imported_ids(db: sqlite3.Connection, address: str, *, all: bool = False) -> set[str]:
    return mailbox.imported_ids(db, address, all=all)


def _imported_owner(store: Store, address: str) -> InboxOwner:
    if not _imported_ids(store.db(), address, all=True):
        raise UsageError(
            f"--for: no imported signals to {sanitize(address)[:80] or '(empty)'}. Nothing was written.",
            hint="`gitmem log` shows the recipients of imported signals.",
            code="unknown-recipient",
            next=["gitmem log"],
        )
    found = InboxOwner(address, None, None)
    found.peek = f"Imported signals to {address}. Nothing is marked as delivered."
    found.is_imported = True
    return found


def _reader(store: Store, for_: str) -> Resolved:
    """Return the reader that `--for` names; for an unknown one, the error names the imported signals to it."""
    from ..agents import addressing

    try:
        return addressing.reader_of(store, for_)
    except UsageError as error:
        if error.code == "unknown-recipient" and _imported_ids(store.db(), for_, all=True):
            error.hint = "Signals to this address were imported."
            error.next = [mailbox.imported_inbox(for_), *error.next]
        raise


CONTESTED = "contested: "  # how a sentence about a contested claim begins


class Inbox(Outcome):
    """Signals for a reader, oldest first.

    Attributes:
        unread: The number of all unread signals.
        more: The number of matching signals not in `signals`.
        work: The tasks, handoffs and claims that wait for the reader (`history.open_work`); None if there are none.
    """

    reader: str
    unread: int
    signals: list[ShownSignal] = []
    more: int = 0
    work: PartOfAnswer | None = None
    warnings: list[str] = []
    next: list[str] = []

    def add_work(self, store: Store, caller: Caller | None) -> None:
        """Add what waits for the reader beside signals, with the commands for it if there are no signals."""
        self.work = store.domain.waiting_work(store, caller)
        if self.work is None or caller is None:
            return
        if any(line.startswith(CONTESTED) for line in self.work.lines()):
            delivery.drop_notices(store.repo.state, caller.session_id or "", CONTESTED)
        if not self.signals:
            self.next = [*self.work.steps, *self.next]

    def add_namesake(self, store: Store) -> None:
        """Add, if nothing is new, that the reader's words have mail under another key, and how to become one with it."""
        if self.signals or self.unread:
            return
        from ..agents import other_keys

        if other_keys.has_unread(store, self.reader):
            self.warnings += filter(None, [other_keys.of_same_words(store, self.reader)])


class InboxResult(Inbox):
    """An inbox with the data to mark it as read.

    Attributes:
        peek: Why no receipts are recorded; None if they are.
        to_mark: The receipts to record after `signals` were displayed: address, signal id and digest of the line.
    """

    def __init__(self, target: InboxOwner, unread: int) -> None:
        super().__init__(target.reader, unread)
        self.target = target
        self.peek = target.peek
        self.remark = target.remark
        self.to_mark: list[tuple[str, str, str]] = []  # address, signal id, digest


class PageLine(Struct):
    """A line as a reader sees it, and the reader's addresses that owe a receipt for it."""

    line: bytes
    fields: ShownSignal
    addresses: Sequence[str]


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
            fold_most: Maximum bytes of lines of threads to fold, see `threads.ThreadLines`; a signal of a thread
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
        every = message_frame.versions(self._db, signal_id)
        if len(every) == 1:
            fields = self._fields(signal_id, every[0].line, addresses)
            return [] if fields is None else [PageLine(every[0].line, fields, addresses)]
        unread = message_frame.unread_versions(self._db, addresses, signal_id)
        found = []
        for each in message_frame.chosen_versions(every, {content for _, content in unread}):
            fields = self._fields(signal_id, each.line, (), each.content)
            if fields is not None:
                own = [address for address in addresses if (address, each.content) in unread]
                found.append(PageLine(each.line, fields, own))
        message_frame.mark_versions(self._db, [each.fields for each in found], len(every))
        for shown_one in found:
            shown_one.fields.pop("reply_line", None)
        return found

    def _fields(
        self, signal_id: str, line: bytes, addresses: Sequence[str], content: bytes | None = None
    ) -> ShownSignal | None:
        record = records.read_kind("signal", line)
        if record is None:
            return None
        fields = message_frame.fields_of(self._names, record)
        if asks(record) and (why := mailbox.settled(self._db, record.get("task_id"))):
            fields["settled"] = why
        if mailbox.is_overdue(self._db, record.get("task_id"), self._now):
            fields["overdue"] = True
        recorded = mailbox.delivery_states(self._db, signal_id, content).get(self._reader)
        fields["delivery_state"] = recorded
        if content is None:
            self._put_answers(fields, record, addresses)
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
        from .threads import ThreadCache

        if self._threads is None:
            self._threads = ThreadCache(self._db, self._fold_most)
        found = self._threads.of(thread_id)
        if found is None:
            fields["thread_too_large"] = thread_id
            return
        signal = found.signals.get(signal_id)
        if signal is None:
            return
        threads.put_decides(fields, found)
        state = threads.delivery_state(self._reader, signal, found, fields["delivery_state"])
        fields["delivery_state"] = state
        threads.put_settled(fields, found)
        names = filter(None, (self._reader, self._whose.session, *addresses))
        if about := found.asks_about(list(dict.fromkeys(names)), signal_id):
            fields["owed"] = True
            if about[0] != signal_id:
                fields["asks_about"] = about[0]


class PageBudget(Struct):
    """The budget of one page: whole signals only, but the first always fits and is cut if it is too long."""

    _max_bytes: int
    _max_text: int | None
    _measure: Callable[[ShownSignal], int] | None
    _bytes: int = 0
    _text: int = 0

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


LIMIT = 50
MAX_BYTES = 16 * 1024
FOLD_MAX_BYTES = 4 * 1024 * 1024  # about 8,000 signals


class Count(Outcome):
    """The number of unread signals of a reader."""

    reader: str
    unread: int


def count(store: Store, caller: Caller | None, *, for_: str | None = None) -> Count:
    """Return the number of unread signals. Mark nothing as read."""
    whose = resolve_owner(store, caller, for_)
    return Count(whose.reader, len(_unread(store, store.db(), whose)))


def _unread(
    store: Store, db: sqlite3.Connection, whose: InboxOwner, *, directed: bool = False
) -> dict[str, list[str]]:
    """Return, for each unread signal id, the reader's addresses to which it was sent."""
    if whose.is_imported:
        return {signal_id: [] for signal_id in _imported_ids(db, whose.reader)}
    found: dict[str, list[str]] = {}
    for address, signal_id in mailbox.unread_ids(
        db, whose.reader, whose.session, whose.workspace, store.now(), directed=directed
    ):
        found.setdefault(signal_id, []).append(address)
    return found


def read(
    store: Store,
    caller: Caller | None,
    *,
    for_: str | None = None,
    whose: InboxOwner | None = None,
    wu: str | None = None,
    lane: str | None = None,
    thread: str | None = None,
    intent: Sequence[str] = (),
    from_: str | None = None,
    since: int | None = None,
    all: bool = False,
    limit: int = LIMIT,
    max_bytes: int = MAX_BYTES,
    directed: bool = False,
    without: Iterable[str] = (),
    only: Collection[str] | None = None,
    max_text: int | None = None,
    measure: Callable[[ShownSignal], int] | None = None,
    via: str = message_frame.PROGRAM,
    fold_most: int = FOLD_MAX_BYTES,
) -> InboxResult:
    """Return a reader's unread signals, oldest first; the limits prefer priority to advisory signals. See `mark`.

    Args:
        whose: The inbox, if it was resolved before; then `for_` is ignored.
        since: Microseconds since the epoch.
        all: Include signals that were read before.
        limit: Maximum number of signals, at least 1.
        max_bytes: Maximum bytes of their lines; only a single longer message is cut.
        directed: Only signals that may interrupt: sent to this reader in particular, and not advisory.
        without, only: Ids of signals to omit, and of those to return (None for all).
        max_text: Maximum bytes of the signals as displayed, by `measure`; only a single longer one is cut.
        measure: Returns the bytes of one signal as displayed.
        via: The program in the reply lines, see `message_frame.reply_line`.
        fold_most: Maximum bytes of lines of threads to fold; a signal of a thread beyond that gets a note.
    """
    check_limit(limit)
    db = store.db()
    whose = whose or resolve_owner(store, caller, for_)
    if caller is not None and caller.session_id is not None and (whose.peek is None or caller.who is None):
        heartbeats.touch(store, caller.session_id)
    unread = _unread(store, db, whose, directed=directed)
    outcome = InboxResult(whose, len(unread))
    ids = set(unread)
    if all and whose.is_imported:
        ids |= _imported_ids(db, whose.reader, all=True)
    elif all:
        ids |= {id for _, id in mailbox.all_ids(db, whose.reader, whose.session, whose.workspace)}
    ids.difference_update(without, () if only is None else ids.difference(only))
    wanted = _filtered(db, ids, wu, lane, thread, intent, from_, since)
    page = PageContext(db, whose, store.now(), via, fold_most)
    budget = PageBudget(max_bytes, max_text, measure)
    chosen = _fitting([(at, id) for _, at, id in sorted(wanted)[:limit]], unread, page, budget)
    outcome.more = len(wanted) - len(chosen)
    for _, signal_id, lines in sorted(chosen, key=lambda each: each[:2]):
        outcome.signals += [each.fields for each in lines]
        if whose.peek is None:
            outcome.to_mark += [
                (address, signal_id, digest(each.line)) for each in lines for address in each.addresses
            ]
    outcome.next = _next(outcome)
    _report_missing(store, outcome)
    return outcome


def _fitting(
    wanted: Iterable[tuple[str, str]],
    unread: Mapping[str, Sequence[str]],
    show: PageContext,
    budget: PageBudget,
) -> list[tuple[str, str, list[PageLine]]]:
    """Return the first of these (at, signal id) that fit the budget, with their lines."""
    chosen: list[tuple[str, str, list[PageLine]]] = []
    for at, signal_id in wanted:
        every = show.signal(signal_id, unread.get(signal_id, ()))
        taken = budget.fitting(every, first=not chosen)
        if taken:
            chosen.append((at, signal_id, taken))
        if len(taken) < len(every):
            break
    return chosen


def _report_missing(store: Store, outcome: InboxResult) -> None:
    """Report lines that the log lacks."""
    whereabouts.add_unread(store, outcome)
    add_lost_records(store, outcome)


def _filtered(
    db: sqlite3.Connection,
    wanted: set[str],
    wu: str | None,
    lane: str | None,
    thread: str | None,
    intent: Sequence[str],
    from_: str | None,
    since: int | None,
) -> list[tuple[bool, str, str]]:
    """Return (is not priority, at, signal id) of the wanted signals that match the filters."""
    thread_id = None
    if thread:
        from ..index import resolve_id

        thread_id = resolve_id.thread_of(db, resolve_id.resolve(db, thread))
    intents = {check_intent(each) for part in intent for each in part.split(",") if each}
    oldest = format_at(max(since, 0)) if since is not None else ""
    senders = presence.readers_named(db, from_) | {from_} if from_ else set()
    found = []
    for row in mailbox.headers_of(db, wanted):
        signal_id, at, interrupt, has_wu, has_lane, has_thread, has_intent, sender, session = row
        if (
            (wu is None or unit_key(wu) == has_wu)
            and (lane is None or lane == has_lane)
            and (thread_id is None or thread_id == has_thread)
            and (not intents or has_intent in intents)
            and at >= oldest
            and (not senders or sender in senders or session in senders)
        ):
            found.append((interrupt != "priority", at, signal_id))
    return found


def _next(outcome: InboxResult) -> list[str]:
    if not outcome.signals:
        return []
    last = outcome.signals[-1]["signal_id"]
    conflicting = [each["signal_id"] for each in outcome.signals if has_conflict(each)]
    cut = [fields["signal_id"] for fields in outcome.signals if "message_cut" in fields]
    found = [command("gitmem", "show", cut[0])] if cut else []
    if outcome.peek:  # only the owner may answer
        return [*found, command("gitmem", "thread", last)]
    who = [] if outcome.target.caller else ["--as", outcome.reader]
    asked = message_frame.last_open_question(outcome.signals)
    if asked is not None:
        found += message_frame.decide(asked, *who)
    if conflicting:
        return [*found, *message_frame.compare(conflicting[-1])][:3]
    return found[:3] or [command("gitmem", "thread", last)]


def mark(store: Store, reading: InboxResult) -> int:
    """Record deferred `delivered` receipts for the displayed signals, and what goes with them; return the number of receipts.

    Call it after the output was flushed: what was not displayed must stay unread. An empty inbox, too: that removes an old flag.

    Raises:
        StoreError: They can't be recorded; hooks don't display those signals again before the next one arrives.
    """
    whose = reading.target
    try:
        more = store.domain.cancellations(store, whose.caller, reading.signals)
        more += whose.caller.keepalive(store) if whose.caller is not None else []
        delivery.record_receipts(store, whose.reader, whose.caller, reading.to_mark, more)
    except StoreError:
        if reading.peek is None:
            delivery.correct_flags(store, whose.reader, whose.session, lower=True)
        raise
    if reading.peek is None:
        delivery.correct_flags(store, whose.reader, whose.session)
    return len(reading.to_mark)
