"""Who calls: each source in its turn, and a refusal wherever two could be meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import caller, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.store import Store

from ..sandbox import HOUR, MINUTE, Clock, acting, open_store, say, worktree

IDENTITY = "codex:implementer:host42"
HARNESS = ("CLAUDE_CODE_SESSION_ID", "0190-abcd")


def found(store: Store, **who: Any) -> caller.Caller:
    one = caller.find(store, CallerClaims(**who))
    assert one
    return one


def refused(store: Store, **who: Any) -> str:
    """The code of the refusal to say who calls."""
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(**who))
    assert caller.find(store, CallerClaims(**who), must=False) is None
    return str(caught.value.code)


def test_the_sources_in_their_order(repo: Path) -> None:
    """`--as`, then GITMEM_SESSION, then the harness, then a person."""
    store = open_store(repo, Clock())
    one, two = lifecycle.start(store, CallerClaims(), name="One"), lifecycle.start(store, CallerClaims())
    three = lifecycle.start(store, CallerClaims(client_session=HARNESS))
    everything: dict[str, object] = {
        "as_": "One", "session": two.session_id, "client_session": HARNESS, "terminal": True,
    }  # fmt: skip
    seen = []
    for name in ("as_", "session", "client_session", "terminal"):
        seen.append(found(store, **everything).reader)
        del everything[name]

    assert seen == [one.session_id, two.session_id, three.session_id, "human:person@example.org"]


@pytest.mark.parametrize("how", ["id", "identity", "name"])
def test_as_takes_an_exact_id_identity_or_live_name(repo: Path, how: str) -> None:
    """And is the session then, where it is one session."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    text = {"id": one.session_id, "identity": IDENTITY, "name": "Planck"}[how]
    me = found(store, as_=text)

    assert (me.reader, me.session_id, me.author) == (IDENTITY, one.session_id, f"Planck <{IDENTITY}@gitmem>")
    assert (me.role, me.workspace, me.raw, me.is_person) == (None, None, False, False)


@pytest.mark.parametrize("text", ["planck", "Planc", "sess-000000", "codex:implementer:host43", "", "nobody"])
def test_as_is_never_a_guess(repo: Path, text: str) -> None:
    """Not folded, not a prefix, not fuzzy; also where the command needs nobody."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(as_=text), must=False)

    assert caught.value.code == "unknown-session"


def test_an_identity_with_two_sessions_here_is_no_session(repo: Path) -> None:
    """It reads and writes as the identity alone."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    me = found(store, as_=IDENTITY)

    assert (me.reader, me.session_id, me.identity) == (IDENTITY, None, IDENTITY)


@pytest.mark.parametrize("session", ["sess-unknown00", "nonsense", "../../x", "\x1b[2J"])
def test_an_unknown_session_is_an_error(repo: Path, session: str) -> None:
    """The sentence passes no escape on; where nobody is needed it does not matter."""
    store = open_store(repo, Clock())
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(session=session))

    assert (caught.value.status, caught.value.code) == (2, "unknown-session")
    assert caught.value.message.isprintable()
    assert caller.find(store, CallerClaims(session=session), must=False) is None


def test_an_ended_session_is_an_error(repo: Path) -> None:
    """By GITMEM_SESSION and by `--as`."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims())
    lifecycle.end(store, acting(store, one))
    for who in (CallerClaims(session=one.session_id), CallerClaims(as_=one.session_id)):
        with pytest.raises(UsageError) as caught:
            caller.find(store, who)
        assert caught.value.code == "ended-session"


def test_a_raw_harness_id_is_the_reader(repo: Path) -> None:
    """Without a session started with it, or when that one has ended; the next step is to start one."""
    store = open_store(repo, Clock())
    me = found(store, client_session=HARNESS)
    assert (me.reader, me.session_id, me.raw, me.next) == (
        store.keys.hashed(HARNESS[1]),
        store.keys.hashed(HARNESS[1]),
        True,
        ["gitmem session start"],
    )
    say(store, me)

    one = lifecycle.start(store, CallerClaims(client_session=HARNESS))
    assert found(store, client_session=HARNESS).reader == one.session_id
    lifecycle.end(store, acting(store, one))
    assert found(store, client_session=HARNESS).raw


def test_without_a_word_the_only_session_of_this_worktree_calls(tmp_path: Path, repo: Path) -> None:
    """Known from the local file, idle or not; a session of another worktree is not meant, nor is the person."""
    side = worktree(repo, tmp_path / "side")
    clock = Clock()
    here, there = open_store(repo, clock), open_store(side, clock)
    assert found(here).is_person
    one = lifecycle.start(here, CallerClaims())
    for _ in range(3):
        me = found(here)
        assert (me.session_id, me.source) == (one.session_id, "worktree")
        assert me.remark and one.display_name in me.remark
        assert refused(there) == "which-session"
        clock.forward(7 * HOUR + 59 * MINUTE)
    clock.forward(HOUR)
    assert refused(here) == "which-session"
    assert (found(there).is_person, found(there).source) == (True, "nobody")
    lifecycle.end(here, acting(here, one))
    assert found(here).is_person


def test_a_terminal_is_a_person_whoever_is_live(repo: Path) -> None:
    """An agent's session in this worktree is not the person's."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims())
    me = found(store, terminal=True)

    assert (me.reader, me.author, me.session_id) == (
        "human:person@example.org", "Test Person <person@example.org>", None,
    )  # fmt: skip


def test_two_live_sessions_and_no_word_is_an_error(repo: Path) -> None:
    """With both to choose from; no command that is offered acts as one of them."""
    clock = Clock()
    store = open_store(repo, clock)
    ids = []
    for _ in range(2):
        ids.insert(0, lifecycle.start(store, CallerClaims()).session_id)
        clock.forward(MINUTE)
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims())

    assert (caught.value.status, caught.value.code) == (2, "which-session")
    assert caught.value.next == ["gitmem roster", "gitmem session start"]
    assert all(one in each for one, each in zip(ids, caught.value.suggestions, strict=True))
    assert "export GITMEM_SESSION=ID" in caught.value.hint
    assert caller.find(store, CallerClaims(), must=False) is None


def test_a_person_without_mail_may_look_and_not_act(repo: Path) -> None:
    """Acting says which command to run."""
    store = open_store(repo, Clock(), mail=None)
    assert caller.find(store, CallerClaims(terminal=True), must=False) is None
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(terminal=True))

    assert (caught.value.status, caught.value.next[0]) == (2, "git config user.email you@example.org")


def test_a_session_that_has_been_silent_for_long_can_still_act(repo: Path) -> None:
    """Gone is not ended."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(store, CallerClaims())
    clock.forward(100 * HOUR)

    assert acting(store, one).session_id == one.session_id
