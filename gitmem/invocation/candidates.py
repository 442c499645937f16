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
ROWS_MAX = 5_000  # open tasks that one look reads; of more the next one reads the next ones
ASIDE_ROWS = 10  # times as many tasks set aside are remembered
_START = (-1, "")
_OPEN = (
    "SELECT id, caller, (SELECT max(e.line) FROM task_event e WHERE e.task_id = id), created FROM"
    " (SELECT t.task_id AS id, t.caller AS caller, t.created AS created FROM task t"
    " WHERE (t.agent IN ({marks}) OR (t.agent IS NULL AND t.target_role IN (?, ?))) AND t.decided_by IS NULL AND t.replaced <> 1"
    " AND t.purpose <> 'handoff' AND (t.deadline IS NULL OR t.deadline > ? OR t.holder IN ({marks}))"
    " AND (t.created, t.task_id) > (?, ?) ORDER BY t.created, t.task_id LIMIT ?) ORDER BY created, id"
)


class Candidates:
    """The tasks that a worker may run.

    Attributes:
        is_partial: Whether the last look has left some out, which the next one finds.
    """

    def __init__(self, store: Store, rows_max: int = ROWS_MAX) -> None:
        self._store = store
        self._rows_max = rows_max
        self._after = _START  # the last look read what comes after this task, by time and id
        self._end: tuple[int, str] | None = None  # and this far; None: to the end
        self._left_some = (
            False  # whether it went on after a task that was run, without those that it had not yielded
        )
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
        values: list[Any] = [
            *caller.ids,
            *addressed_by(caller),
            now,
            *caller.ids,
            *self._after,
            self._rows_max,
        ]
        query = _OPEN.format(marks=", ".join("?" * len(caller.ids)))
        rows = db.execute(query, values).fetchall()
        self._lines = {str(id): line for id, _, line, _ in rows}
        self._end = (rows[-1][3], str(rows[-1][0])) if len(rows) == self._rows_max else None
        self._served = {caller: self._served[caller] for _, caller, *_ in rows if caller in self._served}
        in_turn = self._in_turn(
            (str(id), caller) for id, caller, *_ in rows if not self._is_aside(str(id), now)
        )
        keeps = self._is_part and len(self._aside) < ASIDE_ROWS * self._rows_max  # those of other parts
        self._aside = {
            id: each for id, each in self._aside.items() if id in self._lines or (keeps and each[2] > now)
        }
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
        self.is_partial = self._end is not None or self._left_some
        self._go_on(left_some=False)

    @property
    def _is_part(self) -> bool:
        """Whether the last look has read only a part of the open tasks."""
        return self._end is not None or self._after != _START

    def _go_on(self, *, left_some: bool) -> None:
        """Let the next look read what comes next; after the last ones the first ones again."""
        self._left_some = left_some or (self._left_some and self._end is not None)
        self._after = self._end or _START

    def serve(self, task: FoldedTask) -> None:
        """Note that a task is run: then it is the turn of the other callers."""
        if self._is_part:
            self._go_on(left_some=True)
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
