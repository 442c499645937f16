"""R19: trees of tasks by work unit and by initiative, also of what peers wrote."""

from __future__ import annotations

import time

import pytest

from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.work import new_task, task_decisions, task_list
from gitmem.work.task_list import TaskTree
from tests.sandbox import Agent, Clock

PLANNER = "codex:planner:one"


def shape(found: TaskTree) -> list[object]:
    """The groups, each with its tasks and their depths."""
    return [
        (each.initiative_id, each.wu_id, [(row.task.task_id, row.depth) for row in each.tasks])
        for each in found.groups
    ]


def by_peer(store: Store, tasks: dict[str, list[str]], **fields: object) -> None:
    """Tasks of any chains, as a peer's line has them."""
    made = [
        store.line("task", {  # type: ignore[arg-type]
            "task_id": id, "thread_id": "thread-0001", "message": id, "chain": chain, "purpose": "delegation",
            "sender_identity": "claude:mallory:far", **fields,
        })
        for id, chain in tasks.items()
    ]  # fmt: skip
    store.record(made, CommitMessage("gitmem <gitmem@localhost>", "sync"))


def test_r19_tasks_stand_below_those_within_which_they_were_written(store: Store, clock: Clock) -> None:
    """By initiative and work unit; several delegations of one target all; with the launches of each."""
    planner = Agent(store, PLANNER)

    def made(**options: object) -> str:
        clock.forward(1_000_000)
        given = {"target_role": "implementer/test", **options}
        return str(new_task.create(store, planner.caller, "Write", **given).task["task_id"])  # type: ignore[arg-type]

    top = made(initiative="INI-1", wu="WU-7")
    twin = made(initiative="INI-1", wu="wu-7")
    child = made(chain=[top], wu="WU-8")
    grandchild = made(chain=[top, child])
    other = made(initiative="INI-1", wu="WU-9")
    alone = made()
    task_decisions.launch(store, planner.caller, child)

    assert shape(task_list.tree(store)) == [
        ("INI-1", "WU-7", [(top, 0), (child, 1), (grandchild, 2), (twin, 0)]),
        ("INI-1", "WU-9", [(other, 0)]),
        (None, None, [(alone, 0)]),
    ]
    assert shape(task_list.tree(store, wu="#wu-7")) == [
        ("INI-1", "WU-7", [(top, 0), (child, 1), (grandchild, 2), (twin, 0)])
    ]
    assert shape(task_list.tree(store, wu="WU-8")) == [(None, "WU-8", [(child, 0), (grandchild, 1)])]
    assert [each[1] for each in shape(task_list.tree(store, initiative="INI-1"))] == ["WU-7", "WU-9"]  # type: ignore[index]
    assert shape(task_list.tree(store, child[:12])) == [(None, "WU-8", [(child, 0), (grandchild, 1)])]
    assert shape(task_list.tree(store, wu="WU-1")) == []
    (group,) = task_list.tree(store, child).groups
    assert [(row.parent, row.launches, row.in_cycle) for row in group.tasks] == [
        (top, 1, False),
        (child, 0, False),
    ]
    short = task_list.tree(store, limit=2)
    assert (sum(len(each.tasks) for each in short.groups), short.more, short.cut) == (2, 4, False)
    assert task_list.tree(store, child).next == [f"gitmem task show {child}"]


def test_r19_cycles_are_survived_on_read(store: Store) -> None:
    """A task within itself, three in a ring with others below, and a parent that nobody has: each is shown once."""
    by_peer(store, {
        "task-self": ["task-self"], "task-aaa1": ["task-ccc1"], "task-bbb1": ["task-aaa1"], "task-ccc1": ["task-bbb1"],
        "task-ddd1": ["task-bbb1"], "task-lost": ["task-nowhere"],
    })  # fmt: skip

    (group,) = task_list.tree(store).groups

    assert [(row.task.task_id, row.depth) for row in group.tasks] == [
        ("task-self", 0), ("task-aaa1", 0), ("task-bbb1", 1), ("task-ccc1", 2), ("task-ddd1", 2), ("task-lost", 0),
    ]  # fmt: skip
    assert {row.task.task_id for row in group.tasks if row.in_cycle} == {
        "task-self",
        "task-aaa1",
        "task-bbb1",
        "task-ccc1",
    }
    (group,) = task_list.tree(store, "task-ccc1").groups
    assert [row.task.task_id for row in group.tasks] == ["task-ccc1", "task-aaa1", "task-bbb1", "task-ddd1"]


def test_r19_a_task_can_only_be_written_within_one_that_exists(store: Store) -> None:
    """So that no cycle can be written: tasks never change, and none names itself before it is there."""
    planner = Agent(store, PLANNER).caller
    later = store.own_id("task", planner.reader, "later")
    for name in ("chain", "blocked_by", "supersedes", "references"):
        with pytest.raises(UsageError, match="No such task"):
            new_task.create(
                store, planner, "x", target_role="tester", idempotency_key="later", **{name: [later]}
            )  # type: ignore[arg-type]
    assert task_list.tree(store).groups == []


@pytest.mark.parametrize(
    "form", ["chain", *(pytest.param(form, marks=pytest.mark.deep) for form in ("ring", "star", "pairs"))]
)
def test_a_tree_of_thousands_is_bounded_in_output_and_time(form: str, store: Store) -> None:
    """Deep chains, one cycle of all, one parent of all, and thousands of small cycles."""
    count = task_list.NODES_MAX + 500
    ids = [f"task-{number:06}" for number in range(count)]
    parents = {
        "chain": [[], *([id] for id in ids[:-1])],
        "ring": [[ids[-1]], *([id] for id in ids[:-1])],
        "star": [[], *([ids[0]] for _ in ids[1:])],
        "pairs": [[ids[number ^ 1]] for number in range(count)],
    }[form]
    by_peer(store, dict(zip(ids, parents, strict=True)))
    for asked in (None, ids[0], ids[count // 2]):
        begun = time.process_time()
        found = task_list.tree(store, asked)
        assert time.process_time() - begun < 1.5
        shown = [row.task.task_id for each in found.groups for row in each.tasks]
        assert len(shown) == len(set(shown)) <= task_list.TREE_LISTED
        assert len(shown) + found.more <= task_list.NODES_MAX
    assert task_list.tree(store).cut
