"""Writers, a sync, the user's `git gc --prune=now` and our own packing, all at once: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from gitmem.errors import GitmemError
from gitmem.git import packs as packing
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer
from gitmem.log.lock import Lock
from gitmem.store import Store
from gitmem.sync import exchange
from tests.clones import agreed
from tests.in_process import background_starts

from .faults import ALL_STEPS, WRITES, SystemCall, check, child, fsck, open_store, settled, speak, texts

ROOT = Path(__file__).parents[2]
GC = ("gc", "--quiet", "--prune=now")
# What a user, or what git sets up for one, does about objects; and what gc leaves to a person who knows better.
CARE = (
    GC,
    ("maintenance", "run", "--quiet", "--task=gc", "--task=loose-objects", "--task=incremental-repack"),
    GC,
    ("repack", "-adq"),
    ("prune", "--expire=now"),
)
WRITER = """
import os, sys
from pathlib import Path
from gitmem.errors import StoreError
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from tests.clones import agreed
from tests.hazards.faults import open_store, speak

repo, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = open_store(repo, {"d": DulwichGit, "p": PlumbingGit}[name[0]])
for number in range(count):
    try:
        speak(store, f"text-{name}-{number:03}")
    except StoreError as error:
        print("failed", number, error.message, flush=True)
    else:
        print("said", number, flush=True)
"""


def git(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, timeout=120)


def writer(repo: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(repo), name, str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str], name: str) -> tuple[set[str], set[str]]:
    """What a writer was told is kept, and what it was told is not."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    rows = [row.split(" ", 2) for row in out.splitlines()]
    kept = {f"text-{name}-{int(row[1]):03}" for row in rows if row[0] == "said"}
    return kept, {row[2] for row in rows if row[0] == "failed"}


def with_history(repo: Path) -> None:
    """Something of the user's for a gc to walk through, so that it takes a while."""
    rows = []
    for number in range(400):
        rows.append(f"commit refs/heads/long\ncommitter A <a@example.org> {number} +0000\ndata 1\nx\n")
        rows.append(f"M 100644 inline d{number % 20}/f{number % 100}\ndata 3\n{number:03}\n\n")
    subprocess.run(["git", "fast-import", "--quiet"], input="".join(rows), cwd=repo, text=True, check=True)


@pytest.mark.parametrize("name", ["d", pytest.param("p", marks=pytest.mark.deep)])
def test_writers_a_sync_and_gc(repo: Path, tmp_path: Path, name: str) -> None:
    """Every line that was acknowledged is there once, in both clones, and every repository is sound."""
    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("push", "--quiet", str(hub), "main", cwd=repo)
    git("clone", "--quiet", str(hub), "other", cwd=tmp_path)
    other = tmp_path / "other"
    git("remote", "add", "origin", str(hub), cwd=repo)
    with_history(repo)
    speak(open_store(repo), "text-first")
    exchange.exchange(open_store(repo).log, ["origin"], may_send=agreed, timeout=60)

    there = open_store(other)
    running = [(each, writer(repo, each, 12)) for each in (f"{name}1", f"{name}2")]
    number = 0
    while any(process.poll() is None for _, process in running):
        done = git(*CARE[number % len(CARE)], cwd=repo)
        # git packs refs, too: a ref that moved meanwhile stays as it is, and git says so.
        complaints = [
            line for line in done.stderr.splitlines() if not line.startswith("error: cannot lock ref 'refs/")
        ]
        assert number % len(CARE) > 1 or not complaints, complaints
        speak(there, f"text-there-{number:03}")
        exchange.exchange(there.log, ["origin"], may_send=agreed, timeout=60)
        try:
            exchange.exchange(open_store(repo, PlumbingGit).log, ["origin"], may_send=agreed, timeout=60)
            committer.combine_packs(open_store(repo).log)
        except GitmemError as error:
            assert "nothing" in error.message or "stays" in error.message or error.code == "git-failed", error
        number += 1
    kept = {"text-first", *(f"text-there-{each:03}" for each in range(number))}
    for each, process in running:
        mine, failures = said(process, each)
        assert not failures
        kept |= mine
    for store in (there, open_store(repo), there):
        exchange.exchange(store.log, ["origin"], may_send=agreed, timeout=60)

    for where in (repo, other):
        assert settled(where) == dict.fromkeys(kept, 1)
        fsck(where)
    fsck(hub)


@pytest.mark.parametrize("port", [DulwichGit, PlumbingGit])
@pytest.mark.parametrize(
    "step", [1, 5, 17, 40, *(pytest.param(step, marks=pytest.mark.deep) for step in (2, 3, 11, 26))]
)
def test_uniting_that_is_killed_loses_nothing(
    repo: Path, port: type[DulwichGit] | type[PlumbingGit], step: int
) -> None:
    """At any step; the next time goes on from there, and leaves nothing half."""
    once = {f"text-{number}" for number in range(8)}
    _speak(open_store(repo, port), once)

    def unite() -> int:
        return committer.combine_packs(open_store(repo, port).log)

    end = child(unite, SystemCall(step, ALL_STEPS, kills=True))
    assert end.died or end.steps < step, end.failed
    fsck(repo)
    check(repo, once, set())
    _speak(open_store(repo, port), ["text-after"])
    for path in (repo / ".git" / "gitmem" / "own-packs").iterdir():
        os.utime(path, (0, 0))  # an hour later
    committer.combine_packs(open_store(repo, port).log)
    check(repo, {*once, "text-after"}, set())
    fsck(repo)
    packs = {path.stem for path in (repo / ".git" / "objects" / "pack").glob("*.pack")}
    assert set(packing.own_packs(str(repo / ".git"))) == packs and len(packs) <= 3


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_uniting_on_a_full_disk_loses_nothing(repo: Path, step: int) -> None:
    """It says so to nobody but who asks for it, and the next time does it."""
    once = {f"text-{number}" for number in range(6)}
    _speak(open_store(repo), once)
    files = tuple(name for name in WRITES if name != "write")  # there is room in a pipe
    child(lambda: committer.combine_packs(open_store(repo).log), SystemCall(step, files, kills=False))
    check(repo, once, set())
    fsck(repo)
    committer.combine_packs(open_store(repo).log)
    assert len(packing.own_packs(str(repo / ".git"))) <= 2
    check(repo, once, set())


def _speak(store: Store, said: Iterable[str]) -> None:
    for text in said:
        speak(store, text)
    store.close()


def test_one_unites_at_a_time(repo: Path) -> None:
    """The lock is the system's: it dies with its process."""
    store = open_store(repo)
    _speak(store, ["text-one", "text-two"])
    path = str(repo / ".git" / "gitmem" / "packing.lock")
    holds = f"import fcntl, sys, time; f = open({path!r}, 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE)
    assert other.stdout is not None and other.stdout.readline()
    assert committer.combine_packs(store.log) == 0
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert committer.combine_packs(store.log) > 0
    with Lock(path) as lock:
        assert lock.take()


def test_a_worktree_unites_the_common_packs(repo: Path) -> None:
    """There is one log a clone, and one place for its packs."""
    git("worktree", "add", "--quiet", "../side", cwd=repo)
    side = repo.parent / "side"
    _speak(open_store(side), ["text-side", "text-more"])
    assert committer.combine_packs(open_store(side).log) == 3
    assert len(packing.own_packs(str(repo / ".git"))) == 1
    check(repo, {"text-side", "text-more"}, set())


def test_many_commits_never_leave_many_packs(repo: Path) -> None:
    """Who commits unites a few at once; what takes long a command leaves to another process, and does not wait for it."""
    store = open_store(repo)
    most = 0
    for number in range(60):
        speak(store, f"text-{number}")
        most = max(most, len(list((repo / ".git" / "objects" / "pack").glob("*.pack"))))
    assert most <= 2 * packing.PACKS_MAX
    assert len(packing.own_packs(str(repo / ".git"))) <= packing.PACKS_MAX

    started: list[bool] = []
    store.starts_upkeep = lambda: started.append(True)
    pile_up(repo)
    assert not started
    speak(store, "one more")
    assert started and len(packing.own_packs(str(repo / ".git"))) > packing.PACKS_MAX
    assert len(texts(store)) == 61
    store.close()


def pile_up(repo: Path, packs: int = 12, objects: int = committer.OBJECTS_AT_ONCE // 12 + 1) -> None:
    """Leave packs of ours that are to be united, with as many objects each: more than a command unites."""
    port, who = DulwichGit(str(repo / ".git")), Signature("a", "a@b", 1)
    for pack in range(packs):
        files: dict[str, bytes | TreeEntry | None] = {
            f"s/{number}": b"%d %d" % (pack, number) for number in range(objects)
        }
        port.write([Draft(files, who, who, f"{pack}\n")], None)
    port.close()


def test_the_command_that_is_started_unites(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gitmem upkeep`: it says nothing, and ends well, whatever it finds."""
    from cli import main

    monkeypatch.setattr(os, "nice", lambda number: 0)
    asked = background_starts(monkeypatch)
    monkeypatch.chdir(repo)
    session = json.loads(_run(main, "session", "start", "--name", "Planck", "--json"))["session_id"]
    monkeypatch.setenv("GITMEM_SESSION", session)
    pile_up(repo)
    _run(main, "signal", "text", "--broadcast", "--json")
    assert ["-C", str(repo), "background", "upkeep"] in asked
    before = packing.own_packs(str(repo / ".git"))
    assert _run(main, *asked[-1]) == ""
    assert len(packing.own_packs(str(repo / ".git"))) < len(before)
    assert _run(main, *asked[-1]) == ""


def _run(main: object, *args: str) -> str:
    import contextlib
    import io

    streams = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(streams):
        assert main.main(list(args)) == 0  # type: ignore[attr-defined]
    streams.flush()
    return streams.buffer.getvalue().decode()  # type: ignore[attr-defined]
