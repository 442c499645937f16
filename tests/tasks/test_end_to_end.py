"""One task on its way: written in a clone, committed, synced, taken in another, and its result sealed where it was asked for."""

from __future__ import annotations

from gitmem.work import new_task, task_decisions, task_rules, task_work
from tests.clones import Clone, Hub
from tests.sandbox import Agent, annas

PLANNER, BOHR, CURIE = map(annas, ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie"))


def test_a_task_reaches_another_clone(two: tuple[Clone, Clone]) -> None:
    """The thin way through all layers: record, line, commit, sync, index, fold."""
    here, there = two
    planner = Agent(here.store, PLANNER)
    Agent(there.store, BOHR)
    there.exchange()
    here.exchange()

    made = new_task.create(
        here.store, planner.caller, "Write the tests\nof the tax rules", to=BOHR, wu="WU-7"
    )
    assert made.recorded
    here.exchange()
    there.exchange()

    task = task_rules.require(there.store, str(made.task["task_id"]))
    assert (task.state, task.record.get("agent"), task.record.get("wu_id")) == ("submitted", BOHR, "WU-7")
    assert task.record["message"] == "Write the tests\nof the tax rules"
    assert "DELEGATION Write the tests" in "".join(there.subjects())


def test_two_clones_take_one_task_offline_and_all_see_the_same(hub: Hub) -> None:
    """Both hold it, without knowing of each other; the caller seals one result and the other one is kept as late."""
    planner_at, bohr_at, curie_at = (hub.clone(name) for name in ("planner", "bohr", "curie"))
    planner, bohr, curie = (
        Agent(planner_at.store, PLANNER),
        Agent(bohr_at.store, BOHR),
        Agent(curie_at.store, CURIE),
    )
    everybody = (planner_at, bohr_at, curie_at, planner_at, bohr_at, curie_at)
    task_id = new_task.create(
        planner.store, planner.caller, "Write the tests", target_role="implementer/test"
    ).task["task_id"]
    for each in everybody:
        each.exchange()

    for agent, result in ((bohr, "12 cases"), (curie, "9 cases")):
        task_work.take(agent.store, agent.caller, task_id)
        task_work.report(agent.store, agent.caller, task_id, "completed", result)
    for each in (curie_at, planner_at):
        each.exchange()
    assert task_decisions.seal_task(planner.store, planner.caller, task_id).state == "completed"
    for each in everybody:
        each.exchange()

    for each in (planner_at, bohr_at, curie_at):
        task = task_rules.require(each.store, task_id)
        assert task.outcome is not None
        assert task.outcome.record.get("message") == "9 cases"
        assert [late.record.get("message") for late in task.late] == ["12 cases"]
        assert (task.decided_by, task.conflict) == ("seal", True)
