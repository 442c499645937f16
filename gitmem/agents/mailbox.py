"""The mailbox: which signals are unread by whom, by the tables of signals and receipts.

`mail` has a row for each directed signal that a recipient has no receipt for, `asked` one for each that may want an answer
from it, read or not, also for its author: `FoldedThread.owes` decides. A receipt or a reply counts once the log has a line
with its `answers_digest`. Until then its row has no effect.

Broadcasts are not copied to every reader: a reader has a cursor, the sequence number up to which it has read all of them.
The number is this index's own order of arrival, so a broadcast that arrives late is still new.

Signals that an importer brought for addresses of another tool, such as `agent-1`, are history: `lumenflow:agent-1` names
their inbox, which everybody may read and nothing marks as read (decision 26). The names of sessions never contain a
colon, and identities have three parts, so the origin before the address makes it another name than theirs.
"""

from __future__ import annotations

from .. import records
from ..log.lines import content_without_time
from ..order.content import content_of, is_imported
from ..outcome import command
from ..records.ids import unit_key
from ..text.addresses import words_of
from ..text.digests import hash_function_for
from ..text.name_matching import is_identity
from ..text.strict_json import json_list
from . import broadcasts
from .broadcasts import IMPORTED_ORIGIN, BroadcastStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..index.entities import LineRow, NewLines, Rows
    from ..records.record_types import SignalRecord
    from ..store import Store
    from .presence import Presence

    # Signal, reader, digest, state, time.
    Receipt = tuple[str, str, bytes, str, str]


def signals(
    db: sqlite3.Connection, condition: str, values: Sequence[object], order: str = "s.line", limit: int = -1
) -> list[tuple[SignalRecord, bytes]]:
    """Return records and lines of the signals that fulfil a condition on the table `signal s`, whose line is `l`."""
    query = f"SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE ({condition}) ORDER BY {order} LIMIT {limit}"
    lines = [body.encode() for (body,) in db.execute(query, values)]
    read = [(records.read_kind("signal", line), line) for line in lines]
    return [(record, line) for record, line in read if record is not None]


def signals_from_here(
    db: sqlite3.Connection, signal_id: str, senders: Iterable[str], most: int
) -> list[tuple[SignalRecord, bytes]]:
    """Return those lines of a signal that these senders or sessions of this clone wrote, at most so many."""
    from ..index.entities import AMONG

    condition = f"s.signal_id = ? AND (s.sender {AMONG} OR s.sender_session IN (SELECT name FROM own))"
    return signals(db, condition, (signal_id, json_list(senders)), limit=most)


def digests_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, set[bytes]]:
    """Return the digests of every line of these signals. Ids that the log lacks have none."""
    found: dict[str, set[bytes]] = {}
    query = "SELECT signal_id, digest FROM signal WHERE signal_id IN (SELECT value FROM json_each(?))"
    for signal_id, line_digest in db.execute(query, (json_list(sorted(set(ids))),)):
        found.setdefault(signal_id, set()).add(line_digest)
    return found


WITH_MAX = 1_000  # addresses of the same words that a query reads

RECEIPT_DDL = (
    # The author of a reply has read the signal that it answers: such a row has the state `replied`. An empty `digest`
    # matches any line: in an imported reply without a digest.
    "CREATE TABLE receipt (signal_id TEXT, reader TEXT, digest BLOB, state TEXT, at TEXT,"
    " PRIMARY KEY (signal_id, reader, digest, state)) WITHOUT ROWID",
)
# The condition that the log has the line of a receipt `r`.
RECEIPT_HAS_LINE = "(r.digest = x'' OR EXISTS (SELECT 1 FROM signal k WHERE k.signal_id = r.signal_id AND k.digest = r.digest))"

# (address, signal id) of the signals sent to addresses in particular, among rows that name a reader and a signal.
DIRECTED = (
    "SELECT DISTINCT f.reader, f.signal_id FROM {found} f JOIN signal s ON s.signal_id = f.signal_id"
    " JOIN line l ON l.id = s.line WHERE f.reader IN {own} AND NOT s.broadcast"
    " AND f.reader NOT IN (s.sender, coalesce(s.sender_session, ''))"
    " AND EXISTS (SELECT 1 FROM json_each(coalesce(json_extract(l.body, '$.recipients'),"
    " json_array(json_extract(l.body, '$.target_agent')))) j WHERE j.value = f.reader)"
)


def is_receipt_for(content: str) -> str:
    """Return the SQL condition that a receipt `r` is for a line with a content; see `content_of`."""
    return (
        f"(r.digest IN ({content}, x'') OR EXISTS (SELECT 1 FROM signal k WHERE k.signal_id = r.signal_id"
        f" AND k.digest = r.digest AND k.content = {content}))"
    )


def receipts_in(rows: Rows) -> list[Receipt]:
    """Return the receipts in lines of receipts and replies."""
    found: list[Receipt] = []
    given = rows.of("receipt")
    if given:
        names = ("signal_id", "reader_identity", "answers_digest", "delivery_state", "at")
        ids, readers, digests, states, times = map(given.column, names)
        read = [bytes.fromhex(digest) for digest in digests]
        found += zip(ids, readers, read, [each or "delivered" for each in states], times, strict=True)
    signals = rows.of("signal")
    if any(signals.column("reply_to")):
        found += [
            receipt
            for row in signals
            if (to := row.record.get("reply_to"))
            for receipt in _receipts_of_reply(row, to)
        ]
    return found


def _receipts_of_reply(row: LineRow, answered: str) -> list[Receipt]:
    record: SignalRecord = row.record
    given = record.get("answers_digest")
    if record.get("via"):
        return []  # another session wrote it in the sender's name; the sender may not have read the answered signal
    if not (given or is_imported(record)):
        return []
    digest = bytes.fromhex(given) if given else b""
    writers = {record["sender_identity"], record.get("sender_session")}
    return [(answered, writer, digest, "replied", row.at) for writer in sorted(filter(None, writers))]


def add_receipts(db: sqlite3.Connection, receipts: list[Receipt]) -> None:
    """Add receipts, and remove their signals from the unread rows."""
    values = [(id, reader, bytearray(digest), state, at) for id, reader, digest, state, at in receipts]
    db.executemany(
        "INSERT INTO receipt VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at < receipt.at",
        values,
    )
    has_mail = "SELECT 1 FROM mail WHERE reader = ? LIMIT 1"
    behind = {reader for reader in {row[1] for row in values} if db.execute(has_mail, (reader,)).fetchone()}
    db.executemany(
        "DELETE FROM mail WHERE signal_id = ?1 AND reader = ?2 AND (content = ?3 OR ?3 = x'' OR content IN"
        " (SELECT content FROM signal WHERE signal_id = ?1 AND digest = ?3))",
        [row[:3] for row in values if row[1] in behind],
    )


def delivery_states(db: sqlite3.Connection, signal_id: str, content: bytes | None = None) -> dict[str, str]:
    """Return the recorded delivery state of a signal by reader: that of the latest receipt.

    Args:
        content: Count only receipts for lines with this content.
    """
    found: dict[str, str] = {}
    rows = db.execute(
        f"SELECT reader, state FROM receipt r WHERE signal_id = ?1 AND"
        f" CASE WHEN ?2 IS NULL THEN {RECEIPT_HAS_LINE} ELSE {is_receipt_for('?2')} END ORDER BY at, state",
        (signal_id, content),
    )
    for reader, state in rows:
        found[reader] = "delivered" if state == "replied" else state
    return found


def receipts_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the receipts of many signals: by signal and reader the time of the first and the state of the latest."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    rows = db.execute(
        "SELECT r.signal_id, r.reader, r.state, r.at FROM json_each(?) j CROSS JOIN receipt r ON r.signal_id = j.value"
        f" WHERE {RECEIPT_HAS_LINE} ORDER BY r.at, r.state",
        (json_list(ids),),
    )
    for signal_id, reader, last, at in rows:
        of = found.setdefault(signal_id, {})
        first = of[reader][0] if reader in of else at
        of[reader] = first, "delivered" if last == "replied" else last
    return found


def delivery_state(
    db: sqlite3.Connection, signal_id: str, reader: str, *, counts: str = RECEIPT_HAS_LINE
) -> str | None:
    """Return the recorded delivery state of a signal for one reader, or None.

    Args:
        counts: The condition that a receipt `r` counts.
    """
    row = db.execute(
        f"SELECT state FROM receipt r WHERE signal_id = ? AND reader = ? AND {counts} ORDER BY at DESC, state DESC LIMIT 1",
        (signal_id, reader),
    ).fetchone()
    if row is None:
        return None
    return "delivered" if row[0] == "replied" else str(row[0])


def has_replied(db: sqlite3.Connection, signal_id: str, reader: str) -> bool:
    """Return whether a reader has answered a signal."""
    query = "SELECT 1 FROM receipt WHERE signal_id = ? AND reader = ? AND state = 'replied' LIMIT 1"
    return db.execute(query, (signal_id, reader)).fetchone() is not None


def recipients_with(db: sqlite3.Connection, words: str) -> list[str]:
    """Return the addresses of these words, of any writer, that have unread directed signals; of more than `WITH_MAX` some."""
    query = (
        f"SELECT DISTINCT reader FROM mail WHERE reader > ?1 || '@' AND reader < ?1 || 'A' LIMIT {WITH_MAX}"
    )
    return [str(reader) for (reader,) in db.execute(query, (words,)) if words_of(reader) == words]


def has_read(db: sqlite3.Connection, reader: str) -> bool:
    """Return whether a reader has a receipt for anything."""
    return db.execute("SELECT 1 FROM receipt WHERE reader = ? LIMIT 1", (reader,)).fetchone() is not None


_NEW = (
    # An empty text is bound four times as fast as None.
    "INSERT INTO signal VALUES (?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, ?)"
)
_UNREAD = (
    "INSERT OR IGNORE INTO mail SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM receipt r"
    f" WHERE r.signal_id = ?2 AND r.reader = ?1 AND {is_receipt_for('?4')})"
)
# A line with the content of another line, read before it arrived.
_SAME = (
    # A content has one workspace, which precedes it in the key.
    "DELETE FROM mail WHERE reader = ?1 AND signal_id = ?2 AND workspace = ?3 AND content = ?4 AND EXISTS (SELECT 1 FROM receipt r"
    f" WHERE r.signal_id = ?2 AND r.reader = ?1 AND {is_receipt_for('?4')})"
)
_WANTS = ("PROPOSE", "COUNTER")  # these intents ask for a decision


def add_rows(db: sqlite3.Connection, rows: Rows) -> set[str]:
    """Add signals, receipts and the first lines of readers, in any order of arrival.

    Returns:
        The readers that may have read more broadcasts now.
    """
    signals = rows.of("signal")
    hashed = hash_function_for(len(signals))
    digests = [hashed(content_without_time(line)).digest() for line in signals.lines]
    contents = digests
    if any(signals.column("idempotency_key")):
        contents = [content_of(record, of) for record, of in zip(signals.records, digests, strict=True)]
    _add_signals(db, signals, digests, contents)
    behind = broadcasts.add_readers(db, rows)
    given = receipts_in(rows)
    add_receipts(db, given)
    _add_mail(db, signals, digests, contents, {receipt[:3] for receipt in given})
    behind.update(reader for _, reader, *_ in given)
    return behind


def _add_signals(
    db: sqlite3.Connection, signals: NewLines, digests: Sequence[bytes], contents: Sequence[bytes]
) -> None:
    ids = signals.column("signal_id")
    empty = ("sender_session", "interrupt_class", "wu_id", "lane")
    sessions, interrupts, work_units, lanes = (
        [each or "" for each in signals.column(name)] for name in empty
    )
    values = zip(
        signals.ids,
        ids,
        [thread or id for thread, id in zip(signals.column("thread_id"), ids, strict=True)],
        signals.column("sender_identity"),
        sessions,
        [intent or "INFO" for intent in signals.column("intent")],
        interrupts,
        map(unit_key, work_units),
        lanes,
        [0 if to else 1 for to in signals.column("recipients")],
        map(bytearray, digests),
        map(bytearray, contents),
        strict=True,
    )
    db.executemany(_NEW, values)


# The time of the first line of an id, whatever arrives first.
_ASKED = "INSERT INTO asked VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = min(at, excluded.at)"


def _add_mail(
    db: sqlite3.Connection,
    signals: NewLines,
    digests: Sequence[bytes],
    contents: Sequence[bytes],
    read: Collection[tuple[str, str, bytes]],
) -> None:
    """Add unread rows for the recipients of signals, or broadcasts for everybody.

    Args:
        read: Signal, reader and digest of what is known to be read.
    """
    mail, keyed, asked, to_all = [], [], set(), []
    for row, digest, content in zip(signals, digests, contents, strict=True):
        record: SignalRecord = row.record
        id, recipients = record["signal_id"], record["recipients"]
        if not recipients:
            to_all.append((row, content))
            continue
        own = (record["sender_identity"], record.get("sender_session"))
        workspace = record.get("workspace_id") or ""
        of_signal = (id, workspace, record.get("task_id") or "", record["at"])
        asks = record.get("requires_ack") or record["intent"] in _WANTS
        if asks and not all(to in own for to in recipients):
            asked.add((own[0], *of_signal))
        for to in recipients:
            if to in own:
                continue
            if asks:
                asked.add((to, *of_signal))
            if content is not digest:
                keyed.append((to, id, workspace, content))
            if (id, to, digest) not in read:
                mail.append((to, id, workspace, bytearray(content)))
    db.executemany(_UNREAD, mail)
    db.executemany(_SAME, keyed)
    db.executemany(_ASKED, sorted(asked))
    broadcasts.add(db, to_all)


ADVANCED, ADVANCED_ROWS = 8, 300_000  # cursors moved at once, and broadcasts read for that
ADVANCE_ROWS = 100  # the cost of moving one cursor without any broadcast, in broadcasts read
PLACEHOLDERS_MAX = 500  # addresses of one reader with a placeholder each

DDL = (
    # `digest` is the line's, `content` a key of its content, see `mailbox.content`: 32 bytes each.
    "CREATE TABLE signal (line INTEGER PRIMARY KEY, signal_id TEXT, thread TEXT, sender TEXT, sender_session TEXT,"
    " intent TEXT, interrupt TEXT, wu_id TEXT, lane TEXT, broadcast INTEGER, digest BLOB, content BLOB)",
    "CREATE INDEX signal_id ON signal (signal_id, digest)",
    # With the sender: who owes an answer to its own proposal has decided on another one since.
    "CREATE INDEX signal_thread ON signal (thread, sender)",
    # For `gitmem why`: what was proposed on a work unit.
    "CREATE INDEX signal_proposed ON signal (wu_id) WHERE intent = 'PROPOSE' AND wu_id <> ''",
    # Every line of an id counts, so the rows do not depend on the order of arrival.
    "CREATE TABLE mail (reader TEXT, signal_id TEXT, workspace TEXT, content BLOB,"
    " PRIMARY KEY (reader, signal_id, workspace, content)) WITHOUT ROWID",
    "CREATE TABLE asked (reader TEXT, signal_id TEXT, workspace TEXT, task TEXT, at TEXT,"
    " PRIMARY KEY (reader, signal_id, workspace, task)) WITHOUT ROWID",
    # For who waits for whom.
    "CREATE INDEX asked_at ON asked (at)",
    *broadcasts.DDL,
    *RECEIPT_DDL,
)


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add signals, receipts and the first lines of readers, in any order of arrival."""
    behind = add_rows(db, rows)
    if sum(not to for to in rows.of("signal").column("recipients")) >= ADVANCE_ROWS:
        # The receipts of these broadcasts may have come before them: a large log is indexed in several portions.
        last = "(SELECT max(line) FROM broadcast)"
        behind.update(reader for (reader,) in db.execute(f"SELECT reader FROM reader WHERE cursor < {last}"))
    for reader in _cursors_to_move(db, behind, rows):
        _advance(db, reader)


_IS_OWN = "SELECT 1 FROM own JOIN session s ON s.session_id = own.name WHERE s.session_id = ?1 OR s.agent_identity = ?1"


def _cursors_to_move(db: sqlite3.Connection, behind: set[str], rows: Rows) -> list[str]:
    """Return the readers whose cursor moves now: of many, this clone's own, then those that these lines name last.

    A cursor only saves work, so it may lag: thousands of new readers must not cost the product of their number and the
    number of broadcasts. Peers may choose names and times, but only this clone's readers look into inboxes here.
    """
    if len(behind) <= ADVANCED:
        return sorted(behind)
    (count,) = db.execute("SELECT count(*) FROM broadcast").fetchone()
    last: dict[str, str] = {}
    for lines, names in broadcasts.readers_in(rows):
        for name, at in zip(names, lines.column("at"), strict=True):
            if name and last.get(name, "") < at:
                last[name] = at

    def rank(reader: str) -> tuple[bool, str, str]:
        return db.execute(_IS_OWN, (reader,)).fetchone() is not None, last.get(reader, ""), reader

    latest = sorted(behind, key=rank, reverse=True)
    return latest[: max(ADVANCED, ADVANCED_ROWS // (count + ADVANCE_ROWS))]


# `{own}` are the placeholders of a reader's addresses, see `_own`.
IN_WORKSPACE = "(:workspace IS NULL OR workspace IN ('', :workspace))"
# Evaluated once for each id, not for each of its lines: a peer can write thousands of lines under one id.
URGENT = (
    "SELECT reader, signal_id FROM ({found}) m WHERE NOT EXISTS"
    " (SELECT 1 FROM signal s WHERE s.signal_id = m.signal_id AND s.interrupt = 'advisory')"
)
IN_WORKSPACE_OF_LINE = IN_WORKSPACE.replace(
    "workspace IN", "coalesce(json_extract(l.body, '$.workspace_id'), '') IN"
)
# Of a task that somebody has taken, or that has ended, nobody owes an answer any more.
_SETTLED = "(t.taken OR t.decided_by IS NOT NULL OR t.replaced = 1)"


def owed(is_author: str) -> str:
    """Return the condition on a row of `asked` that its reader may owe an answer, with the condition that the reader wrote the signal."""
    # Its author may owe an answer to its own proposal once it has decided on another one.
    return (
        f" AND (NOT {is_author}"
        " OR EXISTS (SELECT 1 FROM signal s WHERE s.thread IN (SELECT thread FROM signal o WHERE o.signal_id = asked.signal_id)"
        " AND s.sender = asked.reader AND s.signal_id <> asked.signal_id))"
        f" AND (asked.task = '' OR NOT EXISTS (SELECT 1 FROM task t WHERE t.task_id = asked.task AND {_SETTLED}))"
    )


OWED = owed("EXISTS (SELECT 1 FROM signal s WHERE s.signal_id = asked.signal_id AND s.sender = asked.reader)")
_ON = " AND EXISTS (SELECT 1 FROM signal s WHERE s.signal_id = asked.signal_id AND (s.wu_id IS NULL OR s.wu_id = :unit))"
LATER = " AND signal_id IN (SELECT signal_id FROM signal WHERE line > :after)"
BROADCASTS = (
    f"SELECT DISTINCT :o0, b.signal_id FROM broadcast b WHERE b.sender NOT IN {{own}} AND {IN_WORKSPACE}"
    " AND (b.sender_session IS NULL OR b.sender_session NOT IN {own})"
)
UNREAD_BROADCAST = (
    " AND b.line > :cursor AND {news}"
    " AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.signal_id = b.signal_id AND r.reader IN {own}"
    f" AND {is_receipt_for('b.content')})"
)
# A session has several client ids if its context was cleared. Who resumes an earlier one is another agent.
_SESSIONS = (
    "SELECT f.session_id, e.session FROM entity_line e LEFT JOIN session f ON f.harness_session = e.session"
    " AND f.harness_session = (SELECT harness_session FROM session WHERE session_id = e.id)"
    " WHERE e.kind = 'session' AND e.id = ? AND e.session IS NOT NULL"
)

# The next session of an agent reads the messages to the ids of its ended ones.
_ENDED = (
    "SELECT s.session_id FROM session s WHERE s.agent_identity = ? AND s.ended IS NOT NULL"
    " AND EXISTS (SELECT 1 FROM mail m WHERE m.reader = s.session_id)"
)


def _own(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None
) -> tuple[str, dict[str, str | int | None]]:
    """Return a reader's addresses, itself first: placeholders for SQL, and the values of its queries.

    These are the reader, its session, the ids that its client has had, and the other sessions of its present one: a resumed
    conversation is the same agent. So are the ended sessions of its agent identity, if they have left signals unread.
    """
    same = db.execute(_SESSIONS, (session or reader,)).fetchall()
    found = [reader, session or reader, *(each for row in same for each in row if each)]
    ended = [str(id) for (id,) in db.execute(_ENDED, (reader,))] if ":" in reader else []
    ids = dict.fromkeys([*found, *ended])
    values: dict[str, str | int | None]
    if len(ids) > PLACEHOLDERS_MAX:
        values = {"o0": reader, "own": json_list(ids), "workspace": workspace}
        return "(SELECT value FROM json_each(:own))", values
    values = {f"o{number}": each for number, each in enumerate(ids)}
    return f"({', '.join(f':{name}' for name in values)})", {**values, "workspace": workspace}


def _directed(own: str, table: str) -> str:
    return f"SELECT DISTINCT reader, signal_id FROM {table} WHERE reader IN {own} AND {IN_WORKSPACE}"


def _advance(db: sqlite3.Connection, reader: str) -> None:
    """Move a reader's cursor over the broadcasts that it has read, to skip them in later queries."""
    since = BroadcastStart(db, reader, None)
    if since.line is None:
        return
    (last,) = db.execute("SELECT coalesce(max(line), 0) FROM broadcast").fetchone()
    unread = _first_unread(db, reader, since, since.cursor)
    db.execute("UPDATE reader SET cursor = ? WHERE reader = ?", (unread - 1 if unread else last, reader))


def skips_unread(db: sqlite3.Connection, reader: str) -> bool:
    """Return whether a reader's cursor is beyond a broadcast that it has not read."""
    since = BroadcastStart(db, reader, None)
    return 0 < _first_unread(db, reader, since, 0) <= since.cursor


def _first_unread(db: sqlite3.Connection, reader: str, since: BroadcastStart, cursor: int) -> int:
    """Return the line of the first broadcast after a line that a reader has not read, or 0."""
    first = f"SELECT b.line FROM broadcast b WHERE b.sender NOT IN {{own}}{UNREAD_BROADCAST} ORDER BY b.line LIMIT 1"
    values = {**since.values, "o0": reader, "cursor": cursor}
    found = db.execute(first.format(own="(:o0)", news=since.condition), values).fetchone()
    return int(found[0]) if found else 0


def unread_ids(
    db: sqlite3.Connection,
    reader: str,
    session: str | None,
    workspace: str | None,
    now: int,
    *,
    directed: bool = False,
    after: int = 0,
) -> list[tuple[str, str]]:
    """Return (address, signal id) of everything that a reader has not read, unordered.

    Excluded are signals to other addresses, those of another workspace, those with a receipt of the reader, broadcasts
    that it sent itself, and broadcasts from before its start (`BroadcastStart`).

    Args:
        reader: The reader identity.
        session: Its session id. Signals to it, to the client's id that it was started under, or to another session
            of that id are its own too, even if it got an agent identity later.
        workspace: Exclude signals of other workspaces; None includes all.
        now: Microseconds. A reader unknown to the log gets the last day's broadcasts, and the newest.
        directed: Only signals that may interrupt the reader: no broadcasts and no `advisory` ones.
        after: Only signals with a line that was indexed after this one.
    """
    own, values = _own(db, reader, session, workspace)
    later, chosen = LATER if after else "", URGENT if directed else "{found}"
    mine = chosen.format(found=_directed(own, "mail") + later)
    values["after"] = after
    if directed:
        return db.execute(mine, values).fetchall()
    since = BroadcastStart(db, reader, now)
    values |= {**since.values, "cursor": max(since.cursor, after)}
    others = (BROADCASTS + UNREAD_BROADCAST).format(own=own, news=since.condition)
    return db.execute(f"{mine} UNION {others}", values).fetchall()


def directed_to(
    db: sqlite3.Connection,
    reader: str,
    session: str | None,
    workspace: str | None,
    *,
    unread: bool,
    unit: str | None = None,
) -> tuple[str, dict[str, str | int | None]]:
    """Return the query for (address, signal id) of the signals sent to a reader in particular, and its values.

    Args:
        unread: Select the signals that it has not read; else those that want an answer, read or not.
        unit: Only the signals that want an answer and name this work unit or none; None for all.
    """
    own, values = _own(db, reader, session, workspace)
    values["unit"] = unit
    return _directed(own, "mail") if unread else _directed(own, "asked") + OWED + (
        _ON if unit is not None else ""
    ), values


def asking(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None
) -> list[tuple[str, str]]:
    """Return id and thread of the signals to a reader that ask it for a decision and may still want one."""
    mine, values = directed_to(db, reader, session, workspace, unread=False)
    return db.execute(
        f"SELECT DISTINCT s.signal_id, s.thread FROM ({mine}) m JOIN signal s ON s.signal_id = m.signal_id",
        values,
    ).fetchall()


def settled(db: sqlite3.Connection, task_id: str | None) -> str | None:
    """Return why nobody owes an answer to the signal of a task, in words; None while somebody does, and for an unknown task."""
    if not task_id:
        return None
    query = (
        f"SELECT decided_by IS NOT NULL, state, replaced, holder FROM task t WHERE task_id = ? AND {_SETTLED}"
    )
    row = db.execute(query, (task_id,)).fetchone()
    if row is None:
        return None
    is_finished, state, replaced, holder = row
    if is_finished or replaced == 1:
        return str(state) if is_finished else "replaced"
    return f"taken by {holder}" if holder else "taken before"


def is_overdue(db: sqlite3.Connection, task_id: str | None, now: int) -> bool:
    """Return whether nobody has taken a task, and the deadline before which it had to begin is over."""
    query = f"SELECT 1 FROM task t WHERE task_id = ? AND deadline <= ? AND NOT {_SETTLED}"
    return bool(task_id) and db.execute(query, (task_id, now)).fetchone() is not None


def line_of(db: sqlite3.Connection, signal_id: str) -> bytes:
    """Return the line of a signal that is displayed: the lowest if its id has several."""
    (body,) = db.execute(
        "SELECT min(l.body) FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ?", (signal_id,)
    ).fetchone()
    return str(body).encode()


def is_only_signal(db: sqlite3.Connection, thread_id: str, signal_id: str) -> bool:
    """Return whether a thread has no other signal."""
    others = db.execute(
        "SELECT 1 FROM signal WHERE thread = ? AND signal_id <> ? LIMIT 1", (thread_id, signal_id)
    )
    return others.fetchone() is None


def all_ids(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None
) -> list[tuple[str, str]]:
    """Return (address, signal id) of every signal that was ever for a reader, read or not."""
    own, values = _own(db, reader, session, workspace)
    read = DIRECTED.format(found="receipt", own=own) + f" AND {IN_WORKSPACE_OF_LINE}"
    every = f"{_directed(own, 'mail')} UNION {read} UNION {BROADCASTS.format(own=own)}"
    return db.execute(every, values).fetchall()


_OPEN = (
    "SELECT n.session_id, n.agent_identity, n.workspace_id,"
    " coalesce((SELECT max(a.until) FROM alive a WHERE a.session_id = n.session_id), 0)"
    # Anybody can write a session with the id of this clone. Sessions that were started here have a file here.
    " FROM session n WHERE n.session_id IN (SELECT value FROM json_each(:here))"
    " AND n.ended IS NULL AND n.clone_id = :clone"
)
_FOR_WHOM_IS_NEWS = (
    " AND EXISTS (SELECT 1 FROM signal s WHERE s.line > :after AND (s.broadcast OR EXISTS"
    " (SELECT 1 FROM mail m WHERE m.signal_id = s.signal_id AND m.reader IN"
    " (SELECT n.session_id UNION ALL SELECT n.agent_identity UNION ALL"
    " SELECT e.session FROM entity_line e WHERE e.kind = 'session' AND e.id = n.session_id"
    " UNION ALL SELECT f.session_id FROM session f WHERE f.harness_session = n.harness_session"
    " UNION ALL SELECT f.session_id FROM session f WHERE f.agent_identity = n.agent_identity AND f.ended IS NOT NULL))))"
)


def open_sessions(
    db: sqlite3.Connection,
    clone_id: str,
    here: Iterable[str],
    *,
    after: int = 0,
    only: str | None = None,
    readers: tuple[str, str] | None = None,
) -> list[tuple[str, str | None, str | None, int]]:
    """Return the open sessions of a clone among these: id, identity, workspace, end of their name.

    Args:
        after: Only those that a signal indexed after this line may be for; 0 for all.
        only: Only this session.
        readers: Only those of this identity, or one of these sessions.
    """
    query, (reader, id) = _OPEN, readers or ("", "")
    if after:
        query += _FOR_WHOM_IS_NEWS
    if only is not None:
        query += " AND n.session_id = :only"
    if readers is not None:
        query += " AND (n.agent_identity = :reader OR n.session_id IN (:reader, :id))"
    values = {
        "clone": clone_id,
        "here": json_list(sorted(here)),
        "after": after,
    }
    return db.execute(query, {**values, "only": only, "reader": reader, "id": id}).fetchall()


def contents_of(db: sqlite3.Connection, signal_id: str) -> list[tuple[bytes, bytes]]:
    """Return the lines of an id in the order of `(at, bytes)`, each with the key of its content."""
    rows = db.execute(
        "SELECT l.body, s.content FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? ORDER BY l.body",
        (signal_id,),
    )
    return [(str(body).encode(), content) for body, content in rows]


def headers_of(
    db: sqlite3.Connection, ids: Iterable[str]
) -> Iterator[tuple[str, str, str, str, str, str, str, str, str]]:
    """Yield id, time, interrupt class, work unit, lane, thread, intent, sender and session of the line of each signal that is displayed."""
    query = (
        "SELECT signal_id, l.at, interrupt, wu_id, lane, thread, intent, sender, sender_session FROM signal s"
        " JOIN line l ON l.id = s.line WHERE signal_id = ? ORDER BY l.body LIMIT 1"
    )
    for id in ids:
        yield db.execute(query, (id,)).fetchone()


IMPORTED_PREFIX = f"{IMPORTED_ORIGIN}:"


def imported_address(text: str) -> str | None:
    """Return the imported address that a text names, or None."""
    return (
        text.removeprefix(IMPORTED_PREFIX)
        if text.startswith(IMPORTED_PREFIX) and not is_identity(text)
        else None
    )


def may_want_answer(db: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[str, str, int, bool]]:
    """Return for each of these signals its id and thread, how many contents it has, and whether it rejects something."""
    query = (
        "SELECT signal_id, min(thread), count(DISTINCT content), max(intent = 'REJECT') FROM signal"
        " WHERE signal_id IN (SELECT value FROM json_each(?)) GROUP BY signal_id"
    )
    return db.execute(query, (json_list(ids),)).fetchall()


# For what shows, lists or compares signals and receipts; everyday commands without mail need none of it.


def unread_contents(db: sqlite3.Connection, reader: str, signal_id: str) -> set[bytes]:
    """Return the contents of an id that are unread at an address."""
    rows = db.execute(
        "SELECT content FROM mail WHERE reader = :reader AND signal_id = :id UNION"
        " SELECT b.content FROM signal s JOIN broadcast b ON b.line = s.line WHERE s.signal_id = :id AND NOT EXISTS (SELECT 1 FROM receipt r"
        f" WHERE r.signal_id = :id AND r.reader = :reader AND {is_receipt_for('b.content')})",
        {"reader": reader, "id": signal_id},
    )
    return {content for (content,) in rows}


def readers_of_missing(db: sqlite3.Connection, signal_id: str, most: int) -> list[str]:
    """Return readers with a receipt for a line of a signal that is not in the log, at most so many."""
    query = (
        "SELECT DISTINCT reader FROM receipt r WHERE signal_id = ? AND state <> 'replied'"
        f" AND NOT {RECEIPT_HAS_LINE} ORDER BY reader LIMIT ?"
    )
    return [str(reader) for (reader,) in db.execute(query, (signal_id, most))]


def last_of_people(db: sqlite3.Connection, most: int) -> list[SignalRecord]:
    """Return the last signal of each person, of so many who wrote last."""
    query = (
        "SELECT l.body FROM (SELECT max(line) AS last FROM signal WHERE sender LIKE 'human:%'"
        " GROUP BY sender ORDER BY last DESC LIMIT ?) s JOIN line l ON l.id = s.last"
    )
    read = (records.read_kind("signal", str(body).encode()) for (body,) in db.execute(query, (most,)))
    return [record for record in read if record is not None]


# The condition on a row `s` of `signal` with its line `l` that it is from or for one of `:readers`.
OF_READERS = (
    "(s.sender IN (SELECT value FROM json_each(:readers)) OR s.sender_session IN (SELECT value FROM json_each(:readers))"
    " OR EXISTS (SELECT 1 FROM json_each(coalesce(json_extract(l.body, '$.recipients'), json_array(json_extract(l.body, '$.target_agent')))) j"
    " WHERE j.value IN (SELECT value FROM json_each(:readers))))"
)


def of_readers(table: str, *columns: str) -> str:
    """Return the condition that one of the columns of a table is one of the `readers` of a selection."""
    found = (f"{table}.{each} IN (SELECT value FROM json_each(:readers))" for each in columns)
    return f"({' OR '.join(found)})"


def threads_of_unit(db: sqlite3.Connection, unit: str, until: str, most: int) -> list[str]:
    """Return the threads with a proposal on a work unit up to a time, the last one first."""
    rows = db.execute(
        "SELECT s.thread, max(l.at) FROM signal s JOIN line l ON l.id = s.line WHERE s.wu_id = ? AND s.intent = 'PROPOSE'"
        " AND s.wu_id <> '' AND l.at <= ? GROUP BY s.thread ORDER BY 2 DESC LIMIT ?",
        (unit, until, most),
    )
    return [str(thread) for thread, _ in rows.fetchall()]


def proposed_on(db: sqlite3.Connection, unit: str) -> list[tuple[str, str, str]]:
    """Return thread, id and sender of each proposal in a thread with something on a work unit, the oldest first."""
    return db.execute(
        "SELECT s.thread, s.signal_id, s.sender FROM signal s JOIN line l ON l.id = s.line WHERE s.intent IN ('PROPOSE', 'COUNTER')"
        " AND s.thread IN (SELECT thread FROM signal WHERE wu_id = ?) ORDER BY l.body",
        (unit,),
    ).fetchall()


def in_threads_with(condition: str) -> str:
    """Return the condition on a row `s` of `signal` that a signal of its thread fulfils a condition."""
    return f"s.thread IN (SELECT s.thread FROM signal s JOIN line l ON l.id = s.line WHERE {condition})"


def newest(
    db: sqlite3.Connection, condition: str, values: Mapping[str, str | int], most: int
) -> tuple[list[tuple[str, str]], int]:
    """Return the newest signals that fulfil a condition, each with its thread, and how many more there are."""
    from ..index import entities

    query = (
        "SELECT s.signal_id, min(s.thread) FROM signal s JOIN line l ON l.id = s.line"
        f" WHERE {condition} GROUP BY s.signal_id"
    )
    return entities.select(db, query, values, order="min(l.at) DESC, s.signal_id", limit=most)


def newest_threads(db: sqlite3.Connection, most: int) -> tuple[list[tuple[str, str, int]], int]:
    """Return the threads with the newest signals, each with the time of that and the number of all, and how many more there are."""
    from ..index import entities

    query = (
        "SELECT s.thread, max(l.at) AS last, count(DISTINCT s.signal_id) FROM signal s JOIN line l ON l.id = s.line"
        " GROUP BY s.thread"
    )
    return entities.select(db, query, (), order="last DESC, s.thread", limit=most)


def threads_of(db: sqlite3.Connection, ids: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return the threads of signals, each with the signal."""
    query = (
        "SELECT DISTINCT thread, signal_id FROM signal WHERE signal_id IN (SELECT value FROM json_each(?))"
    )
    return db.execute(query, (json_list(ids),))


# All authors at once, and one text for each: one id may have many lines, and many readers.
_AUTHORS = "SELECT signal_id || ' ' || sender FROM signal WHERE signal_id IN (SELECT signal_id FROM asked WHERE at > ?1)"
_IS_AUTHOR = f"asked.signal_id || ' ' || asked.reader IN ({_AUTHORS})"
_NEWEST_ASKED = (
    "SELECT id, (SELECT min(thread) FROM signal WHERE signal_id = id), readers FROM"
    " (SELECT signal_id AS id, json_group_array(DISTINCT reader) AS readers, min(at) AS first FROM asked WHERE at > ?1"
    f" AND NOT EXISTS (SELECT 1 FROM task t WHERE t.task_id = asked.task){owed(_IS_AUTHOR)}"
    " GROUP BY signal_id ORDER BY first DESC, id LIMIT ?2)"
)


def newest_asked(db: sqlite3.Connection, since: str, most: int) -> list[tuple[str, str, list[str]]]:
    """Return the newest signals that ask somebody for an answer, each with its thread and who may owe one; not those about tasks.

    Args:
        since: Only those from this time on, as lines have it.
    """
    from ..text import strict_json

    rows = db.execute(_NEWEST_ASKED, (since, most)).fetchall()
    return [(id, thread, sorted(strict_json.read(readers))) for id, thread, readers in rows]


# A reply counts for a recipient of an answered line, and for a reader of a broadcast. There, the reply of a session
# counts for its agent identity alone. A reply without a digest answers every line of the id: any one counts.
_ANSWERED = (
    "EXISTS (SELECT 1 FROM signal k JOIN line l ON l.id = k.line"
    " WHERE k.signal_id = r.signal_id AND (k.digest = r.digest OR r.digest = x'')"
    " AND CASE WHEN k.broadcast THEN k.sender <> r.reader AND NOT EXISTS"
    " (SELECT 1 FROM session s WHERE s.session_id = r.reader AND s.agent_identity IS NOT NULL)"
    " ELSE r.reader IN (SELECT value FROM json_each(coalesce(json_extract(l.body, '$.recipients'),"
    " json_array(json_extract(l.body, '$.target_agent'))))) END)"
)
RECEIPT_COUNTS = f"{RECEIPT_HAS_LINE} AND (r.state <> 'replied' OR {_ANSWERED})"
# The first line of each signal and reader that counts: its time, which has 27 characters, and the digest in it.
_FIRST_RECEIPT = (
    "SELECT * FROM (SELECT r.signal_id AS id, r.reader AS reader, min(r.at || lower(hex(r.digest))) AS first"
    " FROM receipt r WHERE {where} GROUP BY r.signal_id, r.reader)"
)


def receipts(
    db: sqlite3.Connection, signal_id: str | None, readers: Collection[str] | None, limit: int
) -> tuple[list[tuple[str, str, str]], int]:
    """Return the newest receipts that count, each of the first line that does, and the number of all.

    Args:
        signal_id: Only those of this signal.
        readers: Only those of these readers.

    Returns:
        Signal, reader, and time and digest in one text, of which the time has 27 characters.
    """
    from ..index import entities

    where = [RECEIPT_COUNTS]
    where += ["r.signal_id = :signal"] if signal_id is not None else []
    where += ["r.reader IN (SELECT value FROM json_each(:readers))"] if readers is not None else []
    values = {"signal": signal_id, "readers": json_list(sorted(readers or ()))}
    query, order = _FIRST_RECEIPT.format(where=" AND ".join(where)), "first DESC, id DESC, reader DESC"
    rows, more = entities.select(db, query, values, order=order, limit=limit)
    return rows, len(rows) + more


def keyed_receipts(db: sqlite3.Connection, ids: Iterable[str], times: Iterable[str]) -> Iterable[bytes]:
    """Return the lines of receipts for these signals, of these times, that have an idempotency key."""
    from ..index import entities

    condition = (
        f"l.kind = 'receipt' AND l.at {entities.AMONG} AND json_extract(l.body, '$.signal_id') {entities.AMONG}"
        " AND json_extract(l.body, '$.idempotency_key') IS NOT NULL"
    )
    values = (json_list(times), json_list(ids))
    return entities.bodies(db, condition, values, order="l.body DESC")


LEFT_MAX = 50


_LEFT_BEHIND = (
    "SELECT s.session_id FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last"
    " WHERE s.session_id IN (SELECT name FROM own) AND (s.session_id IN (SELECT reader FROM mail)"
    " OR s.agent_identity IN (SELECT reader FROM mail)) ORDER BY t.until DESC LIMIT ?"
)


def left_behind(store: Store) -> list[Presence]:
    """Return the sessions of this clone that are not at work, that have unread directed signals, and whose signals nobody at work reads.

    Last seen first, at most `LEFT_MAX`, none that was not seen for a month.
    """
    from . import heartbeats, presence

    found: dict[str, Presence] = {}
    for (session_id,) in store.db().execute(_LEFT_BEHIND, (LEFT_MAX,)).fetchall():
        one = presence.get(store, str(session_id))
        if one is None or one.is_current or one.age > heartbeats.INACTIVE_MICROS:
            continue
        if one.agent_identity and any(
            each.is_current for each in presence.of_identity(store, one.agent_identity)
        ):
            continue
        if one.harness_session and presence.of_published_client(store, one.harness_session) is not None:
            continue
        waiting = directed_to(
            store.db(), one.reader, one.session_id, one.record.get("workspace_id"), unread=True
        )
        if store.db().execute(*waiting).fetchone() is not None:
            found.setdefault(one.reader, one)
    return sorted(found.values(), key=lambda one: (-one.last_seen, one.session_id))


_ALL_IMPORTED = (
    "SELECT DISTINCT s.signal_id FROM signal s JOIN line l ON l.id = s.line WHERE NOT s.broadcast"
    " AND json_extract(l.body, '$.origin') = :origin AND EXISTS"
    " (SELECT 1 FROM json_each(json_extract(l.body, '$.recipients')) j WHERE j.value = :address)"
)


_UNREAD_IMPORTED = (
    "SELECT DISTINCT m.signal_id FROM mail m JOIN signal s ON s.signal_id = m.signal_id JOIN line l ON l.id = s.line"
    " WHERE m.reader = :address AND json_extract(l.body, '$.origin') = :origin"
)


def imported_ids(db: sqlite3.Connection, address: str, *, all: bool = False) -> set[str]:
    """Return the ids of the imported signals that were sent to an address.

    Args:
        all: Include those with a receipt of that address.
    """
    values = {"address": address, "origin": IMPORTED_ORIGIN}
    found = db.execute(_UNREAD_IMPORTED, values).fetchall()
    if all:
        found += db.execute(_ALL_IMPORTED, values).fetchall()
    return {str(signal_id) for (signal_id,) in found}


def imported_inbox(address: str) -> str:
    """Return the command that shows the imported signals to an address."""
    return command("gitmem", "inbox", "--for", IMPORTED_PREFIX + address)
