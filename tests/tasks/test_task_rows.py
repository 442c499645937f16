"""The tables of tasks: the same in any order of arrival, in parts and with repeated lines, and cheap to list and to fill."""

from __future__ import annotations

import random
import time

import pytest

from gitmem import records, views
from gitmem.index import catch_up
from gitmem.index.index_file import Index
from gitmem.work import READ_MAX, task_state

from ..empty_index import empty_index
from .events_by_hand import CALLER, Task, at, described, session_of, write
from .simulated import World

BOHR, CURIE = "codex:worker:bohr", "claude:worker:curie"
TABLES = ("task", "entity_line", "task_link")


def new_index() -> Index:
    return empty_index(views.TASKS)


def filled(*portions: list[bytes]) -> Index:
    index = new_index()
    for portion in portions:
        catch_up.insert_lines(index, catch_up.OWN_FILE, portion)
    assert index.skipped() == 0
    return index


def rows(index: Index) -> dict[str, list[str]]:
    """Every row of the view, with the lines themselves in the place of their numbers."""
    lines = dict(index.db.execute("SELECT id, body FROM line").fetchall())
    found = {}
    for table in TABLES:
        columns = [row[1] for row in index.db.execute(f"PRAGMA table_info({table})")]
        every = index.db.execute(f"SELECT * FROM {table}").fetchall()
        place = columns.index("line") if "line" in columns else None
        found[table] = sorted(
            repr([lines[value] if at == place else value for at, value in enumerate(row)]) for row in every
        )
    return found


@pytest.mark.parametrize("seed", range(1, 9))
def test_the_order_of_arrival_does_not_matter(seed: int) -> None:
    """Permutations, partial arrivals and duplicates of one world give the same rows and folds; so does the fold without an index."""
    world = World(seed)
    world.run()
    lines = list(world.clones[0].lines)
    draw = random.Random(seed)
    whole = filled(lines)
    for _ in range(3):
        draw.shuffle(lines)
        cuts = sorted(draw.sample(range(len(lines) + 1), 3))
        portions = [lines[start:end] for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
        portions.append(draw.sample(lines, len(lines) // 3))
        assert rows(filled(*portions)) == rows(whole)
    for task_id in world.tasks:
        found = task_state.load_task(whole.db, task_id)
        expected = world.fold(world.clones[0].lines.values(), task_id)
        assert found is not None
        assert expected is not None
        assert described(found) == described(expected)


def test_events_may_come_before_their_task() -> None:
    """They wait; a task without its own line has no row."""
    task = Task()
    done = task.status(BOHR, 2, "completed", task.take(BOHR, 1))
    index = filled([each.line for each in task.events.values()])
    assert task_state.load_task(index.db, task.record["task_id"]) is None
    assert index.db.execute("SELECT count(*) FROM task").fetchone() == (0,)
    catch_up.insert_lines(index, catch_up.OWN_FILE, [task.line])
    found = task_state.load_task(index.db, task.record["task_id"])
    assert found is not None
    assert found.outcome is not None
    assert found.outcome.id == done.id


def test_of_several_lines_of_a_task_the_lowest_counts() -> None:
    """Two clones may write one keyed task; both show the same one, whichever came first."""
    one, other = Task(message="Write the tests"), Task(message="Write the docs")
    lowest = min(one, other, key=lambda each: each.line)
    for portions in ([one.line], [other.line]), ([other.line], [one.line]):
        found = task_state.load_task(filled(*portions).db, lowest.record["task_id"])
        assert found is not None
        assert found.record["message"] == lowest.record["message"]


@pytest.mark.parametrize("said", ["take", "x", 3, ["task"], {"a": 1}])
def test_what_a_task_says_in_a_field_of_events_is_ignored(said: object) -> None:
    """An unknown field of a valid line; of two lines of a task only the lowest one links it, whichever came first."""
    lines = [Task(message=text, supersedes=[f"task-{text}"], event=said).line for text in ("docs", "tests")]
    for portions in ([lines[0]], [lines[1]]), ([lines[1]], [lines[0]]):
        index = filled(*portions)
        assert index.db.execute("SELECT to_id FROM task_link").fetchall() == [("task-docs",)]
        assert index.db.execute("SELECT DISTINCT event FROM entity_line").fetchall() == [("task",)]


def test_a_flooded_task_costs_a_bounded_time_and_keeps_its_seal() -> None:
    """A peer writes 20,000 events before the real ones; one more line of it then costs no more than the events that are read."""
    task = Task()
    take = task.take(BOHR, 1, seen=[])
    done = task.status(BOHR, 2, "completed", take)
    task.seal(3, done)
    base = write(
        "take", CURIE, -1, event_id="tev-flood000000", task_id=task.record["task_id"], after=[], until=at(0)
    ).line
    flood = [
        base.replace(b"flood000000", b"flood%06d" % number).replace(
            b'"take"', (b'"take"', b'"seal"', b'"renew"')[number % 3]
        )
        for number in range(20 * READ_MAX)
    ]
    index = filled([task.line, *(each.line for each in task.events.values())], flood)
    began = time.process_time()
    catch_up.insert_lines(index, catch_up.OWN_FILE, [base.replace(b"flood000000", b"floodlast")])
    assert time.process_time() - began < 5
    assert index.db.execute("SELECT state, decided_by FROM task").fetchone() == ("completed", "seal")


def test_a_handoff_of_ten_thousand_tasks_is_read_in_part() -> None:
    """Whoever names many tasks does not make each of his lines cost all of them."""
    ids = [f"task-h{number:05}" for number in range(10_000)]
    line = records.line("task", 1_795_000_000_000_000, {
        "task_id": "task-0009", "thread_id": "thread-0001", "message": "all yours", "purpose": "handoff", "sender_identity": BOHR,
        "handoff_tasks": ids[:5_000], "handoff_takes": [each.replace("task", "tev") for each in ids[:5_000]],
        "supersedes": ids[5_000:7_000],
    })  # fmt: skip
    index = filled([line])
    assert index.db.execute("SELECT count(*) FROM task_link").fetchone()[0] <= 100


def test_a_title_is_one_short_line() -> None:
    """Lists show it; a brief may have 64 KiB."""
    task = Task(message=f"\n  {'x' * 500}\nmore", wu_id="WU-7", caller=CALLER)
    index = filled([task.line])
    assert index.db.execute("SELECT length(title), wu_id, state FROM task").fetchone() == (
        200,
        "wu-7",
        "submitted",
    )


def handoff(number: int, who: str, take: str, tasks: list[str]) -> bytes:
    return records.line("task", 1_795_000_000_000_000 + number, {
        "task_id": f"task-h{number:05}", "thread_id": "thread-0001", "message": "yours", "purpose": "handoff",
        "sender_identity": who, "sender_session": session_of(who), "handoff_tasks": tasks, "handoff_takes": [take] * len(tasks),
    })  # fmt: skip


def test_ten_thousand_handoffs_of_one_task_cost_little() -> None:
    """Whoever has not taken it hands nothing over; those of takers count up to a number."""
    task = Task()
    take = task.take(BOHR, 1, lease=9_000)
    base = handoff(0, CURIE, take.id, [task.record["task_id"]])
    lines = [base.replace(b"task-h00000", b"task-h%05d" % number) for number in range(10_000)]
    lines += [handoff(number, BOHR, take.id, [task.record["task_id"]]) for number in range(10_000, 10_003)]
    accept = write(
        "take", CURIE, 5, event_id="tev-accept", task_id="task-h10001", after=[take.id], until=at(60)
    )
    index = filled([task.line, take.line, *lines])
    began = time.process_time()
    catch_up.insert_lines(index, catch_up.OWN_FILE, [accept.line])
    assert time.process_time() - began < 2
    assert index.db.execute(
        "SELECT holder FROM task WHERE task_id = ?", (task.record["task_id"],)
    ).fetchone() == (CURIE,)


@pytest.mark.deep
def test_fifty_flooded_handoffs_of_fifty_tasks_are_folded_once() -> None:
    """A further line costs the events that are read, not their product."""
    tasks = [Task(f"task-t{number:05}") for number in range(50)]
    lines = []
    for task in tasks:
        lines += [task.line, task.take(BOHR, 1, lease=1, event_id="tev-given").line]
    ids = [task.record["task_id"] for task in tasks]
    for number in range(50):
        lines.append(handoff(number, BOHR, "tev-given", ids))
        base = write(
            "take",
            CURIE,
            5,
            event_id="tev-h00000000",
            task_id=f"task-h{number:05}",
            after=["tev-given"],
            until=at(0),
        ).line
        lines += [base.replace(b"h00000000", b"h%02d%06d" % (number, each)) for each in range(200)]
    index = filled(lines)
    more = write(
        "take", CURIE, 6, event_id="tev-more", task_id="task-h00000", after=["tev-given"], until=at(0)
    ).line
    began = time.process_time()
    catch_up.insert_lines(index, catch_up.OWN_FILE, [more])
    assert time.process_time() - began < 10
    assert index.db.execute("SELECT count(*) FROM task WHERE holder = ?", (CURIE,)).fetchone()[0] >= 50


def test_a_chain_of_handoffs_is_followed() -> None:
    """Bohr gives to Curie, who gives to Dirac: each hands over the take by which he has it."""
    task = Task()
    take = task.take(BOHR, 1, lease=9_000)
    ids = [task.record["task_id"]]
    first = write(
        "take", CURIE, 5, event_id="tev-curie", task_id="task-h00001", after=[take.id], until=at(9_000)
    )
    second = write(
        "take",
        "codex:worker:dirac",
        9,
        event_id="tev-dirac",
        task_id="task-h00002",
        after=[first.id],
        until=at(9_000),
    )
    lines = [
        task.line,
        take.line,
        handoff(1, BOHR, take.id, ids),
        first.line,
        handoff(2, CURIE, first.id, ids),
        second.line,
    ]
    for portions in ([lines], [[each] for each in reversed(lines)]):
        holder = (
            filled(*portions)
            .db.execute("SELECT holder FROM task WHERE task_id = ?", (task.record["task_id"],))
            .fetchone()
        )
        assert holder == ("codex:worker:dirac",)
