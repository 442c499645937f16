"""Shared machines: processes that were stopped, and users who share a clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Git

from .conftest import powerless

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


def gitmem(
    folder: Path, *args: str, before: Callable[[], None] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(GITMEM), *args], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=60,
        preexec_fn=before,
    )  # fmt: skip


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
    kept, since = 0.0, 0.0  # how long the lock was kept at a stretch, at most
    began = time.monotonic()
    with (desk / ".git" / "gitmem" / "lock").open("r+") as lock:
        while writer.poll() is None:
            now = time.monotonic()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(lock, fcntl.LOCK_UN)
                since = 0.0
            except BlockingIOError:
                since = since or now
                kept = max(kept, now - since)
            time.sleep(0.005)
    assert time.monotonic() - began > 1 and kept < 0.7
    out, _ = writer.communicate(timeout=30)
    assert json.loads(out)["commit"]
    holder.kill()
    holder.communicate()


def left_in(state: Path) -> list[Path]:
    """Files below a folder in which recorded lines wait."""
    return sorted(path for path in state.rglob("[0-9]*.wal1") if path.stat().st_size)


@pytest.fixture
def user_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own folder, which has the key, too, is below that of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))


@pytest.fixture
def workspace(user_state: None, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path at which one project was, and another is now; a line of the first one waits outside of it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir(exist_ok=True)
    folders = [desk / ".git", *(path for path in (desk / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    done = gitmem(desk, "signal", "of the first project", "--broadcast", "--json", before=powerless)
    for path in folders:
        path.chmod(0o700)
    assert done.returncode == 0 and json.loads(done.stdout)["recorded"], done
    assert len(left_in(tmp_path / "user")) == 1 and not left_in(tmp_path / "tmp")
    return desk


def another_project(path: Path, git: Git) -> None:
    path.rename(path.parent / "moved")
    git("init", "--quiet", "--initial-branch=main", str(path))
    git("config", "user.email", "person@example.org", cwd=path)
    git("-c", "user.name=Other", "commit", "--quiet", "--allow-empty", "-m", "Another project", cwd=path)


def test_what_waits_for_one_project_is_not_committed_to_another(
    workspace: Path, tmp_path: Path, git: Git
) -> None:
    """Not shown, not committed, not deleted; and the next answer and doctor say that it waits."""
    another_project(workspace, git)
    (waiting,) = left_in(tmp_path / "user")

    said = gitmem(workspace, "signal", "of the second project", "--broadcast")
    assert said.returncode == 0 and "records of another repository" in said.stderr, said
    told = gitmem(workspace, "doctor", "--json")

    assert "of the first project" not in gitmem(workspace, "log", "--json").stdout
    assert "of the first project" not in git("log", "-p", "refs/gitmem/log", "--", cwd=workspace)
    assert left_in(tmp_path / "user") == [waiting]
    assert told.returncode == 1
    assert "wal-of-another-repository" in [each["code"] for each in json.loads(told.stdout)["findings"]]


def test_what_waits_is_committed_where_it_belongs(workspace: Path, tmp_path: Path, git: Git) -> None:
    """Also by a new clone of the same project at that path: it has the same first commit."""
    workspace.rename(tmp_path / "moved")
    git("clone", "--quiet", str(tmp_path / "moved"), str(workspace))
    git("config", "user.email", "person@example.org", cwd=workspace)

    assert gitmem(workspace, "inbox").returncode == 0
    assert "of the first project" in gitmem(workspace, "log", "--json").stdout
    assert left_in(tmp_path / "user") == []


def test_a_line_that_only_a_temporary_folder_takes_is_told(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state folder comes first: another process may have another $TMPDIR, and a reboot may empty it."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    folders = [desk / ".git", *(path for path in (desk / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    done = gitmem(desk, "signal", "hello", "--broadcast", "--json", before=powerless)
    for path in folders:
        path.chmod(0o700)

    assert done.returncode == 0 and json.loads(done.stdout)["recorded"], done
    assert f"wait in {os.environ['TMPDIR']}" in done.stderr, done
    assert gitmem(desk, "inbox").returncode == 0
    assert "hello" in gitmem(desk, "log", "--json").stdout


def test_doctor_tells_of_lines_of_a_repository_that_is_gone(
    workspace: Path, repo: Path, tmp_path: Path, git: Git
) -> None:
    """A moved repository does not find its lines by its path; whoever asks in any repository is told."""
    workspace.rename(tmp_path / "moved")
    git("init", "--quiet", str(tmp_path / "third"))

    told = json.loads(gitmem(tmp_path / "third", "doctor", "--json").stdout)

    (left,) = [each for each in told["findings"] if each["code"] == "wal-left"]
    assert str(workspace) in left["what"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("is_member", [False, True], ids=["a stranger", "of the group"])
def test_who_can_never_write_is_refused(desk: Path, is_member: bool) -> None:
    """A user whom owner and mode keep out would wait for nobody: exit status 4, and nothing is left anywhere."""
    git_folder = desk / ".git"
    for path in [git_folder, *git_folder.rglob("*")]:
        os.chown(path, 65534, os.getegid() if is_member else 65534)
        if path.is_dir():
            path.chmod(0o775 if is_member else 0o755)
        else:
            path.chmod(0o664 if is_member else 0o644)
    trust = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}

    done = gitmem(desk, "signal", "hello", "--broadcast", "--json", before=powerless, **trust)

    if is_member:
        assert done.returncode == 0 and json.loads(done.stdout)["commit"], done
        return
    assert done.returncode == 4, done
    assert "Nothing was recorded" in done.stdout + done.stderr
    assert left_in(Path(os.environ["XDG_STATE_HOME"])) == []


def sealed(repo: Path) -> Callable[[int], None]:
    """Give a function that sets the mode of every folder in a git folder."""
    folders = [repo / ".git", *(path for path in (repo / ".git").rglob("*") if path.is_dir())]

    def change(mode: int) -> None:
        for path in folders:
            path.chmod(mode)

    return change


def test_a_line_is_not_left_among_those_of_another_project(
    workspace: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder takes it; where none does the command is refused, and nothing is left."""
    another_project(workspace, git)
    (of_first,) = left_in(tmp_path / "user")
    assert gitmem(workspace, "inbox").returncode == 0
    change = sealed(workspace)

    change(0o500)
    taken = gitmem(workspace, "signal", "of the second", "--broadcast", "--json", before=powerless)
    monkeypatch.setenv("TMPDIR", "/proc")
    refused = gitmem(workspace, "signal", "nobody takes it", "--broadcast", "--json", before=powerless)
    change(0o700)

    assert taken.returncode == 0 and json.loads(taken.stdout)["recorded"], taken
    (second,) = left_in(tmp_path / "tmp")
    assert b"of the second" in second.read_bytes()
    assert refused.returncode == 4 and "entries of another repository wait in it" in refused.stdout, refused
    assert left_in(tmp_path / "user") == [of_first]


def test_two_projects_at_one_path_do_not_take_a_folder_at_once(
    workspace: Path, tmp_path: Path, git: Git
) -> None:
    """Two containers may share one state folder: who reads the mark keeps others from changing it meanwhile."""
    import fcntl

    (line,) = left_in(tmp_path / "user")
    of_first = line.read_bytes()
    mark = line.parent / "repository"
    marked = mark.read_bytes()
    another_project(workspace, git)
    assert gitmem(workspace, "inbox").returncode == 0
    line.unlink()
    change = sealed(workspace)
    change(0o500)
    with (line.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writer = subprocess.Popen(
            [str(GITMEM), "signal", "of the second", "--broadcast", "--json"],
            cwd=workspace, stdout=subprocess.PIPE,
            preexec_fn=powerless,  # noqa: PLW1509  # no other thread runs here
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while str(line.parent / "lock") not in open_files(writer.pid):  # it waits for the folder
            assert time.monotonic() < deadline
            time.sleep(0.002)
        line.write_bytes(of_first)
    out, _ = writer.communicate(timeout=30)
    change(0o700)

    assert json.loads(out)["recorded"]
    assert left_in(tmp_path / "user") == [line] and mark.read_bytes() == marked
    assert len(left_in(tmp_path / "tmp")) == 1


def open_files(pid: int) -> set[str]:
    """What a process has open now."""
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(str(path.readlink()))
        except OSError:
            continue  # closed meanwhile
    return found


def test_a_mark_is_on_the_disk_before_the_line(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power loss a line without its mark would be of no repository."""
    from gitmem import repo as place
    from gitmem.log.lines import CommitMessage, LogEntry
    from gitmem.log.write_ahead import Owner, WriteAheadLog

    steps: list[str] = []
    real = os.fsync, os.write, os.replace

    def synced(handle: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{handle}").readlink().name.split("-")[0])
        real[0](handle)

    def written(handle: int, data: bytes) -> int:
        steps.append("write " + Path(f"/proc/self/fd/{handle}").readlink().suffix)
        return real[1](handle, data)

    def replaced(old: str, new: str) -> None:
        steps.append("rename " + Path(new).name)
        real[2](old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(os, "replace", replaced)
    folder = repo.parent / "outside" / "project"
    wal = WriteAheadLog(str(folder), lambda: 1, check_owner=True, owner=Owner(place.find(str(repo))))
    wal.append(LogEntry([("t", b'{"a":1}')], CommitMessage("a <a@b>", "b"), token="t"))

    marked = steps.index("rename repository")
    assert steps[marked - 1] == "sync .tmp"
    assert steps.index("sync project", marked) < steps.index("write .wal1")
