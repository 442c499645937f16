"""Counts of tasks, and how long they wait and take."""

from __future__ import annotations

import pytest

from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.work import new_task, task_decisions, task_list, task_work
from tests.sandbox import Agent, Clock

PLANNER, BOHR = "codex:planner:one", "claude:worker:bohr"
MINUTE = 60 * 1_000_000


def test_tasks_are_counted_by_state_outcome_and_role_and_their_times(store: Store, clock: Clock) -> None:
    """Of all, of a work unit and of an initiative; times from the writing on."""
    planner, bohr = Agent(store, PLANNER).caller, Agent(store, BOHR).caller
    asked = {"lifecycle_role": "implementer", "specialty_profile": "test"}

    def made(**options: object) -> str:
        given = {"target_role": "implementer/test", **options}
        return str(new_task.create(store, planner, "Write", **given).task["task_id"])  # type: ignore[arg-type]

    done, unsealed, open_, canceled = (made(wu="WU-7", requested_role=asked), made(initiative="INI-1"),
                                       made(target_role="reviewer/docs"), made(wu="#wu-7"))  # fmt: skip
    task_decisions.launch(store, planner, done)
    for minutes, task_id in ((10, done), (20, unsealed)):
        clock.forward(minutes * MINUTE)
        task_work.take(store, bohr, task_id)
        task_work.report(store, bohr, task_id, "completed", "ok")
    task_decisions.seal_task(store, planner, done)
    task_decisions.cancel(store, planner, canceled)

    found = task_list.stats(store)
    assert (found.tasks, found.open, found.launches, found.conflicts) == (4, 1, 1, 0)
    assert found.states == {"completed": 2, "canceled": 1, "submitted": 1}
    assert found.outcomes == {"sealed": 2, "unconfirmed": 1}
    assert [(each.role, each.tasks, each.open, each.completed) for each in found.roles] == [
        ("implementer/test", 3, 0, 2), ("reviewer/docs", 1, 1, 0),
    ]  # fmt: skip
    taken = found.to_first_take
    assert (taken.count, taken.median, taken.p90, taken.longest) == (
        2,
        pytest.approx(600, 1),
        pytest.approx(1800, 1),
        taken.p90,
    )
    assert found.to_end.count == 2 and found.to_end.as_json()["longest"] == pytest.approx(1800, 1)
    assert task_list.stats(store, wu="wu-7").tasks == 2
    assert task_list.stats(store, initiative="INI-1").outcomes == {"unconfirmed": 1}
    assert open_


def test_nothing_is_counted_as_nothing(store: Store) -> None:
    """No division by zero, and no times."""
    found = task_list.stats(store)
    assert (found.tasks, found.states, found.roles, found.to_end.as_json()) == (
        0, {}, [], {"count": 0, "median": None, "p90": None, "longest": None},
    )  # fmt: skip


def test_counts_of_what_peers_wrote_are_bounded(store: Store) -> None:
    """Many roles of any length, and clocks that go backwards."""
    lines = []
    for number in range(60):
        common = {"sender_identity": "claude:mallory:far", "task_id": f"task-{number:04}"}
        role = {"lifecycle_role": f"{number:03}" + "x" * 5_000}
        lines.append(
            store.line("task", {**common, "thread_id": "thread-0001", "message": "x", "requested_role": role})
        )  # type: ignore[arg-type]
        lines.append(
            store.line(
                "task_event",
                {
                    **common,
                    "event_id": f"tev-{number:04}",
                    "event": "take",
                    "until": "1970-01-01T00:00:00.000000Z",
                },
            )
        )  # type: ignore[arg-type]
    early = [
        (stream, b'{"at":"1971-01-01T00:00:00.000000Z",' + line[36:])
        if b'"task_event"' in line
        else (stream, line)
        for stream, line in lines
    ]
    store.record(early, CommitMessage("gitmem <gitmem@localhost>", "sync"))

    found = task_list.stats(store)

    assert len(found.roles) == task_list.GROUPS_MAX
    assert max(len(each.role) for each in found.roles) <= 100
    assert (found.to_first_take.count, found.to_first_take.longest) == (60, 0)
