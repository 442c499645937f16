"""Sessions on branches that conflict are told once, however many clones find it; nobody else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.history import overlap
from gitmem.signals import announcements, inbox, threads
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import DAY, HOUR, Clock, acting, carry, open_store
from ..signing import BOB
from .test_overlap import branch


def agent(store: Store, git: Git, repo: Path, name: str, on: str) -> Caller:
    """A session that works on a branch."""
    git("switch", "--quiet", on, cwd=repo)
    started = lifecycle.start(store, CallerClaims(), name=name, agent_identity=f"test:agent:{name.lower()}")
    git("switch", "--quiet", "main", cwd=repo)
    return acting(store, started)


def unread(store: Store, caller: Caller) -> list[str]:
    return [str(each["message"]) for each in inbox.read(store, caller).signals]


@pytest.fixture
def conflicting(git: Git, repo: Path) -> None:
    """Two branches that conflict, and one that changes the same file as one of them without a conflict."""
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})


@pytest.mark.usefixtures("conflicting")
def test_both_sides_are_told_by_one_signal_once(git: Git, repo: Path, store: Store, clock: Clock) -> None:
    one, other = agent(store, git, repo, "One", "one"), agent(store, git, repo, "Other", "other")
    third = agent(store, git, repo, "Third", "main")

    found = overlap.overlap(store, notify=third)

    said = (
        "The branches one and other conflict in README. Agree on who changes what before you merge; `gitmem overlap`"
        " shows more."
    )
    assert (unread(store, one), unread(store, other), unread(store, third)) == ([said], [said], [])
    assert len(found.sent) == 1
    assert "gitmem overlap --notify" not in found.next
    for _ in range(3):
        assert overlap.overlap(store, notify=one).sent == []
        clock.forward(23 * HOUR)
    assert overlap.overlap(store).sent == []


@pytest.mark.usefixtures("conflicting")
def test_a_pair_is_told_again_of_other_files_after_a_day(
    git: Git, repo: Path, store: Store, clock: Clock
) -> None:
    one, other = agent(store, git, repo, "One", "one"), agent(store, git, repo, "Other", "other")
    assert overlap.overlap(store, notify=one).sent
    for name in ("one", "other"):
        git("switch", "--quiet", name, cwd=repo)
        (repo / "more").write_text(name)
        git("add", "more", cwd=repo)
        git("commit", "--quiet", "-m", "more", cwd=repo)
    git("switch", "--quiet", "main", cwd=repo)
    assert overlap.overlap(store, notify=one).sent == []
    clock.forward(DAY + HOUR)
    for who, name in ((one, "one"), (other, "other")):
        git("switch", "--quiet", name, cwd=repo)
        lifecycle.change(store, who, activity="at work")
    (sent,) = overlap.overlap(store, notify=one).sent
    assert "README, more" in unread(store, other)[-1]
    assert len(threads.thread(store, sent).signals) == 2, "all notices of a pair are one thread"


@pytest.mark.usefixtures("conflicting")
def test_two_clones_make_one_signal(git: Git, repo: Path, tmp_path: Path, store: Store, clock: Clock) -> None:
    git("clone", "--quiet", str(repo), str(tmp_path / "clone"))
    clone = open_store(tmp_path / "clone", clock)
    one = agent(store, git, repo, "One", "one")
    git("switch", "--quiet", "other", cwd=tmp_path / "clone")
    other = acting(clone, lifecycle.start(clone, CallerClaims(), name="Other"))
    carry(store, clone)
    sent = overlap.overlap(store, notify=one).sent
    assert overlap.overlap(clone, notify=other).sent == sent
    carry(store, clone)
    for where, who in ((store, one), (clone, other)):
        (signal,) = inbox.read(where, who).signals or threads.thread(where, sent[0]).signals
        assert not signal.get("conflict")
        assert len(threads.thread(where, sent[0]).signals) == 1
    clock.forward(HOUR)
    assert overlap.overlap(clone, notify=other).sent == []


@pytest.mark.usefixtures("conflicting")
def test_another_s_notice_counts_only_for_its_readers(
    git: Git, repo: Path, tmp_path: Path, store: Store, clock: Clock
) -> None:
    """Somebody who tells himself, or has another time or text, must not keep ours back."""
    git("clone", "--quiet", str(repo), str(tmp_path / "clone"))
    clone = open_store(tmp_path / "clone", clock, writer=BOB)
    one, other = agent(store, git, repo, "One", "one"), agent(store, git, repo, "Other", "other")
    them = acting(clone, lifecycle.start(clone, CallerClaims(), name="Them"))
    pair = overlap.Conflict(["one", "other"], ["other"], [])
    for to, hours in (("test:agent:nobody", 0), (other.reader, 30)):
        clock.forward(hours * HOUR)
        fields = announcements.notice_fields(clone, them, overlap.OVERLAP, pair.key())
        fields["recipients"], fields["thread_id"] = [to], pair.thread()
        announcements.record_notice(clone, them, fields)
        clock.forward(-hours * HOUR)
    carry(store, clone)
    assert len(overlap.overlap(store, notify=one).sent) == 1


@pytest.mark.usefixtures("conflicting")
def test_nobody_is_told_without_another_reader(git: Git, repo: Path, store: Store, clock: Clock) -> None:
    """Without sessions on the branches, by the only one, and of sessions that are gone."""
    third = agent(store, git, repo, "Third", "main")
    assert overlap.overlap(store, notify=third).sent == []
    one = agent(store, git, repo, "One", "one")
    assert overlap.overlap(store, notify=one).sent == []
    clock.forward(2 * DAY)
    assert overlap.overlap(store, notify=third).sent == []


def test_names_that_no_line_can_have(git: Git, repo: Path, store: Store) -> None:
    """A secret in a name stops that notice alone; escapes, line ends and lengths do no harm."""
    odd = os.fsdecode(b"a\n\x1b[2J\xff") + "\u202e" + "x" * 150
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for name, file in (("one", odd), ("other", odd), ("three", secret), ("four", secret)):
        branch(git, repo, name, {file: f"{name}\n"})
    one, _ = agent(store, git, repo, "One", "one"), agent(store, git, repo, "Other", "other")
    agent(store, git, repo, "Three", "three")
    agent(store, git, repo, "Four", "four")
    found = overlap.overlap(store, notify=one)
    assert len(found.sent) == 1
    assert any("Nobody was told of four and three" in each for each in found.warnings)


def test_at_most_so_many_at_once_and_a_key_that_fits(git: Git, repo: Path, store: Store) -> None:
    """Keys are one line of 1,024 characters, whatever the names are."""
    one, other = agent(store, git, repo, "One", "main"), agent(store, git, repo, "Other", "main")
    session = lifecycle.presence.get(store, str(other.session_id))
    assert session is not None
    conflicts = [
        overlap.Conflict([f"{n}" + "\x1b" * 200, "\x1b" * 240], ["\x1b" * 4_000] * 9, [session])
        for n in range(overlap.NOTICES_MAX + 5)
    ]
    sent, warnings = overlap.tell_all(store, one, conflicts)
    assert len(sent) == overlap.NOTICES_MAX
    assert warnings
