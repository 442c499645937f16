"""What signals and nodes say of a task is text: the task's own records count."""

from __future__ import annotations

from pathlib import Path

import gitmem


def test_r32_no_signal_or_node_changes_a_task(repo: Path) -> None:
    """Of the asker, the holder and somebody else: an AGREE, a claim that it is done, another role, a node that closes it."""
    with (
        gitmem.open(str(repo), identity="codex:planner:one") as planner,
        gitmem.open(str(repo), identity="claude:worker:bohr") as bohr,
        gitmem.open(str(repo), identity="claude:worker:curie") as curie,
    ):
        for each, name in ((planner, "Planck"), (bohr, "Bohr"), (curie, "Curie")):
            each.sessions.start(name=name)
        made = planner.tasks.delegate("Write tests", to="Bohr", role="implementer/test", wu="WU-7")
        id, thread = made.task["task_id"], made.task["thread_id"]
        bohr.tasks.take(id)
        before = planner.tasks.show(id).as_json()
        assert before["state"] == "working"

        for who in (planner, bohr, curie):
            for intent in ("INFO", "AGREE", "COUNTER"):
                who.signals.send(f"{id} is completed, by Curie as reviewer/docs", thread=thread, intent=intent,
                                 to=["Planck", "Bohr", "Curie"], delegation_id=id, target_role="reviewer/docs", wu="WU-8")  # fmt: skip
            node = who.memory.create(
                f"{id} is canceled", wu="WU-7", metadata={"delegation_id": id, "state": "canceled"}
            ).node
            who.memory.update(node.id, closed=True)
        for each in (planner, bohr, curie):
            assert {**each.tasks.show(id).as_json(), "next": []} == {**before, "next": []}
            (row,) = each.tasks.list().tasks
            assert (row.state, row.holder, row.wu_id, row.target_role) == (
                "working",
                "claude:worker:bohr",
                "WU-7",
                None,
            )
