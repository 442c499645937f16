"""The branch of a session's worktree, which tells others whom a change of that branch concerns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.agents import lifecycle, presence
from gitmem.agents.caller import CallerClaims
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import Clock, acting, open_store


@pytest.fixture
def store(repo: Path) -> Store:
    return open_store(repo, Clock())


def branch_of(store: Store, session_id: str) -> str | None:
    found = presence.get(store, session_id)
    assert found is not None
    return found.record.get("branch")


def test_it_is_recorded_at_start_and_with_changes(git: Git, repo: Path, store: Store) -> None:
    """Also at the start of a client's session that goes on."""
    who = CallerClaims(client_session=("claude-code", "123"))
    started = lifecycle.start(store, who)
    assert branch_of(store, started.session_id) == "main"
    git("switch", "--quiet", "-c", "topic", cwd=repo)
    lifecycle.start(store, who)
    assert branch_of(store, started.session_id) == "topic"
    git("switch", "--quiet", "-c", "next", cwd=repo)
    lifecycle.change(store, acting(store, started), activity="resolving")
    assert branch_of(store, started.session_id) == "next"
    git("switch", "--quiet", "--detach", cwd=repo)
    lifecycle.start(store, who)
    assert branch_of(store, started.session_id) is None
    assert not lifecycle.change(store, acting(store, started), activity="resolving").recorded


def test_a_change_from_another_worktree_leaves_it(git: Git, repo: Path, tmp_path: Path, store: Store) -> None:
    started = lifecycle.start(store, CallerClaims())
    git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "two"), cwd=repo)
    two = open_store(tmp_path / "two", Clock())
    lifecycle.change(two, acting(two, started), activity="looking")
    assert branch_of(store, started.session_id) == "main"


def test_a_session_that_resumes_takes_no_former_branch(git: Git, repo: Path, store: Store) -> None:
    who = CallerClaims(client_session=("claude-code", "123"))
    lifecycle.end(store, acting(store, lifecycle.start(store, who)))
    git("switch", "--quiet", "--detach", cwd=repo)
    assert branch_of(store, lifecycle.start(store, who).session_id) is None


@pytest.mark.parametrize(
    "name",
    ["b\u202eidi", os.fsdecode(b"\xff"), "AKIAIOSFODNN7EXAMPLF", "x" * 200 + "/" + "y" * 200],
    ids=ascii,
)
def test_a_name_that_records_cannot_have_prevents_nothing(
    git: Git, repo: Path, store: Store, name: str
) -> None:
    git("switch", "--quiet", "-c", name, cwd=repo)
    started = lifecycle.start(store, CallerClaims())
    assert branch_of(store, started.session_id) in (None, name)
    assert (branch_of(store, started.session_id) is None) == (len(name) < 100)
