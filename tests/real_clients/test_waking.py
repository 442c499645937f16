"""Idle clients in a terminal: a signal to them begins a turn, and the model reads it there, once."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Model, Play, serving
from tests.real_clients.terminal import Shown, terminal
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

WAKERS = ("claude-code", "codex", "opencode")
NEWS = "Put the price rules behind one interface: quartz"
WAKES = int(os.environ.get("GITMEM_TEST_WAKES", "3"))  # more for a measurement
P95_SECONDS = 1.5
ARGUMENTS = {
    "claude-code": ["Begin now."],
    "codex": ["--no-alt-screen", "--ask-for-approval", "never", "--sandbox", "workspace-write", "Begin now."],
    "opencode": ["--prompt", "Begin now."],
}


@contextmanager
def opened(
    there: Desk, script: Sequence[Play] = (), arguments: Sequence[str] | None = None
) -> Iterator[tuple[Model, Shown]]:
    """A client in a terminal of its own, after its first turn."""
    there.env["XDG_STATE_HOME"] = there.env.get("XDG_STATE_HOME") or tempfile.mkdtemp(
        prefix="gm-"
    )  # paths of sockets are short
    model = Model(there.client.dialect, [lambda asked: Step("Done."), *script])
    with serving(model):
        env = {**there.env, **there.client.variables(model.url)}
        there.client.prepare(there.program, there.work, there.home, env, model.url)
        words = ARGUMENTS[there.client.name] if arguments is None else arguments
        with terminal([str(there.program), *words], there.work, env) as shown:
            assert until(lambda: model.asked and b"Done." in b"".join(shown)), b"".join(shown)[-3000:]
            time.sleep(2)  # its hooks at the end of the turn
            yield model, shown
    assert model.trouble == []


def session_of(there: Desk) -> str:
    (one,) = there.sessions()
    assert one["wakes"].startswith("yes, by "), one["wakes"]
    return str(one["session_id"])


def word_of_its_user(there: Desk) -> None:
    """As if somebody had typed something: else nobody is woken more than some times. The prompt of a wake is no word."""
    state = there.work / ".git" / "gitmem"
    (wakes,) = (path for path in (state / "wakes").glob("sess-*") if path.suffix != ".lock")
    woken = int(wakes.read_text().split()[0]) / 1e6
    assert all(path.stat().st_mtime < woken for path in (state / "turns").glob("*.word"))
    wakes.unlink()


@pytest.mark.parametrize("name", WAKERS)
def test_an_idle_agent_takes_a_turn_for_a_message(desk: Callable[..., Desk], name: str) -> None:
    """Within 1.5 seconds of the command; each message is in one request's news, no turn is without one."""
    there = desk(name)
    took: list[float] = []
    with opened(there) as (model, shown):
        to = session_of(there)
        for number in range(WAKES):
            before, began = len(model.asked), time.monotonic()
            there.signal(f"{NEWS} {number}.", to)
            assert until(lambda: len(model.asked) > before), b"".join(shown)[-3000:]  # noqa: B023
            took.append(time.monotonic() - began)
            time.sleep(3)
            assert len(model.asked) == before + 1 and f"{NEWS} {number}." in model.asked[-1].text
            word_of_its_user(there)
        stages = there.gitmem("receipts")["stages"]
        texts = [each.text for each in model.asked]

    print(
        f"{name}: p95 of {len(took)} wakes {sorted(took)[int(0.95 * (len(took) - 1))]:.2f} s, {[round(each, 2) for each in took]}"
    )
    assert stages == []
    assert all(texts[-1].count(f"{NEWS} {number}.") == 1 for number in range(WAKES))
    assert sorted(took)[int(0.95 * (len(took) - 1))] < P95_SECONDS or WAKES < 20


@pytest.mark.parametrize("name", WAKERS)
def test_a_busy_agent_gets_it_at_a_tool_boundary(desk: Callable[..., Desk], name: str) -> None:
    """And no turn of its own for it."""
    there = desk(name)

    def works(asked: object) -> Step:
        there.signal(f"{NEWS}.", session_of(there))
        return there.client.shell("sleep 2")

    with opened(there, [works, lambda asked: Step("Done again.")]) as (model, shown):
        shown.type("Go on.")
        assert until(lambda: len(model.asked) == 3), b"".join(shown)[-3000:]
        time.sleep(4)
        assert [each.text.count(f"{NEWS}.") for each in model.asked] == [0, 0, 1]


@pytest.mark.parametrize("name", WAKERS)
def test_an_ended_client_is_not_woken(desk: Callable[..., Desk], name: str) -> None:
    """Its window was closed, and what went on without one was ended: the signal waits, and nothing says that somebody was woken."""
    there = desk(name)
    with opened(there):
        to = session_of(there)
    there.clear()
    sent = there.gitmem("signal", f"{NEWS}.", "--to", to, cwd=there.away, session=there.peer)["signal"]
    time.sleep(2)

    (stage,) = there.gitmem("receipts", sent["signal_id"])["stages"]
    assert (stage["woken_at"], stage["shown_at"]) == (None, None)


def test_a_resumed_claude_code_is_woken(desk: Callable[..., Desk]) -> None:
    """In its new process, under its new session."""
    there = desk("claude-code")
    with opened(there):
        before = session_of(there)
    with opened(there, arguments=["--continue", "Begin now."]) as (model, shown):
        there.signal(f"{NEWS}.", session_of(there))
        assert session_of(there) != before
        assert until(lambda: len(model.asked) == 2), b"".join(shown)[-3000:]
        assert f"{NEWS}." in model.asked[-1].text


@pytest.mark.parametrize("accepts", [False, True])
def test_claude_code_with_bypassed_permissions_asks_its_user(
    desk: Callable[..., Desk], accepts: bool
) -> None:
    """Unless its settings say `crossSessionInbound: accept`. What was held is said to be woken and not shown."""
    there = desk("claude-code")
    more = ["--settings", '{"crossSessionInbound": "accept"}'] if accepts else []
    with opened(there, arguments=["--dangerously-skip-permissions", *more, "Begin now."]) as (model, _):
        there.signal(f"{NEWS}.", session_of(there))
        time.sleep(5)
        stages = there.gitmem("receipts")["stages"]
        assert (len(model.asked), len(stages)) == ((2, 0) if accepts else (1, 1))
        assert accepts or stages[0]["woken_at"]


def test_two_sessions_in_one_worktree_are_woken_apart(desk: Callable[..., Desk]) -> None:
    there = desk("claude-code")
    with opened(there) as (first, _):
        one = session_of(there)
        with opened(there) as (second, shown):
            (other,) = {each["session_id"] for each in there.sessions()} - {one}
            there.signal(f"{NEWS}.", str(other))
            assert until(lambda: len(second.asked) == 2), b"".join(shown)[-3000:]
            time.sleep(2)
            assert len(first.asked) == 1


def test_a_cleared_claude_code_is_woken(desk: Callable[..., Desk]) -> None:
    """Under its new id, before anybody has typed anything."""
    there = desk("claude-code")
    with opened(there) as (model, shown):
        to = session_of(there)
        shown.type("/clear")
        client_ids = there.home / ".claude" / "session-env"
        assert until(lambda: len(list(client_ids.iterdir())) == 2), b"".join(shown)[-2000:]
        time.sleep(2)
        there.signal(f"{NEWS}.", to)
        assert until(lambda: len(model.asked) == 2), b"".join(shown)[-3000:]
        assert f"{NEWS}." in model.asked[-1].text and "Begin now." not in model.asked[-1].text
