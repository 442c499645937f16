"""List threads, the newest first, with what is new in each for a reader and what the reader owes there."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence
from ..agents.descriptions import sender_name_from
from ..errors import check_limit
from ..index import entities
from ..outcome import Outcome, command
from . import threads
from .thread_lines import ThreadCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import SignalRecord
    from ..store import Store

LISTED = 200
TITLE_MAX = 200  # characters
FOLD_MAX_BYTES = 1024 * 1024  # of threads with questions
_PAGE = (
    "SELECT s.thread, max(l.at) AS last, count(DISTINCT s.signal_id) FROM signal s JOIN line l ON l.id = s.line"
    " GROUP BY s.thread"
)
_BODY = (
    "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? ORDER BY l.at {0}, l.body {0}"
    " LIMIT 1"
)
_THREADS = "SELECT DISTINCT thread, signal_id FROM signal WHERE signal_id IN (SELECT value FROM json_each(?))"


class ThreadRow(Outcome):
    """A thread in a list.

    Attributes:
        title: The first line of its first signal.
        sender_name: Who sent the first signal; `last_sender_name` the last one.
        signals: The number of its signals.
        unread: How many of them the reader has not read.
        owed: The signals that ask the reader for AGREE or REJECT and have neither.
    """

    def __init__(self, thread_id: str, last_at: str, signals: int) -> None:
        self.thread_id = thread_id
        self.title = ""
        self.wu_id: str | None = None
        self.sender_name = self.last_sender_name = ""
        self.started_at = self.last_at = last_at
        self.last_intent = ""
        self.signals = signals
        self.unread = 0
        self.owed: list[str] = []


class ThreadPage(Outcome):
    """Threads, the newest first, and how many more there are. `unread` and `owed` count the reader's in all threads."""

    def __init__(self, found: Sequence[ThreadRow], more: int) -> None:
        self.threads = list(found)
        self.more = more
        self.unread = self.owed = 0
        self.next = [command("gitmem", "thread", found[0].thread_id)] if found else []


def list_threads(
    store: Store, caller: Caller | None = None, *, limit: int = LISTED, fold_most: int = FOLD_MAX_BYTES
) -> ThreadPage:
    """Return the threads with the newest signals. Mark nothing as read.

    Args:
        caller: The reader whose unread and unanswered signals are counted, if known.
        limit: The number of threads.
        fold_most: Maximum bytes of lines of threads to fold; of further ones the receipts alone say what is answered.

    Raises:
        UsageError: The limit is below 1.
    """
    check_limit(limit)
    db = store.db()
    found, more = entities.select(db, _PAGE, (), order="last DESC, s.thread", limit=limit)
    rows = [ThreadRow(*row) for row in found]
    names = presence.names_by_session(db)
    for row in rows:
        _describe(db, row, names)
    page = ThreadPage(rows, more)
    if caller is not None:
        _count(store, page, caller, ThreadCache(db, fold_most))
    return page


def _describe(db: sqlite3.Connection, row: ThreadRow, names: presence.ShownNames) -> None:
    """Fill in the first and the last signal."""
    first = _record(db, row.thread_id, "ASC")
    last = _record(db, row.thread_id, "DESC") if row.signals > 1 else first
    if first is not None:
        row.title = first["message"].lstrip().partition("\n")[0][:TITLE_MAX]
        row.wu_id, row.started_at = first.get("wu_id"), first["at"]
        row.sender_name = sender_name_from(names, first) or first["sender_identity"]
    if last is not None:
        row.last_sender_name = sender_name_from(names, last) or last["sender_identity"]
        row.last_intent = last["intent"]


def _record(db: sqlite3.Connection, thread_id: str, order: str) -> SignalRecord | None:
    (body,) = db.execute(_BODY.format(order), (thread_id,)).fetchone()
    return records.read_kind("signal", body.encode())


def _count(store: Store, page: ThreadPage, caller: Caller, cache: ThreadCache) -> None:
    """Fill in what the reader has not read, and what it has not answered."""
    db = store.db()
    who = (caller.reader, caller.session_id, caller.workspace)
    unread = {id for _, id in mailbox.unread_ids(db, *who, store.now())}
    asked: dict[str, list[str]] = {}
    for address, signal_id in db.execute(*mailbox.directed_to(db, *who, unread=False)):
        asked.setdefault(signal_id, []).append(address)
    found = {row.thread_id: row for row in page.threads}
    for thread_id, _ in _threads_of(db, unread):
        page.unread += 1
        if thread_id in found:
            found[thread_id].unread += 1
    for thread_id, signal_id in _threads_of(db, asked):
        readers = dict.fromkeys([*asked[signal_id], *caller.ids])
        if _owes(db, cache, thread_id, signal_id, list(readers)):
            page.owed += 1
            if thread_id in found:
                found[thread_id].owed.append(signal_id)


def _threads_of(db: sqlite3.Connection, ids: Collection[str]) -> list[tuple[str, str]]:
    """Return (thread id, signal id), in a fixed order."""
    among = "[" + ",".join(f'"{id}"' for id in ids) + "]"  # ids need no escapes
    return sorted(db.execute(_THREADS, (among,))) if ids else []


def _owes(
    db: sqlite3.Connection, cache: ThreadCache, thread_id: str, signal_id: str, readers: Collection[str]
) -> bool:
    """Return whether a reader owes an answer to a signal, under any of its names."""
    fold = cache.of(thread_id)
    if fold is None:
        recorded = mailbox.delivery_states(db, signal_id)
        return not any(recorded.get(each) in threads.STATES.values() for each in readers)
    return signal_id in fold.signals and signal_id not in fold.ambiguous and fold.owes(readers, signal_id)
