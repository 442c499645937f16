"""Launches and relaunches: receipts, the numbers of attempts, and what is refused."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gitmem
from gitmem import views
from gitmem.agents import lifecycle
from gitmem.errors import GateError, GitmemError, UsageError
from gitmem.index import catch_up
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.work import new_task, stored_tasks, task_decisions, task_list, task_roles, task_rules, task_work
from tests.clones import Hub
from tests.sandbox import HOUR, Agent, Clock, annas
from tests.signing import own_key

from ..empty_index import empty_index
from .events_by_hand import Task

PLANNER, BOHR, CURIE = map(annas, ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie"))
ASKED = {"lifecycle_role": "implementer", "specialty_profile": "test", "capabilities": []}
SCOPE = {"responsibility_kinds": ["implement"], "wu_ids": ["WU-7"]}
MINUTE = 60 * 1_000_000


def delegated(agent: Agent, **options: object) -> str:
    given = {"target_role": "implementer/test", "requested_role": ASKED, **options}
    return str(new_task.create(agent.store, agent.caller, "Write the tests", **given).task["task_id"])  # type: ignore[arg-type]


def test_r21_a_receipt_has_what_was_asked_and_what_came(store: Store) -> None:
    """Every field of the requirement: those of the task, of the launch, and of the take that followed."""
    planner = Agent(store, PLANNER)
    bohr = Agent(store, BOHR, role="reviewer/docs", scope=["docs/**"])
    task_id = delegated(planner, wu="WU-7", initiative="INI-1", lane="core", requested_ownership_scope=SCOPE)
    made = task_decisions.launch(store, planner.caller, task_id[:12], attempt="first try", wave="2", claimed_mode="worktree",
                         branch="wu-7", worktree="shop-wu7", handoff_path="plan/wu-7.md", client="codex",
                         requested_model="opus")  # fmt: skip
    assert (made.recorded, made.task_id, made.actual_role, made.role_mismatch) == (True, task_id, None, None)
    task_work.take(store, bohr.caller, task_id)

    (found,) = task_list.show(store, task_id).launches
    said = found.as_json()
    assert {name: said[name] for name in ("initiative_id", "attempt", "attempt_number", "wave", "wu_id", "lane", "claimed_mode",
                                          "branch", "worktree", "handoff_path", "client", "requested_model")} == {
        "initiative_id": "INI-1", "attempt": "first try", "attempt_number": 1, "wave": "2", "wu_id": "WU-7", "lane": "core",
        "claimed_mode": "worktree", "branch": "wu-7", "worktree": "shop-wu7", "handoff_path": "plan/wu-7.md",
        "client": "codex", "requested_model": "opus",
    }  # fmt: skip
    assert (said["requested_role"], said["role_mismatch"], said["scope_mismatch"]) == (ASKED, True, True)
    assert said["actual_role"] == {
        "lifecycle_role": "reviewer",
        "specialty_profile": "docs",
        "capabilities": [],
    }
    assert said["requested_ownership_scope"] == SCOPE
    assert said["actual_ownership_scope"] == {"responsibility_kinds": ["verify"], "paths": ["docs/**"]}
    assert (said["launch"], said["take"] is None) == (made.launch, False)


def test_r21_a_launcher_may_state_the_role_and_scope_of_the_worker(store: Store) -> None:
    """The receipt has it until a take says more; a role that is unknown is a warning, as everywhere."""
    planner = Agent(store, PLANNER)
    made = task_decisions.launch(
        store, planner.caller, delegated(planner), role="code-reviewer", scopes=["src/**"]
    )
    assert made.actual_role == {
        "lifecycle_role": "reviewer",
        "specialty_profile": "general",
        "role_alias": "code-reviewer",
        "capabilities": [],
    }
    assert made.role_mismatch and made.actual_ownership_scope == {
        "responsibility_kinds": ["verify"],
        "paths": ["src/**"],
    }
    with pytest.raises(UsageError):
        task_decisions.launch(store, planner.caller, delegated(planner), scopes=["../x"])


def test_r22_attempts_count_up_within_an_initiative(store: Store, clock: Clock) -> None:
    """Over all its tasks; a task without an initiative counts its own."""
    planner = Agent(store, PLANNER)
    first, second = (delegated(planner, initiative="INI-1") for _ in range(2))
    other, alone = delegated(planner, initiative="INI-2"), delegated(planner)
    made = [
        task_decisions.launch(store, planner.caller, task_id) for task_id in (first, other, second, alone)
    ]
    made += [
        task_decisions.launch(store, planner.caller, task_id, again="it never began")
        for task_id in (first, other, alone)
    ]
    numbers = [each.attempt_number for each in made]
    assert numbers == [1, 1, 2, 1, 3, 2, 2]


def test_r22_attempts_are_monotonic_when_two_clones_launch_apart(hub: Hub) -> None:
    """Each has a number of its own once both are known, the same in both clones; none gets a lower one; its id stays."""
    here, there = hub.clone("planner"), hub.clone("launcher")
    planner, launcher = Agent(here.store, PLANNER), Agent(there.store, BOHR)
    ids = [delegated(planner, initiative="INI-1") for _ in range(2)]
    for each in (here, there):
        each.exchange()
    before = [
        task_decisions.launch(agent.store, agent.caller, task_id)
        for agent, task_id in ((planner, ids[0]), (launcher, ids[1]), (planner, ids[1]), (launcher, ids[0]))
    ]
    assert [each.attempt_number for each in before] == [1, 1, 2, 2]
    for each in (here, there, here):
        each.exchange()

    def seen(store: Store) -> dict[str, int]:
        found: dict[str, int] = {}
        for task_id in ids:
            found |= {
                each.launch: each.attempt_number or 0 for each in task_list.show(store, task_id).launches
            }
        return found

    assert seen(here.store) == seen(there.store)
    assert sorted(seen(here.store).values()) == [1, 2, 3, 4]
    assert all(seen(here.store)[each.launch] >= (each.attempt_number or 0) for each in before)


def test_r22_the_numbers_do_not_depend_on_the_order_of_arrival() -> None:
    """Also with a second line of one event id, and with launches that come before their task."""
    tasks = [Task(f"task-000{n}", initiative_id="INI-1") for n in range(2)]
    for second, task in zip((5, 3, 4), itertools.cycle(tasks), strict=False):
        task.add("launch", "codex:planner:one", second, event_id=f"tev-00{second}0")
    tasks[0].add("launch", "codex:planner:one", 2, event_id="tev-late")
    again = Task("task-0000")
    again.add("launch", "codex:planner:one", 1, event_id="tev-0050")
    lines = [line for task in tasks for line in (task.line, *(each.line for each in task.events.values()))]
    lines += [each.line for each in again.events.values()]
    found = set()
    for order in itertools.islice(itertools.permutations(lines), 0, None, 91):
        index = empty_index(views.TASKS)
        for line in order:
            catch_up.insert_lines(index, catch_up.OWN_FILE, [line])
        one = tasks[0].fold()
        found.add(repr(sorted(stored_tasks.launch_numbers(index.db, one).items())))
    assert found == {"[('tev-0040', 4), ('tev-0050', 1), ('tev-late', 2)]"}


def test_r23_a_relaunch_names_the_role_asked_for_the_last_one_and_the_reason(
    store: Store, clock: Clock
) -> None:
    """After a lease that ran out, and again after the second worker gave it back."""
    planner = Agent(store, PLANNER)
    task_id = delegated(planner)
    first = task_decisions.launch(store, planner.caller, task_id)
    bohr = Agent(store, BOHR, role="reviewer/docs")
    task_work.take(store, bohr.caller, task_id)
    lifecycle.end(store, bohr.caller)
    clock.forward(2 * HOUR)

    made = task_decisions.launch(store, planner.caller, task_id, again="its session ended")
    assert (made.requested_role, made.relaunch_reason, made.relaunch_of) == (
        ASKED,
        "its session ended",
        first.launch,
    )
    assert made.last_actual_role == {
        "lifecycle_role": "reviewer",
        "specialty_profile": "docs",
        "capabilities": [],
    }

    curie = Agent(store, CURIE, role="implementer/test")
    task_work.take(store, curie.caller, task_id)
    task_work.release(store, curie.caller, task_id)
    again = task_decisions.launch(store, planner.caller, task_id, again="given back")
    assert again.last_actual_role == ASKED
    roles = [each.actual_role for each in task_list.show(store, task_id).launches]
    assert roles == [
        {"lifecycle_role": "reviewer", "specialty_profile": "docs", "capabilities": []},
        ASKED,
        None,
    ]


def test_r23_a_relaunch_of_a_live_worker_is_refused(store: Store, clock: Clock) -> None:
    """By its lease; and half an hour longer while its session shows life. It says who works and until when."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR, name="Bohr")
    task_id = delegated(planner)
    task_decisions.launch(store, planner.caller, task_id)
    until = task_work.take(store, bohr.caller, task_id).until
    for call in (lambda: task_decisions.launch(store, planner.caller, task_id, again="slow"),
                 lambda: task_decisions.launch(store, planner.caller, task_id)):  # fmt: skip
        with pytest.raises(GateError, match=f"was taken by {BOHR}, who has it until {until}"):
            call()
    clock.forward(HOUR + 5 * MINUTE)
    lifecycle.change(store, bohr.caller, activity="still at it")
    with pytest.raises(
        GateError, match=r"may still be worked on: the time of Bohr ended at .* seen just now"
    ) as refused:
        task_decisions.launch(store, planner.caller, task_id, again="slow")
    assert refused.value.next == [f"gitmem signal 'Do you still work on {task_id}?' --to Bohr"]
    clock.forward(26 * MINUTE)
    lifecycle.change(store, bohr.caller, activity="something else")
    assert task_decisions.launch(store, planner.caller, task_id, again="it does something else").recorded
    assert len(task_list.show(store, task_id).launches) == 2


def test_r23_what_cant_be_launched_is_refused_and_writes_nothing(store: Store, clock: Clock) -> None:
    """A finished, canceled or overdue task; a second launch without a reason; a relaunch of what never began."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR)
    finished, canceled, late, twice, never = (
        delegated(planner), delegated(planner), delegated(planner, deadline=clock() + MINUTE), delegated(planner),
        delegated(planner),
    )  # fmt: skip
    task_work.take(store, bohr.caller, finished)
    task_work.report(store, bohr.caller, finished, "completed", "ok")
    task_decisions.cancel(store, planner.caller, canceled)
    task_decisions.launch(store, planner.caller, twice)
    clock.forward(2 * MINUTE)
    before = store.db().execute("SELECT count(*) FROM line").fetchone()
    for call, code in (
        (lambda: task_decisions.launch(store, planner.caller, finished, again="again"), "finished-task"),
        (lambda: task_decisions.launch(store, planner.caller, canceled), "finished-task"),
        (lambda: task_decisions.launch(store, planner.caller, late), "past-deadline"),
        (lambda: task_decisions.launch(store, planner.caller, twice), "launched-task"),
        (lambda: task_decisions.launch(store, planner.caller, never, again="why"), "not-launched"),
        (lambda: task_decisions.launch(store, planner.caller, twice, again=" "), "no-reason"),
        (lambda: task_decisions.launch(store, planner.caller, "task-nothere0"), "unknown-task"),
        (lambda: task_decisions.launch(store, planner.caller, never, attempt="x" * 201), "invalid-record"),
        (lambda: task_decisions.launch(store, planner.caller, never, handoff_path="a\0b"), "invalid-record"),
    ):
        with pytest.raises(GitmemError) as refused:
            call()
        assert (refused.value.code, refused.value.status) == (code, 2), refused.value
        assert "othing was written" in refused.value.message
    assert store.db().execute("SELECT count(*) FROM line").fetchone() == before


def test_of_thirty_launches_at_once_one_is_recorded(repo: Path, store: Store) -> None:
    """Each in a store of its own, as processes have one."""
    own_key(repo)
    planner = Agent(store, PLANNER)
    task_id = delegated(planner)

    def attempt(number: int) -> str:
        with gitmem.open(str(repo), session=planner.session.session_id) as log:
            try:
                log.tasks.launch(task_id, attempt=str(number))
            except GitmemError as error:
                return str(error.code)
        return "launched"

    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(attempt, range(30)))
    assert (found.count("launched"), found.count("launched-task")) == (1, 29)


def test_garbled_launches_of_a_peer_are_read(store: Store) -> None:
    """Fields of any content, itself as what it repeats, a thousand of them; the answer has the last ones."""
    planner = Agent(store, PLANNER)
    task_id = delegated(planner, initiative="INI-1")
    lines = []
    for number in range(1_200):
        id = f"tev-{number:06}"
        lines.append(store.line("task_event", {
            "event_id": id, "task_id": task_id, "event": "launch", "relaunch_of": id, "after": ["tev-unknown", id],
            "actual_role": {"lifecycle_role": ["x"], "specialty_profile": {"a": 1}}, "attempt": "]] x",
            "actual_ownership_scope": {"paths": 7, "wu_ids": "x"}, "sender_identity": "claude:mallory:far",
        }))  # fmt: skip
    store.record(lines, CommitMessage("gitmem <gitmem@localhost>", "sync"))

    found = task_list.show(store, task_id)

    assert len(found.launches) == task_roles.LAUNCHES_SHOWN
    assert all(each.attempt_number and each.role_mismatch is None for each in found.launches)
    assert task_rules.require(store, task_id).left_out == 200


def test_a_take_belongs_to_the_launch_that_it_names(store: Store) -> None:
    """Also if its taker has seen a later one."""
    task = Task()
    first, second = (task.add("launch", PLANNER, second) for second in (1, 2))
    take = task.take(BOHR, 3, launch=first.id)
    folded = task.fold()
    found = [task_roles.take_after(folded, each, task_roles.launches_of(folded)) for each in (first, second)]
    assert [each and each.id for each in found] == [take.id, None]


def test_a_worker_whose_time_is_over_may_launch_the_next_one(store: Store, clock: Clock) -> None:
    """It knows that it has stopped."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR)
    task_id = delegated(planner)
    task_work.take(store, bohr.caller, task_id)
    clock.forward(HOUR + 5 * MINUTE)
    lifecycle.change(store, bohr.caller, activity="handing on")
    assert task_decisions.launch(store, bohr.caller, task_id, again="out of context").recorded
