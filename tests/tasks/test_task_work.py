"""Taking and doing tasks: who may write what, each refusal with its code, and nothing written then."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import addressing, lifecycle
from gitmem.agents.caller import Caller
from gitmem.errors import GateError, UsageError
from gitmem.order.task import FoldedTask
from gitmem.records import RecordError, SecretError
from gitmem.store import Store
from gitmem.work import EVENTS_MAX, new_task, task_decisions, task_records, task_rules, task_work
from gitmem.work.new_task import NewTask
from gitmem.work.task_list import show
from tests.sandbox import HOUR, MINUTE, SECOND, Agent, Clock, bodies, open_store

PLANNER, BOHR, CURIE = "codex:planner:one", "claude:worker:bohr", "claude:worker:curie"


class Office:
    """A clone with a caller and two workers."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.planner, self.bohr, self.curie = (Agent(store, each).caller for each in (PLANNER, BOHR, CURIE))

    def new(self, **options: object) -> str:
        self.clock.forward(SECOND)
        given = {"target_role": "implementer/test"} if "to" not in options else {}
        made: NewTask = new_task.create(self.store, self.planner, "Write the tests", **{**given, **options})  # type: ignore[arg-type]
        return str(made.task["task_id"])

    def task(self, task_id: str) -> FoldedTask:
        return task_rules.require(self.store, task_id)

    def refused(self, code: str, act: object, *args: object, **options: object) -> str:
        """The message of the refusal; nothing was written."""
        before = bodies(self.store)
        with pytest.raises((GateError, UsageError)) as error:
            act(self.store, *args, **options)  # type: ignore[operator]
        assert error.value.code == code
        assert "Nothing was written" in error.value.message
        assert bodies(self.store) == before
        return error.value.message


@pytest.fixture
def office(store: Store, clock: Clock) -> Office:
    return Office(store, clock)


@pytest.mark.usefixtures("commits")
def test_a_task_from_its_writing_to_its_seal(office: Office) -> None:
    """Write, take, ask, answer, finish, seal."""
    task_id = office.new(to=BOHR, wu="WU-7", priority="P1")
    taken = task_work.take(office.store, office.bohr, task_id[:12])
    assert (taken.state, taken.event) == ("working", "take")
    asked = task_work.report(office.store, office.bohr, task_id, "input-required", "Which rounding?")
    assert asked.state == "input-required"
    assert task_decisions.message(office.store, office.planner, task_id, "half up").state == "submitted"
    done = task_work.report(
        office.store, office.bohr, task_id, "completed", "12 cases", payload={"commit": "0" * 40}
    )
    assert done.state == "completed"
    assert office.task(task_id).decided_by == "status"
    sealed = task_decisions.seal_task(office.store, office.planner, task_id)
    assert (sealed.state, sealed.event) == ("completed", "seal")
    task = office.task(task_id)
    assert task.seal is not None
    assert task.outcome is not None
    assert task.outcome.record.get("payload") == {"commit": "0" * 40}


def test_a_take_of_a_task_that_somebody_has_is_refused_with_the_time(office: Office) -> None:
    """R16: the loser is told; after the lease it may take it."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id, lease=10 * MINUTE)
    said = office.refused("taken-task", task_work.take, office.curie, task_id)
    assert BOHR in said
    assert "until 2026" in said
    office.clock.forward(11 * MINUTE)
    assert task_work.take(office.store, office.curie, task_id).state == "working"
    said = office.refused("not-the-holder", task_work.report, office.bohr, task_id, "completed", "12 cases")
    assert CURIE in said


def test_taking_it_again_is_the_same_take(office: Office) -> None:
    """A repeated command changes nothing."""
    task_id = office.new()
    first = task_work.take(office.store, office.bohr, task_id)
    before = bodies(office.store)
    again = task_work.take(office.store, office.bohr, task_id)
    assert (again.event_id, again.recorded, again.warnings != []) == (first.event_id, False, True)
    assert bodies(office.store) == before


def test_a_take_of_a_finished_task_is_refused(office: Office) -> None:
    """With its state, and that its caller has not confirmed it."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    task_work.report(office.store, office.bohr, task_id, "completed", "done")
    assert "done, not yet accepted" in office.refused("finished-task", task_work.take, office.curie, task_id)
    office.refused("finished-task", task_work.report, office.bohr, task_id, "failed")
    office.refused("finished-task", task_work.renew, office.bohr, task_id)
    office.refused("finished-task", task_work.release, office.bohr, task_id)
    office.refused("finished-task", task_decisions.cancel, office.planner, task_id)
    office.refused("finished-task", task_decisions.message, office.planner, task_id, "more")
    office.refused("finished-task", task_work.reject, office.curie, task_id)


def test_a_task_for_somebody_else_is_not_taken(office: Office) -> None:
    """Nor refused in their name."""
    task_id = office.new(to=BOHR)
    office.refused("not-for-you", task_work.take, office.curie, task_id)
    office.refused("not-for-you", task_work.reject, office.curie, task_id)
    assert task_work.reject(office.store, office.bohr, task_id, "no time").state == "rejected"


def test_the_only_addressee_rejects_what_it_has_given_back(office: Office) -> None:
    """Once: a second time is refused, and another session of the agent has to give the task back first."""
    task_id = office.new(to=BOHR)
    task_work.take(office.store, office.bohr, task_id)
    other = Agent(office.store, BOHR).caller
    before = bodies(office.store)
    with pytest.raises(GateError, match=f"another session of {BOHR}") as error:
        task_work.reject(office.store, other, task_id)
    assert error.value.next == [f"gitmem task show {task_id}"]  # that one may be at work
    assert bodies(office.store) == before
    task_work.release(office.store, office.bohr, task_id)
    found = task_work.reject(office.store, office.bohr, task_id, "no time")
    assert (found.state, found.reported) == ("rejected", "rejected")
    office.refused("finished-task", task_work.reject, office.bohr, task_id)


def test_one_of_several_rejects_a_task_once(office: Office) -> None:
    """Each repetition would tell the caller again; after a take of its own it may reject it again."""
    task_id = office.new()
    first = task_work.reject(office.store, office.bohr, task_id)
    assert (first.state, first.reported) == ("submitted", "rejected")
    before = bodies(office.store)
    again = task_work.reject(office.store, office.bohr, task_id)
    assert (again.event_id, again.recorded, again.reported) == (first.event_id, False, "rejected")
    assert bodies(office.store) == before
    task_work.take(office.store, office.bohr, task_id)
    task_work.release(office.store, office.bohr, task_id)
    assert task_work.reject(office.store, office.bohr, task_id).recorded


def test_a_task_after_its_deadline_is_not_begun(office: Office) -> None:
    """T8: the fold does not know of it, the writer does."""
    task_id = office.new(deadline=office.clock.value + HOUR)
    office.clock.forward(2 * HOUR)
    office.refused("past-deadline", task_work.take, office.bohr, task_id)
    office.refused(
        "past-deadline", new_task.create, office.planner, "x", to=BOHR, deadline=office.clock.value - 1
    )


def test_a_canceled_task_is_canceled_at_once_if_nobody_has_it(office: Office) -> None:
    """T6: with a seal in the same entry; with a holder it is a wish."""
    task_id = office.new()
    assert (
        task_decisions.cancel(office.store, office.planner, task_id, reason="not needed").state == "canceled"
    )
    assert office.task(task_id).decided_by == "seal"
    held = office.new()
    task_work.take(office.store, office.bohr, held)
    wish = task_decisions.cancel(office.store, office.planner, held)
    assert (wish.state, BOHR in wish.warnings[0]) == ("working", True)
    assert show(office.store, held, office.bohr).next[0] == f"gitmem task release {held}"
    agreed = task_work.release(office.store, office.bohr, held, reason="stopped")
    assert (agreed.event, agreed.state, office.task(held).decided_by) == ("status", "canceled", "status")
    given_back = office.new()
    task_work.take(office.store, office.bohr, given_back)
    task_work.release(office.store, office.bohr, given_back)
    assert task_decisions.cancel(office.store, office.planner, given_back).state == "canceled"
    office.refused("not-the-caller", task_decisions.cancel, office.curie, office.new())


def test_only_the_session_that_wrote_it_seals(office: Office, repo: Path) -> None:
    """M3: nobody else, and not without an outcome."""
    task_id = office.new()
    office.refused("no-outcome", task_decisions.seal_task, office.planner, task_id)
    twin = Agent(office.store, PLANNER).caller
    task_work.take(office.store, office.bohr, task_id)
    task_work.report(office.store, office.bohr, task_id, "completed", "done")
    office.refused("not-the-caller", task_decisions.seal_task, office.bohr, task_id)
    office.refused("not-the-caller", task_decisions.seal_task, twin, task_id)
    task_decisions.seal_task(office.store, office.planner, task_id)
    again = task_decisions.seal_task(office.store, office.planner, task_id)
    assert (again.recorded, again.until) == (False, None)
    office.refused("sealed-task", task_decisions.close, twin, task_id, "over")


def test_a_lost_task_can_be_given_up(office: Office) -> None:
    """The caller of a worker that never answers decides that it failed."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    given_up = task_decisions.seal_task(office.store, office.planner, task_id, give_up="the worker is gone")
    assert given_up.state == "failed"


def test_a_close_stands_for_a_caller_who_has_ended(office: Office) -> None:
    """By another session of its identity or a person, with a reason; not by a worker or the caller's session."""
    task_id = office.new()
    office.refused("no-reason", task_decisions.close, office.curie, task_id, " ")
    office.refused("bad-state", task_decisions.close, office.curie, task_id, "x", state="done")
    office.refused("not-a-person", task_decisions.close, office.curie, task_id, "over")
    office.refused("own-task", task_decisions.close, office.planner, task_id, "over")
    twin = Agent(office.store, PLANNER).caller
    assert task_decisions.close(office.store, twin, task_id, "its session has ended").state == "canceled"
    office.refused("closed-task", task_decisions.close, twin, task_id, "again")
    assert task_decisions.seal_task(office.store, office.planner, task_id).state == "canceled"


def test_a_question_needs_its_text(office: Office) -> None:
    """A task that waits for an answer to nothing waits for ever."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    office.refused("no-question", task_work.report, office.bohr, task_id, "input-required", " ")
    with pytest.raises(RecordError, match="state must be"):
        task_work.report(office.store, office.bohr, task_id, "done")


def test_a_released_task_is_free(office: Office) -> None:
    """Also by another session of the same agent; not by somebody else."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    office.refused("not-the-holder", task_work.release, office.curie, task_id)
    assert task_work.release(office.store, office.bohr, task_id, reason="no time").state == "submitted"
    task_work.take(office.store, office.bohr, task_id)
    restarted = Agent(office.store, BOHR).caller
    office.refused("taken-task", task_work.take, restarted, task_id)
    assert task_work.release(office.store, restarted, task_id).state == "submitted"
    office.refused("not-the-holder", task_work.renew, office.bohr, task_id)


@pytest.mark.parametrize("purpose", ["delegation", "call"])
def test_what_is_taken_by_hand_is_kept_for_an_hour(office: Office, purpose: str) -> None:
    """Nobody renews by hand: a minute, as a worker has, would let another agent begin the same call beside it."""
    task_id = office.new(purpose=purpose)
    task_work.take(office.store, office.bohr, task_id)
    office.clock.forward(59 * MINUTE)
    office.refused("taken-task", task_work.take, office.curie, task_id)
    office.clock.forward(2 * MINUTE)
    assert task_work.take(office.store, office.curie, task_id).state == "working"


def test_renewals_double_a_short_lease_up_to_a_quarter_of_an_hour(office: Office) -> None:
    """M11: a worker that lives needs few of them, and none shortens a lease."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id, lease=MINUTE)
    lengths = []
    for _ in range(6):
        task_work.renew(office.store, office.bohr, task_id)
        task = office.task(task_id)
        assert task.holder is not None
        lengths.append(round((task.lease(task.holder) - office.clock.value) / MINUTE))
    assert lengths == [2, 4, 8, 15, 15, 15]


def test_a_task_that_lapsed_three_times_goes_on_only_as_a_new_one(office: Office) -> None:
    """D3: something in it kills whoever takes it."""
    task_id = office.new()
    for _ in range(3):
        task_work.take(office.store, office.bohr, task_id, lease=SECOND)
        office.clock.forward(MINUTE)
    office.refused("too-many-takes", task_work.take, office.curie, task_id)


def test_after_two_hundred_events_only_the_end_is_written(office: Office) -> None:
    """M11: renewals are not counted, and the result is never refused."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    task = office.task(task_id)
    lines = [task_records.event_line(office.store, office.bohr, task, "message", {"message": f"step {number}"})[1]
             for number in range(EVENTS_MAX - 1)]  # fmt: skip
    task_records.record(office.store, office.bohr, lines, "writes", task.record)
    office.refused("too-many-events", task_work.report, office.bohr, task_id, "working", "more")
    task_work.renew(office.store, office.bohr, task_id)
    assert task_decisions.message(
        office.store, office.planner, task_id, "Go on"
    ).recorded  # has its own limit
    assert task_work.report(office.store, office.bohr, task_id, "completed", "done").state == "completed"


def test_after_two_hundred_events_the_caller_only_decides(office: Office) -> None:
    """D14: its messages have the same limit, and that of its holder is another."""
    task_id = office.new()
    task = office.task(task_id)
    lines = [task_records.event_line(office.store, office.planner, task, "message", {"message": f"hint {number}"})[1]
             for number in range(EVENTS_MAX)]  # fmt: skip
    task_records.record(office.store, office.planner, lines, "writes", task.record)
    office.refused("too-many-events", task_decisions.message, office.planner, task_id, "more")
    office.refused("too-many-events", task_decisions.launch, office.planner, task_id)
    task_work.take(office.store, office.bohr, task_id)
    assert task_work.report(office.store, office.bohr, task_id, "working", "step 1").recorded
    assert task_decisions.cancel(office.store, office.planner, task_id).recorded
    task_work.release(office.store, office.bohr, task_id)
    assert task_decisions.seal_task(office.store, office.planner, task_id).state == "canceled"


def test_a_replaced_task_is_not_taken(office: Office) -> None:
    """T7: the refusal names the new one; one that is at work stands beside it."""
    old = office.new()
    new = office.new(supersedes=[old])
    assert new in office.refused("replaced-task", task_work.take, office.bohr, old)
    task_work.take(office.store, office.bohr, new)
    newest = office.new(supersedes=[new])
    assert office.task(new).stands_beside
    assert not office.task(newest).is_replaced
    mine = str(new_task.create(office.store, office.bohr, "x", to=CURIE).task["task_id"])
    office.refused("not-replaceable", new_task.create, office.planner, "y", to=BOHR, supersedes=[mine])


def test_a_take_says_what_it_waits_for(office: Office) -> None:
    """A task with open blockers can be taken. As in lists, a blocker that another task replaces no longer counts."""
    first = office.new()
    second = office.new(blocked_by=[first])
    assert show(office.store, second).warnings == [f"It waits for {first}."]
    assert first in task_work.take(office.store, office.bohr, second).warnings[0]
    office.new(supersedes=[first])
    third = office.new(blocked_by=[first])
    assert not any(first in each for each in task_work.take(office.store, office.bohr, third).warnings)


def test_a_task_says_that_what_it_waited_for_has_not_succeeded(office: Office) -> None:
    """It may begin now, but what it needs may not be there."""
    first = office.new()
    second = office.new(blocked_by=[first])
    task_decisions.cancel(office.store, office.planner, first, reason="Too late.")
    said = [f"{first}, which it waited for, ended as canceled."]
    assert show(office.store, second).warnings == said
    assert task_work.take(office.store, office.bohr, second).warnings[:1] == said


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("no-addressee", {}),
        ("empty-id", {"to": ""}),
        ("empty-id", {"to": BOHR, "idempotency_key": ""}),
        ("several-addressees", {"to": f"{BOHR},{CURIE}"}),
        ("unknown-recipient", {"to": "nobody:here:now"}),
        ("unknown-task", {"to": BOHR, "blocked_by": ["task-0000"]}),
        ("too-many-links", {"to": BOHR, "references": ["task-0000"] * 51}),
    ],
)
def test_a_task_that_nobody_could_do_is_refused(
    office: Office, code: str, options: dict[str, object]
) -> None:
    """Each with its reason."""
    office.refused(code, new_task.create, office.planner, "Write the tests", **options)


def test_bad_values_are_refused_by_the_record(office: Office) -> None:
    """Priority, size and secrets."""
    with pytest.raises(RecordError, match="priority must be P0 or P1"):
        office.new(priority="high")
    with pytest.raises(RecordError, match="at most 65536 are allowed"):
        new_task.create(office.store, office.planner, "x" * 1_000_000, to=BOHR)
    with pytest.raises(SecretError):
        new_task.create(
            office.store,
            office.planner,
            "x",
            to=BOHR,
            context={"variables": {"key": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}},
        )


def test_a_key_is_one_task(office: Office) -> None:
    """Retrying is safe; another task under the same key is refused."""
    first = office.new(idempotency_key="deploy-1")
    before = bodies(office.store)
    assert office.new(idempotency_key="deploy-1") == first
    assert bodies(office.store) == before
    office.refused("key-reused", new_task.create, office.planner, "Other work", target_role="implementer/test",
                   idempotency_key="deploy-1")  # fmt: skip


@pytest.mark.parametrize("write", [new_task.create, new_task.delegate])
@pytest.mark.parametrize("to", ["role:implementer/test", BOHR, "Bohr-9"])
def test_a_key_is_one_task_whatever_has_changed_since(
    office: Office, clock: Clock, write: Callable[..., new_task.NewTask], to: str
) -> None:
    """Its deadline is over, its enclosing task finished, its addressee's name somebody else's, and its caller has too many open tasks."""
    again = Agent(office.store, BOHR, name="Bohr-9")  # no name that the others can have got by chance
    outer = office.new()
    options: dict[str, object] = {
        "idempotency_key": "k",
        "within": outer,
        "deadline": clock() + HOUR,
        "wu": "WU-7",
    }
    is_role = to.startswith("role:") and write is new_task.create
    whom = {"target_role": "implementer/test"} if is_role else {"to": to}
    role = {} if write is new_task.create or to.startswith("role:") else {"role": "implementer/test"}
    first = write(office.store, office.planner, "Write", **whom, **role, **options)
    task_decisions.cancel(office.store, office.planner, outer)
    clock.forward(2 * HOUR)
    lifecycle.end(office.store, again.caller)
    Agent(office.store, CURIE, name="Bohr-9")
    for _ in range(19):
        office.new()
    before = bodies(office.store)
    second = write(office.store, office.planner, "Write", **whom, **options)
    assert (second.task, second.recorded) == (first.task, False)
    for other in ({"message": "Other"}, {"wu": "WU-8"}, {"to": CURIE}):
        said = {"message": "Write", **whom, **role, **options, **other}
        with pytest.raises(UsageError, match="Nothing was written"):
            write(office.store, office.planner, said.pop("message"), **said)
    assert bodies(office.store) == before


def test_a_caller_has_at_most_twenty_open_tasks(office: Office) -> None:
    """D14: something that writes tasks in a loop ends by itself."""
    ids = [office.new() for _ in range(20)]
    office.refused("too-many-open", new_task.create, office.planner, "x", to=BOHR)
    task_decisions.cancel(office.store, office.planner, ids[0])
    office.new(to=BOHR)


LATE_WRITER = """
import sys
from pathlib import Path
from gitmem.errors import UsageError
from gitmem.work import new_task
from tests.sandbox import Clock, acting, open_store
store = open_store(Path(sys.argv[1]), Clock())
caller = acting(store, sys.argv[2])
print("ready", flush=True)
try:
    new_task.create(store, caller, "x", target_role="implementer/test")
    print("written")
except UsageError as error:
    print(error.code)
"""


@pytest.mark.deep
def test_the_limit_of_open_tasks_holds_for_two_processes_at_once(office: Office, repo: Path) -> None:
    """Count and record are one step: who comes between waits, and then is refused."""
    for _ in range(19):
        office.new()
    others: list[subprocess.Popen[str]] = []

    def said(fields: Mapping[str, Any]) -> str:
        """Between count and record: let another process write, if nothing stops it."""
        argv = [sys.executable, "-c", LATE_WRITER, str(repo), str(office.planner.session_id)]
        others.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        assert others[0].stdout is not None and others[0].stdout.readline() == "ready\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            others[0].wait(0.5)
        return str(fields["message"])

    found = addressing.resolve(office.store, [BOHR], caller=office.planner)
    new_task.create(office.store, office.planner, "x", signaled=found, said=said, to=BOHR)
    assert others[0].communicate(timeout=30)[0] == "too-many-open\n"


def test_of_two_takes_at_once_in_one_clone_one_wins(office: Office, repo: Path, clock: Clock) -> None:
    """Look and take are one step: no conflict, and the losers are told."""
    tasks = [office.new() for _ in range(4)]
    workers = [Agent(office.store, f"claude:worker:w{number}").caller for number in range(4)]
    results: dict[str, list[str]] = {task_id: [] for task_id in tasks}
    barrier = threading.Barrier(len(workers))

    def run(caller: Caller) -> None:
        store = open_store(repo, clock)
        for task_id in tasks:
            barrier.wait()
            try:
                results[task_id].append(task_work.take(store, caller, task_id).event)
            except (GateError, UsageError) as error:
                results[task_id].append(error.code)
        store.close()

    threads = [threading.Thread(target=run, args=(each,)) for each in workers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for task_id, found in results.items():
        assert sorted(found) == ["take", "taken-task", "taken-task", "taken-task"]
        assert not office.task(task_id).conflict


@pytest.mark.usefixtures("commits")
def test_a_message_imitates_no_trailer_of_the_commit(office: Office) -> None:
    """`git log` and its filters by trailer believe the last lines of a body."""
    task_id = office.new()
    task_work.take(office.store, office.bohr, task_id)
    task_work.report(
        office.store, office.bohr, task_id, "completed", "done\n\nTask: task-0000\nAgent: somebody:else:here"
    )
    tip = office.store.git.tip("refs/gitmem/log")
    assert tip is not None
    body = subprocess.run(["git", "show", "-s", "--format=%(trailers:key=Task,valueonly)%(trailers:key=Agent,valueonly)", tip],
                          cwd=office.store.repo.common, capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert body.split() == [task_id, BOHR]
