"""The clone key: made once, readable by its owner alone, never replaced without being asked to."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.text.digests import Mac, is_signed
from gitmem.trust import clone_key

from .conftest import ROOT, Desk, nothing_written, powerless, process


@pytest.fixture
def key(repo: Path) -> Path:
    return repo / ".git" / "gitmem" / "key"


def log_lines(repo: Path) -> list[bytes]:
    """Every line of the log, by git alone."""
    done = subprocess.run(
        ["git", "grep", "-h", "-e", ".", "refs/gitmem/log", "--", "*.jsonl"],
        cwd=repo, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_reading_makes_no_key_and_writing_makes_one_for_its_owner(desk: Desk, key: Path) -> None:
    """Whatever the umask allows others."""
    desk("roster")
    assert not key.exists()

    before = os.umask(0)
    try:
        desk.start("Planck")
    finally:
        os.umask(before)

    assert len(key.read_bytes()) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [name for name in os.listdir(key.parent) if name.startswith("key")] == ["key"]
    assert all(Mac(key.read_bytes()).is_valid(line) for line in log_lines(desk.repo))


def test_processes_that_begin_together_have_one_key(desk: Desk, key: Path) -> None:
    """A line that was signed with the key of who lost the race would be nobody's."""
    command = [sys.executable, "-m", "cli", "session", "start", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    every = [subprocess.Popen(command, cwd=desk.repo, env=env, stdout=subprocess.DEVNULL) for _ in range(5)]

    assert [each.wait(60) for each in every] == [0] * 5
    found = log_lines(desk.repo)

    assert len(found) == 5
    assert all(Mac(key.read_bytes()).is_valid(line) for line in found)


def truncate(key: Path) -> None:
    key.write_bytes(b"short")


def lengthen(key: Path) -> None:
    key.write_bytes(bytes(33))


def link(key: Path) -> None:
    other = key.with_name("other")
    key.rename(other)
    key.symlink_to(other)


def folder(key: Path) -> None:
    key.unlink()
    key.mkdir()


def give_away(key: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(key, 12345, -1)


@pytest.mark.parametrize("damage", [truncate, lengthen, link, folder, give_away])
def test_a_damaged_key_stops_writing_and_is_not_replaced(
    desk: Desk, key: Path, damage: Callable[[Path], None]
) -> None:
    """It is said what is wrong with it; reading goes on."""
    planck = desk.start("Planck")
    damage(key)
    before = os.lstat(key)

    with nothing_written(desk.repo):
        refused = process("signal", "Hello", "--json", cwd=desk.repo, env={"GITMEM_SESSION": planck})
        read = process("roster", cwd=desk.repo)

    assert refused.status == 4
    assert refused.error["code"] == "clone-key"
    assert str(key) in refused.error["message"]
    assert "Nothing was written" in refused.error["message"]
    assert refused.json["next"] == ["gitmem doctor"]
    assert read.status == 0
    assert (os.lstat(key).st_ino, os.lstat(key).st_size) == (before.st_ino, before.st_size)


def test_doctor_moves_a_damaged_key_aside_and_makes_another(desk: Desk, key: Path) -> None:
    """When it is asked to; the session goes on, and what is left to do is to start it anew."""
    planck = desk.start("Planck")
    truncate(key)

    found = desk("doctor", "--json")
    assert found.status == 1
    assert "clone-key" in {each["code"] for each in found.json["findings"]}
    fixed = desk("doctor", "--fix", "--json")

    left = [each["code"] for each in fixed.json["findings"] if each["state"] == "needs-you"]
    assert (fixed.status, left) == (1, ["clone-key-replaced"]), fixed
    assert fixed.json["next"][0] == "gitmem session start"
    assert len(key.read_bytes()) == 32
    assert [each.read_bytes() for each in (key.parent / "aside").iterdir()] == [b"short"]
    assert desk("signal", "Hello", session=planck).status == 0
    assert desk("whoami", "--json", session=planck).json["session_id"] == planck


def test_a_key_that_others_can_read_is_reported_and_taken_from_them(desk: Desk, key: Path) -> None:
    """It goes on to be the key: a session that was started with it stays known."""
    desk.start("Planck")
    key.chmod(0o644)
    content = key.read_bytes()

    found = desk("doctor", "--json")
    assert found.status == 1
    assert "clone-key-exposed" in {each["code"] for each in found.json["findings"]}
    assert desk("doctor", "--fix").status == 0

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() == content


def test_who_can_make_no_key_writes_without_codes(desk: Desk, key: Path, tmp_path: Path) -> None:
    """In a read-only git folder a session is still started, waits outside of it, and acts."""
    folders = [path for path, _, _ in os.walk(desk.repo / ".git")]
    for path in folders:
        os.chmod(path, 0o555)
    env = {"TMPDIR": str(tmp_path / "tmp"), "CLAUDE_CODE_SESSION_ID": "4f1d9f0e-1111-4222-8333-944445555666"}
    try:
        started = process("session", "start", "--json", cwd=desk.repo, env=env, before=powerless)
        told = process("signal", "Hello", "--json", cwd=desk.repo, env=env, before=powerless)
    finally:
        for path in folders:
            os.chmod(path, 0o755)

    assert (started.status, told.status) == (0, 0), (started, told)
    assert told.json["signal"]["sender_session"] == started.json["session_id"]
    assert not key.exists()
    desk("inbox")
    assert len(log_lines(desk.repo)) == 2
    assert not any(map(is_signed, log_lines(desk.repo)))
    assert json.loads(log_lines(desk.repo)[0])["schema_version"] == "A2A.V1"


@pytest.mark.parametrize(
    ("number", "is_made"),
    [(errno.EIO, False), (errno.ENOSPC, False), (errno.EOPNOTSUPP, True), (errno.EPERM, True)],
)
def test_a_failing_disk_leaves_no_key_that_is_cut_short(
    key: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_made: bool
) -> None:
    """Only where the file system has no hard links is the key written in place: a crash there could cut it short."""
    key.parent.mkdir()

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", fails)

    found = clone_key.make(str(key.parent), os.urandom)

    assert key.exists() is is_made
    assert (found.mac is not None, found.is_missing, found.damage) == (is_made, not is_made, "")
    assert os.listdir(key.parent) == ([key.name] if is_made else [])
