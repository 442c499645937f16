"""Two clones, agents with open work, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gitmem.memory import checkpoints
from gitmem.signals import send
from gitmem.store import Store
from gitmem.text.addresses import words_of
from gitmem.work import claim_work, new_task, task_work
from tests import templates
from tests.sandbox import HOUR, SECOND, Agent, Clock, acting, annas, carry, new_repo, open_store

PLANCK, BOHR, CURIE, DIRAC = map(annas, ("a:b:planck", "a:b:bohr", "a:b:curie", "a:b:dirac"))


class Begun(NamedTuple):
    """What is at work as a test begins: the sessions, and the ids of what Bohr has."""

    sessions: dict[str, str]
    clock: Clock
    task_id: str
    claim_id: str
    node_id: str
    asked: str
    asks: str


def begin(root: Path) -> Begun:
    """Planck asks Bohr for tests; Bohr takes the task, claims files, writes a checkpoint and has two open threads."""
    clock = Clock()
    templates.copy("repo", root / "repo", templates.first_commit)
    here, there = open_store(root / "repo", clock), open_store(new_repo(root / "there"), clock)
    planck, bohr = (Agent(here, each, name=words_of(each)[4:].title()).caller for each in (PLANCK, BOHR))
    curie, dirac = (
        Agent(there, each, name=words_of(each)[4:].title(), role="reviewer/test").caller
        for each in (CURIE, DIRAC)
    )
    sync(here, there, clock)
    task_id = new_task.create(here, planck, "Write the tests", to=BOHR, wu="WU-7").task["task_id"]
    task_work.take(here, bohr, task_id)
    claim = claim_work.claim_paths(here, bohr, ["src/**"], lease=2 * HOUR, wu="WU-7")
    said = checkpoints.checkpoint(
        here, bohr, "half is done", next_steps="The other half", wu="WU-7", diff_stat=False
    )
    asked = send.send(here, bohr, "May I?", to=["Planck"], intent="propose").signal["thread_id"]
    asks = send.send(here, planck, "Which ones?", to=["Bohr"], intent="propose").signal["thread_id"]
    sync(here, there, clock)
    here.close()
    there.close()
    sessions = {each.reader: each.session_id or "" for each in (planck, bohr, curie, dirac)}
    return Begun(sessions, clock, task_id, claim.claim_id, said.node.id, asked or "", asks or "")


def sync(here: Store, there: Store, clock: Clock) -> None:
    """Let both clones have all lines."""
    clock.forward(SECOND)
    carry(here, there)
    clock.forward(SECOND)


class Work:
    """What `begin` has made: Curie and Dirac are in another clone; `sync` carries all lines."""

    def __init__(self, root: Path) -> None:
        begun = templates.copy("open-work", root, begin)
        _, self.clock, self.task_id, self.claim_id, self.node_id, self.asked, self.asks = begun
        self.here, self.there = (open_store(root / name, self.clock) for name in ("repo", "there"))
        self.planck, self.bohr = (acting(self.here, begun.sessions[each]) for each in (PLANCK, BOHR))
        self.curie, self.dirac = (acting(self.there, begun.sessions[each]) for each in (CURIE, DIRAC))

    def sync(self) -> None:
        """Let both clones have all lines."""
        sync(self.here, self.there, self.clock)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    """Open work in one clone, and agents in another."""
    found = Work(tmp_path)
    yield found
    found.here.close()
    found.there.close()
