"""Who made the commits of the page, by the records of commits: docs/format.md, section 17. Nobody is guessed."""

from __future__ import annotations

import json

from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..git.user_history import UserCommit
    from ..records.record_types import CommitRecord

MADE = ("commit", "merge", "revert")  # actions that make what no other commit has
EVIDENCE = ("environment", "output", "alone")  # the strongest first; the last is inferred
ROUNDS = 8  # of looking for the commits that others were made of
LINES_MAX = 20_000
SOURCES_MAX = 16
_LINES = (
    "SELECT m.commit_id, l.body FROM json_each(?) j CROSS JOIN made_commit m ON m.commit_id = j.value JOIN line l ON l.id = m.line"
    " WHERE m.line NOT IN (SELECT line FROM forged) ORDER BY l.body LIMIT ?"
)


class CommitMakers:
    """The makers of commits.

    Args:
        db: The index.
        commits: The commits of the page.
    """

    def __init__(self, db: sqlite3.Connection, commits: Sequence[UserCommit]) -> None:
        self._repeated = {each.oid for each in commits if each.authored != each.seconds}
        self._records: dict[str, list[CommitRecord]] = {}
        wanted = {each.oid for each in commits}
        for _ in range(ROUNDS):
            if not wanted:
                break
            found = self._read(db, wanted)
            wanted = {source for each in found for source in (each.get("sources") or ())[:SOURCES_MAX]}
            wanted -= self._records.keys()

    def of(self, commit: str) -> CommitRecord | None:
        """Return the record of the one session that made what a commit has; None if there is none, or several."""
        made: dict[str, CommitRecord] = {}
        todo, seen = [commit], {commit}
        for each in todo:
            own = self._made(each)
            for record in own:
                made.setdefault(record.get("sender_session") or record["sender_identity"], record)
            sources = () if own else self._sources(each)
            new = [source for source in sources if source not in seen]
            todo += new
            seen.update(new)
        return next(iter(made.values())) if len(made) == 1 else None

    def _made(self, commit: str) -> list[CommitRecord]:
        """Return the records with the strongest evidence that say who made a commit itself."""
        found = [each for each in self._records.get(commit, ()) if each["action"] in MADE]
        for evidence in EVIDENCE if commit not in self._repeated else ():
            best = [each for each in found if each["evidence"] == evidence]
            if best:
                return best
        return []

    def _sources(self, commit: str) -> Iterable[str]:
        for each in self._records.get(commit, ()):
            yield from (each.get("sources") or ())[:SOURCES_MAX]

    def _read(self, db: sqlite3.Connection, commits: Iterable[str]) -> list[CommitRecord]:
        found = []
        asked = list(commits)
        self._records.update((each, []) for each in asked)
        for commit, body in db.execute(_LINES, (json.dumps(asked), LINES_MAX)).fetchall():
            record = records.read_kind("commit", body.encode())
            if record is not None:
                self._records[commit].append(record)
                found.append(record)
        return found
