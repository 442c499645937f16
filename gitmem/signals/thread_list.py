"""Read many threads at once, and list them, the newest first, with what is new in each for a reader and what the reader owes there."""

from __future__ import annotations

from ..agents import mailbox, names, presence, session_view, waiting_work
from ..agents.descriptions import sender_name_from
from ..commit_message import sanitize
from ..errors import UsageError, check_limit
from ..log.lines import format_at
from ..outcome import Outcome, command
from ..records.ids import unit_key
from . import threads
from .threads import ThreadCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..agents.caller import Caller
    from ..order.thread import FoldedThread, ThreadSignal
    from ..store import Store


FOLD_MAX_BYTES = 24 * 1024 * 1024  # of the lines of all threads


class Selection:
    """What an overview is limited to.

    Args:
        store: The log.
        since: Only what happened from this time on, microseconds since the epoch.
        wu: Only what is on this work unit.
        agent: Only what this agent did, or what was meant for it: a name, an identity, a session id or a person.

    Raises:
        UsageError: `unknown-agent`.
    """

    def __init__(
        self, store: Store, *, since: int | None = None, wu: str | None = None, agent: str | None = None
    ) -> None:
        self.since = since
        self.wu = wu
        self.unit = unit_key(wu)
        self.agent = agent
        self.readers = _readers(store, agent) if agent else None

    @property
    def values(self) -> dict[str, str | int]:
        """The values of conditions: `since` in microseconds, `since_at` as in lines, `unit`, and `readers` as a JSON list."""
        import json

        return {
            "since": self.since or 0,
            "since_at": format_at(self.since or 0),
            "unit": self.unit,
            "readers": json.dumps(sorted(self.readers or ())),
        }

    def of_threads(self) -> str:
        """Return the condition on a row `s` of `signal` with its line `l`: a signal of its thread matches."""
        wanted = ["s.wu_id = :unit"] if self.unit else []
        wanted += [mailbox.OF_READERS] if self.readers is not None else []
        found = [mailbox.in_threads_with(" AND ".join(wanted))] if wanted else []
        return " AND ".join([*found, *(["l.at >= :since_at"] if self.since else [])]) or "1"

    def remark(self, db: sqlite3.Connection) -> str:
        """Return the sentence about a work unit of which nothing is in the log; "" if there is something, or none was asked for."""
        if not self.unit or session_view.is_unit(db, self.unit) or waiting_work.is_claimed(db, self.unit):
            return ""
        return f"Nothing here is of the work unit {sanitize(self.wu or '')}."

    def has_unit(self, wu: str | None) -> bool:
        """Return whether something on a work unit, or on none, matches."""
        return not self.unit or unit_key(wu) == self.unit

    def has_any(self, *addresses: str | None) -> bool:
        """Return whether something of these agents matches."""
        return self.readers is None or not self.readers.isdisjoint(addresses)


class ManyThreads:
    """The newest signals of a selection, each with its thread.

    Attributes:
        ids: The signals, the newest first, each with its thread.
        more: How many older ones there are.
        cache: The threads, folded as far as the budget allows.
    """

    def __init__(
        self, db: sqlite3.Connection, only: Selection, most: int, *, fold_most: int = FOLD_MAX_BYTES
    ) -> None:
        self.ids, self.more = mailbox.newest(db, only.of_threads(), only.values, most)
        self.cache = ThreadCache(db, fold_most)
        self.cache.lines.read_ahead([id for id, _ in self.ids])

    @property
    def threads(self) -> dict[str, FoldedThread | None]:
        """The threads by id, that with the newest signal first; None for one beyond the budget."""
        return {thread: self.cache.of(thread) for thread in dict.fromkeys(thread for _, thread in self.ids)}

    def signal(self, id: str, thread: str) -> ThreadSignal | None:
        """Return a signal: as its thread has it if that was folded; None if it is beyond the budget or unreadable."""
        folded = self.cache.of(thread)
        return folded.signals.get(id) if folded is not None else self.cache.lines.signal(id)


def _readers(store: Store, agent: str) -> set[str]:
    """Return every address of an agent: its identity, and all of its sessions."""
    db = store.db()
    found = {agent, *presence.readers_named(db, agent)}
    one = presence.get(store, agent)
    found.update([one.reader] if one is not None else [])
    if not names.is_known(store, agent):
        raise UsageError(
            f"Unknown agent: {sanitize(agent)}. Nothing was written.",
            hint="Use a name, an agent identity, a session id or a person of this log.",
            code="unknown-agent",
            suggestions=names.suggested(store, agent),
            next=["gitmem roster --all"],
        )
    for each in tuple(found):
        found |= session_view.every_id(db, each)
    return found


LISTED = 200
TITLE_MAX = 200  # characters
LISTED_MAX_BYTES = 1024 * 1024  # of threads with questions


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
    store: Store, caller: Caller | None = None, *, limit: int = LISTED, fold_most: int = LISTED_MAX_BYTES
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
    found, more = mailbox.newest_threads(db, limit)
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
    of_thread = (db, "s.thread = ?", (row.thread_id,))
    for first, _ in mailbox.signals(*of_thread, "l.body", 1):
        row.title = first["message"].lstrip().partition("\n")[0][:TITLE_MAX]
        row.wu_id, row.started_at = first.get("wu_id"), first["at"]
        row.sender_name = sender_name_from(names, first) or first["sender_identity"]
    for last, _ in mailbox.signals(*of_thread, "l.body DESC", 1):
        row.last_sender_name = sender_name_from(names, last) or last["sender_identity"]
        row.last_intent = last["intent"]


def _count(store: Store, page: ThreadPage, caller: Caller, cache: ThreadCache) -> None:
    """Fill in what the reader has not read, and what it has not answered."""
    db = store.db()
    who = (caller.reader, caller.session_id, caller.workspace)
    unread = {id for _, id in mailbox.unread_ids(db, *who, store.now())}
    asked: dict[str, list[str]] = {}
    for address, signal_id in db.execute(*mailbox.directed_to(db, *who, unread=False)):
        asked.setdefault(signal_id, []).append(address)
    found = {row.thread_id: row for row in page.threads}
    for thread_id, _ in sorted(mailbox.threads_of(db, unread)):
        page.unread += 1
        if thread_id in found:
            found[thread_id].unread += 1
    for thread_id, signal_id in sorted(mailbox.threads_of(db, asked)):
        readers = dict.fromkeys([*asked[signal_id], *caller.ids])
        if owes(db, cache, thread_id, signal_id, list(readers)):
            page.owed += 1
            if thread_id in found:
                found[thread_id].owed.append(signal_id)


def owes(
    db: sqlite3.Connection, cache: ThreadCache, thread_id: str, signal_id: str, readers: Collection[str]
) -> bool:
    """Return whether a reader owes an answer to a signal, under any of its names."""
    fold = cache.of(thread_id)
    if fold is None:
        recorded = mailbox.delivery_states(db, signal_id)
        return not any(recorded.get(each) in threads.STATES.values() for each in readers)
    return signal_id in fold.signals and signal_id not in fold.ambiguous and fold.owes(readers, signal_id)
