"""The task that a session had at an earlier moment: neither one that it took later, nor one that it had finished before."""

from __future__ import annotations

import pytest

from gitmem.store import Store
from gitmem.work import give_handoff, handoffs, new_task, task_decisions, task_state, task_work
from tests.sandbox import SECOND, Agent, Clock

MINUTE = 60 * SECOND


class Desk:
    """A caller, a worker and another one of one clone."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.boss, self.worker, self.other = (Agent(store, f"claude:worker:{name}") for name in "bwo")

    def ask(self) -> str:
        self.clock.forward(SECOND)
        made = new_task.create(self.store, self.boss.caller, "Go on", target_role="implementer/test")
        return str(made.task["task_id"])

    def step(self) -> int:
        """A moment between two steps, at which nothing happens."""
        self.clock.forward(MINUTE)
        now = self.clock()
        self.clock.forward(MINUTE)
        return now

    def had(self, at: int, until: int | None = None, who: Agent | None = None) -> str | None:
        caller = (who or self.worker).caller
        return task_state.only_held_at(self.store.db(), task_work.sender_of(caller), at, until or at)


@pytest.fixture
def desk(store: Store, clock: Clock) -> Desk:
    return Desk(store, clock)


@pytest.mark.parametrize("how", ["done", "release", "seal", "close"])
def test_it_was_held_from_its_take_to_its_end(desk: Desk, how: str) -> None:
    """Whatever ended it: a later look finds the same as one at that moment. A time that reaches beyond it is not certain."""
    task = desk.ask()
    before = desk.step()
    task_work.take(desk.store, desk.worker.caller, task)
    during = desk.step()
    assert (desk.had(before), desk.had(during)) == (None, task)
    if how == "done":
        task_work.report(desk.store, desk.worker.caller, task, "completed", "It is done.")
    elif how == "release":
        task_work.release(desk.store, desk.worker.caller, task)
    elif how == "seal":
        task_decisions.seal_task(desk.store, desk.boss.caller, task, give_up="canceled")
    else:
        again = Agent(desk.store, "claude:worker:b")
        task_decisions.close(desk.store, again.caller, task, "Nobody needs it.", state="canceled")
    after = desk.step()
    assert [desk.had(at) for at in (before, during, after)] == [None, task, None]
    assert (desk.had(before, during), desk.had(during, after)) == (None, None)
    assert desk.had(during, who=desk.other) is None


def test_two_tasks_at_once_are_none_and_one_after_the_other_are_told_apart(desk: Desk) -> None:
    first, second = desk.ask(), desk.ask()
    task_work.take(desk.store, desk.worker.caller, first)
    one = desk.step()
    task_work.take(desk.store, desk.worker.caller, second)
    both = desk.step()
    task_work.report(desk.store, desk.worker.caller, first, "completed", "It is done.")
    other = desk.step()
    assert [desk.had(at) for at in (one, both, other)] == [first, None, second]
    assert desk.had(one, both) is None  # perhaps the second already


def test_a_task_that_was_released_and_taken_again_was_not_held_in_between(desk: Desk) -> None:
    task = desk.ask()
    task_work.take(desk.store, desk.worker.caller, task)
    task_work.release(desk.store, desk.worker.caller, task)
    between = desk.step()
    task_work.take(desk.store, desk.other.caller, task)
    others = desk.step()
    task_work.release(desk.store, desk.other.caller, task)
    task_work.take(desk.store, desk.worker.caller, task)
    again = desk.step()
    assert [desk.had(at) for at in (between, others, again)] == [None, None, task]
    assert desk.had(others, who=desk.other) == task


def test_a_handoff_moves_a_task_when_it_is_accepted(desk: Desk) -> None:
    """The take of the handoff counts as that of the tasks in it."""
    task = desk.ask()
    task_work.take(desk.store, desk.worker.caller, task)
    before = desk.step()
    offered = give_handoff.hand_over(desk.store, desk.worker.caller, desk.other.caller.reader, "Go on there")
    handoffs.take_handoff(desk.store, desk.other.caller, offered.task["task_id"])
    after = desk.step()
    assert (desk.had(before), desk.had(after)) == (task, None)
    assert (desk.had(before, who=desk.other), desk.had(after, who=desk.other)) == (None, task)


def test_more_takes_than_are_read_are_none(desk: Desk) -> None:
    """One that is left out could be another task at that moment."""
    tasks = [desk.ask() for _ in range(3)]
    for task in tasks[:2]:
        task_work.take(desk.store, desk.worker.caller, task)
        task_work.release(desk.store, desk.worker.caller, task)
    task_work.take(desk.store, desk.worker.caller, tasks[2])
    now, sender = desk.step(), task_work.sender_of(desk.worker.caller)
    found = [task_state.only_held_at(desk.store.db(), sender, now, now, most) for most in (2, 3)]
    assert found == [None, tasks[2]]


def test_a_task_is_folded_once_for_many_moments(desk: Desk) -> None:
    """A peer may write any number of events of it, and somebody may make hundreds of commits in it."""
    task, known = desk.ask(), {}
    task_work.take(desk.store, desk.worker.caller, task)
    asked: list[str] = []
    desk.store.db().set_trace_callback(asked.append)
    sender = task_work.sender_of(desk.worker.caller)
    moments = [desk.step() for _ in range(9)]
    assert {task_state.only_held_at(desk.store.db(), sender, at, at, known=known) for at in moments} == {task}
    assert sum("FROM entity_line e WHERE e.kind = 'task' AND e.id IN" in each for each in asked) == 1
