"""The tasks that a worker may run: of each caller in turn. One that it can't take is set aside, so that none of them keeps it from the others.

Calls that nobody took before their deadline stay open, and a peer may write any number of tasks that nobody can take.
"""

from __future__ import annotations

from ..tasks import load
from ..tasks.task_roles import addressed_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store
    from ..tasks.fold import FoldedTask

FOLDED_MAX = 200  # tasks that one look folds; the next one goes on
# For how long a task is set aside first, and at most; unless something happens to it, or a lease of it ends before.
ASIDE_MICROS, ASIDE_MAX_MICROS = 30 * 1_000_000, 300 * 1_000_000
_OPEN = (
    "SELECT t.task_id, t.caller, (SELECT max(e.line) FROM task_event e WHERE e.task_id = t.task_id) FROM task t"
    " WHERE (t.agent IN ({marks}) OR (t.agent IS NULL AND t.target_role IN (?, ?))) AND t.decided_by IS NULL AND t.replaced <> 1"
    " AND t.purpose <> 'handoff' AND (t.deadline IS NULL OR t.deadline > ? OR t.holder IN ({marks})) ORDER BY t.created, t.task_id"
)


class Candidates:
    """The tasks that a worker may run.

    Attributes:
        is_partial: Whether the last look has left some out, which the next one finds.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines: dict[
            str, int | None
        ] = {}  # the candidates of the last look, and the last line of their events
        self._aside: dict[str, tuple[int | None, int, int]] = {}  # that line, since when, and until when
        self._served: dict[
            str, int
        ] = {}  # callers of open tasks, and when one of theirs was run last, as a number
        self._runs = 0
        self.is_partial = False

    def look(
        self, caller: Caller, first: Sequence[str], accepts: Callable[[str], bool]
    ) -> Iterator[FoldedTask]:
        """Yield the tasks that the worker may run, as far as the index and earlier looks tell.

        Args:
            first: Tasks to yield before all others.
            accepts: Returns whether the worker runs the task of an id at all.
        """
        now, db = self._store.now(), self._store.db()
        values: list[Any] = [*caller.ids, *addressed_by(caller), now, *caller.ids]
        query = _OPEN.format(marks=", ".join("?" * len(caller.ids)))
        rows = db.execute(query, values).fetchall()
        self._lines = {str(id): line for id, _, line in rows}
        self._served = {caller: self._served[caller] for _, caller, _ in rows if caller in self._served}
        in_turn = self._in_turn(
            (str(id), caller) for id, caller, _ in rows if not self._is_aside(str(id), now)
        )
        self._aside = {id: each for id, each in self._aside.items() if id in self._lines}
        self.is_partial = False
        left = FOLDED_MAX
        for id in filter(accepts, [*first, *in_turn]):
            if left == 0:
                self.is_partial = True
                return
            left -= 1
            # what claims to be from this clone and is not is not run
            task = load.load(db, id, forged=False)
            if task is None:
                self._set_aside(id, now, [])
            else:
                yield task

    def serve(self, task: FoldedTask) -> None:
        """Note that a task is run: then it is the turn of the other callers."""
        self._runs += 1
        self._served[task.caller[0]] = self._runs

    def _in_turn(self, tasks: Iterable[tuple[str, str]]) -> list[str]:
        """Order tasks with their callers: the first of each caller, then the second of each; first those who were served longest ago."""
        before: dict[str, int] = {}
        found = []
        for id, caller in tasks:
            before[caller] = before.get(caller, 0) + 1
            found.append((before[caller], self._served.get(caller, 0), id))
        return [id for *_, id in sorted(found, key=lambda each: each[:2])]

    def set_aside(self, task: FoldedTask) -> None:
        """Leave a task out until something happens to it, a lease of it ends, or some time is over, longer each time."""
        now = self._store.now()
        leases = [end for each in task.held if (end := task.lease(each)) > now]
        self._set_aside(task.record["task_id"], now, leases)

    def _set_aside(self, id: str, now: int, leases: Sequence[int]) -> None:
        line = self._lines.get(id)
        before, since, until = self._aside.get(id, (line, now, now))
        twice = 2 * (until - since) if before == line else 0
        length = min(max(twice, ASIDE_MICROS), ASIDE_MAX_MICROS)
        self._aside[id] = line, now, min([now + length, *leases])

    def _is_aside(self, id: str, now: int) -> bool:
        """Return whether a task is set aside. A clock that was set back ends that."""
        line, since, until = self._aside.get(id, (None, 0, 0))
        return since <= now < until and line == self._lines[id]
