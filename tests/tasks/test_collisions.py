"""R17: work that two delegated, or took, apart: both sides are told, and which task stays."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pytest

from gitmem import records
from gitmem.agents import caller, delivery
from gitmem.errors import GateError
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.text.addresses import writer_of
from gitmem.work import collisions, new_task, stored_tasks, task_decisions, task_list, task_rules, task_work
from tests.clones import Clone, Hub, git
from tests.sandbox import SECOND, Agent, Clock, annas, carry, told

PLANCK, CURIE, BOHR, GAUSS = map(
    annas,
    ("codex:planner:planck", "codex:planner:curie", "claude:worker:bohr", "claude:worker:gauss"),
)


def ask(agent: Agent, text: str = "Write the tests", **options: object) -> str:
    """Delegate to whoever is implementer/test; the task's id."""
    given: dict[str, object] = {"to": "role:implementer/test", "wu": "WU-7", **options}
    return str(new_task.delegate(agent.store, agent.caller, text, **given).task["task_id"])  # type: ignore[arg-type]


def exchange(*clones: Clone) -> None:
    for each in (*clones, *clones):
        each.exchange()


def meet(*clones: Clone) -> None:
    """Let each clone have every line: two without a remote, more by one."""
    if len(clones) > 2:
        exchange(*clones)
    else:
        carry(*(each.store for each in clones))


def left(store: Store, ids: Sequence[str]) -> list[str]:
    """Those of these tasks that go on."""
    tasks = [task_rules.require(store, id) for id in ids]
    return [id for id, task in zip(ids, tasks, strict=True) if not task.is_finished and not task.cancels]


def obey(agent: Agent, texts: Sequence[str]) -> None:
    """Run each command that these texts print, as somebody who reads nothing else."""
    for text in texts:
        words = shlex.split(text.partition("gitmem task ")[2])
        if words[:1] == ["cancel"] and left(agent.store, [words[1]]):
            task_decisions.cancel(agent.store, agent.caller, words[1])
        elif words[:1] == ["release"]:
            task_work.release(agent.store, agent.caller, words[1], reason=words[2])


def test_r17_both_delegators_are_told_once_which_task_stays(two: tuple[Clone, Clone]) -> None:
    """The one that was written first; once one is taken, that one, and who was told otherwise is told again."""
    here, there = two
    planck, curie = Agent(here.store, PLANCK), Agent(there.store, CURIE)
    bohr = Agent(there.store, BOHR)
    first, second = ask(planck), ask(curie, "Write tests, please", wu="wu-7")
    assert told(planck) == told(curie) == []

    exchange(here, there)

    stays = f"{CURIE} delegated the same work as {second}. {first} stays; {CURIE} should cancel {second}."
    yields = f"{PLANCK} delegated the same work as {first}. {first} stays. Cancel this one: gitmem task cancel {second}"
    for agent, own, sentence in ((planck, first, stays), (curie, second, yields)):
        assert told(agent) == [f"delegated twice: {own}: {sentence}"]
        assert told(agent) == []
        assert sentence in task_list.show(agent.store, own, agent.caller).warnings
    assert task_work.take(there.store, bohr.caller, second).warnings == [
        f"{PLANCK} delegated the same work as {first}. {second} stays; {PLANCK} should cancel {first}."
    ]
    exchange(here, there)
    (again,) = told(planck)
    assert again == (
        f"delegated twice: {first}: {CURIE} delegated the same work as {second}, and {BOHR} has it. {second} stays."
        f" Cancel this one: gitmem task cancel {first}"
    )
    obey(planck, [again])
    assert task_list.show(here.store, second).warnings == []
    assert left(here.store, [first, second]) == [second]


@pytest.mark.parametrize("is_one_identity", [False, True])
@pytest.mark.parametrize("taken", [(), (0,), (1,), (0, 1), (2,), (1, 2), (0, 1, 2)])
def test_r17_if_all_sides_do_as_they_are_told_exactly_one_task_is_left(
    hub: Hub, taken: tuple[int, ...], is_one_identity: bool
) -> None:
    """Whatever is taken, in two clones and three; callers and takers, by notices and by what `task show` says to each."""
    clones = [hub.clone(name) for name in ("here", "there", "far")[: max(2, *taken, 0) + (2 in taken)]]
    callers = [
        Agent(clone.store, PLANCK if is_one_identity else f"codex:planner:p{number}")
        for number, clone in enumerate(clones)
    ]
    ids = [ask(caller) for caller in callers]
    takers = [(number, Agent(clones[number].store, f"claude:worker:w{number}")) for number in reversed(taken)]
    for number, taker in takers:
        task_work.take(taker.store, taker.caller, ids[number])
    meet(*clones)
    everybody = [*callers, *(agent for _, agent in takers)]
    for agent in everybody:
        obey(agent, told(agent))
    meet(*clones)
    (stays,) = left(clones[0].store, ids)
    assert not taken or stays == ids[taken[-1]]  # it was taken first
    assert task_rules.require(clones[0].store, stays).holder or not taken
    assert all(left(each.store, ids) == [stays] for each in clones)
    for agent in everybody:
        for id in ids:
            obey(agent, task_list.show(agent.store, id, agent.caller).warnings)
    meet(*clones)
    assert all(left(each.store, ids) == [stays] for each in clones)


def test_r17_what_task_show_says_leaves_one_task_too(two: tuple[Clone, Clone]) -> None:
    """Also to a person, who may cancel any task, and to who may not: a command stands only where the reader may run it."""
    planck, curie = Agent(two[0].store, PLANCK), Agent(two[1].store, CURIE)
    ids = [ask(planck), ask(curie)]
    exchange(*two)
    git("config", "user.email", "person@example.org", cwd=two[0].path)
    person = caller.person(two[0].store, "nobody")
    bohr = Agent(two[0].store, BOHR)
    for who, where, commands in (
        (planck.caller, two[0], 0),
        (curie.caller, two[1], 2),
        (bohr.caller, two[0], 0),
        (None, two[0], 0),
        (person, two[0], 2),
    ):
        said = [text for id in ids for text in task_list.show(where.store, id, who).warnings]
        assert len(said) == 2
        assert [f"gitmem task cancel {ids[1]}" in each for each in said].count(True) == commands
        assert not any(f"gitmem task cancel {ids[0]}" in each for each in said)
    task_decisions.cancel(curie.store, curie.caller, ids[1])
    exchange(*two)
    assert left(two[0].store, ids) == left(two[1].store, ids) == [ids[0]]


def test_r17_a_task_is_canceled_only_for_one_that_stays(store: Store, clock: Clock) -> None:
    """Of three, of which the first and the last have nothing in common, the middle one may be the same as both."""
    planck = Agent(store, PLANCK)
    brief = "ab" * 32
    first = ask(planck)
    clock.forward(SECOND)
    middle = ask(planck, brief_digest=brief)
    clock.forward(SECOND)
    last = ask(planck, wu="WU-8", brief_digest=brief)
    said = [collisions.sentences(store.db(), id, (PLANCK, None)) for id in (first, middle, last)]
    assert [len(each) for each in said] == [1, 1, 1]
    assert f"Cancel this one: gitmem task cancel {middle}" in said[1][0]
    assert said[2] == [f"You delegated the same work as {middle}. Agree who cancels."]
    task_decisions.cancel(store, planck.caller, middle)
    assert collisions.sentences(store.db(), last, None) == []


def test_r17_a_forged_delegation_makes_nobody_cancel_one(store: Store, clock: Clock) -> None:
    """It claims to be of a session here, to have been written first, and to be of the same work."""
    planck = Agent(store, PLANCK)
    forged = task_line(
        clock, 1, wu_id="WU-7", sender_identity=PLANCK, sender_session=planck.caller.session_id
    )
    clock.forward(SECOND)
    own = ask(planck)
    store.record([("tasks", forged)], MESSAGE)
    assert store.db().execute("SELECT DISTINCT task_id FROM task").fetchall() == [(own,)]
    assert task_list.show(store, own, planck.caller).warnings == told(planck) == []


def test_r17_who_is_told_in_an_answer_gets_no_notice_of_it_too(two: tuple[Clone, Clone]) -> None:
    """The first delegator is told by a notice; nothing else that waits for the session is dropped."""
    store = two[0].store
    planck, curie, bohr = (Agent(store, name) for name in (PLANCK, CURIE, BOHR))
    first = ask(planck)
    delivery.tell(store, curie.caller.session_id or "", "contested: a claim")
    made = new_task.delegate(store, curie.caller, "x", to="role:implementer/test", wu="WU-7")
    assert len(made.warnings) == 2 and "Cancel this one" in made.warnings[-1], made.warnings
    assert told(curie) == ["contested: a claim"]
    (sentence,) = told(planck)
    assert sentence.startswith(f"delegated twice: {first}: {CURIE} delegated the same work")
    (given_back,) = task_work.take(store, bohr.caller, first).warnings
    assert "stays" in given_back and told(bohr) == []


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
    here.store.db()
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
        made = new_task.delegate(store, curie.caller, "x", **given)  # type: ignore[arg-type]
        assert any(f"{PLANCK} delegated the same work as {first}" in each for each in made.warnings) == warned
        task_decisions.cancel(store, curie.caller, made.task["task_id"])
    for number, options in enumerate(({"brief_digest": "ab" * 32}, {"idempotency_key": "release-7"})):
        one, other = (
            ask(agent, wu=f"WU-{number}{of}", **options) for of, agent in enumerate((planck, curie))
        )
        assert [each.task_id for each in stored_tasks.of_same_work(store.db(), one, 5)] == [other]


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

    holder = task_rules.require(bohr.store, task_id).holder
    assert holder is not None
    winner, loser = (bohr, gauss) if holder.sender[0] == BOHR else (gauss, bohr)
    (won,), (lost,) = told(winner), told(loser)
    assert won.startswith(f"conflict: {loser.caller.reader} took {task_id}, too")
    assert won.endswith(f"counts. Talk to them: gitmem task show {task_id}")
    assert lost.endswith(f"give yours back: gitmem task release {task_id} 'taken twice'")
    assert told(winner) == told(loser) == []
    task_work.release(loser.store, loser.caller, task_id)
    assert not task_rules.require(loser.store, task_id).conflict
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
    store.domain.feed(store)
    store.index.db.set_progress_handler(None, 0)
    assert len(steps) <= 3  # of the whole feed, whatever the number of tasks


MESSAGE = CommitMessage("Mallory <m@example.org>", "tasks")


def task_line(clock: Clock, number: int, **fields: object) -> bytes:
    """A delegation of a peer's invention."""
    made = {
        "task_id": f"task-000000{number:06}", "thread_id": "thread-x", "message": "x", "purpose": "delegation",
        "requested_role": {"lifecycle_role": "implementer", "specialty_profile": "test"}, "target_role": "implementer/test",
        "sender_identity": f"evil:worker:m{number}", **fields,
    }  # fmt: skip
    writer = "" if "sender_session" in fields else writer_of(str(made["sender_identity"]))
    return records.line("task", clock(), made, writer=writer or None)


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

    task = task_rules.require(bohr.store, task_id)
    assert task.outcome is not None
    winner, loser = (bohr, gauss) if task.outcome.sender[0] == BOHR else (gauss, bohr)
    names = {each.sender[0]: each.record.get("sender_name") or each.sender[0] for each in task.takes}
    first, other = (names[each.caller.reader] for each in (winner, loser))
    sealed = task_decisions.seal_task(planck.store, planck.caller, task_id)
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


@pytest.mark.parametrize("decided", ["", "seal", "cancel"])
def test_who_wrote_a_late_result_is_told_once(hub: Hub, decided: str) -> None:
    """Also if the caller had accepted the other result, or had ended the task; whose result counts is told nothing."""
    planner_at, bohr_at, gauss_at = (hub.clone(name) for name in ("planner", "bohr", "gauss"))
    planck = Agent(planner_at.store, PLANCK)
    bohr, gauss = Agent(bohr_at.store, BOHR), Agent(gauss_at.store, GAUSS)
    task_id = ask(planck)
    exchange(planner_at, bohr_at, gauss_at)
    for agent in (bohr, gauss):
        task_work.take(agent.store, agent.caller, task_id)
    for agent in (bohr, gauss) if decided != "cancel" else (bohr,):
        task_work.report(agent.store, agent.caller, task_id, "completed", "mine")
    if decided == "cancel":
        task_decisions.seal_task(planck.store, planck.caller, task_id, give_up="no longer wanted")
    elif decided:
        exchange(bohr_at, planner_at)
        task_decisions.seal_task(planck.store, planck.caller, task_id)
    exchange(planner_at, bohr_at, gauss_at)

    task = task_rules.require(bohr.store, task_id)
    by = task.outcome.sender[0] if task.outcome is not None else ""
    late, first = (bohr, gauss) if decided == "cancel" or by == GAUSS else (gauss, bohr)
    why = {
        "": f"that of {first.caller.name} counts",
        "seal": f"that of {first.caller.name} was accepted",
        "cancel": f"{PLANCK} had ended the task as failed",
    }[decided]
    said = told(late)
    assert said[-1] == f"late: your result of {task_id} came late: {why}: gitmem task show {task_id}"
    assert told(late) == []
    (newest,) = late.store.db().execute("SELECT max(id) FROM line").fetchone()
    assert list(collisions.news(late.store)) != list(collisions.news(late.store, newest)) == []
    assert not any(each.startswith("late") for each in told(first))
    assert told(planck) == []


def test_a_late_result_that_is_forged_is_told_to_nobody(store: Store, clock: Clock) -> None:
    """Nor does an end that only claims to be from this clone make a true one late."""
    planck, bohr, gauss = (Agent(store, name) for name in (PLANCK, BOHR, GAUSS))
    task_id = ask(planck)
    taken = task_work.take(store, bohr.caller, task_id)
    forged = records.line("task_event", clock(), {
        "event_id": "tev-000000000001", "task_id": task_id, "event": "status", "state": "completed", "take": taken.event_id,
        "sender_identity": GAUSS, "sender_session": gauss.caller.session_id,
    }, writer=None)  # fmt: skip
    store.record([("tasks", forged)], MESSAGE)
    task_work.report(store, bohr.caller, task_id, "completed", "mine")
    assert store.db().execute("SELECT late FROM task").fetchone() == (0,)
    assert told(gauss) == told(bohr) == []
