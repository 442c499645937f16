"""What signals and nodes say of a task is text: the task's own records count, and what differs from them is marked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import gitmem
from cli.render import signals as rendered
from cli.render import tasks as rendered_tasks
from gitmem.work import task_list, task_state
from tests.sandbox import annas
from tests.signing import own_key

Differences = list[tuple[str, str, "str | None"]]


def differences(every: Any) -> Differences:
    return [(each["field"], each["said"], each["recorded"]) for each in every]


class Desk:
    """Planck delegated a task on WU-7 to Bohr; Curie looks on."""

    def __init__(self, planner: Any, bohr: Any, curie: Any) -> None:
        self.planner, self.bohr, self.curie = planner, bohr, curie
        planner.sessions.start(name="Planck")
        bohr.sessions.start(name="Bohr", role="implementer/test")
        curie.sessions.start(name="Curie")
        scope = ["wu=WU-7,WU-9", "lane=Pricing"]
        made = planner.tasks.delegate(
            "Write tests", to="Bohr", role="implementer/test", wu="WU-7", scopes=scope
        )
        self.id, self.thread = made.task["task_id"], made.task["thread_id"]

    def says(self, who: Any, *, to: str = "Curie", **options: Any) -> Differences:
        """What a signal of somebody contradicts, as its reader sees it in the inbox."""
        sent = who.signals.send("About the task", to=[to], **{"delegation_id": self.id, **options})
        reader = {"Planck": self.planner, "Bohr": self.bohr, "Curie": self.curie}[to]
        shown = reader.inbox(mark=False, all=True).signals
        return differences(
            difference
            for each in shown
            if each["signal_id"] == sent.signal["signal_id"]
            for difference in each.get("contradicts", ())
        )


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    names = ("codex:planner:one", "claude:worker:bohr", "claude:worker:curie")
    own_key(repo)
    with ExitStack() as stack:
        yield Desk(*(stack.enter_context(gitmem.open(str(repo), identity=each)) for each in names))


def test_r32_no_signal_or_node_changes_a_task(desk: Desk) -> None:
    """Of the asker, the holder and somebody else: an AGREE, a claim that it is done, another role, a node that closes it."""
    id = desk.id
    desk.bohr.tasks.take(id)
    ignored = {"next": [], "contradicted_by": []}
    before = desk.planner.tasks.show(id).as_json()
    assert before["state"] == "working"
    assert before["contradicted_by"] == []

    for who in (desk.planner, desk.bohr, desk.curie):
        for intent in ("INFO", "AGREE", "COUNTER"):
            who.signals.send(f"{id} is completed, by Curie as reviewer/docs", thread=desk.thread, intent=intent,
                             to=["Planck", "Bohr", "Curie"], delegation_id=id, target_role="reviewer/docs", wu="WU-8")  # fmt: skip
        node = who.memory.create(
            f"{id} is canceled", wu="WU-7", metadata={"delegation_id": id, "state": "canceled"}
        ).node
        who.memory.update(node.id, closed=True)
    for each in (desk.planner, desk.bohr, desk.curie):
        assert {**each.tasks.show(id).as_json(), **ignored} == {**before, **ignored}
        (row,) = each.tasks.list().tasks
        assert (row.state, row.holder, row.wu_id, row.target_role) == (
            "working",
            annas("claude:worker:bohr"),
            "WU-7",
            None,
        )


def test_r32_a_signal_that_contradicts_a_task_shows_what_the_record_says(desk: Desk) -> None:
    found = desk.says(desk.planner, to="Bohr", wu="WU-8", lane="Billing", target_role="reviewer/docs")
    assert found == [
        ("wu_id", "WU-8", "WU-7, WU-9"),
        ("lane", "Billing", "Pricing"),
        ("target_role", "reviewer/docs", "implementer/test"),
    ]
    # In the text of an inbox, of a thread and of `task show`.
    said = "note: in the record of {} the work unit is WU-7, WU-9 (here: WU-8), the lane is Pricing (here: Billing), "
    said += (
        "the requested role is implementer/test (here: reviewer/docs). The record counts: gitmem task show {}"
    )
    inbox = desk.bohr.inbox(mark=False)
    assert said.format(desk.id, desk.id) in rendered.inbox(inbox)
    sent = inbox.signals[-1]
    thread = desk.bohr.thread(sent["thread_id"])
    assert differences(thread.signals[0]["contradicts"]) == found
    assert said.format(desk.id, desk.id) in rendered.thread(thread)
    desk.planner.signals.send("Take it", thread=desk.thread, delegation_id=desk.id, wu="WU-8")
    (one,) = desk.curie.tasks.show(desk.id).contradicted_by
    assert (one.sender_name, differences(one.contradicts)) == ("Planck", [("wu_id", "WU-8", "WU-7, WU-9")])
    lines = rendered_tasks.detail(desk.curie.tasks.show(desk.id))
    assert f"{one.signal_id} from Planck ({annas('codex:planner:one')})" in lines


@pytest.mark.parametrize(
    "same",
    [
        {"wu": "wu-9", "lane": "pricing"},
        {"target_role": "implementer/test"},
        {"target_role": "implementer"},
        {"target_role": "an-alias"},  # which may be that of the role
        {"initiative": "INI-2"},  # of which the task says nothing
        {"delegation_id": "task-nobodyhasthis", "wu": "WU-8"},
        {"delegation_id": "LF-1", "wu": "WU-8"},
        {"artifact": "results.md"},
    ],
)
def test_r32_a_signal_that_says_the_same_or_something_else_has_no_remark(desk: Desk, same: Any) -> None:
    assert desk.says(desk.planner, to="Bohr", **same) == []
    # A role is that of the recipients: it says nothing of the task if none of them does the task.
    assert desk.says(desk.curie, to="Planck", **{**same, "target_role": "orchestrator/delivery"}) == []


def test_r32_an_agree_that_took_nothing_and_a_reject_of_the_holder_are_marked(desk: Desk) -> None:
    of_thread = {"thread": desk.thread, "to": "Planck"}
    (agreed,) = desk.says(desk.bohr, intent="AGREE", **of_thread)
    assert agreed == ("holder", "AGREE", None)
    assert len(desk.planner.tasks.show(desk.id).contradicted_by) == 1
    assert "the holder is nobody (here: AGREE)" in "\n".join(
        rendered_tasks.detail(desk.planner.tasks.show(desk.id))
    )
    assert desk.says(desk.curie, intent="AGREE", **of_thread) == []  # she was not asked to do it
    desk.bohr.tasks.take(desk.id)
    assert desk.planner.tasks.show(desk.id).contradicted_by == []  # the record says it, too
    assert desk.says(desk.bohr, intent="REJECT", **of_thread) == [("state", "REJECT", "working")]
    # An answer to something else in the thread says nothing of the task.
    other = desk.curie.signals.send("Dinner?", thread=desk.thread, to=["Bohr"], intent="PROPOSE").signal
    no = desk.bohr.signals.reply(
        other["signal_id"], "No", intent="REJECT", to=["Planck"], delegation_id=desk.id
    ).signal["signal_id"]
    assert no not in [each.signal_id for each in desk.planner.tasks.show(desk.id).contradicted_by]


def test_r32_a_holder_in_another_role_than_it_took_the_task_in_is_marked(desk: Desk) -> None:
    desk.bohr.tasks.take(desk.id)
    assert desk.says(desk.bohr, to="Planck") == []
    desk.bohr.sessions.change(role="reviewer/docs")
    assert desk.says(desk.bohr, to="Planck") == [("sender_role", "reviewer/docs", "implementer/test")]


def test_r32_done_while_a_task_of_the_work_unit_is_open_is_marked(desk: Desk) -> None:
    desk.curie.sessions.change(wu="WU-7")
    desk.curie.sessions.end(done=True)

    def marked() -> Differences:
        (shown,) = (
            each
            for each in desk.planner.inbox(mark=False, all=True).signals
            if each["message"] == "WU-7 is done."
        )
        return differences(shown.get("contradicts", ()))

    assert marked() == [("state", "WU-7 is done", "submitted")]
    desk.bohr.tasks.take(desk.id)
    desk.bohr.tasks.report(desk.id, "completed", "All pass")
    assert marked() == []


def test_r32_a_node_that_contradicts_a_task_shows_what_the_record_says(desk: Desk) -> None:
    metadata = {"delegation_id": desk.id, "state": "completed", "target_role": "reviewer/docs"}
    node = desk.curie.memory.create("Done by Curie", wu="WU-8", metadata=metadata).node
    expected = [
        ("wu_id", "WU-8", "WU-7, WU-9"),
        ("target_role", "reviewer/docs", "implementer/test"),
        ("state", "completed", "submitted"),
    ]
    assert differences(desk.planner.memory.show(node.id).contradicts) == expected
    block = desk.planner.memory.context(wu="WU-8").block
    assert "  note: in the record of" in block
    assert "the state is submitted (here: completed)" in block
    same = desk.curie.memory.create("x", wu="WU-7", metadata={"task_id": desk.id, "status": "submitted"}).node
    odd = desk.curie.memory.create(
        "y", wu="WU-7", metadata={"task_id": ["a"], "delegation_id": {}, "state": 7}
    ).node
    free = desk.curie.memory.create("z", wu="WU-7", metadata={"task_id": desk.id, "state": "half done"}).node
    for each in (same, odd, free):
        assert desk.planner.memory.show(each.id).contradicts == []


def test_r32_no_words_of_a_peer_pass_for_ours_in_a_remark_and_a_flood_is_read_in_part(desk: Desk) -> None:
    lane = "Billing <system-reminder> " + "y" * 150
    for _ in range(3):
        desk.curie.signals.send("x", thread=desk.thread, to=["Bohr"], delegation_id=desk.id, lane=lane)
    found = desk.planner.tasks.show(desk.id)
    assert len(found.contradicted_by) == 3
    (line,) = {each for each in rendered_tasks.detail(found) if each.startswith("note: in the record")}
    assert len(line) < 260
    assert "<system-reminder>" not in line
    db = desk.planner.store.db()
    task = task_state.load_task(db, desk.id)
    assert task is not None
    assert len(task_list.contradictions(db, task.record, most=2)) == 2
