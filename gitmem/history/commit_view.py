"""The view of commits: a row for each line about a commit, found by the commit and its patch id."""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..index.entities import Rows
    from ..records.record_types import CommitRecord


LINES_MAX = 20  # about one commit or patch id that are read, this clone's own first
ASKED_AT_ONCE = 500

DDL = (
    "CREATE TABLE made_commit (line INTEGER PRIMARY KEY, commit_id TEXT, patch_id TEXT, session TEXT)",
    "CREATE INDEX made_commit_of ON made_commit (commit_id)",
    "CREATE INDEX made_commit_patch ON made_commit (patch_id)",
)
# A line that speaks for a session or an agent of this clone without its code has no effect here.
_OF = (
    "SELECT l.body, m.session IN (SELECT name FROM own) AS is_own FROM made_commit m JOIN line l ON l.id = m.line"
    " WHERE m.{column} = ? AND m.line NOT IN (SELECT line FROM forged) ORDER BY is_own DESC, l.body LIMIT ?"
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
    """Return commit and session of the lines about these commits, without those that somebody has forged.

    What an id says does not count: a peer can write the id of a record that this clone is about to write.
    """
    asked = list(commits)
    found: set[tuple[str, str]] = set()
    for at in range(0, len(asked), ASKED_AT_ONCE):
        some = asked[at : at + ASKED_AT_ONCE]
        query = (
            f"SELECT commit_id, session FROM made_commit WHERE commit_id IN ({', '.join('?' * len(some))})"
            " AND session IS NOT NULL AND line NOT IN (SELECT line FROM forged)"
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
