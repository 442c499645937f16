"""Whether there is a remote is known without a process of git for each question, and forgotten with the config."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import gitmem
from gitmem.git import run
from gitmem.log.port import open_port
from gitmem.log.remote_config import HasRemote
from gitmem.place import find
from tests.conftest import Git


def test_a_remote_is_seen_when_it_comes_and_when_it_goes(repo: Path, git: Git) -> None:
    """The config's file says that it changed."""
    place = find(str(repo))
    with closing(open_port(place, lives_on=True)) as port:
        has_remote = HasRemote(place, port)
        assert not has_remote()
        git("remote", "add", "origin", "https://example.org/a.git", cwd=repo)
        assert has_remote()
        git("remote", "remove", "origin", cwd=repo)
        assert not has_remote()
        git("config", "--file", "more", "remote.other.url", "https://example.org/b.git", cwd=repo)
        git("config", "include.path", "../more", cwd=repo)
        assert has_remote()


def test_sending_often_asks_git_for_its_config_once(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that lives on starts no process for each signal."""
    git("config", "user.email", "person@example.org", cwd=repo)
    asked = []
    original = run.run

    def counted(common: str, args: list[str], **options: object) -> object:
        asked.append(args[0])
        return original(common, args, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(run, "run", counted)
    with gitmem.open(str(repo)) as mine:
        mine.signals.send("first")
        asked.clear()
        for at in range(5):
            mine.signals.send(f"number {at}")

    assert asked.count("config") <= 1
