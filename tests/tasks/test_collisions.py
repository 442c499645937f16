"""R17: work that two delegated, or took, apart: both sides are told, and the first take decides."""

from __future__ import annotations

import pytest

from gitmem import records
from gitmem.claims import local_state
from gitmem.errors import GateError
from gitmem.log.entry import CommitMessage
from gitmem.store import Store
from gitmem.tasks import collisions, delegate, find_task, task_decisions, task_list, task_work
from tests.clones import Clone, Hub
from tests.sandbox import Agent, Clock

PLANCK, CURIE, BOHR, GAUSS = (
    "codex:planner:planck",
    "codex:planner:curie",
    "claude:worker:bohr",
    "claude:worker:gauss",
)


def ask(agent: Agent, text: str = "Write the tests", **options: object) -> str:
    """Delegate to whoever is implementer/test; the task's id."""
    given: dict[str, object] = {"to": "role:implementer/test", "wu": "WU-7", **options}
    return str(delegate.delegate(agent.store, agent.caller, text, **given).task["task_id"])  # type: ignore[arg-type]


def told(agent: Agent) -> list[str]:
    """What a session is told at its next command."""
    agent.store.db()
    return local_state.take_notice(agent.store.repo.state, agent.caller.session_id or "")


def exchange(*clones: Clone) -> None:
    for each in (*clones, *clones):
        each.exchange()


def test_r17_both_delegators_are_told_once_and_the_first_take_decides(two: tuple[Clone, Clone]) -> None:
    """The other delegation then names who has the work, and the command that cancels it."""
    here, there = two
    planck, curie = Agent(here.store, PLANCK), Agent(there.store, CURIE)
    bohr = Agent(there.store, BOHR)
    first, second = ask(planck), ask(curie, "Write tests, please", wu="wu-7")
    assert told(planck) == told(curie) == []

    exchange(here, there)

    for agent, own, other, by in ((planck, first, second, CURIE), (curie, second, first, PLANCK)):
        sentence = f"{by} delegated the same work as {other}. The first take decides: agree who cancels."
        assert told(agent) == [f"delegated twice: {own}: {sentence}"]
        assert told(agent) == []
        assert sentence in task_list.show(agent.store, own).warnings
    taken = task_work.take(there.store, bohr.caller, second)
    assert any(f"{PLANCK} delegated the same work as {first}" in each for each in taken.warnings)
    exchange(here, there)
    shown = task_list.show(here.store, first).warnings
    assert f"{BOHR} has the same work already, as {second} of {CURIE}." in shown[-1]
    assert f"gitmem task cancel {first}" in shown[-1]
    task_decisions.cancel(here.store, planck.caller, first)
    assert task_list.show(here.store, second).warnings == []


def test_r17_old_delegations_of_others_hide_no_new_ones_of_a_session_here(two: tuple[Clone, Clone]) -> None:
    """Nobody may ever end them, and only so many tasks are read."""
    here, there = two
    planck, curie = Agent(here.store, PLANCK), Agent(there.store, CURIE)
    bohr = Agent(there.store, BOHR)
    for wu in ("WU-1", "WU-2"):
        for agent in (curie, bohr):
            ask(agent, wu=wu)
    own = ask(planck)
    ask(curie)
    exchange(here, there)
    here.store.db().execute("DELETE FROM meta WHERE key = 'task collisions'")  # as if nobody had been told
    found = list(collisions.news(here.store, most=1))
    assert [(who, about.partition("/")[0]) for who, about, _ in found] == [(planck.caller.session_id, own)]


def test_r17_a_second_delegation_in_one_clone_is_warned_about_in_its_answer(two: tuple[Clone, Clone]) -> None:
    """By work unit and role, by the brief, and by the idempotency key; not of other roles, or by a name of the other."""
    store = two[0].store
    planck, curie = Agent(store, PLANCK), Agent(store, CURIE)
    first = ask(planck)
    options: dict[str, object]
    for options, warned in (
        ({}, True),
        ({"wu": "WU-8"}, False),
        ({"to": "role:reviewer"}, False),
        ({"blocked_by": [first]}, False),
    ):
        given: dict[str, object] = {"to": "role:implementer/test", "wu": "WU-7", **options}
        made = delegate.delegate(store, curie.caller, "x", **given)  # type: ignore[arg-type]
        assert any(f"{PLANCK} delegated the same work as {first}" in each for each in made.warnings) == warned
        task_decisions.cancel(store, curie.caller, made.task["task_id"])
    for number, options in enumerate(({"brief_digest": "ab" * 32}, {"idempotency_key": "release-7"})):
        one, other = (
            ask(agent, wu=f"WU-{number}{of}", **options) for of, agent in enumerate((planck, curie))
        )
        assert [each.task_id for each in collisions.same_work(store.db(), one)] == [other]


def test_r17_the_loser_of_two_takes_is_told_and_the_winner_too(hub: Hub) -> None:
    """Each at its next command, once; the task itself has one holder on all clones."""
    planner_at, bohr_at, gauss_at = (hub.clone(name) for name in ("planner", "bohr", "gauss"))
    planck = Agent(planner_at.store, PLANCK)
    bohr, gauss = Agent(bohr_at.store, BOHR), Agent(gauss_at.store, GAUSS)
    task_id = ask(planck)
    exchange(planner_at, bohr_at, gauss_at)
    for agent in (bohr, gauss):
        task_work.take(agent.store, agent.caller, task_id)
    exchange(bohr_at, gauss_at)

    holder = find_task.require(bohr.store, task_id).holder
    assert holder is not None
    winner, loser = (bohr, gauss) if holder.sender[0] == BOHR else (gauss, bohr)
    (won,), (lost,) = told(winner), told(loser)
    assert won.startswith(f"conflict: {loser.caller.reader} took {task_id}, too")
    assert lost.endswith(f"give yours back: gitmem task release {task_id} --reason 'taken twice'")
    assert told(winner) == told(loser) == []
    task_work.release(loser.store, loser.caller, task_id)
    assert not find_task.require(loser.store, task_id).conflict
    with pytest.raises(GateError):
        task_work.take(loser.store, loser.caller, task_id)


def test_no_number_of_others_tasks_keeps_sessions_from_being_told(store: Store, clock: Clock) -> None:
    """Nor does it cost commands time: what was told once is compared again only after a line has arrived."""
    planck = Agent(store, PLANCK)
    lines = [task_line(clock, number, wu_id=f"WU-{100 + number // 2}") for number in range(200)]
    store.record([("tasks", each) for each in lines], MESSAGE)
    twin = task_line(clock, 999, wu_id="WU-7000", sender_identity=CURIE)
    assert told(planck) == []
    assert list(collisions.news(store)) == []
    own = ask(planck, wu="WU-7000")
    store.record([("tasks", twin)], MESSAGE)
    assert [each.split(": ")[:2] for each in told(planck)] == [["delegated twice", own]]
    steps = []
    store.index.db.set_progress_handler(lambda: steps.append(1), 100)
    assert list(collisions.news(store)) == []
    store.index.db.set_progress_handler(None, 0)
    assert len(steps) <= 1


MESSAGE = CommitMessage("Mallory <m@example.org>", "tasks")


def task_line(clock: Clock, number: int, **fields: object) -> bytes:
    """A delegation of a peer's invention."""
    return records.line("task", clock(), {
        "task_id": f"task-000000{number:06}", "thread_id": "thread-x", "message": "x", "purpose": "delegation",
        "requested_role": {"lifecycle_role": "implementer", "specialty_profile": "test"}, "target_role": "implementer/test",
        "sender_identity": f"evil:worker:m{number}", **fields,
    })  # fmt: skip


def test_a_seal_says_whose_result_it_accepts_and_that_another_exists(hub: Hub) -> None:
    """The first result counts; the caller learns that there is another one."""
    planner_at, bohr_at, gauss_at = (hub.clone(name) for name in ("planner", "bohr", "gauss"))
    planck = Agent(planner_at.store, PLANCK)
    bohr, gauss = Agent(bohr_at.store, BOHR), Agent(gauss_at.store, GAUSS)
    task_id = ask(planck)
    exchange(planner_at, bohr_at, gauss_at)
    for agent in (bohr, gauss):
        task_work.take(agent.store, agent.caller, task_id)
        task_work.report(agent.store, agent.caller, task_id, "completed", "mine")
    exchange(planner_at, bohr_at, gauss_at)

    task = find_task.require(bohr.store, task_id)
    assert task.outcome is not None
    winner, loser = (bohr, gauss) if task.outcome.sender[0] == BOHR else (gauss, bohr)
    names = {each.sender[0]: each.record.get("sender_name") or each.sender[0] for each in task.takes}
    first, other = (names[each.caller.reader] for each in (winner, loser))
    sealed = task_decisions.seal(planck.store, planck.caller, task_id)
    assert sealed.warnings == [f"It accepts the result of {first}; another result exists, of {other}."]


def test_who_reports_a_task_that_another_has_too_is_told(two: tuple[Clone, Clone]) -> None:
    """In the answer to `done`, once the clone knows of the other take."""
    here, there = two
    planck, bohr, gauss = Agent(here.store, PLANCK), Agent(here.store, BOHR), Agent(there.store, GAUSS)
    task_id = ask(planck)
    exchange(here, there)
    for agent in (bohr, gauss):
        task_work.take(agent.store, agent.caller, task_id)
    exchange(here, there)
    done = task_work.report(bohr.store, bohr.caller, task_id, "completed", "mine")
    assert len(done.warnings) == 1 and "took it, too: the first result counts" in done.warnings[0]
