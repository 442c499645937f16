"""Calls of Python functions: lookup, results, errors, time limits, several agents, questions, chains."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls import WORKER
from gitmem.calls.call_result import AgentResult, CallError, CallResult
from gitmem.calls.worker import InputNeededError, ServedTask
from gitmem.commit_process import NOW
from gitmem.errors import GateError, GitmemError, UsageError
from gitmem.git.files import FENCES
from gitmem.index import index_file
from gitmem.log import ref
from gitmem.log.committer import start_log
from gitmem.records import ids
from gitmem.store import wall_clock
from gitmem.work import task_rules, task_work
from gitmem.work.task_decisions import LOST
from gitmem.work.task_work import LOST_MICROS

from ..clones import git
from ..file_faults import at
from ..sandbox import annas, bodies
from ..signing import own_key
from .conftest import PLANNER, PRICES, Serve

if TYPE_CHECKING:
    from gitmem.calls.call import CallOptions


def test_i5_i6_a_function_answers_and_the_callers_session_seals(log: Log, serve: Serve) -> None:
    """The thin way through: recorded, taken, run, reported, sealed."""
    serve()

    found = log.call("prices", "is it right?", timeout=20)

    assert (found.state, found.message, found.timed_out) == ("completed", "IS IT RIGHT?", False)
    (one,) = found.results
    assert (one.agent, one.resolved_by, one.confirmed) == (PRICES, "exact", True)
    assert found.check() is found
    task = task_rules.require(log.store, one.task_id)
    assert (task.record["purpose"], task.decided_by) == ("call", "seal")
    assert not log.store.db().execute("SELECT 1 FROM signal").fetchall()


def test_i13_i15_a_function_gets_what_is_handed_over_and_changes_only_its_copy(
    log: Log, serve: Serve
) -> None:
    """Variables, decisions and nodes arrive; what the function does with them changes nothing here."""
    decision = log.memory.append("Round once per line", tags=["decision"]).node.id
    seen: list[ServedTask] = []

    def work(task: ServedTask) -> str:
        seen.append(task)
        task.context["variables"]["limits"].append(4)
        task.context["decisions"][0]["text"] = "changed"
        return "ok"

    serve(work)
    limits = [3]
    found = log.call("prices", "x", context=True, variables={"limits": limits}, memory="round", timeout=20)

    assert found.transfer is not None and found.transfer.counts == {
        "decisions": 1,
        "memory": 1,
        "variables": 1,
    }
    assert [(each.id, each.state, each.data) for each in seen[0].memory] == [
        (decision, "unchanged", "Round once per line")
    ]
    assert (limits, log.memory.get(decision).content) == ([3], "Round once per line")
    record = task_rules.require(log.store, found.results[0].task_id).record
    assert record["context"]["variables"] == {"limits": [3]}
    assert log.call("prices", "again", timeout=20).transfer is None
    assert (seen[1].context, seen[1].memory) == ({}, [])


def test_i2_a_role_alias_names_its_only_holder(log: Log, serve: Serve) -> None:
    """An alias of the roles file is the step between folded and suggestions."""
    serve().sessions.change(role="reviewer/general")
    found = log.call("code-reviewer", "x", wait=False)
    assert (found.results[0].agent, found.results[0].resolved_by) == (PRICES, "alias")


def test_i8_the_original_error_keeps_its_type_and_text(log: Log, serve: Serve) -> None:
    """The state is failed, never completed."""

    def fail(task: ServedTask) -> str:
        raise ValueError("the tax table has no row 7")

    serve(fail)
    found = log.call("prices", "x", timeout=20)
    assert found.state == "failed" and found.results[0].confirmed
    assert found.error == {
        "code": "EXCEPTION", "type": "ValueError", "message": "the tax table has no row 7", "retryable": False,
    }  # fmt: skip
    with pytest.raises(CallError, match="ValueError: the tax table has no row 7") as raised:
        found.check()
    assert (raised.value.type, raised.value.text) == ("ValueError", "the tax table has no row 7")


def test_what_functions_and_callers_need_is_in_the_package(log: Log, serve: Serve) -> None:
    """A function refuses its task by the class of `gitmem`, and its caller catches that of `gitmem`."""

    def refuse(task: ServedTask) -> str:
        raise gitmem.TaskRejectedError("not my work")

    serve(refuse)
    with pytest.raises(gitmem.CallError, match="not my work"):
        log.call("prices", "x", timeout=20).check()
    names = ("CallError", "DirectAnswer", "InputNeededError", "TaskRejectedError")
    assert set(names) <= set(gitmem.__all__) and gitmem.DirectAnswer("x") == "x"
    assert issubclass(gitmem.InputNeededError, Exception)


def test_i8_a_retryable_failure_is_tried_again_at_most_three_times(log: Log, serve: Serve) -> None:
    """Each try is a new take of the same task."""

    class BusyError(Exception):
        retryable = True

    tries: list[str] = []

    def busy(task: ServedTask) -> str:
        tries.append(task.task_id)
        if task.message == "never" or tries.count(task.task_id) < 2:
            raise BusyError("later")
        return "done"

    serve(busy)
    assert log.call("prices", "second", timeout=20).message == "done"
    found = log.call("prices", "never", timeout=20)
    assert (found.state, tries.count(found.results[0].task_id)) == ("failed", 3)


def test_i10_a_timeout_keeps_the_state_and_the_task_goes_on(log: Log, serve: Serve) -> None:
    """20 ms on an agent that takes 300 ms are a timeout; the result comes later, by `wait_for`."""

    def slow(task: ServedTask) -> str:
        time.sleep(0.3)
        return "late"

    serve(slow)
    found = log.call("prices", "x", timeout=0.02)
    assert found.timed_out and found.state in ("submitted", "working") and not found.results[0].confirmed
    assert found.next[0] == f"gitmem task wait {found.results[0].task_id}"
    later = log.wait_for(found.results[0].task_id, timeout=20)
    assert (later.state, later.message, later.results[0].confirmed) == ("completed", "late", True)


def test_i10_a_timeout_cancels_where_the_caller_asks_for_it(log: Log, serve: Serve) -> None:
    """The worker learns of it; the function can see it, and its result does not count."""
    seen = threading.Event()

    def patient(task: ServedTask) -> str:
        while not task.is_canceled:
            time.sleep(0.01)
        seen.set()
        return "too late"

    serve(patient)
    found = log.call("prices", "x", timeout=0.3, cancel_on_timeout=True)
    assert found.timed_out
    later = log.wait_for(found.results[0].task_id, timeout=20)
    assert later.state == "canceled" and seen.wait(5)


def test_after_a_time_limit_each_agent_that_goes_on_can_be_canceled() -> None:
    """The command for the first one alone would leave the others at work."""
    results = [
        AgentResult(task_id=f"task-000{number}", agent="a:b:c", name="c", resolved_by="exact", warnings=[])
        for number in range(2)
    ]
    for each in results:
        each.timed_out = True
    assert CallResult("all", "thread-0001", results).next == [
        "gitmem task wait task-0000 task-0001", "gitmem task cancel task-0000", "gitmem task cancel task-0001",
    ]  # fmt: skip


def test_what_a_timeout_has_canceled_is_not_waited_for(log: Log, repo: Path) -> None:
    """Both commands would exit with 2: the task is finished. Without a wait there is no time limit that could cancel."""
    with gitmem.open(str(repo), identity=PRICES) as busy:
        busy.sessions.start(name="prices")
    found = log.call("prices", "x", timeout=0.05, cancel_on_timeout=True)
    assert (found.state, found.next) == ("canceled", [f"gitmem task show {found.results[0].task_id}"])
    before = bodies(log.store)
    with pytest.raises(GitmemError) as error:
        log.call("prices", "x", wait=False, cancel_on_timeout=True)
    assert (error.value.code, bodies(log.store) == before) == ("contradiction", True)


def test_i11_the_same_key_is_the_same_task(log: Log, serve: Serve) -> None:
    """A repeated call returns the result and runs nothing."""
    runs: list[str] = []
    serve(lambda task: runs.append(task.task_id) or "one")  # type: ignore[func-returns-value]
    first = log.call("prices", "x", idempotency_key="k", timeout=20)
    second = log.call("prices", "x", idempotency_key="k", timeout=20)
    assert first.results[0].task_id == second.results[0].task_id and second.message == "one"
    assert len(runs) == 1


@pytest.mark.parametrize(
    "agents", [PRICES, f"{PRICES},claude:rates:shop", "prices, rates", "role:reviewer/docs"]
)
def test_i11_a_key_is_the_same_call_after_its_enclosing_task_is_finished(
    repo: Path, log: Log, agents: str
) -> None:
    """Nothing is written, also if what it hands over is gone. Another text and further agents are refused."""
    for name in ("prices", "rates"):
        with gitmem.open(str(repo), identity=f"claude:{name}:shop") as own:
            own.sessions.start(name=name, role="reviewer/docs")
    outer = log.call(PRICES, "outer", wait=False).results[0].task_id
    options: CallOptions = {"idempotency_key": "k", "within": outer, "wait": False}
    first = log.call(agents, "x", **options)
    log.tasks.cancel(outer)
    before = bodies(log.store)
    again = log.call(agents, "x", memory=["mem-gone"], **options)
    assert (again.thread_id, [each.task_id for each in again.results]) == (
        first.thread_id, [each.task_id for each in first.results]
    )  # fmt: skip
    assert [(each.agent, each.resolved_by) for each in again.results] == [
        (each.agent, each.resolved_by) for each in first.results
    ]
    for other, text in ((agents, "y"), (f"{agents},{PLANNER}", "x")):
        with pytest.raises(GitmemError, match="Nothing was written"):
            log.call(other, text, again=True, **options)
    assert bodies(log.store) == before


def test_i11_the_ids_of_a_call_with_a_key_are_those_of_the_format(log: Log, serve: Serve) -> None:
    """Section 6: the thread of the key, and of several agents a task of key and address each."""
    serve()
    serve(name="rates", identity="claude:rates:shop")
    one = log.call("prices", "x", idempotency_key="k", wait=False)
    both = log.call("prices,rates", "x", idempotency_key="m", wait=False)
    assert (one.thread_id, both.thread_id) == tuple(
        ids.own_id("thread", log.store.writers.writer(), PLANNER, f"call {key}") for key in "km"
    )
    keys = ["k", f"m {PRICES}", f"m {annas('claude:rates:shop')}"]
    found = [each.task_id for each in (*one.results, *both.results)]
    assert found == [ids.own_id("task", log.store.writers.writer(), PLANNER, key) for key in keys]
    record = task_rules.require(log.store, found[0]).record
    assert record["payload"] == {"tell": True}


def test_i34_progress_comes_in_order_and_ends_with_the_result(log: Log, serve: Serve) -> None:
    """Reports within a second are one record."""

    def talk(task: ServedTask) -> str:
        for number in range(20):
            task.progress(f"step {number}")
        time.sleep(0.2)
        task.progress("last step")
        return "done"

    serve(talk)
    *progress, result = log.call_stream("prices", "x", timeout=20)
    assert isinstance(result, CallResult) and result.message == "done"
    texts = [each.message for each in progress if not isinstance(each, CallResult) and each.message]
    said = "\n".join(texts).split("\n")
    assert said == [*(f"step {number}" for number in range(20)), "last step", "done"]
    assert len(texts) <= 4


def test_i35_a_question_is_answered_and_the_function_is_called_again(log: Log, serve: Serve) -> None:
    """Input-required, answer, working, completed: in one task."""

    def ask(task: ServedTask) -> str:
        if not task.messages:
            raise InputNeededError("net or gross?")
        return f"{task.messages}"

    serve(ask)
    asked = log.call("prices", "sum", timeout=20)
    (one,) = asked.results
    assert (asked.state, asked.message, asked.timed_out) == ("input-required", "net or gross?", False)
    assert asked.next == [f"gitmem task show {one.task_id}"]
    log.tasks.message(one.task_id, "net")
    found = log.wait_for(one.task_id, timeout=20)
    assert found.message == "[('question', 'net or gross?'), ('answer', 'net')]"


def test_i37_parallel_calls_report_partial_failure(log: Log, serve: Serve) -> None:
    """One task for each agent, in one thread; `any` returns with the first result."""

    def fail(task: ServedTask) -> str:
        raise KeyError("x")

    serve()
    serve(fail, "rates", "claude:rates:shop")
    found = log.call(["prices", "rates"], "x", timeout=20)
    assert (found.state, found.completed, found.failed, found.error and found.error["type"]) == (
        "failed",
        1,
        1,
        "KeyError",
    )
    assert [each.state for each in found.results] == ["completed", "failed"]
    threads = {task_rules.require(log.store, each.task_id).record["thread_id"] for each in found.results}
    assert threads == {found.thread_id}
    either = log.call("rates,prices", "x", join="any", timeout=20)
    assert (either.state, either.message) == ("completed", "X")


def test_i36_a_call_within_a_task_is_linked_to_it_and_never_ends_later(
    repo: Path, log: Log, serve: Serve
) -> None:
    """The worker's own call has its task in the chain, by the one task that its session holds."""
    serve(lambda task: task.message + "!", "rates", "claude:rates:shop")
    inner: list[str] = []

    def chain(task: ServedTask) -> str:
        with gitmem.open(str(repo), session="prices") as own:
            found = own.call("rates", task.message, timeout=20)
            inner.append(found.results[0].task_id)
            return str(found.message)

    serve(chain)
    found = log.call("prices", "x", timeout=20)
    assert found.message == "x!"
    outer = task_rules.require(log.store, found.results[0].task_id).record
    record = task_rules.require(log.store, inner[0]).record
    assert record["chain"] == (outer["task_id"],) or list(record["chain"]) == [outer["task_id"]]
    assert str(record["deadline"]) <= str(outer["deadline"])


def test_i7_a_closed_worker_gives_its_task_back(repo: Path, log: Log) -> None:
    """The next worker takes it."""
    stop = threading.Event()

    def slow(task: ServedTask) -> str:
        time.sleep(30)
        return ""

    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices")
        thread = threading.Thread(target=own.serve, args=(slow,), kwargs={"stop": stop}, daemon=True)
        thread.start()
        found = log.call("prices", "x", wait=False)
        id = found.results[0].task_id
        while log.tasks.show(id).state != "working":
            time.sleep(0.01)
        stop.set()
        thread.join(10)
        assert log.tasks.show(id).state == "submitted"
        again = threading.Event()
        thread = threading.Thread(
            target=own.serve, args=(lambda task: "second",), kwargs={"stop": again}, daemon=True
        )
        thread.start()
        assert log.wait_for(id, timeout=20).message == "second"
        again.set()
        thread.join(10)


def test_i5_a_caller_that_does_not_wait_is_told_the_result_and_accepts_it_by_waiting(
    repo: Path, log: Log, serve: Serve
) -> None:
    """As with a delegation; a caller that waits gets no signal, because it has the result."""
    serve()
    log.call("prices", "first", timeout=20)
    id = log.call("prices", "second", wait=False).results[0].task_id
    while log.tasks.show(id).state != "completed":
        time.sleep(0.01)
    assert [each["message"] for each in log.inbox().signals] == ["Done: SECOND"]
    assert task_rules.require(log.store, id).decided_by == "status"
    log.wait_for(id, timeout=20)
    assert task_rules.require(log.store, id).decided_by == "seal"


def test_i9_what_is_not_json_or_over_is_refused_before_any_write(log: Log, serve: Serve) -> None:
    """An unserializable value, a wrong way to join, and an empty message; nothing is written."""
    serve()
    before = bodies(log.store)
    for wrong in ({"context": {"variables": {"file": object()}}}, {"join": "some"}, {"idempotency_key": ""}):
        with pytest.raises(GitmemError, match="Nothing was written"):
            log.call("prices", "x", wait=False, **wrong)  # type: ignore[arg-type]
    with pytest.raises(GitmemError, match="Nothing was written"):
        log.call("prices", "", wait=False)
    assert bodies(log.store) == before


def test_i11_once_is_in_the_record(log: Log, serve: Serve) -> None:
    """The workers of all clones read it there."""
    serve()
    id = log.call("prices", "x", wait=False, once=True).results[0].task_id
    assert task_rules.require(log.store, id).record["semantics"] == "at-most-once"


@pytest.mark.parametrize("seconds", [-1.0, 1e15, float("inf"), float("nan")])
def test_a_time_limit_that_no_clock_reaches_is_refused(log: Log, serve: Serve, seconds: float) -> None:
    """Nothing is written."""
    serve()
    before = bodies(log.store)
    with pytest.raises(UsageError, match="Invalid timeout"):
        log.call("prices", "x", timeout=seconds)
    with pytest.raises(UsageError, match="Invalid timeout"):
        log.wait_for("task-0001", timeout=seconds)
    assert bodies(log.store) == before


# Calls from asyncio: the loop goes on, errors and cancellation arrive, and nothing is left running.


def test_calls_wait_together_while_the_loop_goes_on(log: Log, serve: Serve) -> None:
    """Two calls of one log, of which each ends only when the other one has begun."""
    both = threading.Barrier(2)
    turns = 0

    def meet(task: ServedTask) -> str:
        both.wait(20)
        return task.message.upper()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def run() -> tuple[CallResult, CallResult]:
        counting = asyncio.create_task(count())
        found = await asyncio.gather(
            log.acall("prices", "a", timeout=20), log.acall("stock", "b", timeout=20)
        )
        counting.cancel()
        return found

    serve(meet)
    serve(meet, name="stock", identity="claude:stock:shop")

    assert [each.check().message for each in asyncio.run(run())] == ["A", "B"]
    assert turns > 5


def test_the_stream_has_progress_in_order_and_ends_with_the_result(log: Log, serve: Serve) -> None:
    """As `call_stream`."""
    serve()

    async def run() -> list[object]:
        return [each async for each in log.acall_stream("prices", "add", timeout=20)]

    *progress, result = asyncio.run(run())

    assert [getattr(each, "state", None) for each in progress] == ["working", "completed"]
    assert isinstance(result, CallResult)
    assert result.message == "ADD"


def test_an_error_is_raised_to_who_awaits(log: Log) -> None:
    """Of an unknown agent, and nothing is written."""
    with pytest.raises(UsageError, match="not found"):
        asyncio.run(log.acall("nobody-here", "add"))

    assert log.tasks.list().tasks == []


@pytest.mark.parametrize("cancels", [False, True])
def test_a_cancellation_ends_the_wait_as_a_timeout_does(log: Log, serve: Serve, cancels: bool) -> None:
    """The task goes on, or its cancellation is asked for; the thread has ended when the await has."""
    begun, end = threading.Event(), threading.Event()

    def wait(task: ServedTask) -> str:
        begun.set()
        end.wait(20)
        return "done"

    async def run() -> None:
        calling = asyncio.create_task(log.acall("prices", "add", timeout=20, cancel_on_timeout=cancels))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calling
        assert calling.cancelled()

    serve(wait)
    try:
        asyncio.run(run())
        assert not [each for each in threading.enumerate() if each.name == "gitmem call"]
        (listed,) = log.tasks.list().tasks
        task = task_rules.require(log.store, str(listed.task_id))
        assert bool(task.cancels) is cancels
        # A worker that sees the cancellation may end before this reads.
        assert cancels or task.state == "working"
    finally:
        end.set()


# What a call does while it waits.


def test_a_call_ticks_when_its_task_is_recorded(log: Log, repo: Path) -> None:
    """And the task asks for a sync at once: a command that waits for another clone must not sync only at its end."""
    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices", client=WORKER)
    log.store.wrote = 0
    ticks: list[tuple[int, int]] = []

    found = log.call(
        "prices",
        "add",
        timeout=0.0,
        tick=lambda: ticks.append((len(log.tasks.list().tasks), log.store.wrote)),
    )

    assert found.timed_out
    assert ticks == [(1, NOW)]


def test_a_take_sees_what_others_recorded_since_its_step_began(log: Log, repo: Path) -> None:
    """A step looks at the log once, but a take once more when it has its lock: else two workers of a clone run one task."""
    with gitmem.open(str(repo), identity=PRICES) as one, gitmem.open(str(repo), identity=PRICES) as other:
        one.sessions.start(name="prices", client=WORKER)
        other.sessions.start(name="second", client=WORKER)
        called = log.call("prices", "add", wait=False)
        task_id = called.results[0].task_id
        with one.store.lock, one.store.one_look():
            one.store.db()
            caller = one.caller
            other.tasks.take(task_id)

            with pytest.raises(GateError):
                task_work.take(one.store, caller, task_id)


def test_i11_a_call_says_that_its_result_is_sealed_while_another_process_holds_the_index(
    log: Log, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seal that it has just written is not in the index then: it must not answer from that."""
    with gitmem.open(str(repo), identity=PRICES) as worker:
        worker.sessions.start(name="prices", client=WORKER)
        task_id = log.call("prices", "add", wait=False, idempotency_key="k", once=True).results[0].task_id
        worker.tasks.take(task_id)
        worker.tasks.report(task_id, "completed", "3")
    path = index_file.path(log.store.repo, log.store.machine)
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def hold() -> None:
        holder.execute("BEGIN IMMEDIATE")
        threading.Timer(index_file.AFTER_COMMIT_MILLISECONDS / 1000 + 0.5, holder.close).start()

    held = at(monkeypatch, "fdatasync", "*.deferred1", hold)

    found = log.call("prices", "add", idempotency_key="k", once=True, timeout=20)

    assert len(held) == 1
    assert (found.state, found.results[0].message, found.results[0].confirmed) == ("completed", "3", True)


# Calls that may begin only once (I11): by the worker, offline, after its death, and at its end.


def test_a_call_that_may_begin_once_has_a_result(log: Log, serve: Serve) -> None:
    """I11: the worker creates the fence, and runs it as any other call; whoever seals deletes the fence."""
    during: list[str | None] = []

    def pay(task: ServedTask) -> str:
        during.append(log.store.git.tip(FENCES[0] + task.task_id))
        return "paid"

    serve(pay)
    found = log.call("prices", "pay", once=True, timeout=20)
    assert (found.state, found.message) == ("completed", "paid")
    assert during == [ref.GENESIS]
    assert log.store.git.tip(FENCES[0] + found.results[0].task_id) is None


def test_with_a_fence_of_somebody_else_a_worker_begins_nothing(log: Log, serve: Serve) -> None:
    """I11: it was begun, or was about to: nobody can tell. Other calls are served."""
    with gitmem.open(str(log.store.repo.worktree), identity=PRICES) as away:
        away.sessions.start()
    made = log.call(PRICES, "pay", once=True, wait=False)
    task_id = made.results[0].task_id
    log.call(PRICES, "other", wait=False)
    start_log(log.store.log)
    assert log.store.git.swap(FENCES[0] + task_id, None, ref.GENESIS, "by hand")
    serve(identity=PRICES)
    assert log.call(PRICES, "third", timeout=20).message == "THIRD"
    assert log.wait_for(task_id, timeout=0.1).state == "submitted"


def test_the_caller_learns_that_the_worker_of_a_call_is_lost(repo: Path) -> None:
    """I11: nobody takes it again; the caller pins the failure, once the lease and a minute are over."""
    own_key(repo)
    late = [0]
    with gitmem.open(str(repo), identity=PLANNER, now=lambda: wall_clock() + late[0]) as log:
        log.sessions.start(name="Planck")
        with gitmem.open(str(repo), identity=PRICES) as worker:
            worker.sessions.start(name="prices")
            made = log.call("prices", "pay", once=True, wait=False)
            task_id = made.results[0].task_id
            task_work.take(worker.store, worker.caller, task_id, lease=1_000_000)
        assert log.wait_for(task_id, timeout=0.1).timed_out
        late[0] = LOST_MICROS + 2_000_000
        found = log.wait_for(task_id, timeout=5)
        assert (found.state, found.message, found.timed_out) == ("failed", LOST, False)
        assert task_work.is_over(log.store, task_id)


def test_a_worker_that_is_ended_does_not_give_a_call_back_that_may_begin_once(repo: Path) -> None:
    """I11: another worker would begin it again; the caller gets the failure."""
    own_key(repo)
    stop, begun = threading.Event(), threading.Event()

    def slow(task: ServedTask) -> str:
        begun.set()
        threading.Event().wait(20)
        return "too late"

    with gitmem.open(str(repo), identity=PLANNER) as log, gitmem.open(str(repo), identity=PRICES) as worker:
        log.sessions.start(name="Planck")
        worker.sessions.start(name="prices")
        thread = threading.Thread(target=worker.serve, args=(slow,), kwargs={"stop": stop}, daemon=True)
        thread.start()
        made = log.call("prices", "pay", once=True, wait=False)
        assert begun.wait(20)
        stop.set()
        thread.join(20)
        found = log.wait_for(made.results[0].task_id, timeout=5)
    assert found.state == "failed"
    assert found.error is not None
    assert found.error["code"] == "STOPPED"


@pytest.mark.deep
def test_offline_a_call_that_may_begin_once_waits_for_the_remote(log: Log, serve: Serve, repo: Path) -> None:
    """I11: nothing begins on a guess; the worker goes on with other calls."""
    git("remote", "add", "origin", str(repo.parent / "nowhere.git"), cwd=repo)
    serve()
    waiting = log.call("prices", "pay", once=True, timeout=1)
    assert waiting.timed_out and waiting.state == "submitted"
    assert log.call("prices", "other", timeout=20).message == "OTHER"
