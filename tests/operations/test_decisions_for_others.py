"""Through the library: who decides, and what a decision in another's name is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.operations import facade, threads

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
        assert log.signals.reply(id, "a remark").signal.get("via") is None
    with facade.open(repo_path, session="Curie", machine="test") as log:
        log.signals.reply(id, "agreed", intent="AGREE")
        assert log.converged(thread).converged
    with facade.open(repo_path, runs_in=planck, machine="test") as log:
        assert log.caller.session_id == planck
        shown = threads.thread(log.store, thread).signals
        assert [each.get("decides") for each in shown] == [None, False, None, None]
