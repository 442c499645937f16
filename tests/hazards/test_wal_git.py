"""`git gc --prune=now` and `git repack -ad` without end beside committers: the log and the repository stay whole."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer

from .faults import Port, check, fsck, open_store, speak
from .test_concurrency import Crowd

UPKEEP = [["gc", "--quiet", "--prune=now"], ["repack", "-a", "-d", "--quiet"]]
# What one of these does to the other: a gc begins once, and prunes what a repack is writing.
THEIR_OWN = ("gc is already running", "/.tmp-", "renaming pack to")
WRITERS, EACH = 3, 6


def packs(repo: Path, args: list[str], stop: Path) -> Callable[[], object]:
    def act() -> int:
        runs = 0
        while not stop.exists():
            done = subprocess.run(["git", *args], cwd=repo, capture_output=True, text=True)
            assert done.returncode == 0 or any(words in done.stderr for words in THEIR_OWN), done.stderr
            runs += 1
        return runs

    return act


def writes(repo: Path, number: int, each: int) -> Callable[[], object]:
    def act() -> list[str]:
        store = open_store(repo, commit_after=60.0)
        said = []
        for turn in range(each):
            speak(store, f"w{number}-{turn}")
            said.append(f"w{number}-{turn}")
            time.sleep(0.02)
        store.close()
        return said

    return act


def commits(repo: Path, port: Port, stop: Path) -> Callable[[], object]:
    def act() -> int:
        made = 0
        while not stop.exists():
            store = open_store(repo, port)
            made += commit_process.commit(store, 0.0) is not None
            store.close()
        return made

    return act


def unites(repo: Path, stop: Path) -> Callable[[], object]:
    def act() -> int:
        united = 0
        while not stop.exists():
            store = open_store(repo)
            united += committer.combine_packs(store.log)
            store.close()
            time.sleep(0.05)
        return united

    return act


@pytest.mark.parametrize("each", [EACH, pytest.param(60, marks=pytest.mark.deep)])
def test_objects_that_are_about_to_be_committed_are_not_pruned(repo: Path, tmp_path: Path, each: int) -> None:
    """Every acknowledged line once, and git finds nothing missing; packs of ours are united meanwhile."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    stop = tmp_path / "stop"
    writers, rest = Crowd(tmp_path), Crowd(tmp_path / "rest")
    rest.folder.mkdir()
    for number in range(WRITERS):
        writers.add(writes(repo, number, each))
    rest.add(unites(repo, stop))
    for port in (DulwichGit, PlumbingGit):
        rest.add(commits(repo, port, stop))
    for args in UPKEEP:
        rest.add(packs(repo, args, stop))
    rest.go()
    writers.go()
    said = {text for found in writers.end() for text in found}  # type: ignore[attr-defined]
    stop.touch()
    _, made, by_plumbing, *runs = rest.end()

    assert len(said) == WRITERS * each
    assert made + by_plumbing > 0 and all(runs)  # type: ignore[operator]
    check(repo, {"before", *said}, set())
    fsck(repo)
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=repo, check=True, env=os.environ)
    check(repo, {"before", *said}, set())
    fsck(repo)
