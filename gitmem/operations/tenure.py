"""The view of sessions, of the names that they hold, and of the pool.

A session is folded from its records: of each field the latest value counts. A `tenure` is the time in
which it holds one display name: from the record that asked for it to the end of the session, or to 48
hours after its last record. Of tenures of one name that overlap, the first keeps it and the others get
the lowest free `-2`, `-3`, … What a name shows as thus depends on lines alone, never on the clock or on
the order in which lines arrive.
"""

from __future__ import annotations

import sqlite3

from ..index.schema import Row, View
from ..log.lines import parse_at
from .spelling import fold, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HOLD_MICROS = 48 * 3600 * 1_000_000
FIELDS = (
    "agent_identity", "display_name", "clone_id", "worktree", "wu_id", "initiative_id", "lane", "client",
    "workspace_id", "harness_session",
)  # fmt: skip
_COLUMNS = ", ".join(f"{name} TEXT" for name in FIELDS)
_EVENT_FIELDS = ", ".join(f"e.{name}" for name in FIELDS)

DDL = (
    # Times are microseconds since the epoch.
    f"CREATE TABLE session_event (line INTEGER PRIMARY KEY, session_id TEXT, at INTEGER, event TEXT, {_COLUMNS})",
    "CREATE INDEX session_event_of ON session_event (session_id)",
    # Of every id that ever wrote, also before its session is known, and of raw ids of harnesses.
    "CREATE TABLE seen (session_id TEXT PRIMARY KEY, at INTEGER) WITHOUT ROWID",
    f"CREATE TABLE session (session_id TEXT PRIMARY KEY, started INTEGER, ended INTEGER, {_COLUMNS})"
    " WITHOUT ROWID",
    "CREATE INDEX session_identity ON session (agent_identity)",
    "CREATE INDEX session_harness ON session (harness_session)",
    # `line` is the record that asked for the name, `last` marks the session's present tenure.
    "CREATE TABLE tenure (line INTEGER PRIMARY KEY, session_id TEXT, claimed INTEGER, until INTEGER,"
    " name TEXT, fold TEXT, root TEXT, shown TEXT, shown_fold TEXT, last INTEGER)",
    "CREATE INDEX tenure_session ON tenure (session_id)",
    "CREATE INDEX tenure_until ON tenure (until)",
    "CREATE INDEX tenure_fold ON tenure (fold, until)",
    "CREATE INDEX tenure_shown ON tenure (shown_fold, until)",
    "CREATE INDEX tenure_root ON tenure (root, until)",
    "CREATE INDEX tenure_claimed ON tenure (root, claimed)",
    "CREATE TABLE pool_name (fold TEXT PRIMARY KEY, name TEXT, event TEXT, at INTEGER, body TEXT) WITHOUT ROWID",
)


def add(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Take in sessions, names and the signs of life in signals, in whatever order they arrive."""
    last: dict[str, int] = {}
    changed: set[str] = set()
    names = []
    for row in rows:
        record = row.record
        try:
            at = parse_at(row.at)
        except ValueError:
            continue  # the 30th of February: a line that somebody wrote by hand
        kind = record["kind"]
        if kind == "session":
            writer = str(record["session_id"])
            _add_event(db, row.id, at, record)
            changed.add(writer)
        else:
            writer = str(record.get("sender_session") or "")
            if kind == "name":
                names.append((fold(str(record["name"])), record["name"], record["event"], at, row.line.decode()))
        if writer:
            last[writer] = max(last.get(writer, at), at)
    db.executemany(
        "INSERT INTO seen VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET at = excluded.at"
        " WHERE excluded.at > seen.at",
        last.items(),
    )
    db.executemany(
        "INSERT INTO pool_name VALUES (?, ?, ?, ?, ?) ON CONFLICT (fold) DO UPDATE SET name = excluded.name,"
        " event = excluded.event, at = excluded.at, body = excluded.body"
        " WHERE (excluded.at, excluded.body) > (pool_name.at, pool_name.body)",
        names,
    )
    since: dict[str, int] = {}  # roots whose names are to be settled anew, and from when on
    for session_id in sorted(changed):
        _fold_session(db, session_id, since)
    for session_id in sorted(last.keys() - changed):
        _extend(db, session_id, last[session_id], since)
    for name_root, at in since.items():
        _settle(db, name_root, at)


def _add_event(db: sqlite3.Connection, line: int, at: int, record: Mapping[str, object]) -> None:
    values = [line, record["session_id"], at, record["event"], *(record.get(name) for name in FIELDS)]
    db.execute(f"INSERT INTO session_event VALUES ({', '.join('?' * len(values))})", values)


def _fold_session(db: sqlite3.Connection, session_id: str, since: dict[str, int]) -> None:
    events = db.execute(
        f"SELECT e.line, e.at, e.event, {_EVENT_FIELDS} FROM session_event e JOIN line l ON l.id = e.line"
        " WHERE e.session_id = ? ORDER BY e.at, l.body",
        (session_id,),
    ).fetchall()
    started = next((at for _, at, event, *_ in events if event == "start"), events[0][1])
    ended = None
    fields: dict[str, object] = {}
    claims: list[tuple[int, int, str]] = []  # line, when, name
    for line, at, event, *given in events:
        fields.update({name: value for name, value in zip(FIELDS, given, strict=True) if value is not None})
        name = str(fields["display_name"])
        if not claims or (claims[-1][2] != name and event != "end"):
            claims.append((line, at, name))
        if event == "end":
            ended = at
            break
    fields["display_name"] = claims[-1][2]
    values = [session_id, started, ended, *(fields.get(name) for name in FIELDS)]
    db.execute(f"INSERT OR REPLACE INTO session VALUES ({', '.join('?' * len(values))})", values)
    if ended is None:
        (last_at,) = db.execute("SELECT at FROM seen WHERE session_id = ?", (session_id,)).fetchone()
        until = last_at + HOLD_MICROS
    else:
        until = ended
    ends = [at for _, at, _ in claims[1:]] + [until]
    now = {line: (at, end, name) for (line, at, name), end in zip(claims, ends, strict=True)}
    _replace_tenures(db, session_id, now, claims[-1][0], since)


def _replace_tenures(
    db: sqlite3.Connection, session_id: str, now: dict[int, tuple[int, int, str]], last: int, since: dict[str, int]
) -> None:
    """Write down what differs from the tenures that are known, and from when on that can matter to others."""
    known = {
        line: (claimed, until, name)
        for line, claimed, until, name in db.execute(
            "SELECT line, claimed, until, name FROM tenure WHERE session_id = ?", (session_id,)
        )
    }
    for line, (claimed, until, name) in known.items():
        if line not in now or now[line][2] != name:
            db.execute("DELETE FROM tenure WHERE line = ?", (line,))
            _note(since, root(fold(name)), claimed)
    for line, (claimed, until, name) in now.items():
        old = known.get(line)
        folded = fold(name)
        if old is None or old[2] != name:
            db.execute(
                "INSERT INTO tenure VALUES (?, ?, ?, ?, ?, ?, ?, '', '', ?)",
                (line, session_id, claimed, until, name, folded, root(folded), line == last),
            )
            _note(since, root(folded), claimed)
            continue
        db.execute("UPDATE tenure SET until = ?, last = ? WHERE line = ?", (until, line == last, line))
        if old[1] != until:
            _note(since, root(folded), min(old[1], until))


def _extend(db: sqlite3.Connection, session_id: str, last_at: int, since: dict[str, int]) -> None:
    """A sign of life: the session holds its name for longer."""
    found = db.execute(
        "SELECT t.line, t.until, t.root FROM tenure t JOIN session s ON s.session_id = t.session_id"
        " WHERE t.session_id = ? AND t.last AND s.ended IS NULL",
        (session_id,),
    ).fetchone()
    if found is None or found[1] >= last_at + HOLD_MICROS:
        return
    line, until, name_root = found
    db.execute("UPDATE tenure SET until = ? WHERE line = ?", (last_at + HOLD_MICROS, line))
    later = "SELECT 1 FROM tenure WHERE root = ? AND claimed >= ? LIMIT 1"
    if db.execute(later, (name_root, until)).fetchone():
        _note(since, name_root, until)


def _note(since: dict[str, int], name_root: str, at: int) -> None:
    since[name_root] = min(since.get(name_root, at), at)


def _settle(db: sqlite3.Connection, name_root: str, since: int) -> None:
    """Say what every tenure of a root that was claimed at `since` or later shows as.

    In the order of claims each takes its own name, or the lowest free number after it. A name that
    somebody got so is not taken away by one who asks for just that name later.
    """
    held = db.execute(
        # The unary plus keeps SQLite to the index that finds few rows.
        "SELECT until, shown_fold FROM tenure WHERE root = ? AND until > ? AND +claimed < ?",
        (name_root, since, since),
    ).fetchall()
    claims: Iterable[tuple[int, int, int, str, str]] = db.execute(
        "SELECT t.line, t.claimed, t.until, t.name, t.shown FROM tenure t JOIN line l ON l.id = t.line"
        " WHERE t.root = ? AND t.claimed >= ? ORDER BY t.claimed, l.body",
        (name_root, since),
    ).fetchall()
    for line, claimed, until, name, before in claims:
        held = [(other, folded) for other, folded in held if other > claimed]
        taken = {folded for _, folded in held}
        shown, number = name, 2
        while fold(shown) in taken:
            shown = f"{name}-{number}"
            number += 1
        if shown != before:
            db.execute("UPDATE tenure SET shown = ?, shown_fold = ? WHERE line = ?", (shown, fold(shown), line))
        held.append((until, fold(shown)))


VIEW = View(("session", "name", "signal"), DDL, add)
