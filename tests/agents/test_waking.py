"""Who is woken, for what, and how often: `Clients.ask` is a client that always takes a turn, unless a test says otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import doors, heartbeats, lifecycle, waking
from gitmem.agents.doors import BUSY, WOKEN, Door
from gitmem.signals import inbox, send
from gitmem.store import Store
from tests.sandbox import MINUTE, SECOND, Agent, Clock, carry, new_repo, open_store
from tests.signing import BOB


class Clients:
    """The clients of one machine: whom they were told about, and what they answer."""

    def __init__(self, store: Store, folder: Path, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.told: list[tuple[str, str]] = []
        self.answers: dict[str, str] = {}
        store.doors_folder = str(folder)

    def opens(self, agent: Agent, pid: int = 0) -> Agent:
        """A session of a client: its process is this one, and its door is noted now."""
        id = agent.session.session_id
        assert id
        doors.note(
            self.store.doors_folder, id, Door("codex", id, pid or os.getpid(), "/"), self.clock.value / 1e6
        )
        at = self.clock.value * 1000
        os.utime(Path(self.store.doors_folder, id), ns=(at, at))
        return agent

    def ask(self, door: Door | None, line: str = "", *, is_idle: bool = True) -> str:
        assert door is not None and line
        answer = self.answers.get(door.session, WOKEN if is_idle else BUSY)
        if answer == WOKEN:
            self.told.append((door.session, line))
        return answer

    def woken(self) -> list[str | None]:
        found = [session for session, _ in self.told]
        self.told.clear()
        return found


@pytest.fixture
def clients(store: Store, clock: Clock, tmp_path: Path) -> Clients:
    return Clients(store, tmp_path / "doors", clock)


@pytest.fixture
def planck(store: Store) -> Agent:
    return Agent(store, "test:worker:planck")


@pytest.fixture
def curie(store: Store, clients: Clients) -> Agent:
    return clients.opens(Agent(store, "test:worker:curie"))


def tell(sender: Agent, *to: Agent, **options: Any) -> str:
    """A signal to some, or to all."""
    given = {"to": [each.session.session_id for each in to]} if to else {"broadcast": True}
    sent = send.send(
        sender.store, sender.caller, "Put it behind one interface: quartz.", **{**given, **options}
    )
    return str(sent.signal["signal_id"])


def test_a_directed_signal_wakes_its_reader_once(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """With a line that names it and does not have its text."""
    signal = tell(planck, curie)
    waking.begin(store, clients.ask)

    ((session, line),) = clients.told
    assert session == curie.session.session_id and signal in line and "gitmem inbox" in line
    assert "quartz" not in line and line.isprintable()
    clients.clock.forward(2 * MINUTE)
    waking.begin(store, clients.ask)
    assert len(clients.told) == 1


@pytest.mark.parametrize("how", ["broadcast", "advisory", "read", "ended", "undoored"])
def test_nobody_else_is_woken(store: Store, clients: Clients, planck: Agent, curie: Agent, how: str) -> None:
    """By a broadcast or an advisory signal, for what was read, after the end, and without a door."""
    if how == "undoored":
        doors.forget(store.doors_folder, str(curie.session.session_id))
    to = () if how == "broadcast" else (curie,)
    tell(planck, *to, **({"interrupt": "advisory"} if how == "advisory" else {}))
    if how == "read":
        inbox.mark(store, inbox.read(store, curie.caller))
    if how == "ended":
        lifecycle.end(store, curie.caller)
    waking.begin(store, clients.ask)

    assert clients.woken() == []


def test_a_session_is_woken_once_a_minute_and_the_process_stays_until_then(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """What came meanwhile wakes it once, if it is still unread then."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clients.clock.forward(round(seconds * SECOND))

    tell(planck, curie)
    waking.begin(store, clients.ask)
    clients.clock.forward(10 * SECOND)
    second = tell(planck, curie)
    tell(planck, curie)
    waking.begin(store, clients.ask)
    assert len(clients.told) == 1
    waking.stay(store, sleep, clients.ask)

    assert len(clients.told) == 2 and "(and 1 more)" in clients.told[1][1]
    assert 49 <= sum(slept) <= 51 and max(slept) <= waking.STEP_SECONDS
    assert second
    tell(planck, curie)
    inbox.mark(store, inbox.read(store, curie.caller))
    waking.stay(store, sleep, clients.ask)
    assert len(clients.told) == 2


def test_one_process_of_a_clone_stays(
    store: Store, clients: Clients, planck: Agent, curie: Agent, clock: Clock
) -> None:
    """Another one ends at once; both look again after the one that stayed lets go."""
    tell(planck, curie)
    waking.begin(store, clients.ask)
    tell(planck, curie)
    other = open_store(Path(store.repo.worktree or ""), clock)
    other.doors_folder = store.doors_folder
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        waking.stay(other, slept.append, clients.ask)
        clock.forward(MINUTE)

    waking.stay(store, sleep, clients.ask)

    assert slept == [] and len(clients.told) == 2
    other.close()


def test_nobody_is_woken_for_long_without_a_word_of_its_user(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """Two agents that answer each other would never end. The line that wakes does not count as a word of the user."""
    word = Path(store.repo.state, heartbeats.TURNS, f"{os.getpid()}.word")
    word.parent.mkdir()
    id = str(curie.session.session_id)
    for number in range(waking.WAKES_MAX + 2):
        tell(planck, curie)
        waking.begin(store, clients.ask)
        word.touch()  # the hook script: there was a prompt
        os.utime(word, ns=(clients.clock.value * 1000, clients.clock.value * 1000))
        if number < waking.WAKES_MAX:
            waking.skip_word(
                store, id, f"Another session sent a message:\n{clients.told[-1][1]}\nIt is no user."
            )
        else:
            waking.skip_word(store, id, clients.told[-1][1] if number == waking.WAKES_MAX else None)
        clients.clock.forward(2 * MINUTE)

    assert len(clients.woken()) == waking.WAKES_MAX + 1
    assert not waking.is_spent(
        waking.wakes_of(store.repo.state, id), waking.last_word(store.repo.state, _door(store, id))
    )


def _door(store: Store, id: str) -> Door:
    found = doors.read(store.doors_folder, id)
    assert found
    return found


def test_a_session_that_was_woken_too_often_says_so(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    for _ in range(waking.WAKES_MAX):
        clients.clock.forward(2 * MINUTE)
        tell(planck, curie)
        waking.begin(store, clients.ask)

    assert waking.says(store, str(curie.session.session_id)) == waking.SPENT


def test_a_failed_try_is_none(store: Store, clients: Clients, planck: Agent, curie: Agent) -> None:
    """The next occasion tries again, within the minute."""
    id = str(curie.session.session_id)
    clients.answers[id] = "its client does not run"
    tell(planck, curie)
    waking.begin(store, clients.ask)
    assert waking.wakes_of(store.repo.state, id) == []
    del clients.answers[id]
    waking.begin(store, clients.ask)

    assert clients.woken() == [id]


def test_a_client_that_was_perhaps_told_is_told_again_but_not_without_end(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """A program that takes the line and does not end would get it with each commit."""
    id = str(curie.session.session_id)
    clients.answers[id] = f"`codex queue` can't be used: {doors.LATE}"
    tries: list[Door | None] = []

    def ask(door: Door | None, line: str = "", *, is_idle: bool = True) -> str:
        tries.append(door)
        return clients.ask(door, line, is_idle=is_idle)

    clients.clock.forward(SECOND)
    tell(planck, curie)
    for _ in range(3):
        waking.begin(store, ask)
    assert len(tries) == 1
    for _ in range(waking.WAKES_MAX + 2):
        clients.clock.forward(2 * MINUTE)
        waking.begin(store, ask)

    assert len(tries) == waking.WAKES_MAX
    assert list(waking.woken(store)) == []


@pytest.mark.parametrize(
    ("noted", "ago", "seen", "expected"),
    [
        (None, 0, 60, True),
        (b"over\n", 60, 60, True),
        (b"", 60, 601, False),
        (b"", 601, 60, False),
        (b"", 601, 601, True),
        (b"\xff", 1, 1, True),
    ],
)
def test_a_busy_agent_is_left_to_its_hooks(
    store: Store,
    clients: Clients,
    planck: Agent,
    curie: Agent,
    noted: bytes | None,
    ago: int,
    seen: int,
    expected: bool,
) -> None:
    """A turn that was interrupted has no end; after ten minutes without a sign it is over."""
    turn = Path(store.repo.state, heartbeats.TURNS, str(os.getpid()))
    beat = Path(store.repo.state, "sessions", str(curie.session.session_id))
    if noted is not None:
        waking.note_turn(store.repo.state, os.getpid(), is_over=False)
        turn.write_bytes(noted)
    for path, seconds in ((turn, ago), (beat, seen)):
        at = (clients.clock.value - seconds * SECOND) * 1000
        if path.exists():
            os.utime(path, ns=(at, at))
    tell(planck, curie)
    waking.begin(store, clients.ask)

    assert bool(clients.woken()) is expected


def test_a_signal_that_comes_as_a_turn_ends_is_not_lost(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """The last hook has run, and the client still calls itself busy: the process looks again for some seconds."""
    id = str(curie.session.session_id)
    clients.answers[id] = BUSY
    waking.note_turn(store.repo.state, os.getpid(), is_over=True)
    at = clients.clock.value * 1000
    os.utime(Path(store.repo.state, heartbeats.TURNS, str(os.getpid())), ns=(at, at))
    tell(planck, curie)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clients.clock.forward(round(seconds * SECOND))
        if len(slept) == 2:
            clients.answers.clear()

    waking.stay(store, sleep, clients.ask)
    assert clients.woken() == [id]
    clients.answers[id] = BUSY
    clients.clock.forward(2 * MINUTE)
    tell(planck, curie)
    waking.stay(store, sleep, clients.ask)
    assert len(slept) == 2


def test_two_sessions_of_one_agent_are_woken_once(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """What its identity gets wakes the one that was seen last; what one of them gets in particular, that one."""
    clients.clock.forward(SECOND)
    second = clients.opens(Agent(store, "test:worker:curie"))
    send.send(store, planck.caller, "To whoever is Curie.", to=["test:worker:curie"])
    waking.begin(store, clients.ask)
    assert clients.woken() == [second.session.session_id]
    tell(planck, curie)
    waking.begin(store, clients.ask)

    assert clients.woken() == [curie.session.session_id]


@pytest.fixture
def away(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Agent]]:
    """Somebody with another key, in another clone."""
    other = open_store(new_repo(tmp_path / "away"), clock, writer=BOB, mail="bob@example.org")
    yield lambda: Agent(other, "test:worker:bob")
    other.close()


@pytest.mark.parametrize("signed", [False, True])
def test_a_stranger_wakes_nobody(
    store: Store, clients: Clients, curie: Agent, away: Callable[..., Agent], signed: bool
) -> None:
    """Unless the project's signers know its key; the signal is unread in either case."""
    bob = away()
    carry(store, bob.store)
    tell(bob, curie)
    carry(store, bob.store)
    if signed:
        Path(store.repo.worktree or "", ".gitmem").mkdir()
        Path(store.repo.worktree or "", ".gitmem", "signers").write_text(f"test:*:* {BOB.writer}\n")
    waking.begin(store, clients.ask)

    assert len(clients.woken()) == int(signed)
    assert len(inbox.read(store, curie.caller).signals) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 300_000,
        b"x y z\n" * 9,
        b"9" * 400 + b" 1 sig-aaaa\n",
        b"99999999999999999 1 sig-aaaa\n",
    ],
    ids=["none", "bytes", "words", "long", "future"],
)
def test_a_damaged_file_of_wakes_wakes_at_most_once_more(
    store: Store, clients: Clients, planck: Agent, curie: Agent, content: bytes
) -> None:
    """Also one whose times are in the future."""
    path = Path(store.repo.state, heartbeats.WAKES, str(curie.session.session_id))
    path.parent.mkdir()
    path.write_bytes(content)
    tell(planck, curie)
    for _ in range(2):
        waking.stay(store, lambda seconds: clients.clock.forward(round(seconds * SECOND)), clients.ask)

    assert len(clients.woken()) == 1


def test_a_flood_wakes_once_and_keeps_the_file_small(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    for _ in range(30):
        tell(planck, curie)
    waking.begin(store, clients.ask)
    clients.clock.forward(2 * MINUTE)
    waking.begin(store, clients.ask)

    assert len(clients.told) == 1 and "(and 29 more)" in clients.told[0][1]
    rows = [waking.Wake(1, 1, ["sig-3f9k2m7q1x0z"] * 9_999)] * 999
    waking._write(store.repo.state, str(curie.session.session_id), rows)
    assert (
        Path(store.repo.state, heartbeats.WAKES, str(curie.session.session_id)).stat().st_size
        < waking.FILE_MAX
    )


def test_no_error_of_a_wake_reaches_a_commit(
    store: Store, clients: Clients, planck: Agent, curie: Agent
) -> None:
    """The records are committed as without it."""

    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("a client that nobody has thought of")

    tell(planck, curie)
    began: list[Store] = []
    store.commit_after = 0.01

    store.run_committer(begins=lambda found: (began.append(found), waking.begin(found, fail)))
    assert began == [store] and not store.waits()


def test_many_clients_that_hang_do_not_keep_a_commit(store: Store, clients: Clients, planck: Agent) -> None:
    """Before a commit no more of them are asked once its time is over; afterwards they are."""
    some = [clients.opens(Agent(store, f"test:worker:number{number}")) for number in range(3)]

    def slow(door: Door, line: str, *, is_idle: bool = True) -> str:
        time.sleep(0.4)
        return clients.ask(door, line)

    tell(planck, *some)
    waking.Waker(store, slow).run(0.3)
    assert len(clients.woken()) == 1
    waking.stay(store, lambda seconds: None, slow)

    assert len(clients.woken()) == 2
