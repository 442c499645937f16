"""Through the library: who decides, and what a decision in another's name is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.conformance import definitions
from gitmem.conformance.definitions import text
from gitmem.errors import UsageError
from gitmem.operations import facade, threads
from gitmem.operations.causality import Said
from gitmem.signals.own_decisions import without_own

from .desks import Clock, open_store


@pytest.fixture
def repo_path(repo: Path) -> str:
    open_store(repo, Clock()).close()
    return str(repo)


def test_a_program_that_runs_in_a_session_decides_for_nobody_else(repo_path: str) -> None:
    """It says in which one it runs; without that it is the person's program."""
    with facade.open(repo_path, machine="test") as log:
        curie = log.sessions.start(name="Curie").session_id
    with facade.open(repo_path, machine="test") as log:
        planck = log.sessions.start(name="Planck").session_id
        asked = log.signals.send("Shall we?", to=["Curie"], intent="PROPOSE").signal
        id, thread = str(asked["signal_id"]), str(asked["thread_id"])
    with facade.open(repo_path, session="Curie", runs_in=planck, machine="test") as log:
        with pytest.raises(UsageError) as caught:
            log.signals.reply(id, "agreed", intent="AGREE")
        assert (caught.value.status, caught.value.code) == (2, "another-identity")
        said = log.signals.reply(id, "agreed", intent="agree", insist=True).signal
        assert said["via"] == planck
        assert log.converged(thread).pending == [curie]
        assert log.signals.reply(id, "a remark").signal["via"] == planck
    with facade.open(repo_path, session="Curie", machine="test") as log:
        log.signals.reply(id, "agreed", intent="AGREE")
        assert log.converged(thread).converged
    with facade.open(repo_path, runs_in=planck, machine="test") as log:
        assert log.caller.session_id == planck
        shown = threads.thread(log.store, thread).signals
        assert [each.get("decides") for each in shown] == [None, False, None, None]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=8))
def test_what_is_void_is_what_the_contract_says(said: list[tuple[int, int, int, int]]) -> None:
    """Random threads: the fold and the conformance suite's own definition void the same decisions."""
    intents, sessions = ("PROPOSE", "AGREE", "COUNTER", "INFO"), ("sess-a", "sess-b", "sess-c", None)
    thread: dict[str, Any] = {}
    for number, (intent, by, via, parent) in enumerate(said):
        thread[f"sig-{number}"] = {
            "signal_id": f"sig-{number}", "created_at": f"2026-11-22T16:{number:02}:00.000000Z",
            "sender_identity": f"agent-{by}", "sender_session": sessions[by], "via": sessions[via],
            "intent": intents[intent], "reply_to": f"sig-{parent}" if parent < number else None,
        }  # fmt: skip
    folded = without_own({id: Said(each, [text(each["created_at"]).encode()]) for id, each in thread.items()})
    assert {id: each.intent for id, each in folded.items()} == {
        id: each["intent"] for id, each in definitions.without_own(thread).items()
    }
