"""A peer writes any number of events of a task, at any time: its parties go on, and every clone reads the same events."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from gitmem import records, views
from gitmem.index import catch_up
from gitmem.log.lines import CommitMessage
from gitmem.order.causal import by_line
from gitmem.order.task import FoldedTask, TaskEvent
from gitmem.store import Store
from gitmem.work import (
    EVENTS_MAX,
    READ_MAX,
    new_task,
    task_decisions,
    task_list,
    task_rules,
    task_state,
    task_work,
)
from tests.sandbox import Agent, Clock, annas, carry, new_repo, open_store
from tests.signing import BOB

from ..empty_index import empty_index
from .events_by_hand import CALLER, Task, at, described, session_of, write
from .simulated import World

BOHR, CURIE, MALLORY = "codex:worker:bohr", "claude:worker:curie", "x:y:mallory"
MANY = READ_MAX + 200
FEW = 100  # instead, where the limit can be passed


def flood(
    event: str,
    count: int = MANY,
    *,
    who: str = MALLORY,
    session: str = "",
    task: str = "task-0001",
    **fields: object,
) -> list[TaskEvent]:
    """Events that are dated before the task; `%` in a name is the number of the event."""
    found = []
    base = write(event, who.replace("%", "NUMBER"), -100, **{
        "event_id": f"tev-f{event[:3]}000000", "task_id": task, "until": at(9_000),
        "sender_session": (session or session_of(who)).replace("%", "NUMBER"), **fields,
    })  # fmt: skip
    for number in range(count):
        line = base.line.replace(b"%s000000" % event[:3].encode(), b"%s%06d" % (event[:3].encode(), number))
        line = line.replace(b"NUMBER", b"%d" % number)
        record = records.read_kind("task_event", line)
        assert record is not None
        found.append(TaskEvent(record, line))
    return found


def held_by(folded: FoldedTask, take: TaskEvent) -> bool:
    own = task_rules.own_take(folded, take.sender)
    return own is not None and own.id == take.id


@pytest.mark.parametrize(
    ("event", "who", "fields"),
    [
        ("escalate", MALLORY, {}),
        ("launch", "x:y:p%", {}),
        ("message", "x:y:p%", {}),
        ("status", "x:y:p%", {"state": "rejected"}),
        ("status", MALLORY, {"take": "tev-0000", "state": "completed"}),
        ("artifact", BOHR, {"take": "tev-0000", "session": "sess-x%"}),
        ("renew", "x:y:p%", {"take": "tev-0000"}),
        ("release", MALLORY, {"take": "tev-0000"}),
        ("close", "human:p%@example.org", {"state": "working"}),
        ("cancel", "x:y:p%", {}),
        ("take", MALLORY, {}),
        ("take", MALLORY, {"session": "sess-x%"}),
        ("take", BOHR, {"session": "sess-other"}),
        ("take", CALLER, {}),
        ("take", CURIE, {"session": "sess-x%"}),
    ],
)  # fmt: skip
def test_no_flood_locks_the_holder_out(event: str, who: str, fields: dict[str, str]) -> None:
    """Whatever its kind, in one name or many: the holder holds the task, and what it reports is the outcome."""
    task = Task()
    take = task.take(BOHR, 1, seen=[])
    question = task.status(BOHR, 2, "input-required", take)
    hostile = flood(event, 2 * FEW, who=who, **fields)  # type: ignore[arg-type]
    folded = task.flooded(hostile, most=FEW)
    assert held_by(folded, take)
    assert question.id in folded.events
    task.add("message", CALLER, 3)
    task.status(BOHR, 4, "completed", take)
    assert task.flooded(hostile, most=FEW).outcome is not None
    assert task.flooded(hostile, most=FEW).left_out > 0


@pytest.mark.parametrize(
    "known", ["addressee", "named", "named by its report", "named among senders without a session"]
)
def test_takes_in_many_names_leave_the_one_that_the_caller_knows(known: str) -> None:
    """The addressee's, and one that an event of the caller names, as each of its messages does."""
    task = Task(**({"agent": BOHR} if known == "addressee" else {}))
    take = task.take(BOHR, 1, seen=[])
    without = {"sender_session": None} if "without" in known else {}
    hostile = flood("take", 2 * FEW, who="x:y:p%", **without)
    if known == "named by its report":
        task.status(BOHR, 2, "working", take)
    if known != "addressee":
        assert not held_by(task.flooded(hostile, most=FEW), take)
        task.add("message", CALLER, 3)
    folded = task.flooded(hostile, most=FEW)
    assert held_by(folded, take)
    done = task.status(BOHR, 4, "completed", take)
    assert task.flooded(hostile, most=FEW).outcome == done


def test_each_taker_keeps_its_last_question_and_its_end() -> None:
    """Of a hundred takers with many reports each."""
    task = Task()
    takes = [task.take(f"x:y:p{number}", 1 + number / 1_000, seen=[]) for number in range(FEW - 1)]
    own = task.take(BOHR, 3, seen=[])
    for number, take in enumerate(takes):
        for second in 4, 5:
            task.status(take.sender[0], second + number / 10_000, "working", take, seen=[])
    task.status(BOHR, 6, "working", own, seen=[])
    end = task.status(BOHR, 7, "failed", own, seen=[])
    assert end.id in task.flooded([], most=FEW).events


def any_flood(draw: random.Random) -> list[TaskEvent]:
    """Events of all kinds in few names and many, which name each other and the real ones."""
    kinds = [
        "take",
        "status",
        "renew",
        "release",
        "artifact",
        "message",
        "seal",
        "close",
        "cancel",
        "launch",
        "status",
    ]
    names = [
        BOHR,
        CURIE,
        CALLER,
        MALLORY,
        "human:ada@example.org",
        *(f"x:y:p{number}" for number in range(40)),
    ]
    found = []
    for number in range(3 * READ_MAX):
        event, who = draw.choice(kinds), draw.choice(names)
        real = draw.choice(["tev-0000", "tev-0001", None])
        found.append(write(event, who, draw.randint(-5, 5), **{
            "event_id": f"tev-f{draw.randrange(4_000):05}", "task_id": "task-0001", "take": real or f"tev-f{draw.randrange(4_000):05}",
            "after": [f"tev-f{draw.randrange(4_000):05}"], "until": at(draw.randint(-5, 90)), "state": draw.choice(["completed", "working"]),
            **({"sender_session": draw.choice(["sess-a1b2", None])} if draw.random() < 0.3 else {}), "message": str(number),
        }))  # fmt: skip
    return found


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.deep), pytest.param(4, marks=pytest.mark.deep)]
)
def test_every_clone_reads_the_same_of_a_flood(seed: int) -> None:
    """In whatever order it arrives, from the index and without it."""
    draw = random.Random(seed)
    task = Task(agent=BOHR)
    take = task.take(BOHR, 1, seen=[])
    task.add("message", CALLER, 2)
    task.status(BOHR, 3, "completed", take)
    hostile = any_flood(draw)
    expected = described(task.flooded(hostile))
    lines = [task.line, *(each.line for each in [*task.events.values(), *hostile])]
    for _ in range(2):
        draw.shuffle(lines)
        index = empty_index(views.TASKS)
        cut = draw.randrange(len(lines))
        catch_up.insert_lines(index, catch_up.OWN_FILE, lines[:cut])
        catch_up.insert_lines(index, catch_up.OWN_FILE, lines[cut:])
        found = task_state.load_task(index.db, "task-0001")
        assert found is not None
        assert described(found) == expected
        draw.shuffle(hostile)
        assert described(task.flooded(hostile)) == expected


def hostile_to(task: FoldedTask, draw: random.Random, count: int) -> list[TaskEvent]:
    """Events that decide nothing, in the names of the task's parties and others, under real takes and invented ones."""
    real = [*task.events, "tev-none"]
    names = [CALLER, MALLORY, *{each.sender[0] for each in task.events.values()}]
    kinds = ["escalate", "launch", "message", "status", "artifact", "renew", "release", "seal", "close"]
    found = []
    for number in range(count):
        event, who = draw.choice(kinds), draw.choice(names)
        if event in ("release", "close", "message") or who.startswith("human:"):
            who = MALLORY  # in another's name these decide something
        fields = {
            "event_id": f"tev-h{number:05}", "task_id": task.record["task_id"], "take": draw.choice(real), "state": "completed",
            "after": draw.sample(real, 1), "until": at(9_000), "sender_session": "sess-flood",
        }  # fmt: skip
        found.append(write(event, who, draw.randint(-500, 500), **fields))
    return found


@pytest.mark.parametrize(
    "seed", [*range(1, 9), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(9, 200))]
)
def test_a_flood_that_decides_nothing_changes_no_state(seed: int) -> None:
    """Of tasks of the simulation, with a limit that the flood exceeds."""
    world, draw = World(seed), random.Random(seed)
    assert world.run() == []
    for task_id in world.tasks:
        task = world.fold(world.clones[0].lines.values(), task_id)
        assert task is not None
        accepted = [each for each in task.events.values() if each.replaces is not None]
        own = [each for one in task.events.values() for each in one.versions if each.replaces is None]
        every = by_line([*own, *hostile_to(task, draw, 700)])
        read = task_state.choose(every, task.caller, task.record.get("agent"), most=120)
        flooded = FoldedTask(task.record, [*read, *accepted], task.replaced_by)
        for name in ("state", "decided_by", "outcome", "seal", "holder", "held", "takes", "void"):
            one, other = (
                [each.line for each in found] if isinstance(found, list) else getattr(found, "line", found)
                for found in (getattr(task, name), getattr(flooded, name))
            )
            assert one == other, (task_id, name)


def test_a_fold_of_all_that_is_read_costs_little() -> None:
    """Each kind up to its limit, with takes that stand beside each other and decisions that all of them might have seen."""
    task = Task()
    hostile = flood("take", who="x:y:p%", until=at(-99))
    hostile += flood("seal", who=CALLER, state="completed", after=["tev-none"])
    hostile += flood("close", who="human:p%@example.org", state="canceled")
    for event in "status", "renew", "message", "launch":
        hostile += [
            write(event, f"x:y:p{number}", -50 + number / 100_000, event_id=f"tev-g{event[:3]}{number:06}", task_id="task-0001",
                  take=f"tev-ftak{number:06}" if event in ("status", "renew") else None, state="failed", until=at(-90),
                  after=[f"tev-ftak{(number * 7 + step) % MANY:06}" for step in range(20)])
            for number in range(MANY)
        ]  # fmt: skip
    began = time.process_time()
    folded = task.flooded(hostile)
    assert len(folded.events) <= 7 * READ_MAX
    assert time.process_time() - began < 3


def test_who_works_here_goes_on_although_others_invent_takers(store: Store) -> None:
    """No name tells them apart elsewhere; this clone knows its own lines."""
    planner, bohr = (Agent(store, each).caller for each in (CALLER, BOHR))
    made = new_task.create(store, planner, "Write the tests", target_role="implementer/test")
    task_id = made.task["task_id"]
    task_work.take(store, bohr, task_id)
    lines = [("tasks", each.line) for each in flood("take", who=annas("x:y:p%", BOB), task=task_id)]
    store.record(lines, CommitMessage("gitmem <gitmem@localhost>", "sync"))  # as `carry` does
    assert task_list.show(store, task_id).left_out > 0
    assert task_work.report(store, bohr, task_id, "completed").recorded


def test_an_answer_about_a_task_stays_small_whatever_its_events_have() -> None:
    """The latest are there, and those that decide rather than others."""
    task = Task()
    take = task.take(BOHR, 1, seen=[])
    done = task.status(BOHR, 2, "completed", take, message="r" * 30_000)
    hostile = flood("message", 600, message="m" * 8_000, after=[f"tev-x{number:06}" for number in range(60)])
    detail = task_list.TaskDetail(task.fold(hostile))
    assert len(str(detail.as_json())) < 250_000
    assert detail.outcome is not None
    assert detail.outcome["message"] == "r" * 30_000
    shown = {each["event_id"]: each for each in detail.events}
    assert {take.id, done.id} <= shown.keys()
    assert len(shown) + detail.more_events == 602
    small = task_list.TaskDetail(task.fold())
    assert small.more_events == 0


def test_events_of_others_use_up_nobodys_limit(store: Store, tmp_path: Path, clock: Clock) -> None:
    """Also those of an agent of another writer with the same words."""
    theirs = open_store(new_repo(tmp_path / "theirs"), clock, writer=BOB)
    planner, bohr = (Agent(store, each).caller for each in (CALLER, BOHR))
    task_id = str(new_task.create(store, planner, "Write the tests", to=BOHR).task["task_id"])
    hostile = []
    for number, who in enumerate(("x:y:mallory", "codex:worker:bohr", "human:p@example.org")):
        named = {"task": task_id, "session": "sess-foreign", "event_id": f"tev-f{number}mes000000"}
        hostile += flood("message", EVENTS_MAX, who=annas(who, BOB), **named)  # type: ignore[arg-type]
    lines = [("tasks", each.line) for each in hostile]
    theirs.record(lines, CommitMessage("Mallory <m@example.org>", "flood"))
    carry(store, theirs)
    theirs.close()
    assert len(task_rules.require(store, task_id).events) == len(hostile)
    assert task_work.take(store, bohr, task_id).recorded
    assert task_work.report(store, bohr, task_id, "input-required", "Which rounding?").recorded
    assert task_decisions.message(store, planner, task_id, "half up").recorded
    assert task_work.report(store, bohr, task_id, "completed").recorded
