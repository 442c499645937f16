"""The handoffs that wait for an answer, as the roster, inboxes and contexts show them."""

from __future__ import annotations

from typing import Any

from gitmem.agents import roster
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.work import handoffs, new_task, task_decisions, task_work
from tests.sandbox import DAY, HOUR, MINUTE, Agent, Clock

BOHR, CURIE, DIRAC = "claude:worker:bohr", "claude:worker:curie", "claude:worker:dirac"


def given(store: Store, agent: Agent, **options: Any) -> str:
    made = new_task.create(store, agent.caller, "All yours\nsecond line", purpose="handoff", **options)
    return made.task["task_id"]


def shown(store: Store, agent: Agent) -> tuple[list[str], list[str]]:
    found = handoffs.of_caller(store, agent.caller)
    return [each.task_id for each in found.offered], [each.task_id for each in found.given]


def lines(store: Store) -> dict[str, list[str]]:
    found = handoffs.add_to(store, roster.roster(store))
    return {each["display_name"]: each["handoffs"] for each in found.sessions}


def test_a_handoff_is_offered_to_its_addressee_and_shown_to_its_giver(store: Store, clock: Clock) -> None:
    """Item 6 of the issue: it shows in both rosters, and to both agents with the command that goes on."""
    bohr, curie, dirac = (Agent(store, each, name=each[14:].title()) for each in (BOHR, CURIE, DIRAC))
    one = given(store, bohr, to="Curie", wu="WU-7")

    assert (shown(store, bohr), shown(store, curie), shown(store, dirac)) == (
        ([], [one]),
        ([one], []),
        ([], []),
    )
    (row,) = handoffs.of_caller(store, curie.caller).offered
    assert (row.text, row.next, row.status) == (
        f"Bohr offers (gitmem task show {one}): WU-7; next steps: All yours",
        [f"gitmem task show {one}", f"gitmem task take {one}"], "waiting",
    )  # fmt: skip
    (row,) = handoffs.of_caller(store, bohr.caller).given
    assert (row.text, row.next) == (
        "You hand over WU-7 to Curie, waiting: All yours",
        [f"gitmem task cancel {one}"],
    )
    assert lines(store) == {
        "Bohr": [f"handed over to Curie, waiting ({one})"], "Curie": [f"offered by Bohr ({one})"], "Dirac": [],
    }  # fmt: skip


def test_one_for_a_role_is_offered_to_all_who_have_it_but_the_giver(store: Store) -> None:
    """A role without a specialty means each of its specialties."""
    bohr = Agent(store, BOHR, name="Bohr", role="reviewer/docs")
    curie = Agent(store, CURIE, name="Curie", role="reviewer/docs")
    dirac = Agent(store, DIRAC, name="Dirac", role="reviewer/test")
    docs, any_one = (
        given(store, bohr, target_role="reviewer/docs"),
        given(store, bohr, target_role="reviewer"),
    )
    assert [set(shown(store, each)[0]) for each in (bohr, curie, dirac)] == [
        set(),
        {docs, any_one},
        {any_one},
    ]
    assert {name: len(said) for name, said in lines(store).items()} == {"Bohr": 2, "Curie": 2, "Dirac": 1}


def test_what_is_answered_or_withdrawn_is_not_listed(store: Store) -> None:
    """Accepted, refused, withdrawn by its session, or by another session of the agent."""
    bohr, curie = Agent(store, BOHR), Agent(store, CURIE)
    again = Agent(store, BOHR)
    ids = [given(store, bohr, to=CURIE) for _ in range(4)]
    task_work.take(store, curie.caller, ids[0])
    task_work.reject(store, curie.caller, ids[1])
    task_decisions.cancel(store, bohr.caller, ids[2])
    task_decisions.cancel(store, again.caller, ids[3])
    assert (shown(store, bohr), shown(store, curie)) == (([], []), ([], []))


def test_after_a_day_of_silence_it_is_returned_to_its_giver(store: Store, clock: Clock) -> None:
    """M8: nobody is offered it any more; the giver is told for a week."""
    bohr, curie = Agent(store, BOHR), Agent(store, CURIE)
    one = given(store, bohr, to=CURIE)
    clock.forward(DAY - MINUTE)
    assert shown(store, curie) == ([one], [])
    clock.forward(HOUR)
    assert (shown(store, curie), shown(store, bohr)) == (([], []), ([], [one]))
    (row,) = handoffs.of_caller(store, bohr.caller).given
    assert row.status == "returned" and "nobody has answered in 24 hours" in row.text
    assert not any(lines(store).values())
    clock.forward(7 * DAY)
    assert shown(store, bohr) == ([], [])


def test_a_list_is_short_and_harmless_whatever_peers_write(store: Store, clock: Clock) -> None:
    """A thousand handoffs with terminal codes: the latest ones are listed."""
    curie = Agent(store, CURIE)
    fields: dict[str, Any] = {
        "thread_id": "thread-0001", "message": "\x1b[2Jrm -rf", "purpose": "handoff", "agent": CURIE,
        "sender_identity": "x:y:z", "sender_name": "root",
    }  # fmt: skip
    made = [store.line("task", {**fields, "task_id": f"task-a{number:04}"}) for number in range(1_000)]  # type: ignore[arg-type]
    store.record(made, CommitMessage("x <x@example.org>", "flood"))
    found = handoffs.of_caller(store, curie.caller)
    assert len(found.offered) == handoffs.LISTED
    assert not any("\x1b" in each.text for each in found.offered)
    assert not any("\x1b" in said for all_of in lines(store).values() for said in all_of)
    clock.forward(MINUTE)
    last = store.line("task", {**fields, "task_id": "task-last"})  # type: ignore[arg-type]
    store.record([last], CommitMessage("x <x@example.org>", "one more"))
    assert shown(store, curie)[0][0] == "task-last"
