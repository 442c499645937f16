"""What a session worked on when it made a commit: its work unit and task at that moment, whatever it has taken or finished since."""

from __future__ import annotations

from ..agents import own_sessions
from ..git import commit_facts
from ..tasks import held_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store
    from ..tasks.fold import FoldedTask

SECOND = 1_000_000
TICK = 20_000  # by which the times of files are behind, at most: kernels count them in ticks


class WorkThen:
    """The work of sessions at the times of their commits, in the worktree of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, int, int], tuple[str | None, str | None]] = {}
        self._tasks: dict[str, FoldedTask | None] = {}

    def of(self, who: Caller, commit: str, committed: int) -> tuple[str | None, str | None]:
        """Return the task and the work unit that a session had while a commit was made; None for what is not certain.

        Args:
            who: The session.
            commit: The commit.
            committed: The time of its committer, in seconds.
        """
        session = who.session_id
        if session is None:
            return None, None
        time = self._time(commit, committed)
        if (session, *time) not in self._known:
            self._known[session, *time] = self._work(who.reader, session, *time)
        return self._known[session, *time]

    def _time(self, commit: str, committed: int) -> tuple[int, int]:
        """Return from when to when a commit was made: git tells the second, the file of the commit tells more."""
        first, last = committed * SECOND, (committed + 1) * SECOND - 1
        written = commit_facts.written_at(self._store.repo.common, commit)
        if written is not None and first <= written <= last:
            first, last = written, written + TICK
        now = self._store.now()
        return min(first, now), min(last, now)

    def _work(self, reader: str, session: str, first: int, last: int) -> tuple[str | None, str | None]:
        db = self._store.db()
        before, after = (own_sessions.fields_at(db, session, at) for at in (first, last))
        same = {name: value for name, value in before.items() if after.get(name) == value}
        task = same.get("task_id")
        if task is None and "task_id" not in {*before, *after}:
            task = held_at.only_held_at(db, (reader, session), first, last, known=self._tasks)
        return task, same.get("wu_id")
