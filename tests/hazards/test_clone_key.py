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
from typing import Any

import pytest

from gitmem import views
from gitmem.index import catch_up
from gitmem.log.lines import is_attestation
from gitmem.text.addresses import words_of
from gitmem.text.digests import Mac
from gitmem.trust.keys import CloneKeyReader

from ..empty_index import empty_index
from ..sandbox import committed
from .conftest import ROOT, Desk, Said, nothing_written, powerless, process


@pytest.fixture
def key(repo: Path) -> Path:
    return repo / ".git" / "gitmem" / "key"


CLIENT = "4f1d9f0e-1111-4222-8333-944445555666"


def start(repo: Path, client: str = CLIENT, **more: Any) -> Said:
    """Begin a session as a client does, whose own id the key hides."""
    return process("session", "start", "--json", cwd=repo, env={"CLAUDE_CODE_SESSION_ID": client}, **more)


def log_lines(repo: Path) -> list[bytes]:
    """Every record of the log."""
    return [line for line in committed(repo) if not is_attestation(line)]


def test_reading_makes_no_key_and_the_first_client_makes_one_for_its_owner(desk: Desk, key: Path) -> None:
    """Whatever the umask allows others."""
    desk("roster")
    assert not key.exists()

    assert start(desk.repo, before=lambda: os.umask(0)).status == 0

    assert len(key.read_bytes()) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [name for name in os.listdir(key.parent) if name.startswith("key")] == ["key"]
    (begun,) = log_lines(desk.repo)
    assert words_of(json.loads(begun)["harness_session"]) == "h-" + Mac(key.read_bytes()).of(CLIENT.encode())


def test_processes_that_begin_together_have_one_key(desk: Desk, key: Path) -> None:
    """A client that was named with the key of who lost the race would not find its session."""
    command = [sys.executable, "-m", "cli", "session", "start", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    clients = [CLIENT[:-1] + str(number) for number in range(5)]
    every = [
        subprocess.Popen(
            command, cwd=desk.repo, env={**env, "CLAUDE_CODE_SESSION_ID": client}, stdout=subprocess.DEVNULL
        )
        for client in clients
    ]

    assert [each.wait(60) for each in every] == [0] * 5
    found = {words_of(json.loads(line)["harness_session"]) for line in log_lines(desk.repo)}

    assert found == {"h-" + Mac(key.read_bytes()).of(client.encode()) for client in clients}


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
def test_a_damaged_key_stops_new_clients_and_is_not_replaced(
    desk: Desk, key: Path, damage: Callable[[Path], None]
) -> None:
    """It is said what is wrong with it; reading goes on."""
    start(desk.repo)
    damage(key)
    before = os.lstat(key)

    with nothing_written(desk.repo):
        refused = start(desk.repo, CLIENT[:-1] + "0")
        read = process("roster", cwd=desk.repo)

    assert refused.status == 4
    assert refused.error["code"] == "clone-key"
    assert str(key) in refused.error["message"]
    assert "Nothing was written" in refused.error["message"]
    assert refused.json["next"] == ["gitmem doctor"]
    assert read.status == 0
    assert (os.lstat(key).st_ino, os.lstat(key).st_size) == (before.st_ino, before.st_size)


def test_doctor_moves_a_damaged_key_aside_and_makes_another(desk: Desk, key: Path) -> None:
    """When it is asked to; sessions go on."""
    planck = start(desk.repo).json["session_id"]
    truncate(key)

    found = desk("doctor", "--json")
    assert found.status == 1
    assert "clone-key" in {each["code"] for each in found.json["findings"]}
    fixed = desk("doctor", "--fix", "--json")

    assert fixed.status == 0, fixed
    assert len(key.read_bytes()) == 32
    assert [each.read_bytes() for each in (key.parent / "aside").iterdir()] == [b"short"]
    assert desk("signal", "Hello", session=planck).status == 0
    assert desk("whoami", "--json", session=planck).json["session_id"] == planck


def test_a_key_that_others_can_read_is_reported_and_taken_from_them(desk: Desk, key: Path) -> None:
    """It goes on to be the key: a session that was started with it stays known."""
    start(desk.repo)
    key.chmod(0o644)
    content = key.read_bytes()

    found = desk("doctor", "--json")
    assert found.status == 1
    assert "clone-key-exposed" in {each["code"] for each in found.json["findings"]}
    assert desk("doctor", "--fix").status == 0

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() == content


@pytest.mark.parametrize("home", [0o755, 0o555], ids=["with a home", "without a home"])
def test_who_can_make_no_key_writes_all_the_same(desk: Desk, key: Path, tmp_path: Path, home: int) -> None:
    """In a read-only git folder a session is still started, waits outside of it, acts, and is attested when it is committed."""
    folders = [path for path, _, _ in os.walk(desk.repo / ".git")]
    for path in folders:
        os.chmod(path, 0o555)
    (tmp_path / "home").mkdir(home)
    env = {
        "TMPDIR": str(tmp_path / "tmp"),
        "CLAUDE_CODE_SESSION_ID": CLIENT,
        "XDG_STATE_HOME": str(tmp_path / "home"),
    }
    try:
        started = process("session", "start", "--json", cwd=desk.repo, env=env, before=powerless)
        told = process("signal", "Hello", "--json", cwd=desk.repo, env=env, before=powerless)
    finally:
        for path in folders:
            os.chmod(path, 0o755)

    assert (started.status, told.status) == (0, 0), (started, told)
    assert told.json["signal"]["sender_session"] == started.json["session_id"]
    assert not key.exists()
    desk("inbox", env=env)
    lines = log_lines(desk.repo)
    index = empty_index(*views.VIEWS)
    catch_up.insert_lines(index, 1, committed(desk.repo))
    assert len(lines) == 2 and catch_up.count_held(index.db) == 0
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

    keys = CloneKeyReader(str(key.parent), os.urandom, lambda: True)
    keys.for_writing()
    found = keys.now()

    assert key.exists() is is_made
    assert (found.mac is not None, found.is_missing, found.damage) == (is_made, not is_made, "")
    assert os.listdir(key.parent) == ([key.name] if is_made else [])
