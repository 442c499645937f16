"""Resolve an id, or the prefix of one, to a signal or thread."""

from __future__ import annotations

from ..errors import ELSEWHERE, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

PREFIX_MIN = 6  # characters after the dash, if the caller writes
READ_PREFIX_MIN = 4  # the same as git's minimum
TYPED_MAX = 200  # characters of a wrong id in an error
_SHOWN_BY = {
    "sig": "thread",
    "thread": "thread",
    "task": "task show",
    "mem": "mem show",
    "sess": "show",
    "audit": "show",
}


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
    own = shown_by(text) if what != "record" else None
    if own and own.startswith("gitmem thread "):  # a signal or thread that is not here
        own = None
    raise UsageError(
        f"No such {what} in this log: {text[:TYPED_MAX]}.",
        hint=f"It is the id of another record: `{own}`."
        if own
        else f"{ELSEWHERE} `gitmem log` lists the local records.",
        code="unknown-id",
        next=[own] if own else ["gitmem sync"],
    )


def shown_by(text: str) -> str | None:
    """Return the command that shows the record whose id a text is; None if it is no id."""
    kind, _, rest = text.partition("-")
    is_id = len(rest) >= READ_PREFIX_MIN and rest.isascii() and rest.isalnum()
    return f"gitmem {_SHOWN_BY[kind]} {text}" if is_id and kind in _SHOWN_BY else None


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
