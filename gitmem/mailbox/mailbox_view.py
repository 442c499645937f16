"""The view of signals and receipts: which signals are unread by whom.

`mail` has a row for each directed signal that a recipient has no receipt for, `asked` one for each that may want an answer
from it, read or not, also for its author: `FoldedThread.owes` decides. Broadcasts are not copied to every reader: a reader has a cursor, the sequence number up to which
it has read all of them. The number is this index's own order of arrival, so a broadcast that arrives late is still new.
"""

from __future__ import annotations

from ..agents import heartbeats, own_sessions, presence
from ..index.index_file import View
from ..trust import sender_tables
from . import broadcasts, receipts
from .broadcasts import BroadcastStart
from .content import KEYED_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..agents.presence import Presence
    from ..index.rows import Rows
    from ..store import Store

ADVANCED, ADVANCED_ROWS = 8, 300_000  # cursors moved at once, and broadcasts read for that
ADVANCE_ROWS = 100  # the cost of moving one cursor without any broadcast, in broadcasts read
PLACEHOLDERS_MAX = 500  # addresses of one reader with a placeholder each

DDL = (
    # `digest` is the line's, `content` a key of its content, see `mailbox.content`: 32 bytes each.
    "CREATE TABLE signal (line INTEGER PRIMARY KEY, signal_id TEXT, thread TEXT, sender TEXT, sender_session TEXT,"
    " intent TEXT, interrupt TEXT, wu_id TEXT, lane TEXT, broadcast INTEGER, digest BLOB, content BLOB)",
    "CREATE INDEX signal_id ON signal (signal_id, digest)",
    "CREATE INDEX signal_thread ON signal (thread)",
    # For `gitmem why`: what was proposed on a work unit.
    "CREATE INDEX signal_proposed ON signal (wu_id) WHERE intent = 'PROPOSE' AND wu_id <> ''",
    # Every line of an id counts, so the rows do not depend on the order of arrival.
    "CREATE TABLE mail (reader TEXT, signal_id TEXT, workspace TEXT, content BLOB,"
    " PRIMARY KEY (reader, signal_id, workspace, content)) WITHOUT ROWID",
    "CREATE TABLE asked (reader TEXT, signal_id TEXT, workspace TEXT, task TEXT,"
    " PRIMARY KEY (reader, signal_id, workspace, task)) WITHOUT ROWID",
    *broadcasts.DDL,
    *receipts.DDL,
)


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add signals, receipts and the first lines of readers, in any order of arrival."""
    from . import mailbox_rows

    behind = mailbox_rows.add(db, rows)
    if sum(not to for to in rows.of("signal").column("recipients")) >= ADVANCE_ROWS:
        # The receipts of these broadcasts may have come before them: a large log is indexed in several portions.
        last = "(SELECT max(line) FROM broadcast)"
        behind.update(reader for (reader,) in db.execute(f"SELECT reader FROM reader WHERE cursor < {last}"))
    for reader in _cursors_to_move(db, behind, rows):
        _advance(db, reader)


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
        return sender_tables.is_ours(db, reader), last.get(reader, ""), reader

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
# Its author may owe an answer to its own proposal once it has decided on another one.
OWED = (
    " AND (NOT EXISTS (SELECT 1 FROM signal s WHERE s.signal_id = asked.signal_id AND s.sender = asked.reader)"
    " OR EXISTS (SELECT 1 FROM signal s WHERE s.thread IN (SELECT thread FROM signal o WHERE o.signal_id = asked.signal_id)"
    " AND s.sender = asked.reader AND s.signal_id <> asked.signal_id))"
    f" AND (asked.task = '' OR NOT EXISTS (SELECT 1 FROM task t WHERE t.task_id = asked.task AND {_SETTLED}))"
)
LATER = " AND signal_id IN (SELECT signal_id FROM signal WHERE line > :after)"
BROADCASTS = (
    f"SELECT DISTINCT :o0, b.signal_id FROM broadcast b WHERE b.sender NOT IN {{own}} AND {IN_WORKSPACE}"
    " AND (b.sender_session IS NULL OR b.sender_session NOT IN {own})"
)
UNREAD_BROADCAST = (
    " AND b.line > :cursor AND {news}"
    " AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.signal_id = b.signal_id AND r.reader IN {own}"
    f" AND {receipts.is_for('b.content')})"
)
# A broadcast that a reader of this clone has not read although a forged line says so: see `trust.line_checks`.
DOUBTED_BROADCAST = (
    " AND EXISTS (SELECT 1 FROM doubt d WHERE d.reader IN {own} AND d.signal_id = b.signal_id)"
    " AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.reader IN {own} AND r.signal_id = b.signal_id AND NOT EXISTS"
    " (SELECT 1 FROM doubt d WHERE d.reader = r.reader AND d.signal_id = r.signal_id))"
)
# A session has several client ids if its context was cleared. Who resumes an earlier one is another agent.
_SESSIONS = (
    "SELECT f.session_id, e.harness_session FROM session_event e LEFT JOIN session f ON f.harness_session ="
    " e.harness_session AND f.harness_session = (SELECT harness_session FROM session WHERE session_id = e.session_id) WHERE e.session_id = ? AND e.harness_session IS NOT NULL"
)

# Messages to another clone's session go to its id until that clone trusts its identity: the next session of the agent reads them.
_LEFT = "(EXISTS (SELECT 1 FROM mail m WHERE m.reader = s.session_id) OR EXISTS (SELECT 1 FROM doubt d WHERE d.reader = s.session_id))"
_ENDED = (
    "SELECT s.session_id, s.ended IS NOT NULL AND s.agent_identity = b.identity FROM bearer b JOIN session s USING (session_id)"
    f" WHERE b.identity = ? AND b.session_id IN (SELECT name FROM own) AND {_LEFT}"
)
_ENDED_SHARED = (
    "SELECT s.session_id FROM session s WHERE s.agent_identity = ? AND s.ended IS NOT NULL AND s.clone_id ="
    f" (SELECT clone_id FROM session WHERE session_id = ?) AND {_LEFT}"
)

LEFT_MAX = 50
_LEFT_BEHIND = (
    "SELECT s.session_id FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last"
    " WHERE s.session_id IN (SELECT name FROM own) AND (s.session_id IN (SELECT reader FROM mail)"
    " OR s.agent_identity IN (SELECT reader FROM mail)) ORDER BY t.until DESC LIMIT ?"
)


def _own(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None, *, shared: bool = False
) -> tuple[str, dict[str, str | int | None]]:
    """Return a reader's addresses, itself first: placeholders for SQL, and the values of its queries.

    These are the reader, its session, the ids that its client has had, and the other sessions of its present one: a resumed
    conversation is the same agent. So are the ended sessions of its agent identity in its clone, if they have left signals unread.
    """
    same = db.execute(_SESSIONS, (session or reader,)).fetchall()
    found = [reader, session or reader, *(each for row in same for each in row if each)]
    if not shared and sender_tables.is_forged(db, dict.fromkeys(found)):
        found = own_sessions.addresses(db, reader, session)
    ids = dict.fromkeys([*found, *_ended(db, reader, session, shared=shared)])
    if len(ids) > PLACEHOLDERS_MAX:
        listed = "[" + ",".join(f'"{_escaped(each)}"' for each in ids) + "]"
        return "(SELECT value FROM json_each(:own))", {"o0": reader, "own": listed, "workspace": workspace}
    values: dict[str, str | int | None] = {f"o{number}": each for number, each in enumerate(ids)}
    return f"({', '.join(f':{name}' for name in values)})", {**values, "workspace": workspace}


def _ended(db: sqlite3.Connection, reader: str, session: str | None, *, shared: bool) -> list[str]:
    """Return the ended sessions of an agent in its clone that have left signals unread; of ours by their genuine records alone."""
    if ":" not in reader:
        return []
    if shared:
        return [str(row[0]) for row in db.execute(_ENDED_SHARED, (reader, session)).fetchall()]
    found = []
    for name, has_ended in db.execute(_ENDED, (reader,)).fetchall():
        if sender_tables.is_forged(db, (name,)):
            _, ended, fields, _ = own_sessions.fold(db, name)
            has_ended = ended is not None and fields.get("agent_identity") == reader
        found += [str(name)] * bool(has_ended)
    return found


def _escaped(text: str) -> str:
    """Return a text escaped for a JSON string. Addresses have no control characters."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


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
    shared: bool = False,
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
        shared: The view of every clone: forged lines count, as in the roster.
    """
    own, values = _own(db, reader, session, workspace, shared=shared)
    later, chosen = LATER if after else "", URGENT if directed else "{found}"
    mine = chosen.format(found=_directed(own, "mail") + later)
    values["after"] = after
    in_doubt = not shared and sender_tables.has_doubts(db)
    again: set[tuple[str, str]] = set()
    if in_doubt:
        doubted = f"{receipts.DIRECTED.format(found='doubt', own=own)} AND {IN_WORKSPACE_OF_LINE}"
        doubted = f"SELECT reader, signal_id FROM ({doubted}) WHERE true{later}"
        again.update(db.execute(chosen.format(found=doubted), values).fetchall())
    if directed:
        return [*{*db.execute(mine, values).fetchall(), *again}]
    since = BroadcastStart(db, reader, now, None if shared else sender_tables.first_line(db, reader))
    values |= {**since.values, "cursor": max(since.cursor, after)}
    others = (BROADCASTS + UNREAD_BROADCAST).format(own=own, news=since.condition)
    every = db.execute(f"{mine} UNION {others}", values).fetchall()
    if not in_doubt:
        return every
    only = " AND " + since.condition + (" AND b.line > :after" if after else "")
    doubted = (BROADCASTS + DOUBTED_BROADCAST).format(own=own) + only
    return [*{*every, *again, *db.execute(doubted, values).fetchall()}]


def directed_to(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None, *, unread: bool
) -> tuple[str, dict[str, str | int | None]]:
    """Return the query for (address, signal id) of the signals sent to a reader in particular, and its values.

    Args:
        unread: Select the signals that it has not read; else those that want an answer, read or not.
    """
    own, values = _own(db, reader, session, workspace)
    return _directed(own, "mail") if unread else _directed(own, "asked") + OWED, values


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
    read = receipts.DIRECTED.format(found="receipt", own=own) + f" AND {IN_WORKSPACE_OF_LINE}"
    every = f"{_directed(own, 'mail')} UNION {read} UNION {BROADCASTS.format(own=own)}"
    return db.execute(every, values).fetchall()


def left_behind(store: Store) -> list[Presence]:
    """Return the sessions of this clone that are not at work, that have unread directed signals, and whose signals nobody at work reads.

    Last seen first, at most `LEFT_MAX`, none that was not seen for a month.
    """
    found: dict[str, Presence] = {}
    for (session_id,) in store.db().execute(_LEFT_BEHIND, (LEFT_MAX,)).fetchall():
        one = own_sessions.trusted(store, str(session_id))
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


# Stored contents depend on the keyed fields.
VIEW = View(("signal", "receipt", "session"), DDL, add, version=(13, KEYED_FIELDS))
