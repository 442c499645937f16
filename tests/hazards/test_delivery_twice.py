"""Shown twice: many may want to show a signal, and each is shown to its reader by exactly one of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.agents import delivery, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.signals import inbox
from tests.clones import git
from tests.file_faults import at

from .faults import check_index, child, command, open_store
from .readers import CURIE, Reader
from .test_concurrency import Crowd

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
    assert not reader.flag.exists() and reader.events == set()
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
