"""Check whether lines that speak for sessions and clients of this clone were written here.

A line speaks for the session or client that it names as its sender. A line is our own if one of this user's writers has written
it. A name is our own once such a line has started that session in this clone, or speaks for that client in it.
A line of another writer that speaks for our own name is *forged*. It counts in every fold, as `docs/local-state.md`
specifies, but not when this clone determines its own sessions and the signals that they have read.

An agent identity is *ours alone* while every session of the log that has it was started here, by lines of our own.
Then a line of another writer in its name is forged, whatever session it names, if any, unless it is older than
the first of those lines. A receipt or reply can't be older than its signal: so an older one is forged too if its
signal is not older.
"""

from __future__ import annotations

import math

from .sender_tables import OWN, PREFIXES, READER_KINDS, is_own, reader_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..index.entities import LineRow, NewLines, Rows
    from ..index.index_file import Index
    from ..log.local_log import LocalLog
    from ..outcome import Progress
    from ..records.record_types import AnyRecord
    from .sender_tables import Own


_SINCE = (
    "SELECT min(b.since) FROM bearer b JOIN own o ON o.name = b.session_id WHERE b.identity = ?1 AND NOT EXISTS"
    " (SELECT 1 FROM bearer s WHERE s.identity = ?1 AND s.session_id NOT IN (SELECT name FROM own))"
)
_CLAIMED = " FROM claim c CROSS JOIN line l ON l.id = c.line WHERE c.name = :name"
_AMONG = " AND c.line IN (SELECT value FROM json_each(:lines))"
_NEWER = f"SELECT c.line{_CLAIMED} AND l.at >= :since"
_OLDER = (  # with the signal that the line marks as read or answers
    "SELECT c.line, json_extract(l.body, CASE l.kind WHEN 'receipt' THEN '$.signal_id' ELSE '$.reply_to' END)"
    f"{_CLAIMED} AND l.at < :since AND l.kind IN ('receipt', 'signal')"
)
_SIGNALS = (
    "SELECT DISTINCT s.signal_id FROM signal s JOIN line l ON l.id = s.line WHERE l.at >= ?"
    " AND s.signal_id IN (SELECT value FROM json_each(?))"
)
_HAS_CLAIMS = "SELECT 1 FROM own_identity i JOIN packed_claim c ON c.name = i.name LIMIT 1"
_READERS = (
    "SELECT DISTINCT r.reader FROM json_each(?) w CROSS JOIN receipt r ON r.signal_id = w.value"
    " CROSS JOIN own_identity i ON i.name = r.reader"
)


def is_agent(name: str) -> bool:
    """Return whether a name is that of an agent."""
    return ":" in name and not name.startswith((*PREFIXES, "human:"))


def is_forged(db: sqlite3.Connection, name: str, line: bytes) -> bool:
    """Return whether a line in the name of an identity is forged."""
    from ..index.catch_up import key_of

    query = "SELECT 1 FROM line l JOIN forged f ON f.line = l.id AND f.name = ? WHERE l.key = ?"
    return db.execute(query, (name, key_of(line))).fetchone() is not None


def record_bearers(db: sqlite3.Connection, sessions: Iterable[LineRow], valid: Collection[int]) -> set[str]:
    """Record which sessions have which identities, and since when by lines of our own.

    Returns:
        The identities.
    """
    found = [
        (identity, row.record["session_id"], row.at if row.id in valid else None)
        for row in sessions
        if (identity := row.record.get("agent_identity"))
    ]
    db.executemany(
        "INSERT INTO bearer VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since"
        " WHERE bearer.since IS NULL OR excluded.since < bearer.since",
        found,
    )
    return {str(identity) for identity, *_ in found}


def update_identities(
    db: sqlite3.Connection,
    signals: NewLines,
    claims: Mapping[str, Sequence[int]],
    changed: set[str],
    new: Sequence[str],
) -> tuple[set[int], bool]:
    """Update the forged lines after new lines arrived.

    Args:
        signals: The signals among these lines.
        claims: The names for which these lines speak of another writer, with the lines.
        changed: Identities whose sessions may have changed.
        new: Sessions that were found to be our own.

    Returns:
        The lines that became forged, and whether any line stopped being forged.
    """
    for session in new:
        every = db.execute("SELECT identity FROM bearer WHERE session_id = ?", (session,)).fetchall()
        changed = changed | {str(identity) for (identity,) in every}
    fresh: set[int] = set()
    withdrawn = False
    for name in sorted(changed):
        added, removed = _update_identity(db, name)
        fresh |= added
        withdrawn |= removed
    if not db.execute("SELECT 1 FROM own_identity LIMIT 1").fetchone():
        return fresh, withdrawn
    fresh |= _add_claims(db, {name: lines for name, lines in claims.items() if name not in changed})
    if not db.execute(_HAS_CLAIMS).fetchone():
        return fresh, withdrawn
    ids = set(map(str, signals.column("signal_id")))
    for (reader,) in db.execute(_READERS, (_json(ids),)).fetchall():
        if reader not in changed:
            fresh |= _update_identity(db, str(reader))[0]
    return fresh, withdrawn


def _update_identity(db: sqlite3.Connection, name: str) -> tuple[set[int], bool]:
    """Update whether an identity is ours alone, and its forged lines; return as `update` does."""
    (since,) = db.execute(_SINCE, (name,)).fetchone()
    before = {line for (line,) in db.execute("SELECT line FROM forged WHERE name = ?", (name,))}
    now = _forged_in_name(db, name, since) if since else set()
    db.execute("DELETE FROM own_identity WHERE name = ?", (name,))
    if since:
        db.execute("INSERT INTO own_identity VALUES (?, ?)", (name, since))
    db.executemany("DELETE FROM forged WHERE name = ? AND line = ?", [(name, line) for line in before - now])
    db.executemany("INSERT INTO forged VALUES (?, ?)", [(name, line) for line in sorted(now - before)])
    return now - before, bool(before - now)


def _add_claims(db: sqlite3.Connection, claims: Mapping[str, Sequence[int]]) -> set[int]:
    """Record which claims are forged, those for identities that are ours alone; return the new forged lines."""
    fresh: set[int] = set()
    for name, found in claims.items():
        row = db.execute("SELECT since FROM own_identity WHERE name = ?", (name,)).fetchone()
        if row is None:
            continue
        for line in sorted(_forged_in_name(db, name, row[0], found)):
            if db.execute("INSERT OR IGNORE INTO forged VALUES (?, ?)", (name, line)).rowcount:
                fresh.add(line)
    return fresh


def _forged_in_name(
    db: sqlite3.Connection, name: str, since: str, among: Collection[int] | None = None
) -> set[int]:
    """Return the forged lines in the name of an identity.

    Each signal that is read or answered is looked up once, however many claims name it and however many lines it has.

    Args:
        name: The identity.
        since: When the identity was first used here.
        among: Only these lines; None for all in the index.
    """
    values = {"name": name, "since": since}
    more = ""
    if among is not None:
        more, values["lines"] = _AMONG, _json(among)
    found = {line for (line,) in db.execute(_NEWER + more, values)}
    by_signal: dict[str, list[int]] = {}
    for line, signal_id in db.execute(_OLDER + more, values):
        if signal_id is not None:
            by_signal.setdefault(signal_id, []).append(line)
    if by_signal:
        for (signal_id,) in db.execute(_SIGNALS, (since, _json(by_signal))):
            found.update(by_signal[signal_id])
    return found


def _json(values: Iterable[str | int]) -> str:
    """Return row ids, or ids of signals, as a JSON list; ids need no escapes."""
    return "[" + ",".join(f'"{each}"' if isinstance(each, str) else str(each) for each in values) + "]"


FEW = 16


# The fields of a record that name the session or client it comes from, and those that name the agent.
_SPEAKERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "session": (("session_id", "harness_session"), ()),
    "audit": (
        ("sender_session", "sender_identity", "reader_identity"),
        ("sender_identity", "reader_identity"),
    ),
    "receipt": (("reader_session", "reader_identity"), ("reader_identity",)),
    "access": (("reader_session", "reader_identity"), ("reader_identity",)),
}
_ELSE = (("sender_session", "sender_identity"), ("sender_identity",))


def add(db: sqlite3.Connection, rows: Rows, own: Own) -> None:
    """Add lines to the tables."""
    proven: set[str] = set()
    valid: set[int] = set()
    readers: list[LineRow] = []  # own lines that may be the first of a reader
    claims: dict[str, list[int]] = {}
    _note_writers(db, own, min(row.id for row in rows))
    for kind, lines in rows.by_kind.items():
        positions = [
            position for position, writer in enumerate(lines.column("writer")) if writer in own.writers
        ]
        checked = {lines.ids[position] for position in positions}
        valid |= checked
        proven |= _proven(kind, lines, positions, own.clone)
        if kind in READER_KINDS:
            readers += [row for row in lines if row.id in checked]
        if len(checked) < len(lines):
            _claim(claims, kind, lines, checked)
    claims = {name: sorted(set(found)) for name, found in claims.items()}
    db.executemany(
        "INSERT INTO packed_claim VALUES (?, ?, ?)",
        [(name, found[0], f"[{','.join(map(str, found))}]") for name, found in claims.items()],
    )
    new = [name for name in sorted(proven) if not is_own(db, name)]
    db.executemany("INSERT OR IGNORE INTO own VALUES (?)", [(name,) for name in new])
    _note_first(db, readers)
    changed = record_bearers(db, rows.of("session"), valid)
    fresh = _note_forged(db, claims, new)
    more, withdrawn = update_identities(db, rows.of("signal"), claims, changed, new)
    if withdrawn:
        db.execute("DELETE FROM doubt")
        fresh = {line for (line,) in db.execute("SELECT line FROM forged")}
    _remove_doubts(db, rows)
    _add_doubts(db, sorted(fresh | more))


def _note_writers(db: sqlite3.Connection, own: Own, first: float = math.inf) -> bool:
    """Note for which writers the tables are filled.

    Args:
        first: The number of the first line that is checked for them.

    Returns:
        False if lines were checked for other writers: the index must be filled again.
    """
    row = db.execute("SELECT value FROM meta WHERE key = ?", (OWN,)).fetchone()
    clone, *before = row[0].split(" ") if row else (own.clone,)
    if row and row[0] == str(own):
        return True
    added = own.writers.difference(before)
    query = "SELECT 1 FROM line WHERE id < ? AND instr(body, ?) LIMIT 1"
    if clone not in ("", own.clone) or not own.writers.issuperset(before):
        return False
    if any(db.execute(query, (first, f'"writer":"{writer}"')).fetchone() for writer in sorted(added)):
        return False
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (OWN, str(own)))
    return True


def _claim(claims: dict[str, list[int]], kind: str, lines: NewLines, but: Collection[int]) -> None:
    """Collect the names for which lines speak, except own lines."""
    fields, agents = _SPEAKERS.get(kind, _ELSE)
    for field in fields:
        column = lines.column(field)
        names = {
            name
            for name in set(column)
            if isinstance(name, str) and (name.startswith(PREFIXES) or (field in agents and is_agent(name)))
        }
        for name, line in zip(column, lines.ids, strict=True):
            if name in names and line not in but:
                claims.setdefault(name, []).append(line)


def _proven(kind: str, lines: NewLines, positions: Sequence[int], clone: str) -> set[str]:
    """Return the names that own lines prove to be our own: sessions that began in this clone, and clients in it.

    Args:
        positions: The positions of own lines.
    """
    if kind != "session":
        return set()
    clones, starts = lines.column("clone_id"), [event == "start" for event in lines.column("event")]
    sessions, clients = lines.column("session_id"), lines.column("harness_session")
    here = [position for position in positions if clones[position] == clone]
    return {clients[at] for at in here if clients[at]} | {sessions[at] for at in here if starts[at]}


def _note_first(db: sqlite3.Connection, valid: Iterable[LineRow]) -> None:
    """Record the first line of each reader among those of our own; of one time the lowest line."""
    first: dict[str, LineRow] = {}
    for row in valid:
        for name in reader_of(row.record):
            if name not in first or (row.at, row.line) < (first[name].at, first[name].line):
                first[name] = row
    db.executemany(
        "INSERT INTO own_first VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, line = excluded.line"
        " WHERE excluded.at < own_first.at OR excluded.at = own_first.at AND"
        " (SELECT body FROM line WHERE id = excluded.line) < (SELECT body FROM line WHERE id = own_first.line)",
        [(name, row.at, row.id) for name, row in first.items()],
    )


def _note_forged(db: sqlite3.Connection, claims: Mapping[str, Sequence[int]], new: Iterable[str]) -> set[int]:
    """Record and return the forged lines: new claims for our own names, and old claims for names that became ours."""
    found = [
        (name, line)
        for name in new
        for (line,) in db.execute("SELECT line FROM claim WHERE name = ?", (name,))
    ]
    found += [(name, line) for name, lines in claims.items() if is_own(db, name) for line in lines]
    db.executemany("INSERT OR IGNORE INTO forged VALUES (?, ?)", found)
    return {line for _, line in found}


def _read_marks(record: AnyRecord) -> list[tuple[str, str]]:
    """Return the pairs (reader, signal id) that a record marks as read."""
    if record["kind"] == "receipt":
        return [(record["reader_identity"], record["signal_id"])]
    if record["kind"] == "signal" and (answered := record.get("reply_to")) and not record.get("via"):
        names = (record["sender_identity"], record.get("sender_session"))
        return [(name, answered) for name in names if name]
    return []


def _remove_doubts(db: sqlite3.Connection, rows: Rows) -> None:
    """Remove the doubts about signals that a new line that is not forged marks as read."""
    if db.execute("SELECT 1 FROM doubt LIMIT 1").fetchone():
        forged = _forged_among(db, [row.id for row in rows])
        marks = [mark for row in rows if row.id not in forged for mark in _read_marks(row.record)]
        db.executemany("DELETE FROM doubt WHERE reader = ? AND signal_id = ?", marks)


def _forged_among(db: sqlite3.Connection, lines: Iterable[int]) -> set[int]:
    """Return which of these lines are forged."""
    found = set()
    for line in lines:
        if db.execute("SELECT 1 FROM forged WHERE line = ? LIMIT 1", (line,)).fetchone():
            found.add(line)
    return found


def _add_doubts(db: sqlite3.Connection, lines: Sequence[int]) -> None:
    """Record what only forged lines mark as read, in one pass over the log's receipts and signals."""
    from .. import records

    doubts: set[tuple[str, str]] = set()
    for line in lines:  # usually empty
        record = _record(db, line)
        if record is not None:
            doubts.update(_read_marks(record))
    if not doubts:
        return
    wanted = {signal_id for _, signal_id in doubts}
    forged = {line for (line,) in db.execute("SELECT line FROM forged")}
    for line, body in db.execute("SELECT id, body FROM line WHERE kind IN ('receipt', 'signal')").fetchall():
        if line in forged or (len(wanted) <= FEW and not any(signal_id in body for signal_id in wanted)):
            continue
        read = records.read(body.encode())
        if read is not None:
            doubts.difference_update(_read_marks(read))
    db.executemany("INSERT OR IGNORE INTO doubt VALUES (?, ?)", sorted(doubts))


def _record(db: sqlite3.Connection, line: int) -> AnyRecord | None:
    from .. import records

    (body,) = db.execute("SELECT body FROM line WHERE id = ?", (line,)).fetchone()
    return records.read(str(body).encode())


def catch_up_checked(index: Index, log: LocalLog, own: Own, progress: Progress | None = None) -> None:
    """Update the index to the log as `index.catch_up` does, and check every line.

    Raises:
        sqlite3.DatabaseError: The index can't be used.
    """
    from ..index.catch_up import catch_up

    catch_up(index, log, progress=progress)
    if not _note_writers(index.db, own):
        index.db.execute("PRAGMA user_version = 0")
        catch_up(index, log, progress=progress)
