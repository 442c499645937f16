"""Lines that speak for sessions and clients of this clone, and whether they were written here.

A line speaks for the session or client that it names as its writer. A name is our own once a line with a valid
code (`gitmem.mac`) has begun that session, or speaks for that client (agent identities: `own_identities`). A line that speaks for an own name and has
no valid code is *forged*: it counts in every fold, as `docs/format.md` section 9 says, and for nothing where
this clone asks who its sessions are and what they have read.
"""

from __future__ import annotations

from ..index.schema import Row
from ..mac import is_signed
from . import own_identities
from .known_senders import KEY
from .known_senders import KINDS as KINDS
from .known_senders import PREFIXES as PREFIXES
from .known_senders import is_forged as is_forged
from .known_senders import is_own as is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..index.schema import Index
    from ..log.log import Log
    from .clone_key import CloneKey

FEW = 16


def speakers(record: Mapping[str, object]) -> list[str]:
    """Return the sessions and clients that a record says it comes from."""
    kind = record["kind"]
    if kind == "session":
        names: tuple[object, ...] = (record.get("session_id"), record.get("harness_session"))
    elif kind == "audit":
        names = (record.get("sender_session"), record.get("sender_identity"), record.get("reader_identity"))
    elif kind in ("receipt", "access"):
        names = (record.get("reader_session"), record.get("reader_identity"))
    else:
        names = (record.get("sender_session"), record.get("sender_identity"))
    return [name for name in names if isinstance(name, str) and name.startswith(PREFIXES)]


def add(db: sqlite3.Connection, rows: Sequence[Row], key: CloneKey | None) -> None:
    """Take in lines, checked with a key; None stands for a key that nobody has now."""
    mac = key.mac if key is not None else None
    proven: set[str] = set()
    claims: list[tuple[str, int]] = []
    unchecked: set[int] = set()
    valid: dict[int, Row] = {}
    for row in rows:
        names = speakers(row.record)
        if mac is not None and is_signed(row.line) and mac.is_valid(row.line):
            valid[row.id] = row
            proven.update(_proven(row.record, names))
        elif names := _named(row.record):
            claims += [(name, row.id) for name in names]
            if mac is None and is_signed(row.line):
                unchecked.add(row.id)
    db.executemany("INSERT OR IGNORE INTO claim VALUES (?, ?)", claims)
    db.executemany("INSERT OR IGNORE INTO unchecked VALUES (?)", [(line,) for line in sorted(unchecked)])
    new = [name for name in sorted(proven) if not is_own(db, name)]
    db.executemany("INSERT OR IGNORE INTO own VALUES (?)", [(name,) for name in new])
    _note_first(db, valid.values())
    changed = own_identities.note_bearers(db, rows, valid)
    fresh = _note_forged(db, [claim for claim in claims if claim[1] not in unchecked], new)
    more, withdrawn = own_identities.update(db, rows, claims, changed, new)
    if withdrawn:
        db.execute("DELETE FROM doubt")
        fresh = {line for (line,) in db.execute("SELECT line FROM forged")}
    _settle_doubts(db, rows)
    _note_doubts(db, sorted(fresh | more))


def _note_first(db: sqlite3.Connection, valid: Iterable[Row]) -> None:
    """Note the first line of each reader among those with a valid code."""
    from ..signals.broadcasts import KINDS, reader_of

    found = [
        (name, row.at, row.id)
        for row in valid
        if row.record["kind"] in KINDS
        for name in reader_of(row.record)
    ]
    db.executemany(
        "INSERT INTO own_first VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, line = excluded.line"
        " WHERE excluded.at < own_first.at",
        found,
    )


def _named(record: Mapping[str, object]) -> list[str]:
    """Every name that a record says it comes from."""
    return [*speakers(record), *own_identities.speakers(record)]


def _proven(record: Mapping[str, object], names: Iterable[str]) -> list[str]:
    """The names that a line with a valid code shows to be our own. One may write for a session of another clone."""
    begins = record["kind"] == "session" and record.get("event") == "start"
    return [name for name in names if begins or name.startswith("h-")]


def _note_forged(db: sqlite3.Connection, claims: Iterable[tuple[str, int]], new: Iterable[str]) -> set[int]:
    """Note which claims are forged: the new ones for our own names, and the old ones for names that are new."""
    found = [
        (name, line)
        for name in new
        for (line,) in db.execute(
            "SELECT line FROM claim WHERE name = ? AND line NOT IN (SELECT line FROM unchecked)", (name,)
        )
    ]
    claims = list(claims)
    known = {name: is_own(db, name) for name in {name for name, _ in claims}}
    found += [(name, line) for name, line in claims if known[name]]
    db.executemany("INSERT OR IGNORE INTO forged VALUES (?, ?)", found)
    return {line for _, line in found}


def _marks(record: Mapping[str, object]) -> list[tuple[str, str]]:
    """(reader, signal id) of what a record says was read."""
    if record["kind"] == "receipt":
        return [(str(record["reader_identity"]), str(record["signal_id"]))]
    if record["kind"] == "signal" and record.get("reply_to") and not record.get("via"):
        names = (record.get("sender_identity"), record.get("sender_session"))
        return [(str(name), str(record["reply_to"])) for name in names if name]
    return []


def _settle_doubts(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Doubts end where a line that is not forged says the same."""
    if db.execute("SELECT 1 FROM doubt LIMIT 1").fetchone():
        forged = _forged_among(db, [row.id for row in rows])
        said = [mark for row in rows if row.id not in forged for mark in _marks(row.record)]
        db.executemany("DELETE FROM doubt WHERE reader = ? AND signal_id = ?", said)


def _forged_among(db: sqlite3.Connection, lines: Iterable[int]) -> set[int]:
    """Return which of these lines are forged."""
    found = set()
    for line in lines:
        if db.execute("SELECT 1 FROM forged WHERE line = ? LIMIT 1", (line,)).fetchone():
            found.add(line)
    return found


def _note_doubts(db: sqlite3.Connection, lines: Sequence[int]) -> None:
    """Note what these forged lines say was read, where no other line says so. One pass over the log's marks."""
    from .. import records

    doubts: set[tuple[str, str]] = set()
    for line in lines:  # none, as a rule
        record = _record(db, line)
        if record is not None:
            doubts.update(_marks(record))
    if not doubts:
        return
    wanted = {signal_id for _, signal_id in doubts}
    forged = {line for (line,) in db.execute("SELECT line FROM forged")}
    for line, body in db.execute("SELECT id, body FROM line WHERE kind IN ('receipt', 'signal')").fetchall():
        if line in forged or (len(wanted) <= FEW and not any(signal_id in body for signal_id in wanted)):
            continue
        record = records.read(body.encode())
        if record is not None:
            doubts.difference_update(_marks(record))
    db.executemany("INSERT OR IGNORE INTO doubt VALUES (?, ?)", sorted(doubts))


def _record(db: sqlite3.Connection, line: int) -> dict[str, object] | None:
    from .. import records

    (body,) = db.execute("SELECT body FROM line WHERE id = ?", (line,)).fetchone()
    return records.read(str(body).encode())


def catch_up_checked(
    index: Index, log: Log, key: CloneKey, progress: Callable[[int], None] | None = None
) -> None:
    """Bring the index to the log as `index.catch_up` does, with every line checked.

    Raises: sqlite3.DatabaseError.
    """
    from ..index.catch_up import catch_up

    catch_up(index, log, progress=progress)
    if not settle(index, key):
        catch_up(index, log, progress=progress)


def settle(index: Index, key: CloneKey) -> bool:
    """Check what came while the key could not be read.

    Returns: False where the index was made with another key: it must catch up anew.

    Raises: sqlite3.DatabaseError.
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
        index.db.executemany(
            "DELETE FROM claim WHERE line = ? AND name = ?",
            [(line, name) for line, body in found for name in _named(records.read(body) or {"kind": ""})],
        )
        every = [(line, body, records.read(body)) for line, body in found]
        add(index.db, [Row(line, body, record) for line, body, record in every if record is not None], key)
        index.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, key.fingerprint))
        index.db.execute("COMMIT")
    except BaseException:
        if index.db.in_transaction:
            index.db.execute("ROLLBACK")
        raise
    return True
