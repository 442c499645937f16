"""What the index has for reports on the past: lines about commits, days, outcomes of tasks, and who worked when.

`made_commit` has a row for each line about a commit, found by the commit and its patch id.
"""

from __future__ import annotations

from ..index.entities import json_list
from ..log.lines import format_at
from ..outcome import Struct
from ..records.ids import unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..index.entities import Rows
    from ..records.record_types import CommitRecord


LINES_MAX = 20  # about one commit or patch id that are read, this clone's own first
ASKED_AT_ONCE = 500

_OF = (
    "SELECT l.body, m.session IN (SELECT name FROM own) AS is_own FROM made_commit m JOIN line l ON l.id = m.line"
    " WHERE m.{column} = ? ORDER BY is_own DESC, l.body LIMIT ?"
)


class CommitLine(Struct):
    """A line about a commit.

    Attributes:
        record: Its record.
        is_own: Whether it is of a session that was started in this clone.
    """

    record: CommitRecord
    is_own: bool


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add records of commits, in any order of arrival."""
    made = rows.of("commit")
    columns = [made.column(name) for name in ("commit", "patch_id", "sender_session")]
    db.executemany("INSERT INTO made_commit VALUES (?, ?, ?, ?)", zip(made.ids, *columns, strict=True))


def of_commit(db: sqlite3.Connection, commit: str) -> list[CommitLine]:
    """Return the lines about a commit: of those of one session the lowest."""
    return _lines(db, _OF.format(column="commit_id"), commit)


def of_patch(db: sqlite3.Connection, patch_id: str) -> list[CommitLine]:
    """Return the lines about commits whose changes have this patch id."""
    return _lines(db, _OF.format(column="patch_id"), patch_id)


def known(db: sqlite3.Connection, commits: Iterable[str]) -> set[tuple[str, str]]:
    """Return commit and session of the lines about these commits."""
    asked = list(commits)
    found: set[tuple[str, str]] = set()
    for at in range(0, len(asked), ASKED_AT_ONCE):
        some = asked[at : at + ASKED_AT_ONCE]
        query = (
            f"SELECT commit_id, session FROM made_commit WHERE commit_id IN ({', '.join('?' * len(some))})"
            " AND session IS NOT NULL"
        )
        found.update(db.execute(query, some))
    return found


def _lines(db: sqlite3.Connection, query: str, value: str) -> list[CommitLine]:
    from .. import records

    found: dict[tuple[str, str | None], CommitLine] = {}
    for body, is_own in db.execute(query, (value, LINES_MAX)).fetchall():
        record = records.read_kind("commit", body.encode())
        if record is not None:
            found.setdefault(
                (record["commit"], record.get("sender_session")), CommitLine(record, bool(is_own))
            )
    return list(found.values())


OPEN = "open"
_DAYS = (
    "SELECT substr(l.at, 1, 10) AS day, count(DISTINCT s.signal_id), count(DISTINCT s.sender),"
    " count(DISTINCT s.signal_id) FILTER (WHERE s.intent IN ('PROPOSE', 'COUNTER')),"
    " count(DISTINCT s.signal_id) FILTER (WHERE s.intent IN ('AGREE', 'REJECT'))"
    " FROM signal s JOIN line l ON l.id = s.line WHERE {where} AND l.at < :ahead GROUP BY day ORDER BY day DESC LIMIT :most"
)
_AHEAD = "SELECT count(DISTINCT s.signal_id) FROM signal s JOIN line l ON l.id = s.line WHERE {where} AND l.at >= :ahead"
_UNREAD = (
    # `mail` has a row for each content of an id.
    "SELECT m.reader, min(l.at) FROM"
    " (SELECT DISTINCT reader, signal_id FROM mail WHERE reader IN (SELECT value FROM json_each(:at_work))) m"
    " CROSS JOIN signal s ON s.signal_id = m.signal_id JOIN line l ON l.id = s.line"
    " WHERE {where} GROUP BY m.reader, m.signal_id"
)
_TASKS = (
    f"SELECT CASE WHEN t.decided_by IS NOT NULL THEN t.state WHEN t.replaced = 1 THEN 'replaced' ELSE '{OPEN}' END, count(*)"
    " FROM task t WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most"
)


def days_of_signals(
    db: sqlite3.Connection, where: str, values: Mapping[str, Any], ahead: str, most: int
) -> tuple[list[tuple[str, int, int, int, int]], int]:
    """Return the last days before a time, the last first, and how many signals have that time or a later one.

    Args:
        where: The condition on a row `s` of `signal`.
        values: Its values.
        ahead: The time.
        most: The number of days.

    Returns:
        Each day with the numbers of its signals, their senders, proposals and answers.
    """
    asked = {**values, "most": most, "ahead": ahead}
    (later,) = db.execute(_AHEAD.format(where=where), asked).fetchone()
    return db.execute(_DAYS.format(where=where), asked).fetchall(), later


def times_of_unread(
    db: sqlite3.Connection, where: str, values: Mapping[str, Any], readers: Iterable[str]
) -> list[str]:
    """Return the times of the signals that some readers have not read, one for each of them; `where` as for `days_of_signals`."""
    rows = db.execute(_UNREAD.format(where=where), {**values, "at_work": json_list(sorted(readers))})
    return [at for _, at in rows.fetchall()]


def of_readers(table: str, *columns: str) -> str:
    """Return the condition that one of the columns of a table is one of `:readers`."""
    return (
        f"({' OR '.join(f'{table}.{each} IN (SELECT value FROM json_each(:readers))' for each in columns)})"
    )


def task_outcomes(db: sqlite3.Connection, where: str, values: Mapping[str, Any], most: int) -> dict[str, int]:
    """Return the numbers of tasks with each outcome, and with none, whose rows `t` meet a condition."""
    return dict(db.execute(_TASKS.format(where=where), {**values, "most": most}).fetchall())


def session_span(db: sqlite3.Connection, session_id: str | None) -> tuple[int, int | None] | None:
    """Return when a session has started and ended, if it has; None for an unknown one."""
    found: tuple[int, int | None] | None = db.execute(
        "SELECT started, ended FROM session WHERE session_id = ?", (session_id,)
    ).fetchone()
    return found


def session_role(db: sqlite3.Connection, session_id: str | None) -> tuple[str | None, str | None] | None:
    """Return lifecycle role and specialty profile of a session; None for an unknown one."""
    found: tuple[str | None, str | None] | None = db.execute(
        "SELECT lifecycle_role, specialty_profile FROM session WHERE session_id = ?", (session_id,)
    ).fetchone()
    return found


def threads_of_unit(db: sqlite3.Connection, wu_id: str, until: int, most: int) -> list[str]:
    """Return the threads with a proposal on a work unit up to a time, the last one first."""
    rows = db.execute(
        "SELECT s.thread, max(l.at) FROM signal s JOIN line l ON l.id = s.line WHERE s.wu_id = ? AND s.intent = 'PROPOSE'"
        " AND s.wu_id <> '' AND l.at <= ? GROUP BY s.thread ORDER BY 2 DESC LIMIT ?",
        (unit_key(wu_id), format_at(until), most),
    )
    return [str(thread) for thread, _ in rows.fetchall()]


def claims_at(db: sqlite3.Connection, moment: int, longest: int, most: int) -> list[tuple[Any, ...]]:
    """Return id, owner, session, work unit, whether it was released, and line of the claims that may have stood at a time.

    Args:
        longest: How long a claim is valid at most, in microseconds.
        most: How many are returned, those that ended first.
    """
    return db.execute(
        "SELECT c.claim_id, c.owner, c.session, c.wu_id, c.released, l.body FROM path_claim c JOIN line l ON l.id = c.line"
        " WHERE c.until BETWEEN ? AND ? AND c.since <= ? ORDER BY c.until LIMIT ?",
        (moment, moment + longest, moment, most),
    ).fetchall()


_OF_ENTITY = "SELECT l.body FROM entity_line e JOIN line l ON l.id = e.line WHERE e.kind = ? AND e.id = ?"
_OF_SIGNALS = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.{} = ?"


def all_lines(db: sqlite3.Connection, kind: str, id: str) -> list[bytes]:
    """Return all lines of a signal, of a thread, or of an entity of another kind, however many there are."""
    if kind in ("signal", "thread"):
        found = db.execute(_OF_SIGNALS.format("thread" if kind == "thread" else "signal_id"), (id,))
    else:
        found = db.execute(_OF_ENTITY, (kind, id))
    return [str(body).encode() for (body,) in found]


def is_whole(db: sqlite3.Connection, digest: bytes) -> bool:
    """Return whether the log has the text of a line that counts in its reduced form, by its digest in attestations."""
    return db.execute("SELECT 1 FROM whole WHERE digest = ? AND file > 0", (digest,)).fetchone() is not None


def lines_with(db: sqlite3.Connection, text: str, most: int) -> list[bytes]:
    """Return the first records in whose lines a text stands as in JSON."""
    query = "SELECT body FROM line WHERE kind NOT IN ('', 'attestation') AND instr(body, ?) LIMIT ?"
    return [str(body).encode() for (body,) in db.execute(query, (text, most))]
