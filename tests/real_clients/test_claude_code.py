"""Claude Code: subagents, and the hook in the background that wakes a session which waits for its user."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_clients.clients import RUN_SECONDS
from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Asked, Model, serving
from tests.real_clients.terminal import terminal
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

FRAME = "signal:received"
NEWS = "Put the price rules behind one interface: quartz."
ERRAND = "Count the files: marble."


def test_a_subagent_leaves_the_mail_to_its_parent(desk: Callable[..., Desk]) -> None:
    """A signal that comes while a subagent works reaches the parent's next request, and no request of the subagent."""
    there = desk("claude-code")
    errand: dict[str, object] = {"description": "Count", "prompt": ERRAND, "subagent_type": "general-purpose"}
    errand["run_in_background"] = False  # else its requests and its parent's come in any order

    def sends(asked: Asked) -> Step:
        there.signal(NEWS, str(there.sessions()[0]["session_id"]))
        return there.client.shell("echo one")

    asked = there.turn(
        [
            lambda asked: Step(tool="Task", arguments=errand),
            sends,  # the subagent's first request
            lambda asked: Step("Seven files."),  # its second
            lambda asked: Step("Done."),
        ]
    )

    assert ["Begin now." in each.text for each in asked] == [True, False, False, True]
    assert [each.text.count(NEWS) for each in asked] == [0, 0, 0, 1]


def test_a_session_that_waits_for_its_user_is_woken_once(desk: Callable[..., Desk]) -> None:
    """With `--wake`: the turn is over, a signal comes, and the model is asked again, with the signal, once.

    When the window is closed, nobody sleeps on.
    """
    if not Path("/proc/self/environ").exists():
        pytest.skip("who sleeps is read from /proc")
    there = desk("claude-code", "--wake")
    done = threading.Event()

    def wakes(asked: Asked) -> Step:
        done.set()
        return Step("Read.")

    model = Model(there.client.dialect, [lambda asked: Step("Done."), wakes])
    with serving(model):
        env = {**there.env, **there.client.variables(model.url)}
        there.client.prepare(there.program, there.work, there.home, env, model.url)
        command = [str(there.program), "--dangerously-skip-permissions", "Begin now."]
        with terminal(command, there.work, env) as shown:
            assert until(there.sleepers), b"".join(shown)[-2000:]
            there.signal(NEWS, str(there.sessions()[0]["session_id"]))
            assert done.wait(RUN_SECONDS), "the signal woke nobody"
            assert until(there.sleepers), "the next signal would wake nobody"

    assert model.trouble == []
    assert [each.text.count(NEWS) for each in model.asked] == [0, 1]
    assert until(lambda: not there.left())


def test_with_the_wake_up_a_single_turn_still_ends(desk: Callable[..., Desk]) -> None:
    """`claude -p` has nobody to wake: it ends, and nobody sleeps on when it has gone."""
    there = desk("claude-code", "--wake")

    asked = there.turn([lambda asked: Step("Done.")])

    assert len(asked) == 1
    assert until(lambda: not there.left())
