"""Resolve an id, or the prefix of one, to a signal or thread."""

from __future__ import annotations

from ..errors import ELSEWHERE, UsageError
from ..text.addresses import BOUND_CHARACTERS
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence

PREFIX_MIN = 6  # characters after the dash, if the caller writes
READ_PREFIX_MIN = 4  # the same as git's minimum
TYPED_MAX = 80  # characters of a wrong id in an error
IN_THREAD = "IN (SELECT signal_id FROM signal WHERE thread = ?)"  # the condition that a signal is of a thread
_SHOWN_BY = {
    "sig": "thread",
    "thread": "thread",
    "task": "task show",
    "mem": "show",
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
    found: set[str] = set()
    for column in ("thread", "signal_id") if text else ():
        begun = beginning(db, "signal", column, text)
        if begun == {text}:
            return text
        found |= begun
    if len(found) == 1 and next(iter(found)).startswith(
        f"{text}@"
    ):  # the name that somebody gave to a thread
        return found.pop()
    return choose(text, found, what, "thread" if what != "record" else "", ("gitmem log",), writing=writing)


def beginning(db: sqlite3.Connection, table: str, column: str, text: str, most: int = 5) -> set[str]:
    """Return ids of a table that begin with a text, at most so many; only the text itself if it is one of them.

    It is not taken for itself if it is also the beginning of a longer id that is bound to a writer: anybody can make a short one.
    """
    rows = db.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE {column} >= ? AND {column} < ? ORDER BY {column} LIMIT {most}",
        (text, text + "\U0010ffff"),
    )
    found = {str(id) for (id,) in rows}
    is_bound = any(len(each.partition("-")[2]) == BOUND_CHARACTERS for each in found - {text})
    return {text} if text in found and not is_bound else found


def records_named(
    db: sqlite3.Connection, kind: str, field: str, id: str, *, begins: bool
) -> list[tuple[str, bytes]]:
    """Return the lines of a kind with an id in a field, in the order of `(at, bytes)`, each after its id.

    Args:
        begins: Also those whose id begins with it.
    """
    rows = db.execute(
        f"SELECT json_extract(body, '$.{field}') AS named, body FROM line WHERE kind = ? AND named >= ? AND named < ?"
        " ORDER BY at, body",
        (kind, id, id + ("\U0010ffff" if begins else "\0")),
    )
    return [(str(named), str(body).encode()) for named, body in rows]


def choose(
    text: str,
    found: Collection[str],
    what: str,
    shows: str,
    lists: Sequence[str],
    *,
    writing: bool,
    noun: str = "id",
) -> str:
    """Return the only id that begins with a text.

    Args:
        found: The ids that begin with it.
        what: What it should be the id of, for errors.
        shows: The command that shows such records; "" for records of any kind.
        lists: The command that lists them, and those to try for an unknown id.
        writing: Whether the caller writes, which needs a longer prefix.
        noun: The end of the codes of errors.

    Raises:
        UsageError: `short-id`, `ambiguous-` or `unknown-` with the noun.
    """
    typed = sanitize(text)[:TYPED_MAX] or "(empty)"
    nothing = ". Nothing was written." if writing else "."
    least = PREFIX_MIN if writing else READ_PREFIX_MIN
    if found and len(text.partition("-")[2]) < least:
        raise UsageError(
            f"Id prefix too short: {typed}; the minimum is {least} characters after the dash{nothing}",
            hint=f"`{lists[0]}` shows full ids.",
            code="short-id",
            suggestions=sorted(found)[:4],
            next=[lists[0]],
        )
    if len(found) == 1:
        return next(iter(found))
    if found:
        raise ambiguous(typed, found, f"ambiguous-{noun}")
    other = shown_by(text)
    if other and other.startswith(f"gitmem {shows}"):
        other = None
    raise UsageError(
        f"No such {what} in this log: {typed}{nothing}",
        hint=f"It is the id of another record: `{other}`."
        if other
        else f"{ELSEWHERE} `{lists[0]}` lists the local ones.",
        code=f"unknown-{noun}",
        next=[other] if other else ["gitmem sync", *lists[1:]],
    )


def shown_by(text: str) -> str | None:
    """Return the command that shows the record whose id a text is; None if it is no id."""
    kind, _, rest = text.partition("-")
    is_id = len(rest) >= READ_PREFIX_MIN and rest.isascii() and rest.isalnum()
    return f"gitmem {_SHOWN_BY[kind]} {text}" if is_id and kind in _SHOWN_BY else None


def ambiguous(text: str, found: Iterable[str], code: str = "ambiguous-id") -> UsageError:
    """Return the error for a text that is the beginning of several ids."""
    first = sorted(found)[:4]
    return UsageError(
        f"Ambiguous id: {text} matches {', '.join(first)}. Nothing was written.",
        hint="Give a longer prefix.",
        code=code,
        suggestions=first,
    )


def thread_of(db: sqlite3.Connection, id: str) -> str:
    """Return the thread of a thread id or a signal id."""
    row = db.execute(
        "SELECT s.thread FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? ORDER BY l.body LIMIT 1",
        (id,),
    ).fetchone()
    return str(row[0]) if row else id


_OF_ENTITY = "SELECT l.body FROM entity_line e JOIN line l ON l.id = e.line WHERE e.kind = ? AND e.id = ?"
_OF_SIGNALS = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.{} = ?"


def all_lines(db: sqlite3.Connection, kind: str, id: str) -> list[bytes]:
    """Return all lines of a signal, of a thread, or of an entity of another kind, however many there are."""
    if kind in ("signal", "thread"):
        found = db.execute(_OF_SIGNALS.format("thread" if kind == "thread" else "signal_id"), (id,))
    else:
        found = db.execute(_OF_ENTITY, (kind, id))
    return [str(body).encode() for (body,) in found]
