"""What a peer says in another worktree reaches the model of a real client: at its next request, once.

Run with `pytest -m clients`: it installs the clients from npm. The model is a script on loopback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.real_clients.clients import CLIENTS
from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Asked
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

FRAME = "signal:received"
NEWS = "Put the price rules behind one interface: quartz."
LAST = "No hurry, but read this one: poplar."
LATE = "The migration is merged, rebase before you push: walnut."
IDENTITY = "acme:builder:shop"
ANSWER = "Agreed, behind one interface: cobalt."


class Told:
    """One turn of a client, in which a peer writes: after the first request, and before each answer that ends it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.sessions: list[dict[str, Any]] = []
        self.asked = desk.turn([self.first, self.second, self.third, self.fourth])
        self.texts = [each.text for each in self.asked]
        self.replies = desk.inbox()
        self.after = desk.sessions()

    def first(self, asked: Asked) -> Step:
        assert until(self.desk.sessions), "no hook has registered the session"
        self.sessions = self.desk.sessions()
        self.desk.signal(NEWS, str(self.sessions[0]["session_id"]))
        return self.desk.client.shell("echo one")

    def second(self, asked: Asked) -> Step:
        return self.desk.client.shell(asked.reply_command(ANSWER))

    def third(self, asked: Asked) -> Step:
        self.desk.signal(LATE, str(self.sessions[0]["session_id"]))
        return Step("Done.")

    def fourth(self, asked: Asked) -> Step:
        self.desk.signal(LAST, str(self.sessions[0]["session_id"]))
        return Step("Done again.")


each_client = pytest.mark.parametrize("name", [each.name for each in CLIENTS])


@each_client
def test_a_signal_reaches_the_next_request_once(name: str, desk: Callable[..., Desk]) -> None:
    """From another worktree to the model: in a frame, at the next request, once; with nothing new, nothing.

    At the start the session is in the roster with its client's name, and the command of the reply line works
    in the client's own shell. What comes at the end is handed over once; what comes after that waits.
    """
    there = desk(name)
    told = Told(there)
    client = there.client

    assert [(each["client"], each["worktree"]) for each in told.sessions] == [(client.name, there.work.name)]
    assert told.texts[0].count(FRAME) == 0
    assert (told.texts[1].count(FRAME), told.texts[1].count(NEWS)) == (1, 1)
    assert (told.texts[2].count(FRAME), told.texts[2].count(NEWS)) == (1, 1), "something was added"
    (reply,) = told.replies
    said = (
        reply["message"],
        reply["sender_session"],
    )  # the reply line teaches a heredoc, which ends with a newline
    assert said == (f"{ANSWER}\n", told.sessions[0]["session_id"])
    if client.hands_over:
        assert (told.texts[3].count(FRAME), told.texts[3].count(LATE)) == (2, 1)
    assert len(told.asked) == (4 if client.hands_over else 3), "it was kept going"
    waiting = there.gitmem("inbox", "--for", str(told.sessions[0]["session_id"]), "--no-mark")
    assert [each["message"] for each in waiting["signals"]] == [LAST if client.hands_over else LATE]
    if client.says_end:
        assert {each["status"] for each in told.after} <= {
            "ended",
            "gone",
        }  # it is listed as long as mail waits for it


@each_client
def test_with_nothing_new_nothing_is_added(name: str, desk: Callable[..., Desk]) -> None:
    """A session that nobody writes to: no frame in any request, and the turn ends by itself."""
    there = desk(name)

    asked = there.turn([lambda asked: there.client.shell("echo one"), lambda asked: Step("Done.")])

    assert [each.text.count(FRAME) for each in asked] == [0, 0]


@each_client
def test_tools_that_end_at_the_same_time_show_a_signal_once(name: str, desk: Callable[..., Desk]) -> None:
    """Three tool calls in one answer run three hooks side by side: one of them has the signal."""
    there = desk(name)

    def first(asked: Asked) -> Step:
        assert until(there.sessions), "no hook has registered the session"
        there.signal(NEWS, str(there.sessions()[0]["session_id"]))
        return there.client.shell("echo one").at_once(3)

    asked = there.turn([first, lambda asked: Step("Done.")])

    assert [each.text.count(NEWS) for each in asked] == [0, 1]


@pytest.mark.parametrize("name", [each.name for each in CLIENTS if each.hears_start])
def test_what_waited_for_it_is_there_when_a_session_begins(name: str, desk: Callable[..., Desk]) -> None:
    """A signal to an identity that is not at work is in the first request of its next session."""
    there = desk(name)
    there.env["GITMEM_AGENT_IDENTITY"] = IDENTITY
    there.signal(NEWS, IDENTITY, "--allow-unseen")

    asked = there.turn([lambda asked: there.client.shell("echo one"), lambda asked: Step("Done.")])

    assert [each.text.count(NEWS) for each in asked] == [1, 1]
    assert there.gitmem("inbox", "--for", IDENTITY, "--no-mark")["signals"] == []
