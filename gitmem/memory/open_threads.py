"""Threads that wait for a reader's decision. Listing them marks nothing as read."""

from __future__ import annotations

from .. import records
from ..agents.serialize import sender_name
from ..commit_message import cut, sanitize
from ..mailbox import content, mailbox_view
from ..signals import ASKS, DECISIONS, conflicts, graph, next_steps
from ..signals.causality import FoldedThread
from ..signals.thread_lines import ThreadLines
from .budgeted_text import Section, quote_lines
from .candidates import NAME_MAX, THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import SignalRecord
    from ..store import Store

SECTION = "Open threads"
MESSAGE_MAX = 200  # bytes of a message's first line; for a longer one the line shows a command instead


class OpenThread:
    """The last message of a thread that asks the reader for a decision."""

    __slots__ = ("at", "message", "record", "sender", "signal_id", "thread_id", "what")

    def __init__(self, record: SignalRecord, thread_id: str, sender: str, what: str, message: str) -> None:
        self.at = record["at"]
        self.record = record
        self.signal_id = record["signal_id"]
        self.thread_id = thread_id
        self.sender = sender
        self.what = what
        self.message = message


# `requires_ack` is found by its bytes in the line: inside a message its quotes would be escaped.
_ASKED = (
    "SELECT DISTINCT s.signal_id, s.thread FROM ({mine}) m JOIN signal s ON s.signal_id = m.signal_id"
    " JOIN line l ON l.id = s.line WHERE (s.intent IN ('PROPOSE', 'COUNTER')"
    " OR instr(l.body, '\"requires_ack\":true'))"
)
_DECISIONS = (
    "SELECT o.thread, json_extract(b.body, '$.reply_to'), json_extract(b.body, '$.answers_digest'),"
    " json_extract(b.body, '$.origin'), json_extract(b.body, '$.via') FROM signal o JOIN line b ON b.id = o.line"
    " WHERE o.thread IN (SELECT value FROM json_each(:threads))"
    " AND o.intent IN ('AGREE', 'REJECT', 'COUNTER') AND (o.sender = :reader OR o.sender_session = :session)"
)


def find(store: Store, reader: Caller) -> list[OpenThread]:
    """Return the threads that wait for a reader, newest first."""
    db = store.db()
    mine, values = mailbox_view.directed_to(
        db, reader.reader, reader.session_id, reader.workspace, unread=False
    )
    asked: dict[str, list[str]] = {}
    for signal_id, thread_id in db.execute(_ASKED.format(mine=mine), values):
        asked.setdefault(thread_id, []).append(signal_id)
    decided, answered = _decisions(db, asked, reader)
    known, lines = _SignalCache(store), ThreadLines(db)
    found = []
    for thread_id, every in asked.items():
        ids = [id for id in every if (thread_id, id) not in answered]
        if ids and thread_id in decided:
            ids = _undecided(FoldedThread(lines.load(thread_id) or {}), ids, reader)
        newest = max(filter(None, (known.waiting(thread_id, id) for id in ids)), key=_order, default=None)
        if newest is not None:
            found.append(newest)
    return sorted(found, key=_order, reverse=True)


def _decisions(
    db: sqlite3.Connection, thread_ids: Iterable[str], reader: Caller
) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the threads with a decision of a reader, and (thread, signal id) pairs that it answered directly."""
    values = {
        "threads": "[" + ",".join(f'"{id}"' for id in thread_ids) + "]",  # ids need no escaping in JSON
        "reader": reader.reader,
        "session": reader.session_id or reader.reader,
    }
    rows = db.execute(_DECISIONS, values).fetchall()
    digests = content.digests_of(db, {answered for _, answered, *_ in rows if answered})
    found = set()
    for thread_id, answered, of, origin, via in rows:
        if (
            answered and not via and content.counts(answered, of, origin, digests)
        ):  # decisions recorded by others (`via`) are evaluated in their thread
            found.add((thread_id, answered))
    return {thread_id for thread_id, *_ in rows}, found


def _order(one: OpenThread) -> tuple[str, str]:
    return one.at, one.signal_id


def _undecided(found: FoldedThread, ids: list[str], reader: Caller) -> list[str]:
    """Return the messages without a causally later decision of the reader: such a decision covers them, too."""
    own = {
        each.id
        for each in found.signals.values()
        if each.intent in DECISIONS and not each.writers.isdisjoint(reader.ids)
    }
    seen = graph.ids_before(own, found.edges)
    return [id for id in ids if id not in seen]


class _SignalCache:
    """A cache of messages that ask for a decision: each id is read once, even if several threads have it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, SignalRecord | None] = {}

    def waiting(self, thread_id: str, signal_id: str) -> OpenThread | None:
        if signal_id not in self._records:
            line = mailbox_view.line_of(self._store.db(), signal_id)
            self._records[signal_id] = records.read_kind("signal", line)
        record = self._records[signal_id]
        if record is None:
            return None
        what = record["intent"] if record["intent"] in ASKS else "asks for AGREE or REJECT"
        sender = cut(sanitize(sender_name(self._store, record) or record["sender_identity"]), NAME_MAX)
        lines = record["message"].strip().replace("\r", "\n").split("\n")
        return OpenThread(record, thread_id, sender, what, lines[0].rstrip())


def unread(store: Store, reader: Caller) -> int:
    """Count the unread messages addressed to this reader."""
    db = store.db()
    mine, values = mailbox_view.directed_to(
        db, reader.reader, reader.session_id, reader.workspace, unread=True
    )
    (count,) = db.execute(f"SELECT count(DISTINCT signal_id) FROM ({mine})", values).fetchone()
    return int(count)


def pieces(store: Store, reader: Caller, threads: Sequence[OpenThread], *, live: bool) -> list[Section]:
    """Return a line for each waiting thread, with the command that answers.

    Args:
        store: The store.
        reader: The reader.
        threads: Those that `find` returned.
        live: Include the number of unread messages, which depends on more than the log.
    """
    found = []
    for place, one in enumerate(threads):
        answer = f"answer: {next_steps.decide(one.record)[0]}, or --reject"
        if len(conflicts.versions(store.db(), one.signal_id)) > 1:
            answer = f"it has conflicting records: {next_steps.compare(one.signal_id)[0]}"
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
