"""Sessions as entities: their declaration, their fold, the rows of the names that they hold and of the pool, and work units.

A `tenure` is a period in which a session holds one display name, see `order.session`. The displayed name depends on lines alone,
never on the clock or the order of arrival, and a session that returns after a pause takes its name from no other session.
"""

from __future__ import annotations

from .. import records
from ..index import entities
from ..index.entities import AMONG, EntityKind, Fold
from ..log.lines import parse_at
from ..order.session import FIELDS, HOLD_MICROS, FoldedSession, HeldNames, united
from ..records.ids import BOUND_LENGTH, is_work_unit, unit_key
from ..settings import WU
from ..text.name_matching import fold, strip_numbers
from ..text.strict_json import json_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..index.entities import Lines, Rows
    from ..records.record_types import SessionRecord
    from ..store import Store


# Of a session whose id is free: anybody can bring in its lines, as lines without a writer.
_FREE = f"length(session_id) <> {len('sess-') + BOUND_LENGTH}"
SESSION = EntityKind(
    "session",
    {"session": "session_id"},
    "session_id",
    # Times are microseconds since the epoch.
    f"started INTEGER, ended INTEGER, {', '.join(f'{name} TEXT' for name in FIELDS)}",
    records.read,
    indexes={"identity": "(agent_identity)", "harness": "(harness_session)"},
    ddl=(
        # When an id (also a client's raw one) was at work: each record counts with the 48 hours after it.
        "CREATE TABLE alive (session_id TEXT, begin INTEGER, until INTEGER, PRIMARY KEY (session_id, begin))"
        " WITHOUT ROWID",
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
        f"CREATE INDEX tenure_free ON tenure (root) WHERE {_FREE}",
        "CREATE INDEX session_client ON entity_line (kind, session) WHERE kind = 'session'",
    ),
    events=("session",),
    touched_by=("signal",),
    begins="start",
    senders=("agent_identity", "harness_session"),
    shares=("clone_id", "session_id"),
)


def events_in(lines: Lines) -> list[tuple[int, int, SessionRecord]]:
    """Return the number, the time and the record of each line of a session, without those whose time is none."""
    return [(row.id, at, row.record) for row in lines if (at := micros_of(row.at)) is not None]


def micros_of(at: str) -> int | None:
    """Return the time of a line; None for a date such as the 30th of February in a line written by hand."""
    try:
        return parse_at(at)
    except ValueError:
        return None


def fields_at(db: sqlite3.Connection, session_id: str, at: int) -> dict[str, str]:
    """Return the fields of a session as its records had them at a time, in microseconds."""
    earlier = [event for event in events_in(entities.lines(db, SESSION, session_id)) if event[1] <= at]
    return FoldedSession(earlier).fields if earlier else {}


def _also(db: sqlite3.Connection, new: Rows) -> set[str]:
    """Add the signs of life in all lines; return the sessions that these concern, and other names of clients."""
    times: dict[str, list[str]] = {}
    signals = new.of("signal")
    for writer, at in zip(signals.column("sender_session"), signals.column("at"), strict=True):
        if writer:
            times.setdefault(writer, []).append(at)
    for row in new.of("session"):
        writer = row.record.get("session_id")
        if writer and micros_of(row.at) is not None:
            times.setdefault(writer, []).append(row.at)
    return {session_id for session_id in sorted(times) if _extend_alive(db, session_id, times[session_id])}


def _extend_alive(db: sqlite3.Connection, session_id: str, times: Sequence[str]) -> bool:
    """Add the times of records to the periods when an id was at work; return whether that changes them."""
    ends = [micros_of(min(times)), micros_of(max(times))]
    first, last = ends
    if first is None or last is None or last - first > HOLD_MICROS:
        ends = [micros_of(at) for at in sorted(times)]  # else only the first and the last matter
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


def _rows(db: sqlite3.Connection, sessions: Mapping[str, Lines]) -> Iterator[Sequence[object]]:
    since: dict[str, int] = {}  # roots whose names must be assigned again, and from which time
    for session_id, lines in sessions.items():
        events = events_in(lines)
        if not events:
            continue  # signals came before their session, or were written under a client's raw id
        folded = FoldedSession(events)
        yield (session_id, folded.started, folded.ended, *map(folded.fields.get, FIELDS))
        alive = db.execute(
            "SELECT begin, until FROM alive WHERE session_id = ? ORDER BY begin", (session_id,)
        ).fetchall()
        _replace_name_periods(db, session_id, folded.name_periods(alive), since)
    for name_root, at in since.items():
        _assign_shown_names(db, name_root, at)


FOLD = Fold(_rows, _also)


def names_held(db: sqlite3.Connection, now: int) -> dict[str, str]:
    """Return the names that are held at a time, folded, each with its session."""
    query = "SELECT shown_fold, session_id FROM tenure WHERE until > ? ORDER BY claimed DESC"
    return dict(db.execute(query, (now,)).fetchall())


def last_held(db: sqlite3.Connection, folded: str) -> int:
    """Return when a folded name was last held, or will be free; 0 if it never was."""
    return int(db.execute("SELECT max(until) FROM tenure WHERE fold = ?", (folded,)).fetchone()[0] or 0)


# Each unit that a session, a signal, a memory node or a task was given, once: a look at all rows of these takes 75 ms of 100,000 each.
UNIT_KINDS = ("session", "signal", "node", "patch", "task")
UNIT_DDL = ("CREATE TABLE unit (key TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID",)


def add_units(db: sqlite3.Connection, rows: Rows) -> None:
    """Add the work units that lines name, in any order of arrival."""
    names = {name for kind in UNIT_KINDS for name in rows.of(kind).column("wu_id") if name}
    put = "INSERT INTO unit VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET name = min(name, excluded.name)"
    db.executemany(put, sorted((unit_key(name), name) for name in names))


def is_unit(db: sqlite3.Connection, key: str) -> bool:
    """Return whether a session, a signal, a memory node or a task names a work unit."""
    return db.execute("SELECT 1 FROM unit WHERE key = ?", (key,)).fetchone() is not None


def units(db: sqlite3.Connection, most: int) -> dict[str, str]:
    """Return the keys of known work units by their names, at most so many."""
    return dict(db.execute("SELECT name, key FROM unit ORDER BY key LIMIT ?", (most,)).fetchall())


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
    """Assign the displayed names of a root's tenures that were claimed at `since` or later, and of all with free ids.

    In the order of claims each gets its own name, or the lowest free number after it. A later claim to exactly such a
    numbered name does not take it away. Those of sessions with free ids come after all others.
    """
    held = f"SELECT until, shown_fold FROM tenure WHERE root = ? AND NOT {_FREE} AND until > ?"
    claims = (
        "SELECT t.rowid, t.claimed, t.until, t.name, t.shown FROM tenure t JOIN line l ON l.id = t.line"
        " WHERE t.root = ? AND {} ORDER BY +t.claimed, l.body"
    )
    # The unary plus makes SQLite use the index that finds few rows.
    before = db.execute(f"{held} AND +claimed < ?", (name_root, since, since))
    bound = claims.format(f"t.claimed >= ? AND NOT {_FREE}")
    _assign_in_order(db, HeldNames(before), db.execute(bound, (name_root, since)))
    free = db.execute(claims.format(_FREE), (name_root,)).fetchall()
    if free:
        _assign_in_order(db, HeldNames(db.execute(held, (name_root, free[0][1]))), free)


def _assign_in_order(
    db: sqlite3.Connection, held: HeldNames, claims: Iterable[tuple[int, int, int, str, str]]
) -> None:
    """Let each claim take a name beside those that are held, and write those that differ from what was displayed."""
    changed = []
    for rowid, claimed, until, name, before in claims:
        held.end(claimed)
        shown = held.take(name, until)
        if shown != before:
            changed.append((shown, fold(shown), rowid))
    db.executemany("UPDATE tenure SET shown = ?, shown_fold = ? WHERE rowid = ?", changed)


def every_id(db: sqlite3.Connection, identity: str) -> set[str]:
    """Return the sessions of an agent, open or not."""
    query = "SELECT session_id FROM session WHERE agent_identity = ?"
    return {str(id) for (id,) in db.execute(query, (identity,))}


def clone_of(db: sqlite3.Connection, session_id: str | None) -> str | None:
    """Return the clone in which a session began, as the log says; None for an unknown one."""
    row = db.execute("SELECT clone_id FROM session WHERE session_id = ?", (session_id,)).fetchone()
    return row[0] if row else None


def first_identities(db: sqlite3.Connection, most: int) -> list[str]:
    """Return the agents and people of the log, at most so many: those known longest."""
    query = "SELECT reader FROM reader WHERE reader LIKE '%:%' ORDER BY line LIMIT ?"
    return [str(reader) for (reader,) in db.execute(query, (most,))]


def names_had(
    db: sqlite3.Connection, session_ids: Iterable[str]
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each of these sessions with an agent identity and the published id of a client that its records have together."""
    query = f"SELECT DISTINCT id, sender, session FROM entity_line WHERE kind = 'session' AND id {AMONG}"
    yield from db.execute(query, (json_list(session_ids),))


def units_of_checkout(store: Store, branch: str | None = None) -> list[str]:
    """Return the work units of the branch's name that the log knows; else the configured one or none.

    Args:
        branch: The branch; by default the one that is checked out.
    """
    known = [wu for wu in units_named_by(branch or store.branch() or "") if is_known_unit(store, wu)]
    return known or [*filter(None, [WU.value(store.settings())])]


def units_named_by(branch: str) -> list[str]:
    """Return the possible work units in a branch's name.

    `lane/wu-12-retry-3` may be about WU-12, about RETRY-3 and about itself: only the log can tell.
    """
    import re

    numbers = re.findall(r"(?:^|/)#?([0-9]+)(?=-|$)", branch)  # as GitHub names branches for issues
    names = [*unit_keys_in(branch), branch, branch.rpartition("/")[2], *numbers]
    found: dict[str, str] = {}
    for name in filter(is_work_unit, names):
        found.setdefault(unit_key(name), name)
    return list(found.values())


def unit_keys_in(branch: str) -> list[str]:
    """Return the parts of a branch's name that look like `WU-123`, in upper case."""
    import re

    form = r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*-[0-9]+)(?![A-Za-z0-9])"
    return [key.upper() for key in re.findall(form, branch)]


def is_known_unit(store: Store, wu: str) -> bool:
    """Return whether a session, a signal or a memory node names this work unit."""
    return is_unit(store.db(), unit_key(wu))


def unit_remark(store: Store, wu: str | None) -> str | None:
    """Return a sentence about a work unit that no record names yet: it may be a typing error; None if one does."""
    if not wu or not is_work_unit(wu) or is_known_unit(store, wu):
        return None
    return f"{not_named(wu)} Check its spelling."


def not_named(wu: str) -> str:
    """Return the sentence about a work unit that no record names."""
    return f"No session, signal or memory node names the work unit {wu} yet."
