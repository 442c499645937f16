"""Whoever can push can write a record about any commit: none attributes a commit to somebody who has not made it, as far as this clone can know."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem import records
from gitmem.git import history
from gitmem.git.history import CommitFacts
from gitmem.history import commit_view, made_by
from gitmem.log.lines import format_at
from tests.sandbox import SECOND, Agent

from .people import Somebody, git, install_hook, store_at
from .test_commit_view import MALLORY, line

FAR = "sess-far1"


class Town:
    """An agent and a person in a worktree, a person in a clone that is fetched, and what a peer has pushed."""

    def __init__(self, repo: Path, far: Path) -> None:
        git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
        install_hook(repo)
        git(repo.parent, "clone", "--quiet", str(repo), str(far))
        self.agent = Somebody("a", repo, store_at(repo))
        assert self.agent.store is not None
        self.store = self.agent.store
        self.person, self.far = Somebody("p", repo), Somebody("f", far)

    def facts(self, commit: str) -> tuple[CommitFacts, str | None]:
        common = self.store.repo.common
        found = history.facts_of(common, [commit], 9.0)[commit]
        return found, history.patch_ids(common, [commit], 9.0).get(commit)

    def claim(self, about: str, session: str = FAR, **fields: object) -> None:
        """A line of a peer that says that a session made a commit, with all that is known of the commit."""
        facts, patch = self.facts(about)
        known = {
            "commit": about,
            "authored_at": format_at(facts.authored * SECOND),
            "patch_id": patch,
            **fields,
        }
        self.put(line(session, **known))

    def put(self, *lines: bytes) -> None:
        self.store.record([("commits", each) for each in lines], MALLORY)

    def session(self, started: int, ended: int | None = None) -> None:
        """The lines of a session of another clone, by the seconds of its start and end."""
        for event, at in (("start", started), ("end", ended)):
            if at is not None:
                fields = {"session_id": FAR, "event": event, "display_name": "Far", "clone_id": "farfarfar0"}
                self.store.record([("sessions", records.line("session", at * SECOND, fields))], MALLORY)


@pytest.fixture
def town(repo: Path, tmp_path: Path) -> Iterator[Town]:
    found = Town(repo, tmp_path / "far")
    yield found
    found.store.close()


def test_a_commit_that_was_made_here_is_nobodys_of_elsewhere(town: Town) -> None:
    """By the reflog of whichever worktree: as its maker, by its changes, as its source, or in the name of a session of this clone."""
    linked = town.agent.folder.parent / "linked"
    git(town.agent.folder, "worktree", "add", "--quiet", "-b", "side", str(linked))
    there = Somebody("q", linked)
    for commit in (town.person.commit(), there.commit()):
        town.claim(commit)
        town.claim(commit, "sess-far2", action="rebase", sources=["d" * 40])
        town.claim(commit, "sess-far3", commit="e" * 40)
        town.claim(commit, town.agent.session)
        assert commit_view.of_commit(town.store.db(), commit)
        assert town.agent.makers(commit) == set()


def test_a_commit_of_an_agent_here_is_no_other_agents(town: Town) -> None:
    """What this clone has recorded itself counts alone, however many others claim the same."""
    own = town.agent.commit()
    for number in range(40):
        town.claim(own, f"sess-{number:04d}", at=1)
    town.agent.look()
    assert town.agent.makers(own) == {town.agent.session}


def test_a_rebased_commit_of_a_person_stays_the_persons(town: Town) -> None:
    town.person.git("checkout", "--quiet", "-b", "topic")
    theirs = town.person.commit()
    time.sleep(1.1)
    town.person.git("checkout", "--quiet", "main")
    town.person.commit()
    town.person.git("checkout", "--quiet", "topic")
    town.person.git("rebase", "--quiet", "main")
    rebased = town.person.head()
    town.claim(theirs)
    town.claim(rebased, "sess-far2")
    town.claim(theirs, "sess-far3", commit="e" * 40)
    assert (town.agent.makers(theirs), town.agent.makers(rebased)) == (set(), set())


@pytest.mark.parametrize(
    ("before", "after", "counts"), [(60, None, True), (60, 60, True), (-60, None, False), (90, -60, False)]
)
def test_another_clones_session_made_only_commits_while_it_was_open(
    town: Town, before: int, after: int | None, counts: bool
) -> None:
    """A commit that was made elsewhere is shown with what its clone says, if the session was at work then."""
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    committed = town.facts(theirs)[0].committed
    town.session(committed - before, None if after is None else committed + after)
    town.claim(theirs)
    assert town.agent.makers(theirs) == ({FAR} if counts else set())
    assert all(not each.is_own for each in commit_view.of_commit(town.store.db(), theirs))


def test_a_commit_from_elsewhere_that_is_picked_here_keeps_its_maker(town: Town) -> None:
    """The picked one was made here, and repeats one that was not."""
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    town.claim(theirs)
    time.sleep(1.1)  # in the second of a commit that was made here, it could be that one
    town.person.commit()
    town.person.git("cherry-pick", theirs)
    assert town.agent.makers() == {FAR}


def test_circles_of_sources_and_repetitions_end(town: Town) -> None:
    """Thousands of lines that each name the next commits as their sources, all with the same changes."""
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    facts, patch = town.facts(theirs)
    ids = [theirs, *(f"{number:040x}" for number in range(1, 3_000))]
    authored = format_at(facts.authored * SECOND)
    town.put(
        *(
            line(f"sess-{at % 50:04d}", commit=commit, action="rebase", patch_id=patch, authored_at=authored,
                 sources=[ids[(at * 7 + each) % len(ids)] for each in range(16)])
            for at, commit in enumerate(ids)
        )
    )  # fmt: skip
    town.store.db()
    began = time.process_time()
    found = made_by.find(town.store.db(), theirs, patch_id=patch, authored=facts.authored)
    assert (found.made, found.is_whole) == ({}, False) and time.process_time() - began < 2


def test_a_forged_line_of_an_own_agent_is_nobodys(town: Town) -> None:
    """Neither for a session of this clone that has ended, nor for one that is open."""
    other = Agent(town.store, "claude:worker:b").session.session_id
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    for session in (other, town.agent.session):
        town.claim(theirs, session)
    assert town.agent.makers(theirs) == set()
