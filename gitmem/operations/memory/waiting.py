"""Threads that wait for a reader: somebody asked it, and it has not decided. Looking marks nothing as read."""

from __future__ import annotations

from ... import records
from ...signals import graph
from .. import advice, causality, mail, threads
from ..shape import sender_name
from ..story import cut, sanitize
from .block import Piece, said
from .candidates import NAME_MAX, THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..caller import Caller
    from ..store import Store

SECTION = "Open threads"
MESSAGE_MAX = 200  # bytes of a first line that is shown; of a longer one the command that shows it


class Waiting:
    """A signal that wants a decision, the last such one of its thread."""

    __slots__ = ("at", "message", "sender", "signal_id", "thread_id", "what")

    def __init__(self, at: str, signal_id: str, thread_id: str, sender: str, what: str, message: str) -> None:
        self.at = at
        self.signal_id = signal_id
        self.thread_id = thread_id
        self.sender = sender
        self.what = what
        self.message = message


# What was asked and not answered by a decision; the rest is for those threads where the reader decided something.
# `requires_ack` is looked for as it stands in a line: inside of a message its quotes would be escaped.
_ASKED = (
    "SELECT DISTINCT s.signal_id, s.thread, EXISTS (SELECT 1 FROM signal o WHERE o.thread = s.thread AND {own})"
    " FROM ({mine}) m JOIN signal s ON s.signal_id = m.signal_id"
    " JOIN line l ON l.id = s.line WHERE (s.intent IN ('PROPOSE', 'COUNTER')"
    " OR instr(l.body, '\"requires_ack\":true'))"
    " AND NOT EXISTS (SELECT 1 FROM signal o JOIN line b ON b.id = o.line WHERE o.thread = s.thread AND {own}"
    " AND json_extract(b.body, '$.reply_to') = s.signal_id AND {counts})"
)
# As `signals.content.counts`.
_COUNTS = (
    "CASE WHEN json_extract(b.body, '$.answers_digest') IS NULL"
    " THEN coalesce(json_extract(b.body, '$.origin'), 'local') <> 'local'"
    " ELSE EXISTS (SELECT 1 FROM signal t WHERE t.signal_id = s.signal_id"
    " AND lower(hex(t.digest)) = json_extract(b.body, '$.answers_digest')) END"
)
_OWN = "o.intent IN ('AGREE', 'REJECT', 'COUNTER') AND (o.sender = :reader OR o.sender_session = :session)"


def find(store: Store, reader: Caller) -> list[Waiting]:
    """What waits for a reader, the newest first."""
    db = store.db()
    mine, values = mail.directed_to(db, reader.reader, reader.session_id, reader.workspace, unread=False)
    values |= {"reader": reader.reader, "session": reader.session_id or reader.reader}
    asked: dict[str, list[str]] = {}
    decided = set()
    for signal_id, thread_id, has_decided in db.execute(
        _ASKED.format(own=_OWN, mine=mine, counts=_COUNTS), values
    ):
        asked.setdefault(thread_id, []).append(signal_id)
        if has_decided:
            decided.add(thread_id)
    found = []
    for thread_id, ids in asked.items():
        if thread_id in decided:
            ids = _undecided(threads.Conversation(threads.load(db, thread_id)), ids, reader)
        newest = max(filter(None, (_waiting(store, thread_id, id) for id in ids)), key=_order, default=None)
        if newest is not None:
            found.append(newest)
    return sorted(found, key=_order, reverse=True)


def _order(one: Waiting) -> tuple[str, str]:
    return one.at, one.signal_id


def _undecided(found: threads.Conversation, ids: list[str], reader: Caller) -> list[str]:
    """Those that no decision of the reader comes after: who decided later in the thread has decided these, too."""
    own = {
        each.id
        for each in found.said.values()
        if each.intent in causality.DECISIONS and not each.writers.isdisjoint(reader.ids)
    }
    seen = graph.reach(own, found.edges)
    return [id for id in ids if id not in seen]


def _waiting(store: Store, thread_id: str, signal_id: str) -> Waiting | None:
    (body,) = store.db().execute(
        "SELECT min(l.body) FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ?", (signal_id,)
    ).fetchone()  # fmt: skip
    record = records.read(body.encode())
    if record is None:
        return None
    intent = str(record.get("intent") or "INFO")
    what = intent if intent in advice.ASKS else "asks for AGREE or REJECT"
    sender = cut(sanitize(sender_name(store, record) or str(record["sender_identity"])), NAME_MAX)
    lines = str(record["message"]).strip().replace("\r", "\n").split("\n")
    return Waiting(str(record["at"]), signal_id, thread_id, sender, what, lines[0].rstrip())


def unread(store: Store, reader: Caller) -> int:
    """How many signals to this reader in particular it has not read."""
    db = store.db()
    mine, values = mail.directed_to(db, reader.reader, reader.session_id, reader.workspace, unread=True)
    (count,) = db.execute(f"SELECT count(DISTINCT signal_id) FROM ({mine})", values).fetchone()
    return int(count)


def pieces(store: Store, reader: Caller, *, live: bool) -> list[Piece]:
    """A line for each thread that waits, with the command that answers.

    Args:
        live: How much is unread, too, which depends on more than the log.
    """
    found = []
    for place, one in enumerate(find(store, reader)):
        agree = advice.decide(one.signal_id)[0]
        head = f"- [{one.thread_id}] ({one.at[:10]}, {one.sender}, {one.what}; answer: {agree}, or --reject):"
        text = sanitize(one.message)
        if len(text.encode()) > MESSAGE_MAX:
            text = f"(long; gitmem show {one.signal_id})"
        found.append(Piece(SECTION, (THREADS, place, one.thread_id), one.thread_id, said(head, text)))
    count = unread(store, reader) if live else 0
    if count:
        line = f"- {count} unread signal{'s' if count > 1 else ''} for you: gitmem inbox"
        found.append(Piece(SECTION, (THREADS, len(found), "unread"), "unread", [line]))
    return found
