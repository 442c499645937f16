"""Lists of tasks, one task in full, and `log.tasks`, which has all of it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.agents import session_view, waiting_work
from gitmem.agents.caller import Caller
from gitmem.history import open_work
from gitmem.store import Store
from gitmem.work import new_task, stuck, task_decisions, task_list, task_work
from tests.sandbox import HOUR, Agent, Clock, annas, open_store
from tests.signing import own_key

PLANNER, BOHR, CURIE = map(annas, ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie"))


def ids(page: task_list.TaskPage) -> list[object]:
    return [each.task_id for each in page.tasks]


def test_a_list_has_what_is_open_first_and_says_what_waits(store: Store, clock: Clock) -> None:
    """By priority, then the latest; with the holder, the lease and the open blockers."""
    planner, bohr = Agent(store, PLANNER).caller, Agent(store, BOHR).caller
    made = []
    for options in ({"wu": "WU-7"}, {"priority": "P0", "to": BOHR}, {"priority": "P3"}):
        clock.forward(1_000_000)
        made.append(
            str(
                new_task.create(
                    store, planner, "Write", **{"target_role": "implementer/test", **options}
                ).task["task_id"]
            )
        )  # type: ignore[arg-type]
    blocked = str(new_task.create(store, bohr, "Later", to=PLANNER, blocked_by=[made[0]]).task["task_id"])
    task_work.take(store, bohr, made[1], lease=HOUR)
    task_decisions.cancel(store, planner, made[2])

    page = task_list.list_tasks(store)

    assert ids(page) == [made[1], blocked, made[0], made[2]]
    first, waits, _, canceled = page.tasks
    assert (first.state, first.holder, first.until is None, first.confirmed) == (
        "working",
        BOHR,
        False,
        False,
    )
    assert (waits.blocked_by, canceled.state, canceled.confirmed) == ([made[0]], "canceled", True)
    assert ids(task_list.list_tasks(store, bohr)) == [made[1], blocked]
    assert ids(task_list.list_tasks(store, open=True)) == [made[1], blocked, made[0]]
    assert ids(task_list.list_tasks(store, blocked=True)) == [blocked]
    assert ids(task_list.list_tasks(store, wu="wu-7")) == [made[0]]
    assert session_view.is_known_unit(store, "wu-7")
    assert not session_view.is_known_unit(store, "WU-8")
    short = task_list.list_tasks(store, limit=1)
    assert (ids(short), short.more) == ([made[1]], 3)


def test_a_list_of_one_s_own_has_what_its_role_is_asked_to_do(store: Store, clock: Clock) -> None:
    """The inbox counts such tasks and names this list; whoever takes one takes it off the lists of the others."""
    planner = Agent(store, PLANNER).caller
    bohr, curie = (Agent(store, each, role="implementer/test").caller for each in (BOHR, CURIE))
    task_id = str(new_task.create(store, planner, "Write", target_role="implementer/test").task["task_id"])
    for name in ("reviewer/docs", "implementer/ui"):
        new_task.create(store, planner, "Other", target_role=name)
    assert ids(task_list.list_tasks(store, bohr, open=True)) == [task_id]
    clock.forward(2 * HOUR)
    assert [each.task.task_id for each in stuck.find(store, bohr).stuck] == [task_id]
    task_work.take(store, curie, task_id)
    assert ids(task_list.list_tasks(store, bohr)) == []
    assert ids(task_list.list_tasks(store, curie)) == [task_id]


def test_who_has_rejected_a_task_for_a_role_is_not_offered_it_again(store: Store, clock: Clock) -> None:
    """Others are; so is who has taken it and given it back since."""
    planner = Agent(store, PLANNER).caller
    bohr, curie = (Agent(store, each, role="implementer/test").caller for each in (BOHR, CURIE))
    task_id = str(new_task.create(store, planner, "Write", target_role="implementer/test").task["task_id"])

    def offered(caller: Caller) -> bool:
        work = open_work.of_inbox(store, caller)
        listed = ids(task_list.list_tasks(store, caller)) == [task_id]
        assert waiting_work.is_any(store.db(), waiting_work.values_for(caller, store.now())) == listed
        assert [each.task_id for each in (work.offered if work else ())] == ([task_id] if listed else [])
        return listed

    task_work.reject(store, bohr, task_id)
    assert (offered(bohr), offered(curie)) == (False, True)
    task_work.take(store, bohr, task_id)
    task_work.release(store, bohr, task_id)
    assert (offered(bohr), offered(curie)) == (True, True)
    task_work.reject(store, bohr, task_id)
    assert not offered(bohr)


def test_the_library_does_all_of_it(repo: Path, clock: Clock) -> None:
    """`log.tasks`: delegate, take, ask, answer, report, seal; the answers are JSON."""
    own_key(repo)
    with gitmem.open(str(repo), now=clock, identity=PLANNER, commit_after=0) as log:
        planner = log.sessions.start()
        asked: Any = {"to": PLANNER, "role": "implementer/test", "wu": "WU-7"}
        made = log.tasks.delegate("Write the tests", **asked)
        task_id = str(made.task["task_id"])
        assert made.warnings == ["You are one of the recipients: your own signals are never in your inbox."]
        assert log.tasks.take(task_id).recorded
        log.tasks.renew(task_id)
        log.tasks.ask(task_id, "Which rounding?")
        log.tasks.message(task_id, "half up")
        log.tasks.report(task_id, "completed", "12 cases")
        assert log.tasks.show(task_id).state_text == "done, not yet accepted"
        log.tasks.seal(task_id)
        detail = log.tasks.show(task_id).as_json()
        assert (detail["state"], detail["state_text"]) == ("completed", "completed")
        assert [each["event"] for each in detail["events"]] == [
            "take",
            "renew",
            "status",
            "message",
            "status",
            "seal",
        ]  # type: ignore[index,union-attr,attr-defined]
        assert [each.task_id for each in log.tasks.list(mine=True).tasks] == [task_id]
        other = str(log.tasks.delegate("More", **asked).task["task_id"])
        log.tasks.take(other)
        log.tasks.release(other)
        log.tasks.reject(other, "no time")
        third = str(log.tasks.delegate("Even more", **asked).task["task_id"])
        log.tasks.cancel(third)
        with pytest.raises(gitmem.UsageError, match="which accepts it instead"):
            log.tasks.close(other, "over")
        assert planner.session_id


LIST = """
import sys
from gitmem.open_store import open_store
from gitmem.repo import find
from gitmem.work import task_list
store = open_store(find(sys.argv[1]), machine="test", long_lived=False)
print(len(task_list.list_tasks(store, limit=1000).tasks))
"""


def cpu_of(*command: str) -> float:
    """CPU seconds of a process and those that it starts, of its best run."""
    best = 1e9
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.getcwd()}
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stdout in ("", "1000\n")
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


@pytest.mark.deep
def test_a_thousand_tasks_are_listed_in_the_time_of_four_pythons(repo: Path, clock: Clock) -> None:
    """With 20 events each: the states are in the index."""
    from gitmem.log.lines import CommitMessage

    from .events_by_hand import Task, at

    lines = []
    for number in range(1_000):
        task = Task(f"task-n{number:05}")
        take = task.add("take", BOHR, 1, event_id=f"tev-n{number:05}x00", until=at(60))
        for step in range(19):
            task.add(
                "status",
                BOHR,
                2 + step,
                event_id=f"tev-n{number:05}x{step + 1:02}",
                take=take.id,
                state="working",
            )
        lines += [("tasks", task.line), *(("tasks", each.line) for each in task.events.values())]
    with_lines = open_store(repo, clock)
    with_lines.record(lines, CommitMessage("Raw <raw@gitmem>", "raw"))
    with_lines.db()
    with_lines.close()
    python = cpu_of(sys.executable, "-c", "pass")
    assert cpu_of(sys.executable, "-c", LIST, str(repo)) <= 4 * python
