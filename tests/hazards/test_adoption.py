"""A clone that an ordinary fetch brought a log to has that log, also for who only reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import gitmem
from gitmem.signals import history


def _git(*args: str) -> None:
    subprocess.run(["git", *args], check=True, capture_output=True)


def test_a_fresh_clone_reads_what_came_with_it(repo: Path, tmp_path: Path) -> None:
    """No init, no sync, no write: `git clone` brought `origin/gitmem`, and the first look shows it."""
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    _git("clone", "--quiet", "--bare", str(repo), str(hub))
    _git("-C", str(repo), "remote", "add", "origin", str(hub))
    with gitmem.open(str(repo), identity="a:b:c") as log:
        log.sessions.start()
        log.signals.send("hello")
        log.sync(publish=True)
    _git("clone", "--quiet", str(hub), str(other))

    with gitmem.open(str(other)) as log:
        told = [entry.get("message") for entry in history.log(log.store).entries]

    assert told == [None, "hello"]


def test_a_look_at_a_clone_without_a_log_starts_none(repo: Path) -> None:
    """Reading makes nothing."""
    with gitmem.open(str(repo)) as log:
        assert history.log(log.store).entries == []

        assert log.store.git.refs("refs/gitmem/") == {}
