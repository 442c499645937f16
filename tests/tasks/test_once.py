"""Tasks that may begin only once: of all clones of a remote at most one takes one, whatever is killed, offline, or forged (D3, M1, I11)."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from gitmem.agents.caller import Caller
from gitmem.errors import GateError, GitmemError, RemoteError, StoreError, UsageError
from gitmem.git.files import FENCES
from gitmem.log import ref
from gitmem.store import Store, wall_clock
from gitmem.sync import consent, fences, sync_remotes
from gitmem.work import ONCE, new_task, task_decisions, task_rules, task_work
from tests import file_faults, templates
from tests.clones import Clone, Hub, git
from tests.recorded_network import RecordedNetwork
from tests.sandbox import Agent, acting, annas
from tests.sandbox import Clock as HandClock

PLANNER, WORKER = map(annas, ("codex:planner:one", "claude:worker:shop"))


NAMES = ("planner", "here", "there")  # of the clones


class AtWork(NamedTuple):
    """An agent in a clone."""

    store: Store
    caller: Caller


def begin(root: Path) -> tuple[str, list[str], int]:
    """Make three clones, each with an agent, and a task: return its id, the sessions, and the time."""
    hub = Hub(root)
    planner, here, there = (hub.clone(name) for name in NAMES)
    agents = [Agent(planner.store, PLANNER), Agent(here.store, WORKER), Agent(there.store, WORKER)]
    for each in (here, planner):
        sync(each)
    made = new_task.create(planner.store, agents[0].caller, "Pay once", to=WORKER, semantics=ONCE)
    for each in (planner, here, there):
        sync(each)
    hub.close()
    return made.task["task_id"], [each.session.session_id for each in agents], hub.now.micros


class Race:
    """A task for one agent, which is served in two clones."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.id, sessions, hub.now.micros = templates.copy("race", hub.root, begin)
        clones = [hub.open(hub.root / name, seed=9 + number) for number, name in enumerate(NAMES)]
        self.planner, self.here, self.there = clones
        self.caller, self.one, self.two = (
            AtWork(clone.store, acting(clone.store, session))
            for clone, session in zip(clones, sessions, strict=True)
        )

    def takes(self) -> int:
        """How many have taken it, as all clones see it after a sync."""
        for each in (self.here, self.there, self.planner):
            sync(each)
        return len(task_rules.require(self.planner.store, self.id).takes)

    def fence(self) -> str | None:
        return self.hub.tip(FENCES[0] + self.id)


@pytest.fixture
def race(hub: Hub) -> Race:
    return Race(hub)


def sync(clone: Clone) -> None:
    sync_remotes.sync(clone.store)


def refused(code: str, agent: Agent | AtWork, task_id: str) -> str:
    with pytest.raises(GitmemError) as error:
        task_work.take(agent.store, agent.caller, task_id)
    assert error.value.code == code
    return error.value.message


def test_of_two_clones_that_have_not_synced_one_takes_a_task_that_may_begin_once(race: Race) -> None:
    """I11: the fence decides, although neither clone knows of the other's take."""
    assert task_work.take(race.here.store, race.one.caller, race.id).event == "take"
    assert race.fence() == ref.GENESIS
    assert "fence on origin" in refused("fence-taken", race.two, race.id)
    assert race.takes() == 1
    assert "was taken by" in refused("taken-task", race.two, race.id)


def test_recording_does_not_wait_for_the_remote_of_a_fence(race: Race) -> None:
    """Another thread of the process records at each step on the network, and what it recorded is seen after the take."""
    store, network, told = race.here.store, RecordedNetwork(race.here), list[str]()

    def record() -> None:
        if store.lock.acquire(timeout=5):
            try:
                made = new_task.create(
                    store, race.one.caller, f"note {len(told)}", to=WORKER, allow_unseen=True
                )
                told.append(str(made.task["task_id"]))
                assert task_rules.require(store, told[-1])
            finally:
                store.lock.release()

    def before(call: str) -> None:
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()

    network.before = before
    with store.lock, store.lock, store.one_look():  # as a worker's thread holds it
        assert task_work.take(store, race.one.caller, race.id).recorded
        assert len(told) == len(network.calls) >= 2
        assert all(task_rules.require(store, each) for each in told)
        assert store.asks_once
    assert store.lock.acquire(blocking=False)
    store.lock.release()


@pytest.mark.deep
def test_ten_takers_at_the_same_time_in_two_clones(race: Race) -> None:
    """I11: threads of both clones, each with a store of its own: one begins."""
    begun: list[str] = []

    def take(clone: Clone, agent: AtWork) -> None:
        store = Store(
            clone.store.repo,
            race.hub.port(clone.store.repo.common),
            clone.store.domain,
            machine="test",
            now=wall_clock,
        )
        try:
            task_work.take(store, agent.caller, race.id)
            begun.append(agent.caller.reader)
        except GitmemError:
            pass
        finally:
            store.close()

    threads = [
        threading.Thread(target=take, args=pair)
        for pair in [(race.here, race.one), (race.there, race.two)] * 5
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = (
        {each.sender for each in task_rules.require(race.planner.store, race.id).takes}
        if race.takes()
        else set()
    )
    assert len(found) == 1 and race.takes() == 1
    assert begun  # a repeated take of the winner's session returns its take


@pytest.mark.deep
def test_offline_nothing_begins_and_a_later_try_does(race: Race) -> None:
    """The sentence names the remote; the fence of this clone is gone again."""
    moved = race.hub.path.with_name("moved.git")
    shutil.move(race.hub.path, moved)
    with pytest.raises(RemoteError, match="Cannot reach the remote"):
        task_work.take(race.here.store, race.one.caller, race.id)
    assert fences.names(race.here.store) == []
    shutil.move(moved, race.hub.path)
    assert task_work.take(race.here.store, race.one.caller, race.id).recorded


@pytest.mark.deep
def test_killed_between_fence_and_take_nobody_begins(race: Race) -> None:
    """I11: what stands there is a fence without a take: the task is never begun, rather than perhaps twice."""
    for clone in (race.here, race.there):
        child = os.fork()
        if not child:
            try:
                fences.create(clone.store, race.id, lambda: os._exit(0))  # type: ignore[arg-type,return-value]
            except GateError:
                os._exit(3)
            finally:
                os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if clone is race.here else 3)
    assert "fence in this clone" in refused("fence-taken", race.one, race.id)
    assert "fence on origin" in refused("fence-taken", race.two, race.id)
    assert race.takes() == 0
    task_decisions.cancel(race.planner.store, race.caller.caller, race.id)
    assert task_rules.require(race.planner.store, race.id).state == "canceled"


@pytest.mark.parametrize("answer", ["lost", "never sent"])
@pytest.mark.deep
def test_a_push_without_an_answer_begins_nothing(race: Race, answer: str) -> None:
    """Whether the remote has made the fence is unknown then; nobody begins on a guess."""
    network = RecordedNetwork(race.here)

    def fail(call: str) -> None:
        if "fence" in call:
            raise RemoteError("no answer", code="offline")

    if answer == "lost":
        network.after = fail
    else:
        network.before = fail
    refused("offline", race.one, race.id)
    network.before = network.after = lambda call: None
    if answer == "lost":
        refused("fence-taken", race.one, race.id)
        assert race.takes() == 0
    else:
        assert task_work.take(race.here.store, race.one.caller, race.id).recorded


@pytest.mark.deep
def test_who_created_the_fence_reads_the_log_before_it_begins(race: Race) -> None:
    """Somebody took it, it was sealed, and its fence is gone: a clone that knows nothing of that does not begin."""
    task_work.take(race.here.store, race.one.caller, race.id)
    task_work.report(race.here.store, race.one.caller, race.id, "completed", "Paid")
    sync(race.here)
    sync(race.planner)
    task_decisions.seal_task(race.planner.store, race.caller.caller, race.id)
    for each in (race.planner, race.here):
        sync(each)
    assert race.fence() is not None  # the seal has come only now: what it ends is over on the remote, too
    race.here.add("Something to sync")
    sync(race.here)
    assert race.fence() is None and fences.names(race.here.store) == []
    assert "is finished" in refused("finished-task", race.two, race.id)
    assert race.fence() is None and fences.names(race.there.store) == []


@pytest.mark.deep
def test_a_fence_stays_while_the_remote_lacks_the_seal(race: Race) -> None:
    """A seal that is only here stops no other clone."""
    task_work.take(race.here.store, race.one.caller, race.id)
    task_work.report(race.here.store, race.one.caller, race.id, "completed", "Paid")
    sync(race.here)
    assert race.fence() is not None
    assert race.takes() == 1 and race.fence() is not None


@pytest.mark.deep
def test_a_task_that_was_begun_once_is_never_taken_again(race: Race, hub: Hub) -> None:
    """Not after its lease, not after it was given back, not after a failure that would allow another try."""
    task_work.take(race.here.store, race.one.caller, race.id, lease=1_000_000)
    hub.now.micros += 3_600_000_000
    another = Agent(race.here.store, WORKER)
    assert "may begin only once" in refused("begun-task", another, race.id)
    assert task_work.is_lost(task_rules.require(race.here.store, race.id), hub.now())
    refused("begun-task", race.one, race.id)
    task_work.release(race.here.store, race.one.caller, race.id)
    refused("begun-task", another, race.id)


def test_without_consent_to_publish_nothing_begins(race: Race) -> None:
    """A fence is a ref on the remote: it is not made there before the user agreed to publish."""
    consent.withdraw(race.here.store.repo, consent.destination(race.here.store.repo, "origin"))
    with pytest.raises(UsageError, match="nobody has agreed to publish"):
        task_work.take(race.here.store, race.one.caller, race.id)
    assert race.fence() is None and fences.names(race.here.store) == []


def test_without_a_remote_the_fence_is_a_ref_of_the_clone(store: Store, repo: Path, clock: HandClock) -> None:
    """Two processes of one clone: the ref decides, not the lock."""
    planner, worker = Agent(store, PLANNER), Agent(store, WORKER)
    made = new_task.create(store, planner.caller, "Pay once", to=WORKER, semantics=ONCE)
    task_id = str(made.task["task_id"])
    assert store.git.swap(FENCES[0] + task_id, None, fences._first_commit(store), "by hand")
    assert "fence in this clone" in refused("fence-taken", worker, task_id)
    git("update-ref", "-d", FENCES[0] + task_id, cwd=repo)
    assert task_work.take(store, worker.caller, task_id, lease=1_000_000).recorded
    clock.forward(3_600_000_000)
    git("update-ref", "-d", FENCES[0] + task_id, cwd=repo)  # the take decides, too: anybody may delete a ref
    assert "may begin only once" in refused("begun-task", Agent(store, WORKER), task_id)
    assert fences.names(store) == []


def test_without_a_remote_whoever_ends_a_task_deletes_its_fence(
    store: Store, repo: Path, clock: HandClock
) -> None:
    """M1: no sync does it there. What a killed process left goes with the next take; with a remote a sync decides."""
    planner, worker = Agent(store, PLANNER), Agent(store, WORKER)

    def begun(text: str) -> str:
        made = new_task.create(store, planner.caller, text, to=WORKER, semantics=ONCE)
        task_work.take(store, worker.caller, str(made.task["task_id"]))
        return str(made.task["task_id"])

    sealed, closed, open_ = begun("one"), begun("two"), begun("three")
    task_work.report(store, worker.caller, sealed, "completed", "Paid")
    assert sorted(fences.names(store)) == sorted([sealed, closed, open_])
    task_decisions.seal_task(store, planner.caller, sealed)
    task_decisions.close(store, Agent(store, PLANNER).caller, closed, "its caller is gone")
    assert fences.names(store) == [open_]
    assert not list(repo.glob(".git/objects/pack/*.keep"))  # nothing was written that no ref reaches
    waiting = str(new_task.create(store, planner.caller, "four", to=WORKER, semantics=ONCE).task["task_id"])
    for left in (sealed, waiting):
        assert store.git.swap(FENCES[0] + left, None, ref.GENESIS, "left by a killed process")
    task_decisions.cancel(store, planner.caller, waiting)
    assert fences.names(store) == [open_]
    assert store.git.swap(FENCES[0] + sealed, None, ref.GENESIS, "left by a killed process")
    fifth = begun("five")
    assert sorted(fences.names(store)) == sorted([open_, fifth])

    git("remote", "add", "origin", str(repo.with_name("nowhere.git")), cwd=repo)
    task_work.report(store, worker.caller, fifth, "completed", "Paid")
    task_decisions.seal_task(store, planner.caller, fifth)
    assert sorted(fences.names(store)) == sorted([open_, fifth])


@pytest.mark.deep
def test_a_take_that_can_not_be_recorded_leaves_no_fence(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: the work was not begun, and another try may begin it."""
    network, full = RecordedNetwork(race.here), [False]
    network.after = lambda call: full.__setitem__(0, call == "fetch")  # the last step before the take

    def fail() -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")

    tried = file_faults.at(monkeypatch, "write", "*/wal/*", fail)
    with pytest.raises(StoreError):
        task_work.take(race.here.store, race.one.caller, race.id)
    assert tried
    full[0], network.after = False, lambda call: None
    assert fences.names(race.here.store) == [] and race.fence() is None
    assert task_work.take(race.here.store, race.one.caller, race.id).recorded


def test_a_forged_fence_stops_the_task_and_nothing_else(race: Race) -> None:
    """Anybody with push access can make one, at whatever commit: sync reads none of it, and the task says what is wrong."""
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    junk = git(
        "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-m", "junk", empty, cwd=race.hub.path
    ).strip()
    git("update-ref", FENCES[0] + race.id, junk, cwd=race.hub.path)
    for number in range(50):
        git("update-ref", f"{FENCES[number % 2]}task-forged{number}", junk, cwd=race.hub.path)
    sync(race.here)
    copies = git("for-each-ref", "--format=%(refname)", "refs/gitmem/", "refs/heads/", cwd=race.here.path)
    assert "fence" not in copies
    assert not race.here.store.git.has(junk)
    assert "fence on origin" in refused("fence-taken", race.one, race.id)
    assert race.fence() == junk  # what we have not made, we do not delete


def test_a_sync_with_nothing_new_does_not_read_the_fences_of_others(race: Race) -> None:
    """They change nothing about the log."""
    for _ in range(2):
        sync(race.here)
    git("update-ref", FENCES[0] + "task-another", ref.GENESIS, cwd=race.hub.path)
    looked = sync_remotes.check_noop(race.here.store.repo, list, 0.0, 10.0)
    assert looked is not None and looked.unchanged


@pytest.mark.deep
def test_a_host_that_takes_only_branches(race: Race) -> None:
    """As for outboxes: then the fence is a branch, and whoever has made the other form does not begin beside it."""
    hook = race.hub.path / "hooks" / "update"
    hook.write_text('#!/bin/sh\ncase $1 in refs/gitmem/fence/*) echo "not this ref" >&2; exit 1;; esac\n')
    hook.chmod(0o755)
    assert task_work.take(race.here.store, race.one.caller, race.id).recorded
    assert race.hub.tip(FENCES[1] + race.id) == ref.GENESIS
    hook.unlink()
    assert "fence on origin" in refused("fence-taken", race.two, race.id)
    assert race.fence() is None and race.takes() == 1


@pytest.mark.deep
@pytest.mark.parametrize("step", range(8))
def test_a_taker_killed_at_any_step_on_the_network_begins_at_most_once(race: Race, step: int) -> None:
    """I11: before and after each push, fetch and look; both clones try again afterwards, and the caller still decides."""
    begun = race.hub.root / "begun"
    child = os.fork()
    if not child:
        network, seen = RecordedNetwork(race.here), [0]

        def count(call: str) -> None:
            if seen[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            seen[0] += 1

        network.before = network.after = count
        try:
            task_work.take(race.here.store, race.one.caller, race.id)
            begun.touch()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    begins = int(begun.exists())
    for agent in (Agent(race.here.store, WORKER), race.two):
        try:
            task_work.take(agent.store, agent.caller, race.id)
            begins += 1
        except GitmemError as error:
            assert error.code in ("fence-taken", "taken-task", "begun-task")
    assert begins <= 1
    assert race.takes() <= 1
    assert race.takes() == 1 or race.fence() is not None or fences.names(race.here.store)
    if not race.takes():
        task_decisions.cancel(race.planner.store, race.caller.caller, race.id)
        assert task_rules.require(race.planner.store, race.id).state == "canceled"


def test_many_tasks_that_have_fences_cost_one_push(race: Race) -> None:
    """A peer may create any number of fences: else each of them costs a worker a connection before the next call."""
    many = [
        str(
            new_task.create(
                race.planner.store, race.caller.caller, f"Pay {n}", to=WORKER, semantics=ONCE
            ).task["task_id"]
        )
        for n in range(4)
    ]
    for each in (race.planner, race.here):
        sync(each)
    git(
        "push",
        "-q",
        "origin",
        *(f"{ref.GENESIS}:{prefix}{id}" for id, prefix in zip(many, FENCES * 2, strict=True)),
        cwd=race.here.path,
    )
    network = RecordedNetwork(race.here)
    for id in many:
        assert "fence on origin" in refused("fence-taken", race.one, id)
    assert sum(each.startswith("push") for each in network.calls) == 1
    assert task_work.take(race.here.store, race.one.caller, race.id).recorded


def test_no_number_of_fences_is_read_without_a_limit(race: Race) -> None:
    """A peer may create any number: then none is kept in memory, and each task that has one costs a push."""
    git("push", "-q", "origin", f"{ref.GENESIS}:{FENCES[0]}{race.id}", cwd=race.here.path)
    flood = "".join(f"{ref.GENESIS} {FENCES[0]}task-flood{number:054}\n" for number in range(40_000))
    (race.hub.path / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{flood}")
    network = RecordedNetwork(race.here)
    for _ in range(2):
        assert "fence on origin" in refused("fence-taken", race.one, race.id)
    assert sum(each.startswith("push") for each in network.calls) == 2
    assert fences.exists(race.here.store, race.id, asks=True)
