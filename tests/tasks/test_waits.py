"""Who waits for whom: what threads and tasks say about who owes what to whom, until it is done."""

from __future__ import annotations

import pytest

from gitmem.agents import roster
from gitmem.agents.caller import Caller
from gitmem.history import open_work
from gitmem.history.open_work import words_of
from gitmem.signals import send
from gitmem.store import Store
from gitmem.work import new_task, task_decisions, task_work
from tests.sandbox import DAY, HOUR, SECOND, Agent, Clock, annas

PLANNER, BOHR, CURIE = map(annas, ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie"))

ROLE = {"lifecycle_role": "reviewer", "specialty_profile": "docs"}


class Scene:
    """Three agents of one log."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.planner, self.bohr = Agent(store, PLANNER).caller, Agent(store, BOHR).caller
        self.curie = Agent(store, CURIE, role="implementer/test").caller

    def say(self, by: Caller, text: str, **options: object) -> str:
        self.clock.forward(SECOND)
        return str(send.send(self.store, by, text, **options).signal["signal_id"])  # type: ignore[arg-type]

    def task(self, **options: object) -> str:
        self.clock.forward(SECOND)
        return str(new_task.create(self.store, self.planner, "Write", **options).task["task_id"])  # type: ignore[arg-type]

    def said(self, caller: Caller | None = None) -> list[str]:
        names = {PLANNER: "P", BOHR: "B", CURIE: "C"}
        found = open_work.waits(self.store, caller).rows
        for each in found:
            each.waiter_name = names[each.waiter]
            each.owes_name = names.get(each.owes or "", each.owes_name)
        return [" ".join(words_of(each)) for each in found]


@pytest.fixture
def scene(store: Store, clock: Clock) -> Scene:
    return Scene(store, clock)


def test_a_party_owes_an_answer_to_the_proposal_in_force_alone(scene: Scene) -> None:
    """A counter-proposal asks everybody anew, also who made the first; who withdraws one asks nobody."""
    first = scene.say(scene.planner, "Freeze", to=[BOHR, CURIE], intent="PROPOSE", wu="WU-7")
    assert scene.said() == ['P waits for B to answer "Freeze"', 'P waits for C to answer "Freeze"']
    scene.say(scene.bohr, "yes", reply_to=first, intent="AGREE")
    counter = scene.say(scene.curie, "Tomorrow", reply_to=first, intent="COUNTER")
    assert scene.said(scene.bohr) == [
        'C waits for you to answer "Tomorrow"',
        'C waits for P to answer "Tomorrow"',
    ]
    row = open_work.waits(scene.store, scene.bohr).rows[0]
    assert (row.what, row.state, row.id, row.you, row.next[0]) == (
        "answer", None, counter, "owes", f"gitmem reply {counter} agreed --agree",
    )  # fmt: skip
    scene.say(scene.bohr, "yes", reply_to=counter, intent="AGREE")
    scene.say(scene.planner, "no", reply_to=counter, intent="REJECT")
    assert scene.said() == []


def test_a_request_is_owed_until_its_answer_and_a_month(scene: Scene) -> None:
    """A plain message asks nothing; a broadcast asks nobody."""
    asked = scene.say(scene.planner, "May I?", to=[BOHR], requires_ack=True)
    scene.say(scene.planner, "By the way", to=[BOHR])
    scene.say(scene.planner, "All of you?", intent="PROPOSE")
    assert scene.said(scene.planner) == ['you wait for B to answer "May I?"']
    assert open_work.waits(scene.store, scene.planner).rows[0].next == [f"gitmem thread thread-{asked[4:]}"]
    scene.clock.forward(31 * DAY)
    assert scene.said() == []
    again = scene.say(scene.planner, "Still?", to=[BOHR], requires_ack=True)
    scene.say(scene.bohr, "yes", reply_to=again, intent="AGREE")
    assert scene.said() == []


def test_each_state_of_a_task_says_who_has_to_go_on(scene: Scene) -> None:
    """To be taken, working, asking, done, accepted: its signal adds nothing to its row."""
    id = scene.task(to=BOHR, requested_role=ROLE, wu="WU-7")
    assert scene.said(scene.bohr) == ['P waits for you to take "Write" as reviewer/docs']
    task_work.take(scene.store, scene.bohr, id, lease=HOUR)
    assert scene.said() == ['P waits for B to finish "Write" as reviewer/docs']
    task_work.report(scene.store, scene.bohr, id, "input-required", "Which year?")
    assert scene.said(scene.planner) == ['B waits for you to answer "Which year?"']
    task_decisions.message(scene.store, scene.planner, id, "this one")
    task_work.report(scene.store, scene.bohr, id, "failed", "no data")
    (row,) = open_work.waits(scene.store, scene.planner).rows
    assert (row.what, row.state, row.waiter, row.owes) == ("acceptance", "failed", BOHR, PLANNER)
    assert scene.said() == ['B waits for P to accept as failed "Write"']
    task_decisions.seal_task(scene.store, scene.planner, id)
    assert scene.said() == []


def test_a_task_for_a_role_is_owed_by_whoever_has_it(scene: Scene) -> None:
    """Until its deadline; nobody waits for the holder of a task that waits for another."""
    id = scene.task(target_role="implementer/test", deadline=scene.store.now() + 2 * HOUR)
    scene.task(to=BOHR, blocked_by=[id])
    assert scene.said(scene.bohr) == ['P waits for whoever is implementer/test to take "Write"']
    assert scene.said(scene.curie) == ['P waits for you to take "Write"']
    scene.clock.forward(3 * HOUR)
    assert id not in {each.id for each in open_work.waits(scene.store).rows}


def test_own_debts_come_first_and_many_are_counted(scene: Scene) -> None:
    """Of the others the newest stay; the answer is the same if no thread is folded, and asking names the next command."""
    for each in ("one", "two", "three"):
        scene.say(scene.planner, each, to=[BOHR], requires_ack=True)
    scene.say(scene.bohr, "mine", to=[PLANNER], requires_ack=True)
    found = open_work.waits(scene.store, scene.planner, limit=2)
    assert ([each.text for each in found.rows], found.more) == (["mine", "three"], 2)
    whole = open_work.waits(scene.store, fold_most=0)
    assert [each.text for each in whole.rows] == ["one", "two", "three", "mine"]
    assert roster.roster(scene.store, caller=scene.planner).next[0].endswith("agreed --agree")
