"""Through the library: who decides, and what a decision in another's name is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.api import log as api
from gitmem.conformance import reference
from gitmem.conformance.reference import text
from gitmem.errors import UsageError
from gitmem.order.thread import ThreadSignal
from gitmem.signals import threads
from gitmem.signals.own_decisions import void_own_decisions

from ..sandbox import Clock, open_store


@pytest.fixture
def repo_path(repo: Path) -> str:
    open_store(repo, Clock()).close()
    return str(repo)


def test_a_program_that_runs_in_a_session_decides_for_nobody_else(repo_path: str) -> None:
    """It says in which one it runs."""
    with api.open(repo_path, machine="test") as log:
        curie = log.sessions.start(name="Curie").session_id
    with api.open(repo_path, machine="test") as log:
        planck = log.sessions.start(name="Planck").session_id
        asked = log.signals.send("Shall we?", to=["Curie"], intent="PROPOSE").signal
        id, thread = str(asked["signal_id"]), str(asked["thread_id"])
    with api.open(repo_path, session="Curie", runs_in=planck, machine="test") as log:
        with pytest.raises(UsageError) as caught:
            log.signals.reply(id, "agreed", intent="AGREE")
        assert (caught.value.status, caught.value.code) == (2, "another-identity")
        said = log.signals.reply(id, "agreed", intent="agree", insist=True).signal
        assert said["via"] == planck
        assert log.converged(thread).pending == [curie]
        assert log.signals.reply(id, "a remark").signal["via"] == planck
    with api.open(repo_path, session="Curie", machine="test") as log:
        log.signals.reply(id, "agreed", intent="AGREE")
        assert log.converged(thread).converged
    with api.open(repo_path, runs_in=planck, machine="test") as log:
        assert log.caller.session_id == planck
        shown = threads.thread(log.store, thread).signals
        assert [each.get("decides") for each in shown] == [None, False, None, None]


def test_a_program_that_does_not_say_who_acts_is_not_the_person_where_agents_are(repo_path: str) -> None:
    """It is the person in a clone without sessions, the worktree's only session, and refused where several are."""

    def caller() -> tuple[str, bool]:
        with api.open(repo_path, machine="test") as log:
            return log.caller.reader, log.caller.is_person

    person = caller()
    assert person[1]
    with api.open(repo_path, machine="test") as log:
        planck = log.sessions.start(name="Planck").session_id
    assert caller() == (planck, False)
    with api.open(repo_path, machine="test") as log:
        log.sessions.start(name="Curie")
    with api.open(repo_path, machine="test") as log:
        for act in (lambda: log.signals.send("x", broadcast=True), log.inbox, lambda: log.gate(wu="WU-1")):
            with pytest.raises(UsageError) as caught:
                act()
            assert (caught.value.status, caught.value.code) == (2, "which-session")
        assert len(log.roster().sessions) == 2  # a look needs nobody
    with api.open(repo_path, session=person[0], machine="test") as log:
        assert log.caller.is_person


SESSIONS = ("sess-a", "sess-b", "sess-c", "sess-d", None)
IDENTITIES = ("agent-a", "agent-b", "sess-c", "human:d@example.org")
CALLED = {  # one agent in two sessions, one client in two sessions
    "sess-a": ["agent-a", "h-a"],
    "sess-b": ["agent-b"],
    "sess-c": ["h-c"],
    "sess-d": ["agent-a", "agent-d", "h-c"],
}
VIA = (*SESSIONS, None, None, "h-c", "sess-unknown")
SAID = st.tuples(
    st.sampled_from(("PROPOSE", "AGREE", "REJECT", "COUNTER", "INFO")), st.sampled_from(IDENTITIES),
    st.sampled_from(SESSIONS), st.sampled_from(VIA), st.integers(0, 4),
)  # fmt: skip


@given(st.lists(SAID, min_size=1, max_size=8), st.booleans())
def test_what_is_void_is_what_the_contract_says(
    said: list[tuple[str, str, str | None, str | None, int]], is_known: bool
) -> None:
    """Random threads: the fold and the conformance suite's own definition void the same decisions."""
    thread: dict[str, Any] = {}
    for number, (intent, by, session, via, parent) in enumerate(said):
        thread[f"sig-{number}"] = {
            "signal_id": f"sig-{number}", "created_at": f"2026-11-22T16:{number:02}:00.000000Z",
            "sender_identity": by, "sender_session": session, "via": via,
            "intent": intent, "reply_to": f"sig-{parent}" if parent < number else None,
        }  # fmt: skip
    called = CALLED if is_known else {}
    lines = {id: ThreadSignal(each, [text(each["created_at"]).encode()]) for id, each in thread.items()}
    folded = void_own_decisions(lines, lambda ids: {id: called[id] for id in ids if id in called})
    assert {id: each.intent for id, each in folded.items()} == {
        id: each["intent"] for id, each in reference.without_own(thread, called).items()
    }
