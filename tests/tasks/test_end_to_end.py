"""One task on its way: written in a clone, committed, synced, taken in another, and its result sealed where it was asked for."""

from __future__ import annotations

from gitmem.tasks import find_task, new_task
from tests.clones import Clone

from .conftest import Agent

PLANNER, BOHR = "codex:planner:one", "claude:worker:bohr"


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

    task = find_task.require(there.store, str(made.task["task_id"]))
    assert (task.state, task.record.get("agent"), task.record.get("wu_id")) == ("submitted", BOHR, "WU-7")
    assert task.record["message"] == "Write the tests\nof the tax rules"
    assert "DELEGATION Write the tests" in "".join(there.subjects())
