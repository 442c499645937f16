"""The inbox: what a reader has not read yet, and the receipts for what was shown."""

from __future__ import annotations

from .. import records
from ..log.lines import digest, format_at
from ..log.spool import Story
from . import advice, known_ids, mail, presence, sessions, threads
from .outcome import Outcome
from .quoting import command
from .shape import sender_name, shown
from .target import Target, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .caller import Caller
    from .store import Store

LIMIT = 50
MAX_BYTES = 16 * 1024


class Inbox(Outcome):
    """Signals for a reader, oldest first.

    `unread` is all that the reader has not read; `more` is how many of the asked-for ones are not shown.
    Beside the JSON fields: `to_mark`, the receipts to record once this was shown, and `peek`, why none are.
    """

    __slots__ = ("reader", "unread", "signals", "more", "next")

    def __init__(self, reader: str, unread: int) -> None:
        self.reader = reader
        self.unread = unread
        self.signals: list[dict[str, object]] = []
        self.more = 0
        self.next: list[str] = []


class Reading(Inbox):
    """An inbox with what is needed to mark it as read."""

    def __init__(self, target: Target, unread: int) -> None:
        super().__init__(target.reader, unread)
        self.target = target
        self.peek = target.peek
        self.remark = target.remark
        self.to_mark: list[tuple[str, str, str]] = []  # address, signal id, digest


class Count(Outcome):
    """How many signals a reader has not read."""

    __slots__ = ("reader", "unread")

    def __init__(self, reader: str, unread: int) -> None:
        self.reader = reader
        self.unread = unread


def count(store: Store, caller: Caller | None, *, for_: str | None = None, nobody: bool = False) -> Count:
    """How much is unread. Marks nothing."""
    whose = target(store, caller, for_, nobody=nobody)
    return Count(whose.reader, len(_unread(store, whose)))


def _unread(store: Store, whose: Target) -> dict[str, list[str]]:
    """Signal id → the addresses of this reader that it was sent to."""
    found: dict[str, list[str]] = {}
    for address, signal_id in mail.unread_ids(
        store.db(), whose.reader, whose.session, whose.workspace, store.now()
    ):
        found.setdefault(signal_id, []).append(address)
    return found


def read(
    store: Store,
    caller: Caller | None,
    *,
    for_: str | None = None,
    nobody: bool = False,
    wu: str | None = None,
    lane: str | None = None,
    thread: str | None = None,
    intent: Sequence[str] = (),
    from_: str | None = None,
    since: int | None = None,
    all: bool = False,
    limit: int = LIMIT,
    max_bytes: int = MAX_BYTES,
) -> Reading:
    """What a reader has not read, oldest first; where that is too much, priority before advisory.

    Args:
        nobody: Nothing says who calls (`caller.says_nobody`): `for_` is then taken at its word, and marked.
        since: Microseconds since the epoch.
        all: Signals that were read before, too.
        limit: Signals at most.
        max_bytes: Bytes of their lines at most; only a single longer message is cut.

    Returns: the signals; `mark` records the receipts, once they have been shown.
    """
    db = store.db()
    whose = target(store, caller, for_, nobody=nobody)
    if caller is not None:
        sessions.touch(store, caller)
    unread = _unread(store, whose)
    outcome = Reading(whose, len(unread))
    ids = set(unread)
    if all:
        ids |= {id for _, id in mail.all_ids(db, whose.reader, whose.session, whose.workspace)}
    wanted = _filtered(store, ids, wu, lane, thread, intent, from_, since)
    chosen, outcome.more = _choose(db, wanted, limit, max_bytes)
    conversations: dict[str, threads.Conversation] = {}
    for signal_id, line in chosen:
        record = records.read(line)
        if record is None:
            continue
        thread_id = str(record.get("thread_id") or signal_id)
        if thread_id not in conversations:
            conversations[thread_id] = threads.Conversation(threads.load(db, thread_id))
        fields = shown(record)
        fields["delivery_state"] = _state(db, whose.reader, signal_id, conversations[thread_id])
        fields["sender_name"] = sender_name(store, record)
        _cut_message(fields, max_bytes)
        outcome.signals.append(fields)
        if signal_id in unread and whose.peek is None:
            outcome.to_mark += [(address, signal_id, digest(line)) for address in unread[signal_id]]
    outcome.next = _next(outcome)
    return outcome


def _filtered(
    store: Store,
    wanted: set[str],
    wu: str | None,
    lane: str | None,
    thread: str | None,
    intent: Sequence[str],
    from_: str | None,
    since: int | None,
) -> list[tuple[bool, str, str]]:
    """(is not priority, at, signal id) of what is wanted and fits the filters."""
    db = store.db()
    thread_id = known_ids.thread_of(db, known_ids.find_id(db, thread)) if thread else None
    intents = {each.upper() for part in intent for each in part.split(",") if each}
    oldest = format_at(since) if since is not None else ""
    senders = presence.readers_called(db, from_) | {from_} if from_ else set()
    found = []
    for signal_id in wanted:
        row = db.execute(
            "SELECT s.at, interrupt, wu_id, lane, thread, intent, sender, sender_session FROM signal s"
            " JOIN line l ON l.id = s.line WHERE signal_id = ? ORDER BY l.body LIMIT 1",
            (signal_id,),
        ).fetchone()
        at, interrupt, has_wu, has_lane, has_thread, has_intent, sender, session = row
        if (
            (wu is None or wu == has_wu)
            and (lane is None or lane == has_lane)
            and (thread_id is None or thread_id == has_thread)
            and (not intents or has_intent in intents)
            and at >= oldest
            and (not senders or sender in senders or session in senders)
        ):
            found.append((interrupt != "priority", at, signal_id))
    return found


def _choose(
    db: sqlite3.Connection, wanted: list[tuple[bool, str, str]], limit: int, max_bytes: int
) -> tuple[list[tuple[str, bytes]], int]:
    """The lines to show, oldest first, and how many others there are."""
    chosen: list[tuple[str, str, bytes]] = []
    size = 0
    for _, at, signal_id in sorted(wanted)[:limit]:
        (body,) = db.execute(
            "SELECT min(l.body) FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ?",
            (signal_id,),
        ).fetchone()
        line = body.encode()
        if chosen and size + len(line) > max_bytes:
            break
        size += len(line)
        chosen.append((at, signal_id, line))
    return [(signal_id, line) for _, signal_id, line in sorted(chosen)], len(wanted) - len(chosen)


def _state(db: sqlite3.Connection, reader: str, signal_id: str, found: threads.Conversation) -> str | None:
    """A reader's receipt for a signal; None where it has none."""
    recorded = threads.receipts(db, signal_id).get(reader)
    if signal_id not in found.said:
        return recorded
    return threads.delivery_state(reader, found.said[signal_id], found, recorded)


def _cut_message(fields: dict[str, object], max_bytes: int) -> None:
    message = str(fields.get("message", ""))
    if len(message.encode()) > max_bytes:
        fields["message"] = message.encode()[:max_bytes].decode("utf-8", "ignore")
        fields["message_cut"] = True


def _next(outcome: Reading) -> list[str]:
    if not outcome.signals:
        return ["gitmem roster"]
    last = str(outcome.signals[-1]["signal_id"])
    cut = [str(fields["signal_id"]) for fields in outcome.signals if fields.get("message_cut")]
    found = [command("gitmem", "show", cut[0])] if cut else []
    if outcome.peek:  # somebody else's to answer
        return [*found, command("gitmem", "thread", last)]
    who = [] if outcome.target.caller else ["--as", outcome.reader]
    states = [str(fields.get("delivery_state") or "unread") for fields in outcome.signals]
    asked = advice.question(outcome.signals, states)
    if asked is not None:
        found += advice.decide(asked, *who)
    return found[:3] or [command("gitmem", "reply", last, "your reply", *who)]


def mark(store: Store, reading: Reading) -> int:
    """Record `delivered` receipts for what was shown; how many. They ride with the next commit.

    Call it after the output has been flushed: what was not shown must stay unread.
    """
    lines = []
    for address, signal_id, of in reading.to_mark:
        fields: dict[str, object] = {
            "schema_version": "A2A.V1",
            "signal_id": signal_id,
            "reader_identity": address,
            "delivery_state": "delivered",
            "answers_digest": of,
        }
        lines.append(store.line("receipt", fields))
    caller = reading.target.caller
    if caller is not None:
        lines += sessions.keepalive(store, caller)
    if not lines:
        return 0
    author = caller.author if caller else f"{reading.reader} <{reading.reader}@gitmem>"
    name = (caller.name if caller else None) or reading.reader
    count = len(reading.to_mark)
    subject = f"{name} read {count} signal{'s' if count > 1 else ''}" if count else f"{name} is still here"
    trailers = [("Agent", reading.reader)]
    store.record(lines, Story(author, subject, "", trailers), rides=True)
    return count
