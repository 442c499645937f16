"""Threads of one process that share an open log: nothing is lost, and the interpreter survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.clones import git

SEND = """
import sys, threading, gitmem

folder = sys.argv[1]
with gitmem.open(folder, machine="test", commit_after=0) as log:
    curie = log.sessions.start(name="Curie", agent_identity="test:worker:curie").session_id
    planck = log.sessions.start(name="Planck", agent_identity="test:worker:planck").session_id
with gitmem.open(folder, session=planck, machine="test", commit_after=0.2) as log:
    def work(thread):
        for number in range(25):
            log.signals.send(f"{thread}-{number}", to=["Curie"])
            log.memory.append(f"note {thread}-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
with gitmem.open(folder, session=curie, machine="test", commit_after=0) as log:
    print(len(log.inbox(limit=1000, max_bytes=10_000_000).signals), len(log.memory.load()))
"""

WATCH = """
import sys, threading, gitmem

folder = sys.argv[1]
with gitmem.open(folder, machine="test", commit_after=0) as log:
    curie = log.sessions.start(name="Curie", agent_identity="test:worker:curie").session_id
    planck = log.sessions.start(name="Planck", agent_identity="test:worker:planck").session_id
done, seen = threading.Event(), []
with gitmem.open(folder, session=curie, machine="test", commit_after=0.2) as log:
    def watch():
        for batch in log.watch(stop=done):
            seen.extend(each["message"] for each in batch.signals)
            if len(seen) >= 25:
                done.set()

    thread = threading.Thread(target=watch)
    thread.start()
    with gitmem.open(folder, session=planck, machine="test", commit_after=0.2) as other:
        for number in range(25):
            other.signals.send(f"to curie {number}", to=["Curie"])
            log.signals.send(f"to planck {number}", to=["Planck"])
    thread.join(30)
    done.set()
print(len(seen), len(set(seen)))
"""


def run(code: str, repo: Path) -> list[str]:
    """Run a program in a process of its own, as a fault of the interpreter ends it."""
    git("init", "-q", str(repo), cwd=repo.parent)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=repo)
    done = subprocess.run(
        [sys.executable, "-c", code, str(repo)], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.split()


def test_threads_that_write_by_one_log_lose_nothing(tmp_path: Path) -> None:
    """Three threads send and remember at once; each record is in the log once."""
    assert run(SEND, tmp_path / "repo") == ["75", "75"]


def test_a_thread_watches_while_another_sends_by_the_same_log(tmp_path: Path) -> None:
    """Both wait for each other at most for one call."""
    assert run(WATCH, tmp_path / "repo") == ["25", "25"]
