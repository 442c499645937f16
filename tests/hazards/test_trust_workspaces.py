"""Which workspace a recipient is in: no number of a peer's lines about sessions stops mail, or sends it astray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.signals import send
from gitmem.store import Store
from tests.sandbox import DAY, MINUTE, Clock, acting, carry, new_repo, open_store

A, B = "claude:planner:one", "codex:builder:two"
MANY = 150


class Desk:
    """A sender in the workspace red, and a second clone."""

    def __init__(self, repo: Path, elsewhere: Path) -> None:
        self.clock = Clock()
        self.store = open_store(repo, self.clock)
        self.other = open_store(new_repo(elsewhere), self.clock)
        self.planck = self.start(self.store, A, "red")

    def start(self, store: Store, identity: str, workspace: str | None) -> Caller:
        self.clock.forward(MINUTE)
        return acting(
            store, lifecycle.start(store, CallerClaims(), agent_identity=identity, workspace=workspace)
        )

    def end(self, store: Store, one: Caller) -> None:
        self.clock.forward(MINUTE)
        lifecycle.end(store, one)
        carry(self.store, self.other)

    def forge(self, *sessions: str, event: str = "start", at: int = 0, **fields: Any) -> None:
        """Write lines as a peer would, without a code."""
        values = {"event": event, "display_name": "x", "clone_id": "mallory", "agent_identity": B, **fields}
        lines = [
            records.line("session", self.clock() + at, {"session_id": name, **values}) for name in sessions
        ]
        self.store.record([("sessions", line) for line in lines], CommitMessage("m <m@example.org>", "sync"))

    def arrives(self) -> bool:
        try:
            send.send(self.store, self.planck, "x", to=[B])
        except UsageError as error:
            assert error.code == "other-workspace"
            return False
        return True


@pytest.fixture
def desk(tmp_path: Path, repo: Path) -> Desk:
    return Desk(repo, tmp_path / "elsewhere")


def many(letter: str) -> list[str]:
    """Ids that sort before and after an honest one."""
    return [f"sess-{first}{letter}{number:08}" for first in "0z" for number in range(MANY)]


@pytest.mark.parametrize("here", [True, False])
def test_any_number_of_forged_sessions_elsewhere_stops_no_mail(desk: Desk, here: bool) -> None:
    """Whether the recipient works in this clone or in another one."""
    desk.start(desk.store if here else desk.other, B, "red")
    carry(desk.store, desk.other)
    desk.forge(*many("a"), workspace_id="evil", at=-DAY)
    desk.forge(*many("b"), workspace_id="evil", at=MINUTE)

    assert desk.arrives()


@pytest.mark.parametrize("here", [True, False])
def test_forged_sessions_of_an_absent_agent_stop_no_mail(desk: Desk, here: bool) -> None:
    """Of ended sessions any counts: a peer can always write one that ended later."""
    store = desk.store if here else desk.other
    desk.end(store, desk.start(store, B, "red"))
    desk.forge(*many("a"), workspace_id="evil", at=DAY)
    desk.forge(*many("a"), event="end", at=2 * DAY)

    assert desk.arrives()


@pytest.mark.parametrize(
    ("event", "fields"),
    [("end", {}), ("change", {"workspace_id": "evil"}), ("change", {"agent_identity": "m:m:m"})],
)
def test_forged_lines_about_a_session_of_this_clone_stop_no_mail(
    desk: Desk, event: str, fields: dict[str, str]
) -> None:
    """Only its genuine records count: whether it is open, where, and of which agent."""
    curie = desk.start(desk.store, B, "red")
    desk.forge(str(curie.session_id), event=event, at=MINUTE, **fields)
    desk.forge("sess-evil0000001", workspace_id="evil", at=MINUTE)

    assert desk.arrives()


def test_a_forged_session_of_this_clone_makes_no_agent_reachable(desk: Desk) -> None:
    """A peer who gives the sender's own session another identity does not move that agent to the sender's workspace."""
    desk.start(desk.store, B, "blue")
    desk.forge(str(desk.planck.session_id), event="change", at=MINUTE)

    assert not desk.arrives()


def test_a_move_is_seen_although_the_old_session_has_ended(desk: Desk) -> None:
    """An open session elsewhere counts, not where the agent was before; in this clone a change of workspace too."""
    desk.end(desk.other, desk.start(desk.other, B, "red"))
    curie = desk.start(desk.store, B, "red")
    assert desk.arrives()
    desk.clock.forward(MINUTE)
    lifecycle.change(desk.store, curie, workspace="blue")

    assert not desk.arrives()
    desk.forge(str(curie.session_id), event="change", at=MINUTE, workspace_id="evil")
    with pytest.raises(UsageError, match="is in workspace blue and never"):
        send.send(desk.store, desk.planck, "x", to=[B])


def test_one_without_a_workspace_gets_mail_of_all(desk: Desk) -> None:
    """Also beside a session elsewhere, and whatever a peer says of it."""
    desk.start(desk.other, B, "blue")
    carry(desk.store, desk.other)
    assert not desk.arrives()
    free = desk.start(desk.other, B, None)
    carry(desk.store, desk.other)
    desk.forge(str(free.session_id), event="change", at=MINUTE, workspace_id="evil")

    assert desk.arrives()


def test_at_most_three_workspaces_are_named(desk: Desk) -> None:
    desk.forge(*many("a"), workspace_id="w0")
    for number in range(1, 9):
        desk.forge(f"sess-evil000000{number}", workspace_id=f"w{number}")

    with pytest.raises(UsageError, match="is in workspace w0, w1, w2 and never"):
        send.send(desk.store, desk.planck, "x", to=[B])
