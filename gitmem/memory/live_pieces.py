"""What is going on, as pieces of a context: who works on what, the other sessions, and the threads that wait for the reader.

Listing threads marks nothing as read.
"""

from __future__ import annotations

from .. import records
from ..agents import descriptions, mailbox, presence
from ..agents.descriptions import sender_name_from
from ..commit_message import cut, sanitize
from ..index.index_file import StepLimit
from ..order.content import ASKS
from ..order.thread import FoldedThread
from ..outcome import Struct
from ..signals import message_frame
from ..signals.threads import ThreadLines
from ..text.sanitize import sanitize_for_model
from . import candidates
from .candidates import NAME_MAX, THREADS, Section, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..outcome import PartOfAnswer
    from ..records.record_types import SignalRecord
    from ..store import Store


SECTION = "Open threads"
MESSAGE_MAX = 200  # bytes of a message's first line; for a longer one the line shows a command instead


class OpenThread:
    """The last message of a thread that asks the reader for a decision."""

    def __init__(self, record: SignalRecord, thread_id: str, sender: str, what: str, message: str) -> None:
        self.at = record["at"]
        self.record = record
        self.signal_id = record["signal_id"]
        self.thread_id = thread_id
        self.sender = sender
        self.what = what
        self.message = message


def find_open_threads(store: Store, reader: Caller) -> list[OpenThread]:
    """Return the threads that wait for a reader, newest first."""
    db = store.db()
    asked: dict[str, list[str]] = {}
    for signal_id, thread_id in mailbox.asking(db, reader.reader, reader.session_id, reader.workspace):
        asked.setdefault(thread_id, []).append(signal_id)
    known, lines = _SignalCache(db, presence.names_by_session(db)), ThreadLines(db)
    found = []
    for thread_id, every in asked.items():
        ids = every
        if not mailbox.is_only_signal(db, thread_id, every[0]):
            fold = FoldedThread(thread_id, lines.load(thread_id) or {})
            ids = [id for id in every if fold.owes(reader.ids, id)]
        newest = max(filter(None, (known.waiting(thread_id, id) for id in ids)), key=_order, default=None)
        if newest is not None:
            found.append(newest)
    return sorted(found, key=_order, reverse=True)


def _order(one: OpenThread) -> tuple[str, str]:
    return one.at, one.signal_id


class _SignalCache(Struct):
    """A cache of messages that ask for a decision: each id is read once, even if several threads have it."""

    _db: sqlite3.Connection
    _shown: ShownNames
    _records: dict[str, SignalRecord | None] = {}

    def waiting(self, thread_id: str, signal_id: str) -> OpenThread | None:
        if signal_id not in self._records:
            line = mailbox.line_of(self._db, signal_id)
            self._records[signal_id] = records.read_kind("signal", line)
        record = self._records[signal_id]
        if record is None:
            return None
        what = record["intent"] if record["intent"] in ASKS else "asks for AGREE or REJECT"
        sender = cut(sanitize(sender_name_from(self._shown, record) or record["sender_identity"]), NAME_MAX)
        lines = record["message"].strip().replace("\r", "\n").split("\n")
        return OpenThread(record, thread_id, sender, what, lines[0].rstrip())


def unread(store: Store, reader: Caller) -> int:
    """Count the unread messages addressed to this reader."""
    db = store.db()
    mine, values = mailbox.directed_to(db, reader.reader, reader.session_id, reader.workspace, unread=True)
    return len({signal_id for _, signal_id in db.execute(mine, values)})


def thread_pieces(
    store: Store, reader: Caller, threads: Sequence[OpenThread], *, live: bool
) -> list[Section]:
    """Return a line for each waiting thread, with the command that answers.

    Args:
        store: The store.
        reader: The reader.
        threads: Those that `find` returned.
        live: Include the number of unread messages, which depends on more than the log.
    """
    db, now, found = store.db(), store.now(), []
    ids = {one.signal_id for one in threads}
    conflicting = {id for id, _, contents, _ in mailbox.may_want_answer(db, ids) if contents > 1}
    for place, one in enumerate(threads):
        is_over = mailbox.is_overdue(db, one.record.get("task_id"), now)
        answer = f"answer: {message_frame.decide(one.record, is_over=is_over)[0]}, or --reject"
        if one.signal_id in conflicting:
            answer = f"it has conflicting records: {message_frame.compare(one.signal_id)[0]}"
        head = f"- [{one.thread_id}] ({one.at[:10]}, {one.sender}, {one.what}; {answer}):"
        text = sanitize(one.message)
        if len(text.encode()) > MESSAGE_MAX:
            text = f"(long; gitmem show {one.signal_id})"
        found.append(
            Section(SECTION, (THREADS, place, one.thread_id), one.thread_id, quote_lines(head, text))
        )
    count = unread(store, reader) if live else 0
    if count:
        line = f"- {count} unread signal{'s' if count > 1 else ''} for you: gitmem inbox"
        found.append(Section(SECTION, (THREADS, len(found), "unread"), "unread", [line]))
    return found


ROSTER = "Roster"
WORK_NOW = "Work now"  # who works on what
WORK_MAX = 60  # lines
SMALL = 1_024  # bytes: below this budget, nodes rank before the roster
ROSTER_LINE_MAX = 200  # characters
ROSTER_STEPS = 2_000_000  # of SQLite, for the headlines


def live_pieces(
    store: Store,
    reader: Caller | None,
    max_size: int,
    *,
    roster: bool,
    work: PartOfAnswer | None = None,
) -> list[Section]:
    """Return the threads and the work that wait for the reader, and with `roster` the other active sessions.

    Args:
        store: The store.
        reader: The reader, if known.
        max_size: The budget of the context, in bytes.
        roster: Include what depends on more than the log and the time.
        work: Who works on what.
    """
    threads = find_open_threads(store, reader) if reader is not None else []
    found = thread_pieces(store, reader, threads, live=roster) if reader is not None else []
    rank = candidates.HERE if max_size >= SMALL or not roster else candidates.LAST
    said = [task_id for each in threads if (task_id := each.record.get("task_id"))]
    waiting = None
    if reader is not None:
        waiting = (store.domain.waiting_work if roster else store.domain.own_work)(store, reader)
    found += _work_pieces(waiting, work, said, rank)
    if not roster:
        return found
    own = reader.ids if reader is not None else []
    others = [one for one in presence.shown(store).values() if one.is_current and one.reader not in own]
    db = store.db()
    steps = StepLimit(db, ROSTER_STEPS)
    for place, one in enumerate(descriptions.by_role(others)):
        about = cut(sanitize_for_model(descriptions.description(store, db, one, steps)), ROSTER_LINE_MAX)
        line = quote_lines(f"- {about}, {one.status}", "")
        found.append(Section(ROSTER, (rank, place, one.session_id), one.session_id, line))
    return found


def _work_pieces(
    waiting: PartOfAnswer | None, work: PartOfAnswer | None, said: Sequence[str], rank: int
) -> list[Section]:
    """Return a line for each kind of work that waits for the reader, then one for each task, handoff and claim of anybody.

    Args:
        waiting: What waits for the reader.
        work: Who works on what. Neither part says what the other says.
        said: The tasks that the open threads name.
        rank: The rank of the lines.
    """
    named = [*said, *(work.said if work is not None else ())]
    lines = waiting.lines(named, whole=work is None) if waiting is not None else []
    lines += work.lines([*said, *(waiting.said if waiting is not None else ())]) if work is not None else []
    return [
        Section(WORK_NOW, (rank, place - len(lines), ""), f"{place + 1}",
                quote_lines(f"- {cut(sanitize_for_model(line), ROSTER_LINE_MAX)}", ""))
        for place, line in enumerate(lines[:WORK_MAX])
    ]  # fmt: skip
