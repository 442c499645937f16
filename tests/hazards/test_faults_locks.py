"""Lock files that somebody left: git's and ours. None of them stops the store, and none that is alive is broken."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from tests.clones import Hub, git

from .faults import Port, check, fsck, open_store, speak

PORTS = pytest.mark.parametrize("port", [DulwichGit, PlumbingGit])
OURS = (
    "refs/gitmem/log.lock",
    "packed-refs.lock",
    "objects/tmp_obj_left",
    "objects/pack/tmp_pack_left",
    "HEAD.lock",
    "index.lock",
    "config.lock",
    "shallow.lock",
)


def leave(repo: Path, name: str, seconds: float) -> Path:
    """A file as a process leaves it that was killed so long ago."""
    path = repo / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("left by the dead\n")
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


@PORTS
@pytest.mark.parametrize("name", OURS)
def test_a_lock_of_gits_that_the_dead_left_stops_no_append(repo: Path, port: Port, name: str) -> None:
    """The lock of the log's own ref is broken once it is older than ten seconds; the others are not in the way."""
    store = open_store(repo, port)
    assert speak(store, "before").commit
    left = leave(repo, name, 60)
    assert speak(store, "after").commit
    store.close()
    assert left.exists() == (name != "refs/gitmem/log.lock"), "what is not ours is left alone"
    left.unlink(missing_ok=True)
    check(repo, {"before", "after"}, set())
    fsck(repo)


@PORTS
def test_the_first_append_takes_no_notice_of_an_old_lock(repo: Path, port: Port) -> None:
    """A clone whose first append was killed has a lock and no ref."""
    leave(repo, "refs/gitmem/log.lock", 60)
    store = open_store(repo, port)
    assert speak(store, "first").commit
    store.close()
    check(repo, {"first"}, set())


@PORTS
@pytest.mark.parametrize("started", [True, False], ids=["a log", "no log yet"])
def test_a_lock_that_is_alive_is_waited_for_and_not_broken(repo: Path, port: Port, started: bool) -> None:
    """A lock of this moment may be somebody's: the line is recorded, and committed later."""
    store = open_store(repo, port)
    if started:
        speak(store, "before")
    left = leave(repo, "refs/gitmem/log.lock", 0)
    store.commit_after = 60.0
    assert speak(store, "waits").commit is None
    assert commit_process.commit(store, 0.2, swaps=3) is None
    assert store.waits() and store.commit_failed is None
    assert left.exists()
    left.unlink()
    store.commit_after = 0.0
    assert speak(store, "after").commit
    store.close()
    check(repo, {"waits", "after"} | ({"before"} if started else set()), set())


@PORTS
def test_what_stands_in_our_lock_file_means_nothing(repo: Path, port: Port) -> None:
    """An old file, somebody's process id, a read-only one: a lock is held by the system or not at all."""
    store = open_store(repo, port)
    speak(store, "before")
    lock = repo / ".git" / "gitmem" / "lock"
    lock.write_text(f"{os.getpid()} host42 held by a process that lives\n")
    os.utime(lock, (1, 1))
    began = time.monotonic()
    assert speak(store, "after").commit
    assert time.monotonic() - began < commit_process.COMMIT_SECONDS
    assert "held by" in lock.read_text()
    lock.unlink()
    assert speak(store, "without").commit
    store.close()
    check(repo, {"before", "after", "without"}, set())


def test_locks_that_a_killed_sync_left_do_not_stop_the_next(tmp_path: Path) -> None:
    """On our copy of the remote's tip, on the note of what is published, and on the packed refs."""
    hub = Hub(tmp_path)
    a, b = hub.clone("a"), hub.clone("b")
    for number, name in enumerate(
        (
            "refs/gitmem/remotes/origin/heads/gitmem.lock",
            "refs/gitmem/published.lock",
            "refs/gitmem/log.lock",
            "packed-refs.lock",
            "shallow.lock",
            "FETCH_HEAD.lock",
        )
    ):
        b.add(f"b{number}")
        b.exchange()
        a.add(f"a{number}")
        left = leave(a.path, name, 60)
        assert a.exchange().state == "synced", name
        assert a.exchange().state == "up-to-date", name
        assert a.git.tip(ref.PUBLISHED_REF) == a.tip == hub.tip()
        left.unlink(missing_ok=True)
    b.exchange()
    assert a.texts() == b.texts() and len(a.texts()) == 12
    hub.close()


def test_a_lock_on_the_packed_refs_does_not_stop_a_sync_that_forgets(tmp_path: Path) -> None:
    """A ref that is gone from the remote is pruned here, for which git wants the packed refs."""
    hub = Hub(tmp_path)
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    git("branch", "gitmem-old", "gitmem", cwd=hub.path)
    a.exchange()
    git("pack-refs", "--all", cwd=a.path)
    git("branch", "-D", "gitmem-old", cwd=hub.path)
    leave(a.path, "packed-refs.lock", 60)
    a.add("two")
    assert a.exchange().state == "synced"
    assert hub.texts() == ["one", "two"]
    hub.close()
