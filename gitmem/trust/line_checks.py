"""Check whether lines that speak for sessions and clients of this clone were written here.

A line speaks for the session or client that it names as its writer. A name is our own once a line with a valid
code (`gitmem.text.digests`) has started that session, or speaks for that client (agent identities: `own_identities`).
A line that speaks for our own name without a valid code is *forged*. It counts in every fold, as `docs/local-state.md`
specifies, but not when this clone determines its own sessions and the signals that they have read.
"""

from __future__ import annotations

from ..index.entities import LineRow, Rows
from ..text.digests import is_signed
from . import own_identities
from .sender_tables import KEY, PREFIXES, READER_KINDS, is_own, reader_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..index.entities import NewLines
    from ..index.index_file import Index
    from ..log.local_log import LocalLog
    from ..outcome import Progress
    from ..records.record_types import AnyRecord
    from .clone_key import CloneKey

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


def add(db: sqlite3.Connection, rows: Rows, key: CloneKey | None) -> None:
    """Add lines to the tables, checked with a key; None if no key is available now."""
    mac = key.mac if key is not None else None
    proven: set[str] = set()
    unchecked: set[int] = set()
    valid: set[int] = set()
    readers: list[LineRow] = []  # valid lines that may be the first of a reader
    claims: dict[str, list[int]] = {}
    for kind, lines in rows.by_kind.items():
        checked: set[int] = set()
        if any(lines.column("mac")):
            signed = [position for position, line in enumerate(lines.lines) if is_signed(line)]
            if mac is not None:
                signed = [position for position in signed if mac.is_valid(lines.lines[position])]
                proven |= _proven(kind, lines, signed)
            checked = {lines.ids[position] for position in signed}
            if mac is None:
                unchecked |= checked
            else:
                valid |= checked
                if kind in READER_KINDS:
                    readers += [row for row in lines if row.id in checked]
        if len(checked) < len(lines):
            _claim(claims, kind, lines, checked)
    claims = {name: sorted(set(found)) for name, found in claims.items()}
    db.executemany(
        "INSERT INTO packed_claim VALUES (?, ?, ?)",
        [(name, found[0], f"[{','.join(map(str, found))}]") for name, found in claims.items()],
    )
    db.executemany("INSERT OR IGNORE INTO unchecked VALUES (?)", [(line,) for line in sorted(unchecked)])
    new = [name for name in sorted(proven) if not is_own(db, name)]
    db.executemany("INSERT OR IGNORE INTO own VALUES (?)", [(name,) for name in new])
    _note_first(db, readers)
    changed = own_identities.record_bearers(db, rows.of("session"), valid)
    fresh = _note_forged(db, claims, new)
    more, withdrawn = own_identities.update(db, rows.of("signal"), claims, changed, new)
    if withdrawn:
        db.execute("DELETE FROM doubt")
        fresh = {line for (line,) in db.execute("SELECT line FROM forged")}
    _remove_doubts(db, rows)
    _add_doubts(db, sorted(fresh | more))


def _claim(claims: dict[str, list[int]], kind: str, lines: NewLines, but: Collection[int]) -> None:
    """Collect the names for which lines speak, except lines whose code is valid or cannot be checked now."""
    fields, agents = _SPEAKERS.get(kind, _ELSE)
    for field in fields:
        column = lines.column(field)
        names = {
            name
            for name in set(column)
            if isinstance(name, str)
            and (name.startswith(PREFIXES) or (field in agents and own_identities.is_agent(name)))
        }
        for name, line in zip(column, lines.ids, strict=True):
            if name in names and line not in but:
                claims.setdefault(name, []).append(line)


def _proven(kind: str, lines: NewLines, positions: Sequence[int]) -> set[str]:
    """Return the names that lines with a valid code prove to be our own.

    A session also needs a start line, because we may write for a session of another clone.

    Args:
        positions: The positions of lines whose code is valid.
    """
    fields, _ = _SPEAKERS.get(kind, _ELSE)
    columns = [lines.column(field) for field in fields]
    names = {column[position] for column in columns for position in positions}
    if kind == "session":
        events = lines.column("event")
        begun = {
            column[position] for column in columns for position in positions if events[position] == "start"
        }
    else:
        begun = set()
    return {
        name
        for name in names
        if isinstance(name, str) and (name.startswith("h-") or (name in begun and name.startswith(PREFIXES)))
    }


def _note_first(db: sqlite3.Connection, valid: Iterable[LineRow]) -> None:
    """Record the first line of each reader among those with a valid code; of one time the lowest line."""
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


def catch_up_checked(index: Index, log: LocalLog, key: CloneKey, progress: Progress | None = None) -> None:
    """Update the index to the log as `index.catch_up` does, and check every line.

    Raises:
        sqlite3.DatabaseError: The index can't be used.
    """
    from ..index.catch_up import catch_up

    catch_up(index, log, progress=progress)
    if not check_pending(index, key):
        catch_up(index, log, progress=progress)


def check_pending(index: Index, key: CloneKey) -> bool:
    """Check the lines that arrived while the key could not be read.

    Returns:
        False if the index was made with another key and must be filled again.

    Raises:
        sqlite3.DatabaseError: The index can't be used.
    """
    from .. import records

    if key.mac is None:
        return True
    known, waits = index.db.execute(
        f"SELECT (SELECT value FROM meta WHERE key = '{KEY}'), EXISTS (SELECT 1 FROM unchecked)"
    ).fetchone()
    if known == key.fingerprint and not waits:
        return True
    if known not in (None, key.fingerprint):
        index.db.execute("PRAGMA user_version = 0")
        return False
    index.db.execute("BEGIN IMMEDIATE")
    try:
        rows = index.db.execute(
            "SELECT l.id, l.body FROM unchecked u JOIN line l ON l.id = u.line"
        ).fetchall()
        index.db.execute("DELETE FROM unchecked")
        found = [(line, body.encode()) for line, body in rows]
        every = [(line, body, records.read(body)) for line, body in found]
        read = [LineRow(line, body, record) for line, body, record in every if record is not None]
        add(index.db, Rows(read), key)
        index.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, key.fingerprint))
        index.db.execute("COMMIT")
    except BaseException:
        if index.db.in_transaction:
            index.db.execute("ROLLBACK")
        raise
    return True
