"""An agent that comes back to its worktree finds its identity and so its messages; nobody becomes it by a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import heartbeats, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.signals import inbox, send
from tests.sandbox import Clock, acting, carry, new_repo, open_store, worktree

KILBY = "claude:implementer:sessions"
DAY = 24 * 3600 * 1_000_000
TAKE = f"gitmem session set --agent-identity {KILBY} --name Kilby"


def test_the_last_agent_of_the_worktree_is_offered(tmp_path: Path, repo: Path) -> None:
    """After days, also if its session never ended. What was sent meanwhile is unread; before that nothing is taken."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)
    clock.forward(4 * DAY)
    planck = acting(elsewhere, lifecycle.start(elsewhere, CallerClaims(), agent_identity="a:b:planck"))
    send.send(elsewhere, planck, "look", to=[KILBY])

    back = lifecycle.start(store, CallerClaims())

    assert f"Kilby ({KILBY}) worked in repo, 3 days ago, and has 1 unread. If you are that agent" in str(
        back.remark
    )
    assert back.next[1] == TAKE
    assert inbox.read(store, acting(store, back)).unread == 0
    changed = lifecycle.change(store, acting(store, back), agent_identity=KILBY, name="Kilby")
    assert changed.reader_identity == KILBY
    assert [each["message"] for each in inbox.read(store, acting(store, changed)).signals] == ["look"]


def test_the_offer_leaves_out_a_name_that_is_still_held(repo: Path) -> None:
    """A session that never ended holds its name for two days: the command must work before, too."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(30 * 3600 * 1_000_000)

    back = lifecycle.start(store, CallerClaims())

    assert back.next[1] == TAKE.removesuffix(" --name Kilby")
    assert lifecycle.change(store, acting(store, back), agent_identity=KILBY).reader_identity == KILBY


def test_nothing_is_offered_that_would_be_a_guess(tmp_path: Path, repo: Path) -> None:
    """An agent of another worktree, one at work there, a session with an identity of its own."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(4 * DAY)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)

    assert lifecycle.start(elsewhere, CallerClaims()).remark is None
    lifecycle.start(elsewhere, CallerClaims(), agent_identity=KILBY)
    assert lifecycle.start(store, CallerClaims()).remark is None
    assert lifecycle.start(store, CallerClaims(), agent_identity="a:b:c").remark is None


@pytest.mark.parametrize("minutes", [20, 120])
def test_an_agent_that_lost_its_session_minutes_ago_is_offered_its_identity(repo: Path, minutes: int) -> None:
    """Its shell or client ended without a word, and its session is still open."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(minutes * 60_000_000)

    back = lifecycle.start(store, CallerClaims())

    assert f"Kilby ({KILBY}) worked in repo, {minutes - 1} minutes ago" in str(back.remark)
    assert back.next[1] == TAKE.removesuffix(" --name Kilby")


def test_beside_an_agent_at_work_no_command_takes_its_messages(repo: Path) -> None:
    """It may work in the same worktree; if it crashed a moment ago, its own session can go on."""
    clock = Clock()
    store = open_store(repo, clock)
    kilby = lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(60_000_000)

    beside = lifecycle.start(store, CallerClaims())

    assert f"If that was you, go on as that session: export GITMEM_SESSION={kilby.session_id}" in str(
        beside.remark
    )
    assert not [each for each in beside.next if KILBY in each or kilby.session_id in each]


def test_a_peer_s_session_is_not_offered(tmp_path: Path, repo: Path) -> None:
    """A pushed record can name this worktree, but was not started here."""
    clock = Clock()
    store = open_store(repo, clock)
    peer = open_store(new_repo(tmp_path / "elsewhere" / repo.name), clock)
    lifecycle.start(peer, CallerClaims(), name="Kilby", agent_identity=KILBY)
    carry(peer, store)
    clock.forward(4 * DAY)

    assert lifecycle.start(store, CallerClaims()).remark is None


def test_a_name_of_somebody_absent_says_where_to_send(repo: Path) -> None:
    """As a command, which the sender decides on."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(4 * DAY)
    planck = acting(store, lifecycle.start(store, CallerClaims(), agent_identity="a:b:planck"))

    with pytest.raises(UsageError) as refused:
        send.send(store, planck, "look", to=["Kilby"])

    assert f"send to {KILBY}" in refused.value.hint and refused.value.next == ["gitmem roster"]
    assert "was last seen" in refused.value.message


@pytest.mark.parametrize("at", [-DAY, 3 * DAY])
def test_any_number_of_a_peer_s_sessions_does_not_hide_the_last_agent(repo: Path, at: int) -> None:
    """They name this worktree, and were at work before or after it."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    fields = {"event": "start", "display_name": "x", "clone_id": "m", "agent_identity": "m:m:m",
              "worktree": heartbeats.label(store)}  # fmt: skip
    lines = [
        records.line("session", clock() + at, {"session_id": f"sess-{number:012}", **fields})
        for number in range(150)
    ]
    store.record([("sessions", line) for line in lines], CommitMessage("m <m@example.org>", "sync"))
    clock.forward(4 * DAY)

    assert lifecycle.start(store, CallerClaims()).next[1] == TAKE


def test_a_forged_line_offers_no_agent_of_another_worktree(tmp_path: Path, repo: Path) -> None:
    """A peer can say that a session of this clone worked elsewhere."""
    clock = Clock()
    store = open_store(repo, clock)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)
    kilby = lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    moved = {"session_id": kilby.session_id, "event": "change", "display_name": "Kilby", "clone_id": "m",
             "worktree": heartbeats.label(elsewhere)}  # fmt: skip
    line = records.line("session", clock() + DAY, moved)
    store.record([("sessions", line)], CommitMessage("m <m@example.org>", "sync"))
    clock.forward(4 * DAY)

    assert lifecycle.start(elsewhere, CallerClaims()).remark is None
