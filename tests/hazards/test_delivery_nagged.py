"""Nagged: a flag stands while something waits that can be shown, and not a look longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.agents import delivery, heartbeats, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import GitmemError
from gitmem.signals import send

from .faults import STEPS_MAX, WRITES, SystemCall, age_locks, child, command, open_store
from .readers import CURIE, HARNESS, Reader

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
    """A session that is taken up again, or starts again, has what is unread and no more."""
    reader = Reader(repo)
    reader.send("read")
    reader.drain()
    store = open_store(repo)
    who = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS))
    lifecycle.start(store, who)
    assert not reader.flag.exists() and reader.events == set()
    lifecycle.end(store, reader.caller(store))
    reader.session = lifecycle.start(store, who, agent_identity=CURIE).session_id
    assert not reader.flag.exists() and reader.events == set()


def test_an_event_that_cannot_be_shown_does_not_keep_the_flag(repo: Path) -> None:
    """Of another workspace by now, read elsewhere, or nothing that the log has: one look, and it is gone."""
    reader = Reader(repo)
    store = open_store(repo)
    planck = reader.caller(store, reader.planck)
    planck.workspace = "elsewhere"
    send.send(store, planck, "of another workspace", to=[CURIE])
    assert reader.flag.exists()
    lifecycle.change(store, reader.caller(store), workspace="here")
    where = Path(delivery.queue_folder(reader.state, reader.session))
    (where / "sig-000000000000").write_bytes(b"{}")
    (where / "not a signal").write_bytes(b"")
    (where / "folder").mkdir()

    assert reader.drain() == []
    assert not reader.flag.exists()
    assert reader.events <= {"folder"}
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
        inbox.mark(store, inbox.read(store, raw, again=False))
    assert not reader.flag.exists()


def test_on_a_full_disk_it_is_shown_once_and_marked_later(repo: Path) -> None:
    """At each write of a drain that finds no room: hooks show it again only where it was not shown, or not noted."""
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
        again = reader.drain()
        assert again == ([] if printed else [text]), f"no room at step {step}"
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
    """No room for a receipt, nor for anything else: hooks stay quiet; once there is room the receipt comes first."""
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
            assert reader.drain(store) == []
            assert not reader.flag.exists()
    assert reader.receipts() == []
    assert reader.drain() == []
    assert reader.printed() == ["hello"]
    assert reader.receipts() == ["hello"]
