"""Resolve an id, or the prefix of one, to a signal or thread."""

from __future__ import annotations

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

PREFIX_MIN = 6  # characters after the dash, if the caller writes
READ_PREFIX_MIN = 4  # the same as git's minimum
TYPED_MAX = 200  # characters of a wrong id in an error


def resolve(
    db: sqlite3.Connection, text: str, *, writing: bool = False, what: str = "signal or thread"
) -> str:
    """Return the thread or signal id that a text is, or of which it is a unique prefix.

    Args:
        text: The id or prefix.
        writing: Whether the caller writes, which needs a longer prefix.
        what: What it may be, for errors.

    Raises:
        UsageError: No id or several ids match (it has the candidates), or the prefix is too short.
    """
    for column in ("thread", "signal_id"):
        if db.execute(f"SELECT 1 FROM signal WHERE {column} = ? LIMIT 1", (text,)).fetchone():
            return text
    found: set[str] = set()
    token = text.partition("-")[2]
    least = PREFIX_MIN if writing else READ_PREFIX_MIN
    if text:
        for column in ("thread", "signal_id"):
            rows = db.execute(
                f"SELECT DISTINCT {column} FROM signal WHERE {column} >= ? AND {column} < ? LIMIT 5",
                (text, text + "\U0010ffff"),
            )
            found.update(row[0] for row in rows)
    if found and len(token) < least:
        raise UsageError(
            f"Id prefix too short: {text}; the minimum is {least} characters after the dash"
            + (". Nothing was written." if writing else "."),
            hint="`gitmem log` and `gitmem inbox` show full ids.",
            code="short-id",
            suggestions=sorted(found)[:4],
            next=["gitmem log", "gitmem inbox"],
        )
    if len(found) == 1:
        return found.pop()
    if found:
        raise ambiguous(text, found)
    raise UsageError(
        f"No such {what} in this log: {text[:TYPED_MAX]}.",
        hint="It may be on another machine: `gitmem sync` fetches it; `gitmem log` lists the local records.",
        code="unknown-id",
        next=["gitmem sync"],
    )


def ambiguous(text: str, found: Iterable[str]) -> UsageError:
    """Return the error for a text that is the beginning of several ids."""
    first = sorted(found)[:4]
    return UsageError(
        f"Ambiguous id: {text} matches {', '.join(first)}. Nothing was written.",
        hint="Give a longer prefix.",
        code="ambiguous-id",
        suggestions=first,
    )


def thread_of(db: sqlite3.Connection, id: str) -> str:
    """Return the thread of a thread id or a signal id."""
    row = db.execute(
        "SELECT s.thread FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? ORDER BY l.body LIMIT 1",
        (id,),
    ).fetchone()
    return str(row[0]) if row else id
