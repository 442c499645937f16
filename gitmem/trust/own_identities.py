"""Agent identities that only sessions of this clone have, and forged lines in their names.

An identity is *ours alone* while every session of the log that has it was started here, by lines with a valid code.
Then a line in its name without a valid code is forged, whatever session it names, if any, unless it is older than
the first of those lines. A receipt or reply can't be older than its signal: so an older one is forged too if its
signal is not older.
"""

from __future__ import annotations

from .sender_tables import PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..index.entities import LineRow, NewLines

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
    from ..index.insert import key_of

    query = "SELECT 1 FROM line l JOIN forged f ON f.line = l.id AND f.name = ? WHERE l.key = ?"
    return db.execute(query, (name, key_of(line))).fetchone() is not None


def record_bearers(db: sqlite3.Connection, sessions: Iterable[LineRow], valid: Collection[int]) -> set[str]:
    """Record which sessions have which identities, and since when by lines with a valid code.

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


def update(
    db: sqlite3.Connection,
    signals: NewLines,
    claims: Mapping[str, Sequence[int]],
    changed: set[str],
    new: Sequence[str],
) -> tuple[set[int], bool]:
    """Update the forged lines after new lines arrived.

    Args:
        signals: The signals among these lines.
        claims: The names for which these lines speak without a valid code, with the lines.
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
    fresh |= _add(db, {name: lines for name, lines in claims.items() if name not in changed})
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
    now = _forged(db, name, since) if since else set()
    db.execute("DELETE FROM own_identity WHERE name = ?", (name,))
    if since:
        db.execute("INSERT INTO own_identity VALUES (?, ?)", (name, since))
    db.executemany("DELETE FROM forged WHERE name = ? AND line = ?", [(name, line) for line in before - now])
    db.executemany("INSERT INTO forged VALUES (?, ?)", [(name, line) for line in sorted(now - before)])
    return now - before, bool(before - now)


def _add(db: sqlite3.Connection, claims: Mapping[str, Sequence[int]]) -> set[int]:
    """Record which claims are forged, those for identities that are ours alone; return the new forged lines."""
    fresh: set[int] = set()
    for name, found in claims.items():
        row = db.execute("SELECT since FROM own_identity WHERE name = ?", (name,)).fetchone()
        if row is None:
            continue
        for line in sorted(_forged(db, name, row[0], found)):
            if db.execute("INSERT OR IGNORE INTO forged VALUES (?, ?)", (name, line)).rowcount:
                fresh.add(line)
    return fresh


def _forged(db: sqlite3.Connection, name: str, since: str, among: Collection[int] | None = None) -> set[int]:
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
