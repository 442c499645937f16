"""The view of sessions, of the names that they hold, and of the pool.

A `tenure` is a period in which a session holds one display name, see `order.session`. The displayed name depends on lines alone,
never on the clock or the order of arrival, and a session that returns after a pause takes its name from no other session.
"""

from __future__ import annotations

from ..index.index_file import View
from ..log.lines import parse_at
from ..order.session import FIELDS, HOLD_MICROS, FoldedSession, HeldNames, united
from ..records.lines import as_json
from ..text.name_matching import fold, strip_numbers
from .presence import events_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..index.rows import LineRow, Rows
    from ..records.record_types import SessionRecord


_JSON = tuple(FIELDS.index(name) for name in ("capabilities", "actual_ownership_scope"))
_COLUMNS = ", ".join(f"{name} TEXT" for name in FIELDS)

DDL = (
    # Times are microseconds since the epoch.
    f"CREATE TABLE session_event (line INTEGER PRIMARY KEY, session_id TEXT, at INTEGER, event TEXT, clear TEXT,"
    f" {_COLUMNS})",
    "CREATE INDEX session_event_of ON session_event (session_id)",
    # When an id (also a client's raw one) was at work: each record counts with the 48 hours after it.
    "CREATE TABLE alive (session_id TEXT, begin INTEGER, until INTEGER, PRIMARY KEY (session_id, begin))"
    " WITHOUT ROWID",
    f"CREATE TABLE session (session_id TEXT PRIMARY KEY, started INTEGER, ended INTEGER, {_COLUMNS})"
    " WITHOUT ROWID",
    "CREATE INDEX session_identity ON session (agent_identity)",
    "CREATE INDEX session_harness ON session (harness_session)",
    # `line` is the record that asked for the name, `last` marks the session's latest tenure.
    "CREATE TABLE tenure (session_id TEXT, line INTEGER, claimed INTEGER, until INTEGER, name TEXT, fold TEXT,"
    " root TEXT, shown TEXT, shown_fold TEXT, last INTEGER, UNIQUE (line, claimed))",
    "CREATE INDEX tenure_session ON tenure (session_id)",
    "CREATE INDEX tenure_last ON tenure (session_id) WHERE last",
    "CREATE INDEX tenure_until ON tenure (until)",
    "CREATE INDEX tenure_fold ON tenure (fold, until)",
    "CREATE INDEX tenure_shown ON tenure (shown_fold, until)",
    "CREATE INDEX tenure_root ON tenure (root, until)",
    "CREATE INDEX tenure_claimed ON tenure (root, claimed)",
    "CREATE TABLE pool_name (fold TEXT PRIMARY KEY, name TEXT, event TEXT, at INTEGER, body TEXT) WITHOUT ROWID",
)


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add sessions, names and the signs of life in signals, in any order of arrival."""
    times: dict[str, list[str]] = {}
    changed: set[str] = set()
    events: list[Sequence[object]] = []
    signals = rows.of("signal")
    for writer, at in zip(signals.column("sender_session"), signals.column("at"), strict=True):
        if writer:
            times.setdefault(writer, []).append(at)
    for row in (*rows.of("session"), *rows.of("name")):
        micros = _micros(row.at)
        if micros is None:
            continue
        if row.record["kind"] == "session":
            writer = row.record["session_id"]
            changed.add(writer)
            events.append(_event_values(row.id, micros, row.record))
        else:
            writer = row.record.get("sender_session")
            _add_name(db, micros, row)
        if writer:
            times.setdefault(writer, []).append(row.at)
    db.executemany(f"INSERT INTO session_event VALUES ({', '.join('?' * (5 + len(FIELDS)))})", events)
    since: dict[str, int] = {}  # roots whose names must be assigned again, and from which time
    for session_id in sorted(times):
        if _extend_alive(db, session_id, times[session_id]) or session_id in changed:
            _fold_session(db, session_id, since)
    for name_root, at in since.items():
        _assign_shown_names(db, name_root, at)


def _micros(at: str) -> int | None:
    """Return the time of a line; None for a date such as the 30th of February in a line written by hand."""
    try:
        return parse_at(at)
    except ValueError:
        return None


def _extend_alive(db: sqlite3.Connection, session_id: str, times: Sequence[str]) -> bool:
    """Add the times of records to the periods when an id was at work; return False if nothing changed."""
    ends = [_micros(min(times)), _micros(max(times))]
    first, last = ends
    if first is None or last is None or last - first > HOLD_MICROS:
        ends = [_micros(at) for at in sorted(times)]  # else only the first and the last matter
    new = [(at, at + HOLD_MICROS) for at in ends if at is not None]
    if not new:
        return False
    rows = db.execute(
        "SELECT begin, until FROM alive WHERE session_id = ? AND begin <= ? AND until >= ?",
        (session_id, new[-1][1], new[0][0]),
    )
    known = set(rows.fetchall())
    now = set(united([*known, *new]))
    db.executemany(
        "DELETE FROM alive WHERE session_id = ? AND begin = ?",
        [(session_id, begin) for begin, _ in known - now],
    )
    db.executemany("INSERT INTO alive VALUES (?, ?, ?)", [(session_id, *each) for each in now - known])
    return now != known


def _add_name(db: sqlite3.Connection, at: int, row: LineRow) -> None:
    name = row.record["name"]
    db.execute(
        "INSERT INTO pool_name VALUES (?, ?, ?, ?, ?) ON CONFLICT (fold) DO UPDATE SET name = excluded.name,"
        " event = excluded.event, at = excluded.at, body = excluded.body"
        " WHERE (excluded.at, excluded.body) > (pool_name.at, pool_name.body)",
        (fold(name), name, row.record["event"], at, row.line.decode()),
    )


def _event_values(line: int, at: int, record: SessionRecord) -> Sequence[object]:
    gone = " ".join(record.get("clear", ()))
    values: list[object] = [record.get(name) for name in FIELDS]
    for at_json in _JSON:
        values[at_json] = as_json(values[at_json]) if values[at_json] else None
    return line, record["session_id"], at, record["event"], gone, *values


def _fold_session(db: sqlite3.Connection, session_id: str, since: dict[str, int]) -> None:
    events = events_of(db, session_id)
    if not events:
        return  # signals came before their session, or were written under a client's raw id
    folded = FoldedSession(events)
    values = (session_id, folded.started, folded.ended, *map(folded.fields.get, FIELDS))
    if values != db.execute("SELECT * FROM session WHERE session_id = ?", (session_id,)).fetchone():
        db.execute(f"INSERT OR REPLACE INTO session VALUES ({', '.join('?' * len(values))})", values)
    alive = db.execute(
        "SELECT begin, until FROM alive WHERE session_id = ? ORDER BY begin", (session_id,)
    ).fetchall()
    _replace_name_periods(db, session_id, folded.name_periods(alive), since)


def _replace_name_periods(
    db: sqlite3.Connection,
    session_id: str,
    now: dict[tuple[int, int], tuple[int, str]],
    since: dict[str, int],
) -> None:
    """Write the differences from the known tenures, and note from which time they can affect others."""
    rows = db.execute(
        "SELECT line, claimed, until, name, last FROM tenure WHERE session_id = ?", (session_id,)
    )
    known = {(line, claimed): (until, name, is_last) for line, claimed, until, name, is_last in rows}
    for key in known.keys() - now.keys():
        db.execute("DELETE FROM tenure WHERE line = ? AND claimed = ?", key)
        _note(since, known[key][1], key[1])
    *_, last = now
    for key, (until, name) in now.items():
        if key not in known:
            folded = fold(name)
            db.execute(
                "INSERT INTO tenure VALUES (?, ?, ?, ?, ?, ?, ?, '', '', ?)",
                (session_id, *key, until, name, folded, strip_numbers(folded), key == last),
            )
            _note(since, name, key[1])
            continue
        if known[key] != (until, name, key == last):
            values = (until, key == last, *key)
            db.execute("UPDATE tenure SET until = ?, last = ? WHERE line = ? AND claimed = ?", values)
        if known[key][0] != until:
            _note(since, name, min(known[key][0], until))


def _note(since: dict[str, int], name: str, at: int) -> None:
    name_root = strip_numbers(fold(name))
    since[name_root] = min(since.get(name_root, at), at)


def _assign_shown_names(db: sqlite3.Connection, name_root: str, since: int) -> None:
    """Assign the displayed names of a root's tenures that were claimed at `since` or later.

    In the order of claims each gets its own name, or the lowest free number after it. A later claim to exactly such a
    numbered name does not take it away.
    """
    held = HeldNames(
        db.execute(
            # The unary plus makes SQLite use the index that finds few rows.
            "SELECT until, shown_fold FROM tenure WHERE root = ? AND until > ? AND +claimed < ?",
            (name_root, since, since),
        )
    )
    claims = db.execute(
        "SELECT t.rowid, t.claimed, t.until, t.name, t.shown FROM tenure t JOIN line l ON l.id = t.line"
        " WHERE t.root = ? AND t.claimed >= ? ORDER BY t.claimed, l.body",
        (name_root, since),
    )
    changed = []
    for rowid, claimed, until, name, before in claims:
        held.end(claimed)
        shown = held.take(name, until)
        if shown != before:
            changed.append((shown, fold(shown), rowid))
    db.executemany("UPDATE tenure SET shown = ?, shown_fold = ? WHERE rowid = ?", changed)


VIEW = View(("session", "name", "signal"), DDL, add)
