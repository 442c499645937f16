"""Writers, a sync, the user's `git gc --prune=now` and our own packing, all at once: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.errors import GitmemError
from gitmem.git import packing
from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
from gitmem.log import exchange, ref, upkeep
from gitmem.log.lock import Lock
from gitmem.operations import doctor
from gitmem.operations.doctor import Report
from tests.clones import agreed

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
from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
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


@pytest.mark.parametrize("name", ["d", "p"])
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
        assert number % len(CARE) > 1 or not done.stderr, done.stderr
        speak(there, f"text-there-{number:03}")
        exchange.exchange(there.log, ["origin"], may_send=agreed, timeout=60)
        try:
            exchange.exchange(open_store(repo, PlumbingGit).log, ["origin"], may_send=agreed, timeout=60)
            upkeep.upkeep(open_store(repo).log, least=20)
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
@pytest.mark.parametrize("step", [3, 11, 17, 26, 60, 120])
def test_packing_that_is_killed_loses_nothing(
    repo: Path, port: type[DulwichGit] | type[PlumbingGit], step: int
) -> None:
    """At any step; the next time goes on from there, and leaves nothing half."""
    store = open_store(repo, port)
    once = {f"text-{number}" for number in range(12)}
    for text in once:
        speak(store, text)

    def pack() -> int:
        return upkeep.upkeep(open_store(repo, port).log, least=1)

    end = child(pack, SystemCall(step, ALL_STEPS, kills=True))
    assert end.died or end.steps < step, end.failed
    fsck(repo)
    check(repo, once, set())
    speak(store, "text-after")
    assert upkeep.upkeep(open_store(repo, port).log, least=1)
    check(repo, {*once, "text-after"}, set())
    fsck(repo)
    assert not os.listdir(repo / ".git" / "gitmem" / "packing" / "pack")
    assert not [name for name in os.listdir(repo / ".git" / "gitmem" / "held") if not name.startswith("tmp-")]
    packs = {path.stem for path in (repo / ".git" / "objects" / "pack").glob("*.pack")}
    assert {each.name for each in packing.own_packs(str(repo / ".git"))} == packs and len(packs) <= 2


@pytest.mark.parametrize("step", [2, 5, 8, 14])
def test_packing_on_a_full_disk_loses_nothing(repo: Path, step: int) -> None:
    """It says so to nobody but who asks for it, and the next time does it."""
    store = open_store(repo)
    once = {f"text-{number}" for number in range(6)}
    for text in once:
        speak(store, text)
    child(lambda: upkeep.upkeep(open_store(repo).log, least=1), SystemCall(step, WRITES, kills=False))
    check(repo, once, set())
    fsck(repo)
    upkeep.upkeep(open_store(repo).log, least=1)
    assert not [name for name in os.listdir(repo / ".git" / "gitmem" / "held") if not name.startswith("tmp-")]
    check(repo, once, set())


def test_one_packs_at_a_time(repo: Path) -> None:
    """The lock is the system's: it dies with its process."""
    store = open_store(repo)
    speak(store, "text-one")
    path = str(repo / ".git" / "gitmem" / "packing.lock")
    holds = f"import fcntl, sys, time; f = open({path!r}, 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE)
    assert other.stdout is not None and other.stdout.readline()
    assert upkeep.upkeep(store.log, least=1) == 0
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert upkeep.upkeep(store.log, least=1) > 0
    with Lock(path) as lock:
        assert lock.take()


def test_a_worktree_packs_the_common_objects(repo: Path) -> None:
    """There is one log a clone, and one place for its packs."""
    git("worktree", "add", "--quiet", "../side", cwd=repo)
    side = repo.parent / "side"
    speak(open_store(side), "text-side")
    assert upkeep.upkeep(open_store(side).log, least=1)
    assert len(packing.own_packs(str(repo / ".git"))) == 1
    check(repo, {"text-side"}, set())


def test_many_commits_are_packed_by_who_makes_them(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that lives on does it itself; a command starts another, and does not wait for it."""
    monkeypatch.setattr(packing, "OBJECTS_MAX", 100)
    monkeypatch.setattr("gitmem.operations.committing.LOOKS", tuple("0123456789abcdef"))
    store = open_store(repo)
    for number in range(40):
        speak(store, f"text-{number}")
    assert len(os.listdir(repo / ".git" / "gitmem" / "held")) < 110
    assert packing.own_packs(str(repo / ".git"))
    before = packing.own_packs(str(repo / ".git"))[-1].tip

    started: list[bool] = []
    store.starts_upkeep = lambda: started.append(True)
    for number in range(40, 60):
        speak(store, f"text-{number}")
    assert started
    assert packing.own_packs(str(repo / ".git"))[-1].tip == before
    assert store.git.tip(ref.LOG_REF)
    assert len(texts(store)) == 60


def test_the_command_that_is_started_packs(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gitmem upkeep`: it says nothing, and ends well, whatever it finds."""
    from cli import background, main

    monkeypatch.setattr(packing, "OBJECTS_MAX", 30)
    monkeypatch.setattr(os, "nice", lambda number: 0)
    monkeypatch.setattr("gitmem.operations.committing.LOOKS", tuple("0123456789abcdef"))
    asked: list[list[str]] = []
    monkeypatch.setattr(background, "start", lambda args: asked.append(list(args)))
    monkeypatch.chdir(repo)
    env = {
        "GITMEM_SESSION": json.loads(_run(main, "session", "start", "--name", "Planck", "--json"))[
            "session_id"
        ]
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for number in range(6):
        _run(main, "signal", f"text {number}", "--broadcast", "--json")
    assert ["-C", str(repo), "upkeep"] in asked
    assert _run(main, *asked[-1]) == ""
    assert packing.own_packs(str(repo / ".git"))
    assert _run(main, *asked[-1]) == ""


def _run(main: object, *args: str) -> str:
    import contextlib
    import io

    streams = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(streams):
        assert main.main(list(args)) == 0  # type: ignore[attr-defined]
    streams.flush()
    return streams.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_doctor_tells_of_what_piles_up_and_packs_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the background never gets to it, and where it was killed over it."""
    store = open_store(repo)
    speak(store, "text-one")
    assert not _packs_found(doctor.examine(store))
    half = repo / ".git" / "gitmem" / "packing" / "pack" / "tmp_pack_half"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"PACK")
    monkeypatch.setattr(packing, "OBJECTS_MAX", 2)
    assert _packs_found(doctor.examine(store)) == ["half-pack", "loose-objects"]

    report = doctor.mend(store)
    assert sorted(each.code for each in report.findings if each.state == "mended") == [
        "half-pack",
        "loose-objects",
    ]
    assert packing.own_packs(str(repo / ".git")) and not half.exists()
    assert not _packs_found(doctor.examine(store))


def _packs_found(report: Report) -> list[str]:
    return sorted(each.code for each in report.findings if each.code in ("half-pack", "loose-objects"))
