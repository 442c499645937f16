"""The wake-up: one sleeper a session, that ends with what was said, once, and without it when there is no more use."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from cli.environment import Environment
from cli.hooks import hook_call, show_signals

from ..conftest import Run
from .conftest import Hook, Start

POLL = 0.005


class Sleeper:
    """A wake-up in a thread of its own, with a short breath."""

    def __init__(self, seconds: float = 60.0, session: str = "h-1") -> None:
        self.status: int | None = None
        self.call = hook_call.HookInput("claude-code", "Wake", "wake", {"session_id": session})
        self.thread = threading.Thread(target=self._sleep, args=(seconds,), daemon=True)
        self.thread.start()

    def _sleep(self, seconds: float) -> None:
        with Environment() as at:
            self.status = show_signals.wait(at, self.call, seconds=seconds, poll=POLL)

    def ended(self) -> int:
        self.thread.join(30)
        assert self.status is not None, "it still sleeps"
        return self.status


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What wake-ups have said."""
    found: list[str] = []

    def say(text: str) -> bool:
        found.append(text)
        return True

    monkeypatch.setattr(show_signals, "_write_stderr", say)
    return found


@pytest.fixture
def ours(hook: Hook) -> str:
    return hook.start("claude-code")


@pytest.fixture
def asleep(hook: Hook, ours: str) -> Iterator[Callable[..., Sleeper]]:
    """`asleep()`: a sleeper that has lain down."""
    mark = hook.state / "wake" / ours

    def one(**options: float) -> Sleeper:
        before = mark.read_bytes() if mark.exists() else b""
        sleeper = Sleeper(**options)
        until = time.monotonic() + 30
        while sleeper.status is None and (mark.read_bytes() if mark.exists() else b"") == before:
            assert time.monotonic() < until
            time.sleep(POLL)
        return sleeper

    yield one
    mark.unlink(missing_ok=True)


def test_a_signal_wakes_once(
    hook: Hook, run: Run, start: Start, ours: str, asleep: Callable[..., Sleeper], said: list[str]
) -> None:
    """2, with the message as every hook has it; then it is read, and the next sleeper sleeps on."""
    sleeper = asleep()
    run("signal", "The parser drops tabs", "--to", ours, session=start("Planck"))

    assert sleeper.ended() == 2
    (text,) = said
    assert text.startswith("gitmem signal:received from peers.") and "| The parser drops tabs" in text
    assert not (hook.state / "wake" / ours).exists()
    assert asleep(seconds=0.1).ended() == 0
    assert hook("claude-code", "PostToolUse").out == "" and len(said) == 1


def test_what_is_for_everybody_wakes_nobody(
    hook: Hook, run: Run, start: Start, ours: str, asleep: Callable[..., Sleeper], said: list[str]
) -> None:
    other = start("Planck")
    run("signal", "For everybody", "--broadcast", session=other)
    run("signal", "When you have time", "--to", ours, "--interrupt", "advisory", session=other)

    assert asleep(seconds=0.2).ended() == 0
    assert said == []
    assert "For everybody" in hook.reads("claude-code", "PostToolUse")


def test_the_newest_replaces_the_others(ours: str, asleep: Callable[..., Sleeper], hook: Hook) -> None:
    first = asleep()
    second = asleep(seconds=0.5)

    assert first.ended() == 0
    assert second.ended() == 0


def test_it_ends_when_the_user_speaks(hook: Hook, asleep: Callable[..., Sleeper], said: list[str]) -> None:
    """At a new prompt the agent is awake; the end of that turn begins a new sleep."""
    sleeper = asleep()
    (hook.state / "prompts" / "h-1").write_text('{"prompt":"Go on"}')

    assert sleeper.ended() == 0
    assert said == [] and list((hook.state / "wake").iterdir()) == []


def test_it_ends_with_its_session(
    hook: Hook, run: Run, ours: str, asleep: Callable[..., Sleeper], said: list[str]
) -> None:
    sleeper = asleep()
    run("session", "end", session=ours)

    assert sleeper.ended() == 0
    assert said == []


def test_a_flag_that_says_too_much_wakes_nobody(
    hook: Hook, run: Run, start: Start, ours: str, asleep: Callable[..., Sleeper], said: list[str]
) -> None:
    """What was urgent has been read elsewhere, and only a broadcast is left."""
    run("signal", "For everybody", "--broadcast", session=start("Planck"))
    hook("claude-code", "Stop")  # the queue has been fed
    (hook.state / "flags" / ours).write_text("urgent\n")

    assert asleep(seconds=0.2).ended() == 0
    assert said == []
    assert "For everybody" in hook.reads("claude-code", "PostToolUse")


def test_it_ends_with_its_client(
    ours: str, asleep: Callable[..., Sleeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever started it is gone: nobody hears it."""
    sleeper = asleep()
    parent = os.getppid()
    monkeypatch.setattr(os, "getppid", lambda: parent + 1)

    assert sleeper.ended() == 0


def test_what_nobody_hears_stays_unread(
    hook: Hook,
    run: Run,
    start: Start,
    ours: str,
    asleep: Callable[..., Sleeper],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Standard error is closed: no receipt, and the next tool call hands it over."""
    closed = io.TextIOWrapper(io.BytesIO())
    closed.buffer.close()
    monkeypatch.setattr(sys, "stderr", closed)
    run("signal", "The parser drops tabs", "--to", ours, session=start("Planck"))

    assert asleep(seconds=0.1).ended() == 0
    assert "drops tabs" in hook.reads("claude-code", "PostToolUse")


def test_without_a_session_or_a_place_to_lie_down_it_does_not_sleep(hook: Hook, ours: str) -> None:
    """It could not be the only one, nor know that it woke already."""
    assert Sleeper(session="nobody").ended() == 0
    (hook.state / "wake").write_text("a file")

    assert Sleeper().ended() == 0


def test_saying_it_is_the_message_on_standard_error(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert show_signals._write_stderr("— a message")
    assert capfdbinary.readouterr() == (b"", "— a message\n".encode())


def test_half_an_hour_is_enough() -> None:
    """Less than the hour that the client gives it."""
    assert show_signals.SLEEP_SECONDS == 1800 and show_signals.POLL_SECONDS >= 0.2
