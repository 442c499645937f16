"""kill -9 of callers, workers and gateways at each step: nothing that anybody was told is lost, and each call has one outcome (I11)."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path

import pytest

from gitmem.work import ONCE
from tests.clones import git, hub_and_first_clone
from tests.invocation.killable import Process, Scenario, run
from tests.invocation.killed_world import World
from tests.invocation.random_kills import RandomKills

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STEPS_MAX = 400
TIMED_OUT = 6  # the exit status of a call whose task goes on
ENDED = 2  # processes that were not killed
RUNNING = -1  # instead of a step: while the program runs
LANES = 6
LOST_LANES = 12  # of calls that wait for a minute after a lease
PAUSE_SECONDS = {"worktrees": 0.3, "clones": 1.0}  # between two kills, at most
WORLDS = ("worktrees", "clones")
AT_LEAST_ONCE = "at least once"

MakeWorld = Callable[[str], World]


def cases(some: int, semantics: Sequence[str] = (AT_LEAST_ONCE, ONCE)) -> pytest.MarkDecorator:
    """All worlds and semantics at each step in the soak profile, and one of them at some steps in the deep one."""
    return pytest.mark.parametrize(
        ("kind", "semantics", "stride"),
        [
            pytest.param(WORLDS[0], AT_LEAST_ONCE, some, marks=pytest.mark.deep),
            *(pytest.param(*each, 1, marks=pytest.mark.soak) for each in product(WORLDS, semantics)),
        ],
    )


@pytest.fixture
def make_world(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """`make_world("clones")`: with committers and syncs in processes of their own, as users have them."""
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "0.1")

    def make(kind: str) -> World:
        if kind == "worktrees":
            return World(tmp_path, repo, None)
        hub_and_first_clone(tmp_path)
        git("clone", "--quiet", "hub.git", "second", cwd=tmp_path)
        return World(tmp_path, tmp_path / "first", tmp_path / "second")

    return make


def known(world: World, *agents: str) -> None:
    """Let agents have been served once, so that they can be called."""

    def serve(agent: str) -> Scenario:
        worker = world.worker(agent)
        while "serving" not in worker.err:
            assert worker.is_running, worker.err
            yield
        yield from worker.stop()
        assert worker.status == 0, worker.err

    run((serve(each) for each in agents), 1)
    for each in world.clones if len(world.clones) > 1 else []:
        world.finish(world.command(each, "sync"))
    for each in world.clones[:1] if len(world.clones) > 1 else []:
        world.finish(world.command(each, "sync"))


def steps(stride: int, ended: list[int]) -> Iterator[int]:
    """Yield steps until some were not reached: their number depends on what others do, such as a committer that lives already."""
    for step in range(1, STEPS_MAX, stride):
        if len(ended) >= ENDED:
            return
        yield step
    raise AssertionError("the process has no end")


def has_result(world: World, key: str, agent: str) -> Scenario:
    """Call again with the same key: it has a result, unless it may begin only once and its worker is lost."""
    for _ in range(3):
        again = world.call(key, agent, timeout="70s" if key in world.once else "60s")
        yield from again.ended()
        if world.note(key, again):
            return
        assert again.status == TIMED_OUT, f"{key}: {again.out}{again.err}"
        # A fence without a take: nobody begins it, and its caller gives it up.
        (id,) = world.ids[key]
        gone = world.command(world.here, "--as", "human:person@example.org", "task", "cancel", id, "--json")
        yield from gone.ended()
        assert gone.status == 0, gone.out + gone.err
    raise AssertionError(f"{key} has no end: {again.out}{again.err}")


@pytest.mark.timeout(3_000)
@cases(5)
def test_i11_a_caller_is_killed_at_each_step(
    make_world: MakeWorld, kind: str, semantics: str, stride: int
) -> None:
    """I11: whoever calls again with the same key gets the same task and its only result."""
    world = make_world(kind)
    known(world, "prices")
    ended: list[int] = []
    worker = world.worker("prices")

    def scenario(step: int) -> Scenario:
        key = f"k{step}"
        if semantics == ONCE:
            world.once.add(key)
        first = world.call(key, "prices", step=step)
        yield from first.ended()
        has_answered = world.note(key, first)
        if not first.was_killed:
            assert has_answered and first.status == 0, first.out + first.err
            ended.append(step)
        world.kills["caller"] += first.was_killed
        yield from has_result(world, key, "prices")

    run(map(scenario, steps(stride, ended)), LANES)
    run(iter([worker.stop()]))
    world.check()
    report(world, kind, semantics)
    assert world.kills["caller"] >= 10 // stride


@pytest.mark.timeout(3_000)
@cases(19)
def test_i11_a_worker_is_killed_at_each_step(
    make_world: MakeWorld, kind: str, semantics: str, stride: int
) -> None:
    """I11: its program dies, and the next worker takes the task, or it is lost if it may begin only once."""
    world = make_world(kind)
    lanes = LOST_LANES if semantics == ONCE else LANES
    free = [f"prices{number}" for number in range(lanes)]
    known(world, *free)
    ended: list[int] = []

    def scenario(step: int) -> Scenario:
        key, agent = f"step{step}", free.pop()
        if semantics == ONCE:
            world.once.add(key)
        caller = world.call(key, agent, timeout="100s")
        worker = world.worker(agent, step=max(step, 0))
        while worker.is_running and caller.is_running:
            if step == RUNNING and key in world.begins():
                worker.send()
            yield
        yield from worker.stop()
        if not worker.was_killed:
            assert worker.status == 0, worker.err
            ended.append(step)
        world.kills["worker"] += worker.was_killed
        yield from world.programs_end(key)
        following = world.worker(agent)
        yield from caller.ended()
        if not world.note(key, caller):
            yield from has_result(world, key, agent)
        yield from following.stop()
        free.append(agent)

    run(map(scenario, chain([RUNNING], steps(stride, ended))), lanes)
    world.check()
    report(world, kind, semantics)
    assert world.kills["worker"] >= 50 // stride


@pytest.mark.timeout(3_000)
@cases(9, semantics=(AT_LEAST_ONCE,))
def test_i11_a_gateway_is_killed_at_each_step(
    make_world: MakeWorld, kind: str, semantics: str, stride: int
) -> None:
    """I11: a client that sends its message again to the next gateway gets the same task and its only result."""
    world = make_world(kind)
    known(world, "prices")
    ended: list[int] = []
    worker = world.worker("prices")

    def scenario(step: int) -> Scenario:
        key, port = f"k{step}", free_port()
        token = world.token(f"client{step}")
        first = world.gateway("prices", port, step=step)
        if (yield from is_ready(first)):
            client = world.client(key, port, token)
            yield from client.ended()
            world.note(key, client)
        yield from first.stop()
        if not first.was_killed:
            ended.append(step)
        world.kills["gateway"] += first.was_killed
        yield from answers(world, key, port, token)

    run(map(scenario, steps(stride, ended)), LANES)
    run(iter([worker.stop()]))
    world.check()
    report(world, kind, semantics)
    assert world.kills["gateway"] >= 15 // stride


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(
    ("kind", "kills", "seed"), [("worktrees", 110, 1), ("worktrees", 110, 2), ("clones", 110, 3)]
)
def test_i11_killed_at_random_times(make_world: MakeWorld, kind: str, kills: int, seed: int) -> None:
    """I11: callers, a worker, and a gateway with its clients, each killed again and again, all at the same time."""
    world = make_world(kind)
    known(world, "prices")
    found = RandomKills(world, seed, kills, PAUSE_SECONDS[kind], free_port())
    found.run()
    world.check()
    report(world, kind, f"seed {seed}")
    print(f"without a result: {sorted(found.unfinished)}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def is_ready(gateway: Process):  # type: ignore[no-untyped-def]  # a generator that returns a bool
    while gateway.is_running:
        if "serving" in gateway.err:
            return True
        yield
    return False


def answers(world: World, key: str, port: int, token: str) -> Scenario:
    """A new gateway answers the message with a key by its result."""
    gateway = world.gateway("prices", port)
    assert (yield from is_ready(gateway)), gateway.err
    client = world.client(key, port, token)
    yield from client.ended()
    assert world.note(key, client), client.out + client.err
    yield from gateway.stop()


def report(world: World, *what: str) -> None:
    """Print the figures, which -s shows."""
    results = sum(map(len, world.shown.values()))
    print(f"{', '.join(what)}: killed {dict(world.kills)}, {len(world.ids)} tasks, {results} results")
