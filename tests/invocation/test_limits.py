"""Limits on calls that run away: those of `work/task_rules.py` and `new_task.py`, as a call meets them and as a worker does."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls import DEADLINE_SECONDS
from gitmem.calls import worker as worker_module
from gitmem.calls.worker import FOLDED_MAX, Candidates, FunctionRun, ServedTask, Worker
from gitmem.errors import StoreError, UsageError
from gitmem.log.lines import CommitMessage, format_at
from gitmem.order.task import LEASE_MAX_MICROS
from gitmem.store import wall_clock
from gitmem.work import new_task, stored_tasks, task_rules, task_work

from ..sandbox import Agent, bodies, new_repo
from ..signing import own_key
from .conftest import PLANNER, PRICES, Serve

HOSTILE = "codex:other:one"


def unchecked(log: Log, chain: Sequence[str], **fields: Any) -> str:
    """A call as a caller writes it that checks nothing."""
    id = log.store.new_id("task")
    content: Any = {
        "task_id": id, "thread_id": "thread-0001", "message": "x", "purpose": "call", "agent": PRICES, "chain": list(chain),
        "sender_identity": HOSTILE, **fields,
    }  # fmt: skip
    log.store.record([log.store.line("task", content)], CommitMessage("A <a@example.org>", "task"))
    return id


@pytest.fixture
def other(repo: Path, log: Log) -> Iterator[Log]:
    """Another session in the repository, whose limits are its own."""
    with gitmem.open(str(repo), identity=HOSTILE) as found:
        found.sessions.start(name="Mallory")
        yield found


def rejected(log: Log, task_id: str) -> str:
    """The error code with which a worker has rejected a task."""
    found = log.wait_for(task_id, timeout=20)
    assert found.state == "rejected" and found.error is not None
    return str(found.error["code"])


def test_i17_i38_a_worker_rejects_what_a_caller_did_not_check(log: Log, other: Log, serve: Serve) -> None:
    """DEPTH and CYCLE; the worker goes on."""
    serve()
    six: list[str] = []
    for number in range(6):
        six.append(unchecked(log, six, agent=f"a:b:c{number}", sender_identity=f"a:b:s{number}"))
    with pytest.raises(UsageError, match="within at most 5 others") as refused:
        log.call("prices", "x", within=six[-1], wait=False)
    assert refused.value.code == "chain-depth"
    assert rejected(log, unchecked(log, six)) == task_rules.DEPTH

    by_prices = unchecked(log, [], agent="a:b:c", sender_identity=PRICES)
    assert rejected(log, unchecked(log, [by_prices])) == task_rules.CYCLE
    assert log.call("prices", "still there", timeout=20).message == "STILL THERE"


def test_i17_an_agent_twice_in_a_chain_is_refused_unless_again(log: Log, other: Log) -> None:
    """Nothing is written; nobody calls itself by accident."""
    outer = log.call(HOSTILE, "x", wait=False).results[0].task_id
    before = bodies(log.store)
    with pytest.raises(UsageError, match="is in the chain of this task already") as refused:
        other.call(PLANNER, "x", within=outer, wait=False)
    assert refused.value.code == "chain-cycle"
    with pytest.raises(UsageError, match="calls itself"):
        log.call(PLANNER, "x", wait=False)
    assert bodies(log.store) == before
    assert other.call(PLANNER, "x", within=outer, wait=False, again=True).results


def test_i38_a_call_within_a_task_ends_with_it(log: Log, other: Log, serve: Serve) -> None:
    """The caller shortens the deadline, and the worker gives up at that of the outer task."""
    soon = other.store.now() + 60_000_000
    outer = unchecked(log, [], agent="a:b:c", sender_identity="a:b:s", deadline=format_at(soon))
    found = log.call(HOSTILE, "x", within=outer, wait=False)
    assert log.tasks.show(found.results[0].task_id).task["deadline"] == format_at(soon)

    def patient(task: Any) -> str:
        while not task.is_canceled:
            stopped.wait(0.01)
        return ""

    stopped = threading.Event()
    serve(patient)
    at = other.store.now() + 700_000
    nearly_over = unchecked(log, [], agent="a:b:c", sender_identity="a:b:s", deadline=format_at(at))
    late = unchecked(log, [nearly_over], deadline=format_at(at + 60_000_000))
    ended = log.wait_for(late, timeout=20)
    assert (ended.state, ended.error and ended.error["code"]) == ("failed", "DEADLINE")
    with pytest.raises(UsageError, match="first deadline of its chain") as refused:
        log.call(HOSTILE, "x", within=nearly_over, wait=False)
    assert refused.value.code == "late-deadline"


def test_i38_more_than_twenty_open_tasks_of_a_caller_are_refused(log: Log, serve: Serve) -> None:
    """Also if a call of several agents passes the limit with its last one: then nothing is written."""
    serve()
    for number in range(19):
        new_task.create(log.store, log.caller, f"x{number}", to="a:b:c", purpose="call", allow_unseen=True)
    serve(name="rates", identity="claude:rates:shop")
    before = bodies(log.store)
    with pytest.raises(UsageError, match="20 open tasks of its own; at most 20") as refused:
        log.call("prices,rates", "x", wait=False)
    assert (refused.value.code, bodies(log.store)) == ("too-many-open", before)
    assert log.call("prices", "x", timeout=20).is_done


def test_a_call_within_none_is_within_no_task(log: Log, other: Log) -> None:
    """Though its caller has one task, within which its calls are by default."""
    held = log.call(HOSTILE, "x", wait=False).results[0].task_id
    other.tasks.take(held)

    def chain(**options: Any) -> list[str]:
        made = other.call("a:b:c", "x", wait=False, **options).results[0].task_id
        return list(task_rules.require(other.store, made).record.get("chain") or ())

    with gitmem.open(str(log.store.repo.worktree), identity="a:b:c") as third:
        third.sessions.start(name="Curie")
    assert (chain(), chain(within="none")) == ([held], [])


@pytest.mark.parametrize("kind", ["taken", "late"])
def test_tasks_that_nobody_can_take_keep_no_worker_from_the_others(log: Log, serve: Serve, kind: str) -> None:
    """Taken by a peer for a day, or not begun in time: each look of a worker goes on where the last one ended."""
    lines = []
    for number in range(FOLDED_MAX + 1):
        fields: Any = {
            "task_id": f"task-0000{number}", "thread_id": "thread-0001", "message": "x", "agent": PRICES, "sender_identity": HOSTILE,
            "deadline": format_at(1) if kind == "late" else None,
        }  # fmt: skip
        lines.append(log.store.line("task", fields))
        if kind == "taken":
            take: Any = {
                "event_id": f"tev-0000{number}", "task_id": fields["task_id"], "event": "take", "sender_identity": PRICES,
                "sender_session": "sess-peer", "until": format_at(log.store.now() + LEASE_MAX_MICROS),
            }  # fmt: skip
            lines.append(log.store.line("task_event", take))
    log.store.record(lines, CommitMessage("A <a@example.org>", "tasks"))
    serve()
    assert log.call("prices", "hello", timeout=20).message == "HELLO"


def test_tasks_that_nobody_took_in_time_do_not_count_as_open(repo: Path) -> None:
    """Else a caller whose worker was down could call nobody any more. What somebody works on counts."""
    own_key(repo)
    late = [0]
    with gitmem.open(str(repo), identity=PLANNER, now=lambda: wall_clock() + late[0]) as log:
        log.sessions.start(name="Planck")
        with gitmem.open(str(repo), identity=PRICES) as worker:
            worker.sessions.start(name="prices")
            made = [
                log.call("prices", str(number), wait=False) for number in range(task_rules.OPEN_OF_CALLER_MAX)
            ]
            with pytest.raises(UsageError, match="open tasks"):
                log.call("prices", "one too many", wait=False)
            task_work.take(worker.store, worker.caller, made[0].results[0].task_id)
        late[0] = 1_000_000 * int(DEADLINE_SECONDS) + 1_000_000
        for number in range(task_rules.OPEN_OF_CALLER_MAX - 1):
            log.call("prices", f"again {number}", wait=False)
        with pytest.raises(UsageError, match="open tasks"):
            log.call("prices", "one too many", wait=False)


def flood(log: Log, count: int, session: str, **fields: Any) -> list[str]:
    """Calls of a peer, in one entry."""
    found: list[str] = []
    lines = []
    for number in range(count):
        found.append(f"task-{session[-4:]}{number:03}{(fields.get('agent') or '')[:1]}")
        content: Any = {
            "task_id": found[-1], "thread_id": "thread-0001", "message": f"flood {number}", "purpose": "call", "agent": PRICES,
            "sender_identity": HOSTILE, "sender_session": session, **fields,
        }  # fmt: skip
        lines.append(log.store.line("task", content))
    log.store.record(lines, CommitMessage("A <a@example.org>", "tasks"))
    return found


def test_a_caller_with_many_tasks_lets_a_worker_serve_the_others_in_turn(log: Log, serve: Serve) -> None:
    """Of each caller one task at a time, though those of the first one came before."""
    done: list[str] = []

    def note(task: Any) -> str:
        done.append(task.caller)
        return "ok"

    with gitmem.open(str(log.store.repo.worktree), identity=PRICES) as away:
        away.sessions.start()
    flood(log, 15, "sess-0001")
    mine = [log.call(PRICES, str(number), wait=False).results[0].task_id for number in range(3)]
    serve(note)
    log.wait_for(*mine, timeout=20)
    assert done.count(PLANNER) == 3
    assert done[: done.index(PLANNER) + 5].count(HOSTILE) <= 3, done


def test_i38_a_worker_rejects_what_is_beyond_the_open_tasks_of_its_writer(
    log: Log, other: Log, serve: Serve
) -> None:
    """QUOTA, by the times in the tasks: those of another session, and those that had passed then, do not count."""
    with gitmem.open(str(log.store.repo.worktree), identity=PRICES) as away:
        away.sessions.start()
    most = task_rules.OPEN_OF_CALLER_MAX
    flood(log, most, "sess-0002", deadline=format_at(1))
    flood(log, most, "sess-0003", agent="a:b:c")
    (one_more,) = flood(log, 1, "sess-0003")
    (kept,) = flood(log, 1, "sess-0002", agent=PRICES)
    serve()
    assert rejected(log, one_more) == task_rules.QUOTA
    assert log.wait_for(kept, timeout=20).message == "FLOOD 0"


def test_a_task_for_a_role_that_is_beyond_them_is_rejected_once_and_never_run(log: Log) -> None:
    """It stays open after that, for others with the role; a rejection by anybody else changes nothing."""
    role = {"agent": None, "target_role": "implementer/test"}
    bohr = Agent(log.store, "claude:worker:bohr", role="implementer/test").caller
    flood(log, task_rules.OPEN_OF_CALLER_MAX, "sess-0004", agent="a:b:c")
    (one_more,) = flood(log, 1, "sess-0004", **role)
    task_work.reject(log.store, log.caller, one_more)
    serves = Worker(log.store, lambda: bohr, lambda task: FunctionRun(str, task), stop=threading.Event())
    now = log.store.now()
    for minutes in range(0, 30, 10):
        log.store.now = lambda minutes=minutes: now + minutes * 60 * 1_000_000  # type: ignore[method-assign, misc]
        assert serves._next(bohr) is None
    found = task_rules.require(log.store, one_more)
    assert [each.sender[0] for each in found.rejections] == [log.caller.reader, bohr.reader]
    assert found.state == "submitted"


def test_a_flood_of_one_caller_leaves_the_tasks_of_others_among_those_that_are_read(log: Log) -> None:
    """However many come before: of each caller the first is read before all second ones."""
    log.sessions.start(name="prices")
    worker = Agent(log.store, PRICES).caller
    flood(log, 30, "sess-0005")
    (last,) = flood(log, 1, "sess-0006", sender_identity=PLANNER)
    rows = stored_tasks.for_worker(log.store.db(), worker.ids, (None, None), log.store.now(), 2)
    assert last in {id for id, *_ in rows}


def test_what_any_number_of_callers_keep_open_keeps_no_task_from_its_turn(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be run, in more names than a look reads, is set aside; the next look goes on behind it."""
    monkeypatch.setattr(worker_module, "ROWS_MAX", 2)
    log.sessions.start(name="prices")
    prices = Agent(log.store, PRICES).caller
    for number in range(4):
        flood(log, 1, f"sess-000{number}", sender_identity=f"{HOSTILE}{number}")
    (last,) = flood(log, 1, "sess-0009", sender_identity=PLANNER)
    found, seen = Candidates(log.store), []
    for _ in range(3):
        for task in found.look(prices, [], lambda _: True):
            seen.append(task.record["task_id"])
            found.set_aside(task)
    assert (len(seen), seen[-1], found.is_partial) == (5, last, False)
    assert list(found.look(prices, [], lambda _: True)) == []


# The lease of a running task: renewed while its worker works, and of no use to a worker that can't write.


def test_i11_a_task_that_takes_longer_than_its_lease_is_renewed_and_begins_once(
    log: Log, serve: Serve
) -> None:
    """Two workers of one agent: the other one never takes it, for it is renewed before the lease ends."""
    begun: list[str] = []

    def slow(task: ServedTask) -> str:
        begun.append(task.task_id)
        time.sleep(2.5)
        return "done"

    serve(slow, lease=1.0)
    serve(slow, name="Bohr", lease=1.0)
    found = log.call(PRICES, "x", timeout=20)
    events = [each.event for each in task_rules.require(log.store, found.results[0].task_id).events.values()]
    assert (found.message, len(begun), events.count("take")) == ("done", 1, 1)
    assert events.count("renew") >= 1


def test_i11_a_worker_without_permission_to_write_begins_nothing_and_goes_on(repo: Path, log: Log) -> None:
    """What can't be recorded is not run: it says why, and takes the task once it may write."""
    stop, refused = threading.Event(), threading.Event()
    said: list[str] = []
    begun: list[str] = []

    def run(task: ServedTask) -> str:
        begun.append(task.task_id)
        return "done"

    from gitmem.calls.worker import FunctionRun, Worker

    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices")
        made = log.call("prices", "x", wait=False)

        def report(sentence: str) -> None:
            said.append(sentence)
            refused.set()

        def caller() -> object:
            if not refused.is_set():
                error = OSError(errno.EACCES, os.strerror(errno.EACCES))
                raise StoreError(f"Cannot write: {error.strerror}.", code="read-only") from error
            return own.caller

        worker = Worker(own.store, caller, lambda task: FunctionRun(run, task), stop=stop, report=report)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.serve, daemon=True)
        thread.start()
        assert refused.wait(20)
        assert begun == [] and "Permission denied" in said[0] and "retrying" in said[0]
        assert log.wait_for(made.results[0].task_id, timeout=20).message == "done"
        stop.set()
        thread.join(10)


@pytest.mark.parametrize("step", ["renew its lease", "report its end"])
def test_a_full_disk_ends_no_run_before_its_lease_does(repo: Path, log: Log, step: str) -> None:
    """Else a task that may begin only once were lost, though there is room again a moment later."""
    from gitmem.calls.worker import FunctionRun, Worker

    stop, refused = threading.Event(), threading.Event()
    said: list[str] = []
    begun: list[ServedTask] = []
    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices")
        record = own.store.record

        def full(*args: object, **options: object) -> object:
            if refused.is_set():
                return record(*args, **options)  # type: ignore[arg-type]
            raise StoreError(f"Cannot write: {os.strerror(errno.ENOSPC)}.", code="store")

        def report(sentence: str) -> None:
            said.append(sentence)
            if f"cannot {step}" in sentence:
                refused.set()

        def run(task: ServedTask) -> str:
            begun.append(task)
            own.store.record = full  # type: ignore[method-assign, assignment]
            task.progress("at work")
            if step.startswith("renew"):
                assert refused.wait(10)
            return "done" if not task.is_canceled else "canceled"

        worker = Worker(
            own.store,
            lambda: own.caller,
            lambda task: FunctionRun(run, task),
            stop=stop,
            lease=6.0,
            report=report,
        )
        thread = threading.Thread(target=worker.serve, daemon=True)
        thread.start()
        found = log.call("prices", "pay", once=True, timeout=20)
        stop.set()
        thread.join(10)
    assert (found.state, found.message, len(begun)) == ("completed", "done", 1), said
    texts = [
        each.record.get("message")
        for each in task_rules.require(log.store, found.results[0].task_id).events.values()
    ]
    assert "at work" in texts


# A tenant is a repository: a call finds and reads nothing of another one (decision 128).

ROOT = Path(__file__).parents[2]

# Calls in the repository of its first argument, and prints whatever it opened, listed or started that names the second.
WATCHED = """
import json, os, sys
here, other = sys.argv[1:]
touched = []
def note(event, values):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "subprocess.Popen", "sqlite3.connect"):
        touched.extend(f"{event} {value}" for value in values if other in str(value))
import gitmem
sys.addaudithook(note)
with gitmem.open(here, session="Planck") as log:
    found = log.call("prices", "x", context=True, memory="rounding", variables={"path": other}, wait=False)
    shown = log.tasks.show(found.results[0].task_id)
    assert shown.task["context"]["variables"] == {"path": other}
print(json.dumps(touched))
open(os.path.join(other, "README"))
assert touched, "the hook notes nothing"
"""


@pytest.fixture
def other_repository(tmp_path: Path) -> Path:
    """Another tenant, with an agent, a task and a node."""
    path = new_repo(tmp_path / "other tenant")
    (path / "README").write_text("x")
    return path


def test_i26_i27_agents_tasks_and_nodes_of_another_repository_are_not_found(
    log: Log, serve: Serve, other_repository: Path
) -> None:
    """Neither by name nor by id; nothing is written in either."""
    serve()
    own_key(other_repository)
    with gitmem.open(str(other_repository), identity=PLANNER) as far:
        far.sessions.start(name="Planck", agent_identity=PLANNER)
        with gitmem.open(str(other_repository), identity="claude:rates:far") as rates:
            rates.sessions.start(name="rates")
        node = far.memory.append("rounding of the other tenant").node.id
        task = far.call("rates", "x", wait=False).results[0].task_id
        there, here = bodies(far.store), bodies(log.store)
        for refused, message in (
            (lambda: log.call("rates", "x", wait=False), "Agent 'rates' not found"),
            (lambda: log.call("prices", "x", memory=[node], wait=False), "No such node"),
            (lambda: log.call("prices", "x", within=task, wait=False), task),
            (lambda: log.wait_for(task, timeout=1), task),
        ):
            with pytest.raises(UsageError, match=message):
                refused()
        assert (bodies(far.store), bodies(log.store)) == (there, here)
    found = log.call("prices", "x", memory="rounding", timeout=20)
    assert found.results[0].state == "completed", vars(found.results[0])
    assert found.results[0].agent == PRICES and found.transfer is not None and not found.transfer.counts


def test_i28_a_call_opens_no_file_of_another_repository(
    log: Log, serve: Serve, repo: Path, other_repository: Path
) -> None:
    """Seen by the interpreter's own audit events, with a variable that names the other one."""
    serve()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(repo), str(other_repository)], capture_output=True, text=True, cwd=repo, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout or "null")) == (0, []), done.stderr
