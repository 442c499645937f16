"""R37: tasks that are stuck, their levels, and that their escalation is told once across clones."""

from __future__ import annotations

import pytest

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.log.lines import CommitMessage
from gitmem.order.task import escalation_id
from gitmem.signals import inbox
from gitmem.store import Store
from gitmem.work import new_task, stuck, task_decisions, task_rules, task_work
from tests.clones import Hub
from tests.sandbox import HOUR, Agent, Clock, annas

PLANNER, BOHR, CURIE = map(annas, ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie"))
MINUTE = 60 * 1_000_000


def made(agent: Agent, **options: object) -> str:
    given = {"target_role": "implementer/test", **options}
    return str(new_task.create(agent.store, agent.caller, "Write the tests", **given).task["task_id"])  # type: ignore[arg-type]


def seen(store: Store) -> dict[object, tuple[str, str]]:
    return {each.task.task_id: (each.why, each.level) for each in stuck.find(store).stuck}


@pytest.mark.parametrize(
    ("minutes", "level"), [(29, None), (31, "warning"), (61, "error"), (121, "critical")]
)
def test_r37_half_an_hour_an_hour_and_two_are_the_levels(
    minutes: int, level: str | None, store: Store, clock: Clock
) -> None:
    """Of a task that nobody has taken, since it was written; a launch begins anew."""
    planner = Agent(store, PLANNER)
    task_id, launched = made(planner), made(planner)
    clock.forward(minutes * MINUTE)
    task_decisions.launch(store, planner.caller, launched)
    assert seen(store) == ({task_id: ("untaken", level)} if level else {})


def test_r37_the_reasons_are_told_apart(store: Store, clock: Clock) -> None:
    """Crashed, overdue, lost, unanswered, timeout and orphaned; what waits for others, or is replaced, is not stuck."""
    planner, bohr, curie = Agent(store, PLANNER), Agent(store, BOHR), Agent(store, CURIE)
    crashed, overdue, lost, asked, late, orphaned = (
        made(planner), made(planner), made(planner, semantics="at-most-once"), made(planner),
        made(planner, deadline=clock() + HOUR), made(curie),
    )  # fmt: skip
    made(planner, blocked_by=[made(planner, supersedes=[made(planner)])])
    for task_id, agent in ((crashed, curie), (overdue, bohr), (lost, bohr), (asked, bohr), (orphaned, bohr)):
        task_work.take(store, agent.caller, task_id, lease=HOUR)
    task_work.report(store, bohr.caller, asked, "input-required", "Which year?")
    task_work.report(store, bohr.caller, orphaned, "completed", "ok")
    lifecycle.end(store, curie.caller)
    clock.forward(100 * MINUTE)
    lifecycle.change(store, bohr.caller, activity="elsewhere")

    found = seen(store)

    replacing = [id for id, (why, _) in found.items() if why == "untaken"]
    assert {id: each for id, each in found.items() if id not in replacing} == {
        crashed: ("crashed", "warning"), overdue: ("overdue", "warning"), lost: ("lost", "warning"),
        asked: ("unanswered", "error"), late: ("timeout", "error"), orphaned: ("orphaned", "error"),
    }  # fmt: skip
    assert len(replacing) == 1
    page = {each.task.task_id: each for each in stuck.find(store).stuck}
    assert page[crashed].step == f"gitmem task launch {crashed} --again 'its worker is gone'"
    assert page[overdue].text == f"the time of {BOHR} ended 40 minutes ago, its session was seen just now"
    assert [len(stuck.find(store, limit=2).stuck), stuck.find(store, limit=2).more] == [2, 5]
    assert {each.task.task_id for each in stuck.find(store, curie.caller).stuck} == {crashed, orphaned}
    task_decisions.seal_task(store, planner.caller, crashed, give_up="lost")
    assert crashed not in seen(store)


def test_r37_m9_an_escalation_is_one_event_and_one_notice_across_clones(hub: Hub) -> None:
    """Two clones look before they sync; each level is told once, to who asked and who has it; the sender does not matter."""
    here, there = hub.clone("one"), hub.clone("two")
    planner, bohr, curie = Agent(here.store, PLANNER), Agent(here.store, BOHR), Agent(there.store, CURIE)
    task_id = made(planner)
    task_work.take(here.store, bohr.caller, task_id, lease=HOUR)
    for each in (here, there):
        each.exchange()
    hub.now.micros += HOUR + 40 * MINUTE

    for store, agent in ((here.store, bohr), (there.store, curie), (there.store, curie), (here.store, bohr)):
        page = stuck.find(store)
        stuck.escalate(store, agent.caller, page)
    for each in (here, there, here):
        each.exchange()

    for store in (here.store, there.store):
        task = task_rules.require(store, task_id)
        (event,) = [each for each in task.events.values() if each.event == "escalate"]
        assert (event.record["level"], event.record["take"]) == ("warning", task.holder and task.holder.id)  # type: ignore[typeddict-item]
        notices = store.db().execute("SELECT count(DISTINCT signal_id) FROM signal").fetchone()
        assert notices == (1,)
    found = inbox.read(here.store, planner.caller)
    (told,) = found.signals
    assert (
        told["message"]
        == f"The task {task_id} is stuck: warning. `gitmem task list --stuck` shows why, and how to go on."
    )
    hub.now.micros += HOUR
    page = stuck.find(here.store)
    stuck.escalate(here.store, bohr.caller, page)
    assert page.escalated == [task_id] and page.stuck[0].level == "error"


def test_r37_the_next_take_or_delegation_escalates_so_that_nobody_watches(store: Store, clock: Clock) -> None:
    """By a worker: the delegator gets the notice. By the delegator: it is told at once."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR)
    first = made(planner)
    clock.forward(40 * MINUTE)
    assert task_work.take(store, bohr.caller, made(planner)).warnings == []
    assert first in inbox.read(store, planner.caller).signals[0]["message"]
    own = stuck.escalate_due(store, planner.caller)
    assert own == ["Stuck tasks of yours: 1; `gitmem task list --stuck` shows them."]


def test_times_of_a_wrong_clock_hide_no_task(store: Store, clock: Clock) -> None:
    """A peer's launch in the year 9999 does not make a task wait for it."""
    planner = Agent(store, PLANNER)
    task_id = made(planner)
    stream, line = store.line(
        "task_event",
        {
            "task_id": task_id,
            "event_id": "tev-far0",
            "event": "launch",
            "sender_identity": "claude:mallory:far",
        },
    )
    far = b'{"at":"9999-01-01T00:00:00.000000Z",' + line[36:]
    store.record([(stream, far)], CommitMessage("gitmem <gitmem@localhost>", "sync"))
    clock.forward(40 * MINUTE)
    assert seen(store) == {task_id: ("untaken", "warning")}


def test_a_peer_that_writes_the_event_or_the_notice_first_hides_neither(store: Store, clock: Clock) -> None:
    """Ids are predictable: a notice that was not written here makes none unnecessary."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR)
    task_id = made(planner)
    clock.forward(40 * MINUTE)
    forged = store.line(
        "signal", {"signal_id": "sig-0000", "sender_identity": PLANNER, "recipients": [], "message": "x"}
    )
    store.record([forged], CommitMessage("gitmem <gitmem@localhost>", "sync"))
    event_id = escalation_id(task_id, "", "warning")
    line = store.line(
        "task_event",
        {
            "task_id": task_id,
            "event_id": event_id,
            "event": "escalate",
            "sender_identity": "claude:mallory:far",
        },
    )
    store.record([line], CommitMessage("gitmem <gitmem@localhost>", "sync"))
    page = stuck.find(store)
    stuck.escalate(store, bohr.caller, page)
    assert page.escalated == [task_id]
    assert task_id in inbox.read(store, planner.caller).signals[0]["message"]


def test_no_number_of_older_tasks_keeps_a_task_of_this_clone_from_being_escalated(
    store: Store, clock: Clock
) -> None:
    """Those of sessions of this clone come first."""
    planner, bohr = Agent(store, PLANNER), Agent(store, BOHR)
    older = [
        records.line("task", clock() - 9 * HOUR, {
            "task_id": f"task-invented{number:04}", "thread_id": "thread-x", "message": "x", "purpose": "delegation",
            "target_role": "implementer/test", "sender_identity": "evil:worker:m",
        })
        for number in range(30)
    ]  # fmt: skip
    store.record([("tasks", each) for each in older], CommitMessage("Mallory <m@example.org>", "tasks"))
    task_id = made(planner)
    clock.forward(40 * MINUTE)
    assert len(stuck.find(store).stuck) == 31
    assert len(stuck.escalate_due(store, bohr.caller)) == 0
    assert any(task_id in each["message"] for each in inbox.read(store, planner.caller).signals)
