"""Shared machines: processes that were stopped, and users who share a clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Git

GITMEM = Path(sys.executable).parent / "gitmem"
LIMIT_SECONDS = 5.0
HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = " + sys.argv[2])
db.execute("BEGIN " + sys.argv[3])
print("held", flush=True)
sys.stdin.read()
"""


def gitmem(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(GITMEM), *args],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def desk(repo: Path, git: Git) -> Path:
    git("config", "user.email", "person@example.org", cwd=repo)
    assert gitmem(repo, "signal", "the first", "--broadcast").returncode == 0
    return repo


@pytest.fixture(params=["wal IMMEDIATE", "delete EXCLUSIVE"], ids=["in a transaction", "with the whole file"])
def stopped(desk: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Somebody who holds the index and does nothing, as a process that was stopped does."""
    (index,) = (desk / ".git" / "gitmem").glob("index-*.sqlite3")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(index), *request.param.split()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    yield desk
    holder.kill()
    holder.communicate()


def test_a_stopped_writer_of_the_index_delays_nobody_for_long(stopped: Path) -> None:
    """Neither a writer nor a reader, and what the one wrote the other sees."""
    for args in (["signal", "meanwhile", "--broadcast", "--json"], ["log", "--json"]):
        began = time.monotonic()
        done = gitmem(stopped, *args)
        took = time.monotonic() - began
        assert done.returncode == 0 and took < LIMIT_SECONDS, (args, took, done)
    assert "meanwhile" in done.stdout


def test_the_log_is_not_locked_while_somebody_waits_for_the_index(desk: Path) -> None:
    """Another process commits at once, whoever waits for a stopped writer of the index."""
    import fcntl

    (index,) = (desk / ".git" / "gitmem").glob("index-*.sqlite3")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(index), "wal", "IMMEDIATE"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    writer = subprocess.Popen(
        [str(GITMEM), "signal", "slow", "--broadcast", "--json"], cwd=desk, stdout=subprocess.PIPE, text=True
    )
    tip = desk / ".git" / "refs" / "gitmem" / "log"
    before = tip.read_text()
    deadline = time.monotonic() + 20
    while tip.read_text() == before:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.1)  # it has committed, and waits for the index now
    assert writer.poll() is None
    with (desk / ".git" / "gitmem" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody has it
    out, _ = writer.communicate(timeout=30)
    assert json.loads(out)["commit"]
    holder.kill()
    holder.communicate()
