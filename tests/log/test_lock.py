"""The lock: one has it at a time, it goes with whoever has it, and nothing else goes with it."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.log.lock import Lock

fcntl = pytest.importorskip("fcntl")


Kind = Callable[[str], Lock]
KINDS = [pytest.param(Lock, id="answers"), pytest.param(partial(Lock, background=True), id="background")]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """A lock that this package takes, or one that filelock does."""
    found: Kind = request.param
    return found


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def check_turns(path: str, first: Kind, second: Kind) -> None:
    one, other = first(path), second(path)
    assert one.take() and not other.take()
    with one:
        pass
    assert other.take() and not one.take()
    other.release()


@pytest.mark.parametrize("other", KINDS)
def test_one_at_a_time(path: str, kind: Kind, other: Kind) -> None:
    """Who does not get it is told at once; who leaves lets the next one in, whoever takes the lock for them."""
    check_turns(path, kind, other)
    check_turns(path, kind, other)


def test_what_is_not_held_is_not_released(path: str, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second release would close a file of somebody else's that has got the number since."""
    closed: list[int] = []
    lock = kind(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        lock.release()
    assert closed == []

    assert lock.take()
    lock.release()
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        lock.release()
    assert closed == []


def test_a_process_that_was_started_without_standard_input_lets_the_lock_go(path: str) -> None:
    """The lock is its file number 0 then."""
    lock = Lock(path)
    kept = os.dup(0)
    try:
        os.close(0)
        assert lock.take()
        assert os.path.samestat(os.fstat(0), os.stat(path))
        lock.release()
        assert Lock(path).take()
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def test_a_lock_that_cannot_be_opened_is_told_with_a_way_out(tmp_path: Path, kind: Kind) -> None:
    """And that nothing was recorded."""
    with pytest.raises(
        StoreError, match=r"missing/lock cannot be opened or locked \(No such file.*Nothing was changed"
    ) as failed:
        kind(str(tmp_path / "missing" / "lock")).take()

    assert failed.value.code == "lock" and failed.value.hint


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL])
def test_where_the_file_system_cannot_lock_everybody_has_it(
    path: str, kind: Kind, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It saves work; what is right is decided by the swap of the ref."""

    def no(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no)

    assert kind(path).take() and kind(path).take()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_lock_that_is_not_got_leaves_no_open_file(
    path: str, kind: Kind, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whether somebody has it, or the disk is broken: who waits looks a hundred times."""

    def no(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no)
    before = os.dup(0)
    os.close(before)

    if number == errno.EACCES:
        assert not kind(path).take()
    else:
        with pytest.raises((OSError, StoreError)):
            kind(path).take()

    after = os.dup(0)
    os.close(after)
    assert after == before


def test_a_lock_file_has_the_mode_of_a_shared_repository(repo: Path, kind: Kind) -> None:
    """Else the first user's umask keeps the others from locking it. Its content stays."""
    subprocess.run(["git", "config", "core.sharedRepository", "group"], cwd=repo, check=True)
    path = repo / ".git" / "gitmem" / "a lock"
    path.parent.mkdir(exist_ok=True)
    before = os.umask(0o077)
    try:
        with kind(str(path)) as lock:
            assert lock.take()
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) & 0o060 == 0o060
    path.write_text("12\n")
    with kind(str(path)) as lock:
        assert lock.take()
    assert path.read_text() == "12\n"


def test_other_users_of_the_machine_cannot_lock_a_lock_file(repo: Path, kind: Kind) -> None:
    """Who may read a file may lock it: then no line of this clone would be committed, and two workers would take one task."""
    path = repo / ".git" / "gitmem" / "a lock"
    path.parent.mkdir(exist_ok=True)
    before = os.umask(0o022)
    try:
        with kind(str(path)) as lock:
            assert lock.take()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
