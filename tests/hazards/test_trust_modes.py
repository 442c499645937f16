"""Repositories that users share by a group: every file that gitmem makes has the mode that git would give it."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gitmem import local_files
from gitmem.index import index_file
from tests.conftest import Git

GITMEM = Path(sys.executable).parent / "gitmem"
MEMBERS, ALICE, BOB = 4242, 65534, 65533
DROP_BOUNDING = 24
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER = range(4)
PRIVATE = ("prompts",)  # what people said is their own
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
deep = partial(pytest.param, marks=pytest.mark.deep)


def gitmem(
    folder: Path, *args: str, before: Callable[[], object] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    trust = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    return subprocess.run(
        [str(GITMEM), *args], cwd=folder, env={**os.environ, **trust}, input=stdin, capture_output=True, text=True,
        timeout=60, preexec_fn=before,
    )  # fmt: skip


def shared(tmp_path: Path, git: Git, value: str, umask: int) -> Path:
    """A repository with a commit and a remote, made by git with that setting and umask."""
    before = os.umask(umask)
    try:
        git("init", "--quiet", "--bare", f"--shared={value}", str(tmp_path / "hub.git"))
        git("init", "--quiet", f"--shared={value}", "--initial-branch=main", str(tmp_path / "repo"))
        repo = tmp_path / "repo"
        git("config", "user.email", "person@example.org", cwd=repo)
        git("-c", "user.name=P", "commit", "--quiet", "--allow-empty", "-m", "First", cwd=repo)
        git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
        git("push", "--quiet", "origin", "main", cwd=repo)
    finally:
        os.umask(before)
    return repo


def work(repo: Path, umask: int) -> None:
    """Commands that leave files of all kinds."""
    for args in (
        ["setup", "--autosync", "1h"],
        ["session", "start", "--name", "Planck"],
        ["session", "start", "--name", "Curie"],
        ["signal", "hello", "--to", "Curie", "--as", "Planck"],
        ["inbox", "--as", "Curie"],
        ["mem", "create", "a note", "--as", "Planck"],
        ["sync", "--publish"],
        ["setup", "--client", "codex"],
        ["doctor"],
    ):
        done = gitmem(repo, *args, before=lambda: os.umask(umask))
        assert done.returncode in (0, 1), (args, done)
    start = json.dumps({"session_id": "one", "hook_event_name": "SessionStart", "cwd": str(repo)})
    assert (
        gitmem(repo, "hook", "codex", "SessionStart", stdin=start, before=lambda: os.umask(umask)).returncode
        == 0
    )


@pytest.mark.parametrize(("value", "umask"), [("group", 0o077), deep("0660", 0o022), deep("all", 0o077)])
def test_every_file_has_the_mode_that_git_would_give_it(
    tmp_path: Path, git: Git, value: str, umask: int
) -> None:
    """Whatever the umask, in gitmem's folder as in git's; the key is for the group at most."""
    repo = shared(tmp_path, git, value, umask)
    work(repo, umask)

    wrong, bits = [], local_files.parse(value)
    for path in [repo / ".git" / "gitmem", *(repo / ".git").rglob("*")]:
        mode = path.lstat().st_mode
        at = path.relative_to(repo / ".git")
        if at.parts[0] not in ("gitmem", "objects", "refs", "logs") or at.parts[1:2] == PRIVATE:
            continue
        if at == Path("gitmem/key"):
            assert stat.S_IMODE(mode) == 0o640
            continue
        if at.name.startswith("writer-"):  # this user's own: which key it writes with
            assert stat.S_IMODE(mode) == 0o600
            continue
        others = (
            0o022 if at.parent == Path("gitmem/wal") and path.is_file() else 0
        )  # only its writer writes to it
        if stat.S_IMODE(mode) != local_files.mode_for(mode, bits) & ~others:
            wrong.append(f"{mode:o} {at}")
    assert (repo / ".git" / "gitmem" / "own-packs").is_dir() and wrong == []


def test_opening_the_index_again_keeps_the_locks_of_an_open_connection(tmp_path: Path, git: Git) -> None:
    """A process releases its POSIX locks on a file when it closes any descriptor of it.

    Without them another process that closes the index removes SQLite's log although it is in use.
    """
    where = str(shared(tmp_path, git, "group", 0o022) / ".git" / "index-test.sqlite3")
    first = index_file.connect(where)
    first.execute("CREATE TABLE a (b)")
    index_file.connect(where).close()
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('INSERT INTO a VALUES (1)'); db.commit(); db.close()"
    subprocess.run([sys.executable, "-c", code, where], check=True)

    assert os.path.exists(where + "-wal")
    assert first.execute("SELECT b FROM a").fetchall() == [(1,)]
    first.close()


@pytest.mark.deep
def test_nothing_is_shared_without_the_setting(tmp_path: Path, git: Git) -> None:
    """The umask decides alone."""
    repo = shared(tmp_path, git, "umask", 0o077)
    work(repo, 0o077)

    open_to_others = [
        str(path) for path in (repo / ".git" / "gitmem").rglob("*") if path.lstat().st_mode & 0o2077
    ]
    assert open_to_others == []


@pytest.mark.parametrize(
    ("value", "bits"),
    [("false", 0), ("umask", 0), ("0", 0), ("true", 0o660), ("Group", 0o660), ("1", 0o660), ("all", 0o664),
     ("world", 0o664), ("everybody", 0o664), ("2", 0o664), ("0640", -0o640), ("0666", -0o666), ("0777", -0o666),
     ("0044", 0), ("0999", 0), ("what", 0)],
)  # fmt: skip
def test_values_mean_what_they_mean_to_git(value: str, bits: int) -> None:
    assert local_files.parse(value) == bits


def bare_of_power() -> None:
    """Become a user who is root in name only, a member of the group: nothing helps where the mode doesn't."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.umask(0o077)
    os.setgroups([MEMBERS])
    for each in (DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, CHOWN):
        libc.prctl(DROP_BOUNDING, each, 0, 0, 0)


def give(repo: Path, user: int) -> None:
    """Give what root owns in the git folder to a user and the group."""
    for path in [repo / ".git", *(repo / ".git").rglob("*")]:
        found = path.lstat()
        if found.st_uid == 0:
            os.chown(path, user, MEMBERS, follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(found.st_mode))  # chown takes the set-group-id bit


def written(index: Path) -> int:
    """When somebody last wrote to an index, or to SQLite's own log of it: nanoseconds."""
    files = [index, index.with_name(f"{index.name}-wal")]
    return max(path.stat().st_mtime_ns for path in files if path.exists())


@pytest.mark.deep
@only_root
def test_users_of_one_group_work_in_one_clone(tmp_path: Path, git: Git) -> None:
    """Each reads, commits and syncs beside the others' files, signs with a key of its own, and has an index of its own unless it owns the clone."""
    repo = shared(tmp_path, git, "group", 0o022)
    work(repo, 0o077)
    for owner in (ALICE, BOB):
        give(repo, owner)
        state = repo / ".git" / "gitmem"
        before = max(map(written, state.glob("index-*.sqlite3")))
        for args in (
            ["session", "start", "--name", f"Member {owner}"],
            ["signal", f"beside {owner}", "--to", "Curie", "--as", f"Member {owner}"],
            ["inbox", "--as", "Curie"],
            ["sync"],
        ):
            done = gitmem(repo, *args, "--json", before=bare_of_power)
            assert done.returncode == 0 and '"commit": null' not in done.stdout, (args, done)
        lines = gitmem(repo, "log", "--json", before=bare_of_power).stdout
        assert f"beside {owner}" in lines
        text = git("-c", "safe.directory=*", "log", "-p", "refs/gitmem/log", "--", cwd=repo)
        (line,) = [row for row in text.splitlines() if row.startswith("+") and f"beside {owner}" in row]
        assert '"writer"' in line
        assert max(map(written, state.glob("index-*.sqlite3"))) > before
        told = json.loads(gitmem(repo, "doctor", "--json", before=bare_of_power).stdout)
        assert not [each for each in told["findings"] if each["code"].startswith(("clone-key", "index"))], (
            told
        )
    assert "beside" in git("log", "-p", "refs/heads/gitmem", "--", cwd=tmp_path / "hub.git")


@pytest.mark.deep
@only_root
def test_who_is_in_no_group_is_told_so(tmp_path: Path, git: Git) -> None:
    """Where the setting is missing, a second user gets exit status 4 and a sentence."""
    repo = shared(tmp_path, git, "umask", 0o022)
    work(repo, 0o022)
    give(repo, ALICE)

    done = gitmem(repo, "signal", "hello", "--broadcast", "--as", "Planck", before=bare_of_power)

    assert done.returncode == 4 and "core.sharedRepository" in done.stderr, done


def test_a_private_file_is_not_written_to_one_that_another_user_has_open(tmp_path: Path) -> None:
    """In a folder of a shared repository another user can make a file with the name that is written first."""
    path = tmp_path / "push.json"
    planted = tmp_path / f"{local_files.TEMPORARY}push.json-{os.getpid()}"
    with planted.open("w+b") as theirs:
        planted.chmod(0o666)
        local_files.replace(str(path), b"credentials", private=True)
        assert theirs.read() == b""
    assert path.read_bytes() == b"credentials"
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600
