"""Lost: a signal that was accepted is shown, whoever dies on the way and whatever is deleted."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gitmem.agents import delivery, heartbeats, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import GitmemError
from gitmem.index import index_file
from gitmem.signals import inbox, send

from ..clones import git
from ..file_faults import at, die
from ..profiles import PROFILE_EXAMPLES
from .conftest import Desk, powerless, process
from .faults import (
    ALL_STEPS,
    EACH_STEP,
    STEPS_MAX,
    WRITES,
    SystemCall,
    age_locks,
    check_index,
    child,
    command,
    open_store,
)
from .readers import CURIE, HARNESS, Reader
from .test_concurrency import Crowd

needs_bounds = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


def killed(act: Callable[[], object]) -> None:
    assert child(act).died


def test_killed_between_the_commit_and_the_flag(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is in the log; the next command of anybody tells its reader."""
    reader = Reader(repo)
    with monkeypatch.context() as patch:
        at(patch, "replace", "*/flags/*", die)
        killed(lambda: reader.send("said before it died"))
    assert not reader.flag.exists()
    reader.look()
    assert reader.is_told() and reader.flag.exists()
    assert reader.drain() == ["said before it died"]


@EACH_STEP
def test_killed_at_each_step_of_a_send(repo: Path, stride: int) -> None:
    """Whatever came of it: after the next look just what is unread waits, and the flags say so."""
    reader = Reader(repo)
    for step in range(1, STEPS_MAX, stride):
        end = child(lambda step=step: reader.send(f"line {step}"), SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        reader.look()
        assert reader.is_told(), f"killed at step {step}"
        if not end.died:
            break
        if step % 5 == 1:
            reader.drain()
    assert step > 20
    assert f"line {step}" in reader.drain()


@EACH_STEP
def test_killed_at_each_step_of_a_drain(repo: Path, stride: int) -> None:
    """It is shown again rather than never; what has a receipt is not shown again, and no flag is left for it."""
    reader = Reader(repo)
    for step in range(1, STEPS_MAX, stride):
        text = f"line {step}"
        reader.send(text)
        end = child(reader.drain, SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        has_receipt = text in reader.receipts()
        again = reader.drain()
        assert text in reader.printed(), f"killed at step {step}"
        assert again == ([] if has_receipt else [text])
        assert reader.is_told() and not reader.flag.exists()
        if not end.died:
            break
    assert step > 8
    assert reader.receipts() == sorted(f"line {number}" for number in range(1, step + 1, stride))


def test_killed_between_the_print_and_the_receipt(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it was seen, so it is shown again; and nobody else waits for the dead one's turn."""
    reader = Reader(repo)
    reader.send("seen, perhaps")
    with monkeypatch.context() as patch:
        at(patch, "write", "*/wal/*", die)
        killed(reader.drain)
    assert reader.printed() == ["seen, perhaps"]
    assert reader.is_told()
    store = open_store(repo)
    with delivery.delivery_lock(store, reader.caller(store).reader) as mine:
        assert mine
    assert reader.drain(store) == ["seen, perhaps"]
    assert reader.drain(store) == []


@pytest.mark.parametrize("what", ["index", "flags", "index and flags"])
def test_what_is_derived_can_be_deleted(repo: Path, what: str) -> None:
    """The next command makes it again; what was read stays read."""
    reader = Reader(repo)
    reader.send("read")
    assert reader.drain() == ["read"]
    reader.send("unread")
    if "index" in what:
        index_file.remove(next(str(path) for path in Path(reader.state).glob("index-*.sqlite3")))
    if "flags" in what:
        shutil.rmtree(os.path.join(reader.state, "flags"))
    reader.look()
    assert reader.is_told() and len(reader.unread()) == 1
    assert reader.drain() == ["unread"]
    assert not reader.flag.exists()
    check_index(open_store(repo))


def test_a_signal_that_a_sync_brings_waits(tmp_path: Path, repo: Path) -> None:
    """By the network from another clone, in the library and by the command."""
    from gitmem.sync import sync_remotes

    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    git("clone", "--quiet", str(hub), "there", cwd=tmp_path)
    reader = Reader(repo)
    here, there = open_store(repo), open_store(tmp_path / "there")
    away = lifecycle.start(there, CallerClaims(), name="Noether")
    for store in (here, there):
        sync_remotes.sync(store, publish=True)
    reader.planck = away.session_id
    reader.send("from afar", there)
    sync_remotes.sync(there)
    assert not reader.flag.exists()
    sync_remotes.sync(here)

    assert reader.is_told() and reader.flag.exists()
    assert reader.drain() == ["from afar"]


@needs_bounds
def test_a_signal_from_a_sandbox_waits_once_it_is_committed(desk: Desk) -> None:
    """Recorded elsewhere where the git folder can't be written; whoever may write commits it, and tells its reader."""
    reader = Reader(desk.repo)
    folders = [desk.repo / ".git", *(path for path in (desk.repo / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        said = process(
            "signal", "from the sandbox", "--to", "Curie", "--json",
            cwd=desk.repo, env={"GITMEM_SESSION": reader.planck}, before=powerless,
        )  # fmt: skip
        assert (said.status, said.json["recorded"]) == (0, True), said
        seen = process("inbox", "--json", "--no-mark", cwd=desk.repo, env={"GITMEM_SESSION": reader.session},
                       before=powerless)  # fmt: skip
        assert "from the sandbox" in seen.out
        assert not reader.flag.exists()
    finally:
        for path in folders:
            path.chmod(0o700)
    assert desk("roster").status == 0
    assert reader.is_told() and reader.flag.exists()
    assert "from the sandbox" in desk("inbox", session=reader.session).out
    assert not reader.flag.exists()


@needs_bounds
def test_where_nothing_can_be_written_mail_is_read_all_the_same(desk: Desk) -> None:
    """No flag, no turn, no error: the receipt waits outside, and the signal is not shown twice."""
    reader = Reader(desk.repo)
    reader.send("hello")
    folders = [desk.repo / ".git", *(path for path in (desk.repo / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        seen = [
            process(
                "inbox", "--json", cwd=desk.repo, env={"GITMEM_SESSION": reader.session}, before=powerless
            )
            for _ in range(2)
        ]
    finally:
        for path in folders:
            path.chmod(0o700)
    assert ["hello" in each.out for each in seen] == [True, False]
    assert "hello" not in desk("inbox", session=reader.session).out
    assert not reader.flag.exists()


def test_a_signal_that_comes_as_a_flag_is_lowered_has_its_flag(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who tidies takes the flag away first, and looks only then at what is left."""
    reader = Reader(repo)
    reader.send("first")
    store = open_store(repo)
    came: list[str] = []

    def comes() -> None:
        if not came:
            came.append(child(lambda: reader.send("second")).answer)

    with monkeypatch.context() as patch:
        at(patch, "unlink", "*/flags/*", comes, after=True)
        assert reader.drain(store) == ["first"]
    assert came and reader.unread() == set(came)
    assert reader.is_told()
    assert reader.drain() == ["second"]


def test_a_turn_that_somebody_holds_for_ever_loses_nothing(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook says nothing and the flag stays; who was asked goes on without after a while."""
    reader = Reader(repo)
    reader.send("hello")
    store = open_store(repo)
    skipped, monotonic, sleep = [0.0], time.monotonic, time.sleep

    def skip(seconds: float) -> None:
        sleep(seconds)  # another process may hold another lock for a moment
        skipped.append(10 * seconds)

    monkeypatch.setattr(time, "sleep", skip)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(skipped))
    with delivery.delivery_lock(store, reader.caller(store).reader) as mine:
        assert mine
        assert reader.drain() == [] and reader.is_told() and reader.flag.exists()
        said = child(command(repo, "inbox", session=reader.session)).answer
        assert said["status"] == 0 and "hello" in said["out"]
    assert reader.drain() == [] and not reader.flag.exists()


# Shown twice: many may want to show a signal, and each is shown to its reader by exactly one of them.

DRAINS, COMMANDS, SIGNALS = 24, 6, 20


def drains(reader: Reader, session: str, stop: Path) -> Callable[[], object]:
    """What hooks of one client show while it is at work, and once more at the end."""

    def act() -> object:
        shown: list[str] = []
        ended = False
        while not ended:
            ended = stop.exists()
            shown += reader.drain(session=session)
            time.sleep(0.01)
        return shown

    return act


def commands(reader: Reader, session: str, stop: Path) -> Callable[[], object]:
    """The same by the command, which waits for its turn."""
    run = command(reader.repo, "inbox", "--json", "--limit", "2", session=session)

    def act() -> object:
        shown: list[str] = []
        ended = False
        while not ended:
            ended = stop.exists()
            said = run()
            assert said["status"] == 0, said
            shown += [str(fields["message"]) for fields in json.loads(said["out"])["signals"]]
        return shown

    return act


@pytest.mark.deep
def test_thirty_processes_show_each_signal_once(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks and commands of two sessions of one reader, while half of the signals are still being sent."""
    monkeypatch.setattr(delivery, "WAIT_SECONDS", 120.0)  # nobody here gives up waiting for a turn
    reader = Reader(repo)
    store = open_store(repo)
    twin = lifecycle.start(store, CallerClaims(), name="Marie", agent_identity=CURIE).session_id
    store.close()
    texts = [f"signal {number}" for number in range(SIGNALS)]
    for number, text in enumerate(texts[: SIGNALS // 2]):
        reader.send(text, to=[] if number % 5 == 0 else [CURIE])
    crowd = Crowd(tmp_path)
    stop = tmp_path / "stop"
    for number in range(DRAINS):
        crowd.add(drains(reader, twin if number % 2 else reader.session, stop))
    for number in range(COMMANDS):
        crowd.add(commands(reader, twin if number % 2 else reader.session, stop))
    crowd.go()
    for number, text in enumerate(texts[SIGNALS // 2 :]):
        reader.send(text, to=[] if number % 5 == 0 else [CURIE])
    time.sleep(0.3)
    stop.touch()
    shown = Counter(text for said in crowd.end() for text in said)  # type: ignore[attr-defined]
    shown.update(reader.drain())  # what came when all but one had looked for the last time

    assert shown == Counter(texts)
    assert reader.receipts() == sorted(texts)
    assert reader.is_told() and not reader.flag.exists()
    check_index(open_store(repo))


def test_two_sessions_of_one_identity_are_one_reader(repo: Path) -> None:
    """Shown to one of them; the other's event and flag go without a word."""
    reader = Reader(repo)
    store = open_store(repo)
    twin = lifecycle.start(store, CallerClaims(), name="Marie", agent_identity=CURIE).session_id
    reader.send("for Curie")
    assert (reader.drain(session=twin), reader.drain(), reader.drain(session=twin)) == (["for Curie"], [], [])
    assert reader.is_told() and not reader.flag.exists()
    assert reader.printed() == ["for Curie"]


def test_what_the_library_was_given_no_hook_shows(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`log.inbox()` asks for the turn and takes the events, as the command does; a peek does neither."""
    import gitmem

    reader = Reader(repo)
    reader.send("one")
    with gitmem.open(str(repo), session=reader.session) as log:
        assert [fields["message"] for fields in log.inbox().signals] == ["one"]
        assert not reader.flag.exists()
        reader.send("two")
        with monkeypatch.context() as patch:
            asked = at(patch, "open", "*/deliver/*.lock", lambda: None)
            assert [fields["message"] for fields in log.inbox().signals] == ["two"]
            assert len(asked) == 1
        reader.send("three")
        held = delivery.delivery_lock(log.store, log.caller.reader)
        with held:
            assert [fields["message"] for fields in log.inbox(mark=False).signals] == ["three"]
        assert reader.is_told() and reader.flag.exists()


def test_receipts_from_another_clone_take_the_event_away(tmp_path: Path, repo: Path) -> None:
    """Read there, by the same reader: here nothing is shown, and the flag goes at the first look."""
    from gitmem.sync import sync_remotes

    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    git("clone", "--quiet", str(hub), "there", cwd=tmp_path)
    reader = Reader(repo)
    here, there = open_store(repo), open_store(tmp_path / "there")
    twin = lifecycle.start(there, CallerClaims(), name="Marie", agent_identity=CURIE).session_id
    reader.send("read there", here)
    sync_remotes.sync(here, publish=True)
    sync_remotes.sync(there, publish=True)
    assert reader.drain(there, session=twin) == ["read there"]
    sync_remotes.sync(there)
    assert reader.is_told() and reader.flag.exists()
    sync_remotes.sync(here)

    assert reader.drain(here) == []
    assert not reader.flag.exists()
    assert reader.receipts() == ["read there"]


def test_a_peek_waits_for_nobody_and_takes_nothing(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--no-mark`, `--count` and another's inbox, while somebody has the turn."""
    sleep = time.sleep

    def pause(seconds: float) -> None:
        assert seconds != delivery.PAUSE_SECONDS, "it waits for its turn"
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    reader = Reader(repo)
    reader.send("hello")
    store = open_store(repo)
    with delivery.delivery_lock(store, reader.caller(store).reader):
        for args, session in ((("--no-mark",), reader.session), (("--count",), reader.session),
                              (("--for", "Curie"), reader.planck)):  # fmt: skip
            assert child(command(repo, "inbox", *args, session=session)).answer["status"] == 0
    assert reader.is_told() and reader.flag.exists()
    assert inbox.count(store, reader.caller(store)).unread == 1


# Nagged: a flag stands while something waits that can be shown, and not a look longer.

CHECKS = 1_000


def test_after_delivery_a_thousand_checks_find_nothing(repo: Path) -> None:
    """Whatever other commands run in between: nothing brings the flag of what was read back."""
    reader = Reader(repo)
    for text in ("one", "two"):
        reader.send(text)
    assert reader.drain() == ["one", "two"]
    others = [("roster",), ("whoami",), ("log",), ("inbox",), ("session", "set", "--wu", "WU-7"), ("doctor",)]
    for check in range(CHECKS):
        if check % 100 == 0:
            args = others[check // 100 % len(others)]
            assert child(command(repo, *args, session=reader.session)).answer["status"] == 0, args
        assert not reader.flag.exists() and not os.path.exists(heartbeats.flag(reader.state, reader.session))
    reader.send("three", to=["Planck"])
    assert not reader.flag.exists()
    assert reader.drain() == []


def test_a_second_start_brings_nothing_back(repo: Path) -> None:
    """A session that is resumed, or starts again, is shown what is unread and nothing else."""
    reader = Reader(repo)
    reader.send("read")
    reader.drain()
    store = open_store(repo)
    who = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS))
    lifecycle.start(store, who)
    assert not reader.flag.exists()
    lifecycle.end(store, reader.caller(store))
    reader.session = lifecycle.start(store, who, agent_identity=CURIE).session_id
    assert not reader.flag.exists()


def test_a_signal_that_cannot_be_shown_does_not_keep_the_flag(repo: Path) -> None:
    """Of another workspace by now: one look, and it is gone."""
    reader = Reader(repo)
    store = open_store(repo)
    planck = reader.caller(store, reader.planck)
    planck.workspace = "elsewhere"
    send.send(store, planck, "of another workspace", to=[CURIE])
    assert reader.flag.exists()
    lifecycle.change(store, reader.caller(store), workspace="here")

    assert reader.drain() == []
    assert not reader.flag.exists()
    reader.look()
    assert not reader.flag.exists()


def test_a_session_that_ended_elsewhere_is_not_called(repo: Path) -> None:
    """Its client goes on, and its hooks find a flag that nobody can answer: once."""
    reader = Reader(repo)
    reader.send("hello")
    store = open_store(repo)
    lifecycle.end(store, reader.caller(store))
    reader.flag.write_bytes(b"urgent\n")  # of a feed that was under way
    raw = Caller(HARNESS, f"{HARNESS} <{HARNESS}@gitmem>", "raw")
    raw.session_id, raw.raw = HARNESS, True
    from gitmem.agents import delivery
    from gitmem.signals import inbox

    with delivery.delivery_lock(store, raw.reader) as mine:
        assert mine
        inbox.mark(store, inbox.read(store, raw))
    assert not reader.flag.exists()


def test_on_a_full_disk_hooks_are_not_called_again_for_what_was_shown(repo: Path) -> None:
    """At each write of a drain that finds no room: the flag stands only where it was not shown; who looks later marks it."""
    reader = Reader(repo)

    def act() -> list[str] | None:
        try:
            return reader.drain()
        except (GitmemError, OSError):
            return None

    for step in range(1, STEPS_MAX):
        text = f"line {step}"
        reader.send(text)
        fault = SystemCall(step, WRITES, kills=False)
        end = child(act, fault)
        age_locks(repo)
        printed = reader.printed().count(text)
        flagged = reader.flag.exists()
        has_receipt = text in reader.receipts()
        assert reader.drain() == ([] if has_receipt else [text]), f"no room at step {step}"
        assert flagged == (not printed), f"no room at step {step}"
        assert not reader.flag.exists() and reader.is_told()
        if end.steps < step:
            break
    assert step > 3
    assert reader.receipts() == sorted(f"line {number}" for number in range(1, step + 1))


@pytest.mark.parametrize("times", [1, 3])
def test_while_the_disk_stays_full_it_is_not_shown_again(
    repo: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """No room for a receipt, nor for anything else: hooks are not called; once there is room, who looks marks it."""
    reader = Reader(repo)
    reader.send("hello")
    real = os.open

    def full(path: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT and not os.path.exists(path):
            raise OSError(28, "No space left on device", path)
        return real(path, flags, *more, **options)

    reader.paper.touch()
    reader.drain(session=reader.planck)
    store = open_store(repo)
    store.db()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(GitmemError):
            reader.drain(store)
        for _ in range(times):
            store.db()
            assert not reader.flag.exists()
    assert reader.printed() == ["hello"]
    assert reader.receipts() == []
    assert reader.drain() == ["hello"]
    assert reader.receipts() == ["hello"]


# Signals, looks, drains and deaths in any order: every signal is shown, and its receipts are right.

EXAMPLES = max(3, PROFILE_EXAMPLES // 20)
ACTS = ["send", "send", "broadcast", "look", "drain", "drain", "drain as twin", "die sending", "die draining",
        "full draining", "lose the index", "lose the flags", "resume"]  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(1, 60)), min_size=3, max_size=10)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


class World:
    """One example: a reader with two sessions, and what was surely sent to it."""

    def __init__(self, where: Path) -> None:
        git("init", "--quiet", "--initial-branch=main", "repo", cwd=where)
        git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=where / "repo")
        self.reader = Reader(where / "repo")
        store = open_store(self.reader.repo)
        self.twin = lifecycle.start(store, CallerClaims(), name="Marie", agent_identity=CURIE).session_id
        store.close()
        self.said: list[str] = []

    def do(self, act: str, number: int) -> None:
        reader, text = self.reader, f"line {len(self.said)}"
        if act in ("send", "broadcast"):
            reader.send(text, to=[CURIE] if act == "send" else [])
            self.said.append(text)
        elif act == "look":
            reader.look()
        elif act.startswith("drain"):
            reader.drain(session=self.twin if "twin" in act else None)
        elif act == "die sending":
            child(lambda: reader.send(f"perhaps {number}"), SystemCall(number, ALL_STEPS, kills=True))
        elif act == "die draining":
            child(reader.drain, SystemCall(number, ALL_STEPS, kills=True))
        elif act == "full draining":
            child(
                self._tried, SystemCall(number, ("write", "fsync", "rename", "replace", "mkdir"), kills=False)
            )
        elif act == "lose the index":
            for path in Path(reader.state).glob("index-*.sqlite3"):
                index_file.remove(str(path))
        elif act == "lose the flags":
            shutil.rmtree(os.path.join(reader.state, "flags"), ignore_errors=True)
        else:
            store = open_store(reader.repo)
            who = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS))
            lifecycle.end(store, reader.caller(store))
            reader.session = lifecycle.start(store, who, agent_identity=CURIE).session_id
            store.close()
        age_locks(reader.repo)

    def _tried(self) -> str:
        try:
            self.reader.drain()
        except OSError:
            return "no room for the print"
        return "done"


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(
    steps=[("send", 1), ("lose the index", 1), ("die draining", 20), ("resume", 1), ("drain as twin", 1)]
)
@example(
    steps=[("send", 1), ("full draining", 3), ("lose the flags", 1), ("broadcast", 1), ("die sending", 30)]
)
def test_any_order_shows_every_signal(root: Path, steps: list[tuple[str, int]]) -> None:
    """At the end nothing is unread, every signal was shown and has one receipt, and no flag stands."""
    where = Path(tempfile.mkdtemp(dir=root))
    try:
        world = World(where)
        reader = world.reader
        for act, number in steps:
            world.do(act, number)
        reader.look()
        # Hooks are not called again for what was shown while no receipt could be recorded.
        assert reader.is_told() or "full draining" in dict(steps)
        reader.drain()
        assert reader.unread() == set() and reader.is_told()
        recorded = reader.receipts()
        assert len(recorded) == len(set(recorded))
        assert set(world.said) <= set(recorded) <= set(reader.printed())
        assert reader.drain() == [] and reader.drain(session=world.twin) == []
        store = open_store(reader.repo)
        check_index(store)
        store.close()
    finally:
        shutil.rmtree(where)
