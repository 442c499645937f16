"""The view of signals and receipts: who has not read what yet.

`mail` has a row for each directed signal that a recipient has no receipt for, `asked` one for each that wants an
answer of it, read or not.
Broadcasts are not copied to every reader: a reader has a cursor, the sequence
number up to which it has read all of them. The number is this index's own
order of arrival, so a broadcast that arrives late is still new.
"""

from __future__ import annotations

from ..index.schema import View
from ..trust import sender_tables
from . import broadcasts, receipts
from .broadcasts import PAST as PAST
from .broadcasts import Since

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..index.rows import Rows

ADVANCED, ADVANCED_ROWS = 8, 200_000  # readers whose cursor moves at once, and broadcasts looked at for it
ADVANCE_ROWS = 100  # what moving one cursor costs without any broadcast, in broadcasts looked at
PLACEHOLDERS_MAX = 500  # addresses of one reader that a query names one by one

DDL = (
    # `digest` is the line's, `content` a key of what it says, see `signals.content`: 32 bytes each.
    "CREATE TABLE signal (line INTEGER PRIMARY KEY, signal_id TEXT, thread TEXT, sender TEXT, sender_session TEXT,"
    " intent TEXT, interrupt TEXT, wu_id TEXT, lane TEXT, broadcast INTEGER, digest BLOB, content BLOB)",
    "CREATE INDEX signal_id ON signal (signal_id, digest)",
    "CREATE INDEX signal_thread ON signal (thread)",
    # Of an id with several lines every line counts: the rows are then the same in whatever order they came.
    "CREATE TABLE mail (reader TEXT, signal_id TEXT, workspace TEXT, content BLOB,"
    " PRIMARY KEY (reader, signal_id, workspace, content)) WITHOUT ROWID",
    "CREATE TABLE asked (reader TEXT, signal_id TEXT, workspace TEXT, PRIMARY KEY (reader, signal_id, workspace))"
    " WITHOUT ROWID",
    *broadcasts.DDL,
    *receipts.DDL,
)


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Take in signals, receipts and the first sight of readers, in whatever order they arrive."""
    from . import mailbox_rows

    for reader in _lately(db, mailbox_rows.add(db, rows), rows):
        _advance(db, reader)


def _lately(db: sqlite3.Connection, behind: set[str], rows: Rows) -> list[str]:
    """The readers whose cursor moves now: where there are many, those that these lines name last.

    A cursor only saves work, so it may stay behind: thousands of new readers must not take the product of their
    number and that of all broadcasts.
    """
    if len(behind) <= ADVANCED:
        return sorted(behind)
    (count,) = db.execute("SELECT count(*) FROM broadcast").fetchone()
    last: dict[str, str] = {}
    for lines, names in broadcasts.named(rows):
        for name, at in zip(names, lines.column("at"), strict=True):
            if name and last.get(name, "") < at:
                last[name] = at
    latest = sorted(behind, key=lambda reader: (last.get(reader, ""), reader), reverse=True)
    return latest[: max(ADVANCED, ADVANCED_ROWS // (count + ADVANCE_ROWS))]


# `{own}` are the placeholders of what a reader may have been addressed as, see `_own`.
OURS = "(:workspace IS NULL OR workspace IN ('', :workspace))"
# Asked once for each id, not for each of its lines: a peer can write thousands of lines under one id.
URGENT = (
    "SELECT reader, signal_id FROM ({found}) m WHERE NOT EXISTS"
    " (SELECT 1 FROM signal s WHERE s.signal_id = m.signal_id AND s.interrupt = 'advisory')"
)
OURS_IN_LINE = OURS.replace("workspace IN", "coalesce(json_extract(l.body, '$.workspace_id'), '') IN")
LATER = " AND signal_id IN (SELECT signal_id FROM signal WHERE line > :after)"
BROADCASTS = (
    f"SELECT DISTINCT :o0, b.signal_id FROM broadcast b WHERE b.sender NOT IN {{own}} AND {OURS}"
    " AND (b.sender_session IS NULL OR b.sender_session NOT IN {own})"
)
NEW = (
    " AND b.line > :cursor AND {news}"
    " AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.signal_id = b.signal_id AND r.reader IN {own}"
    f" AND {receipts.is_for('b.content')})"
)
# A session that gitmem 0.1 started has two of a client: its id, and since it was resumed the hash of that.
_SESSIONS = (
    "SELECT f.session_id, e.harness_session FROM session_event e LEFT JOIN session f ON f.harness_session ="
    " e.harness_session WHERE e.session_id = ? AND e.harness_session IS NOT NULL"
)


def _own(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None, *, shared: bool = False
) -> tuple[str, dict[str, object]]:
    """What a reader may have been addressed as, itself first: placeholders for SQL, and the values of its queries.

    Its session; the client that this was started by; and every session that was started by the same one: a
    conversation that is taken up again is the same agent.
    """
    same = db.execute(_SESSIONS, (session or reader,)).fetchall()
    found = [reader, session or reader, *(each for row in same for each in row if each)]
    if not shared and sender_tables.is_forged(db, dict.fromkeys(found)):
        from ..agents import own_sessions

        found = own_sessions.addresses(db, reader, session)
    ids = dict.fromkeys(found)
    if len(ids) > PLACEHOLDERS_MAX:
        listed = "[" + ",".join(f'"{_escaped(each)}"' for each in ids) + "]"
        return "(SELECT value FROM json_each(:own))", {"o0": reader, "own": listed, "workspace": workspace}
    values: dict[str, object] = {f"o{number}": each for number, each in enumerate(ids)}
    return f"({', '.join(f':{name}' for name in values)})", {**values, "workspace": workspace}


def _escaped(text: str) -> str:
    """A text inside quotes of JSON; addresses have no control characters."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _directed(own: str, table: str) -> str:
    return f"SELECT DISTINCT reader, signal_id FROM {table} WHERE reader IN {own} AND {OURS}"


def _advance(db: sqlite3.Connection, reader: str) -> None:
    """Move a reader's cursor over the broadcasts that it has read, so that they are not looked at again."""
    since = Since(db, reader, None)
    if since.line is None:
        return
    (last,) = db.execute("SELECT coalesce(max(line), 0) FROM broadcast").fetchone()
    first = f"SELECT b.line FROM broadcast b WHERE b.sender NOT IN {{own}}{NEW} ORDER BY b.line LIMIT 1"
    values = {**since.values, "o0": reader, "cursor": since.cursor}
    unread = db.execute(first.format(own="(:o0)", news=since.condition), values).fetchone()
    db.execute("UPDATE reader SET cursor = ? WHERE reader = ?", (unread[0] - 1 if unread else last, reader))


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
    """(address, signal id) of everything that a reader has not read, unordered.

    Args:
        reader: The reader identity.
        session: Its session id: mail to it, to the harness's id that it was started under, or to another
            session of that harness's id is its own too, also where it got an agent identity later.
        workspace: Signals of other workspaces are left out; None sees all.
        now: Microseconds; a reader that the log does not know gets the last day's broadcasts, and the newest.
        directed: Only what may interrupt the reader: no broadcasts, and nothing that is `advisory`.
        after: Only signals of which a line came to the index after this one.
        shared: As every clone sees it: forged lines count, as in the roster.
    """
    own, values = _own(db, reader, session, workspace, shared=shared)
    later, chosen = LATER if after else "", URGENT if directed else "{found}"
    mine = chosen.format(found=_directed(own, "mail") + later)
    values["after"] = after
    in_doubt = not shared and sender_tables.has_doubts(db)
    again = set()
    if in_doubt:
        from . import doubted

        again = doubted.directed(db, own, OURS_IN_LINE, later, chosen, values)
    if directed:
        return [*{*db.execute(mine, values).fetchall(), *again}]
    since = Since(db, reader, now, None if shared else sender_tables.first_line(db, reader))
    values |= {**since.values, "cursor": max(since.cursor, after)}
    others = (BROADCASTS + NEW).format(own=own, news=since.condition)
    every = db.execute(f"{mine} UNION {others}", values).fetchall()
    if not in_doubt:
        return every
    only = " AND " + since.condition + (" AND b.line > :after" if after else "")
    return [*{*every, *again, *doubted.to_all(db, own, BROADCASTS.format(own=own) + only, values)}]


def directed_to(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None, *, unread: bool
) -> tuple[str, dict[str, object]]:
    """The query for (address, signal id) of what was sent to a reader in particular, and its values.

    Args:
        unread: What it has not read; else what wants an answer, read or not.
    """
    own, values = _own(db, reader, session, workspace)
    return _directed(own, "mail" if unread else "asked"), values


def line_of(db: sqlite3.Connection, signal_id: str) -> bytes:
    """The line of a signal that is shown: of an id with several the lowest."""
    (body,) = db.execute(
        "SELECT min(l.body) FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ?", (signal_id,)
    ).fetchone()
    return str(body).encode()


def is_alone(db: sqlite3.Connection, thread_id: str, signal_id: str) -> bool:
    """Whether a thread has no other signal."""
    others = db.execute(
        "SELECT 1 FROM signal WHERE thread = ? AND signal_id <> ? LIMIT 1", (thread_id, signal_id)
    )
    return others.fetchone() is None


def all_ids(
    db: sqlite3.Connection, reader: str, session: str | None, workspace: str | None
) -> list[tuple[str, str]]:
    """The same of everything that was ever for a reader, read or not."""
    own, values = _own(db, reader, session, workspace)
    read = receipts.DIRECTED.format(found="receipt", own=own) + f" AND {OURS_IN_LINE}"
    every = f"{_directed(own, 'mail')} UNION {read} UNION {BROADCASTS.format(own=own)}"
    return db.execute(every, values).fetchall()


VIEW = View(("signal", "receipt", "session"), DDL, add, version=8)
