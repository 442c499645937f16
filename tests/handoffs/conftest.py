"""Two clones, agents with open work, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.memory import checkpoints
from gitmem.signals import send
from gitmem.store import Store
from gitmem.work import claim_work, new_task, task_work
from tests.sandbox import HOUR, SECOND, Agent, Clock, carry, new_repo, open_store

PLANCK, BOHR, CURIE, DIRAC = "a:b:planck", "a:b:bohr", "a:b:curie", "a:b:dirac"


class Work:
    """Planck asked Bohr for tests; Bohr has taken the task, claims files, wrote a checkpoint and has two open threads.

    Curie and Dirac are in another clone; `sync` carries all lines.
    """

    def __init__(self, here: Store, there: Store, clock: Clock) -> None:
        self.here, self.there, self.clock = here, there, clock
        self.planck, self.bohr = (Agent(here, each, name=each[4:].title()).caller for each in (PLANCK, BOHR))
        self.curie, self.dirac = (
            Agent(there, each, name=each[4:].title(), role="reviewer/test").caller for each in (CURIE, DIRAC)
        )
        self.sync()
        self.task_id = new_task.create(here, self.planck, "Write the tests", to=BOHR, wu="WU-7").task[
            "task_id"
        ]
        task_work.take(here, self.bohr, self.task_id)
        self.claim_id = claim_work.claim_paths(
            here, self.bohr, ["src/**"], lease=2 * HOUR, wu="WU-7"
        ).claim_id
        self.node_id = checkpoints.checkpoint(
            here, self.bohr, "half is done", next_steps="The other half", wu="WU-7", diff_stat=False
        ).node.id
        self.asked = send.send(here, self.bohr, "May I?", to=["Planck"], intent="propose").signal["thread_id"]
        self.asks = send.send(here, self.planck, "Which ones?", to=["Bohr"], intent="propose").signal[
            "thread_id"
        ]
        self.sync()

    def sync(self) -> None:
        """Let both clones have all lines."""
        self.clock.forward(SECOND)
        carry(self.here, self.there)
        self.clock.forward(SECOND)


@pytest.fixture
def clock() -> Clock:
    """A clock that the test moves."""
    return Clock()


@pytest.fixture
def store(repo: Path, clock: Clock) -> Iterator[Store]:
    """One clone."""
    found = open_store(repo, clock)
    yield found
    found.close()


@pytest.fixture
def work(repo: Path, tmp_path: Path, clock: Clock) -> Iterator[Work]:
    """Open work in one clone, and agents in another."""
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "there"), clock)
    yield Work(here, there, clock)
    here.close()
    there.close()
