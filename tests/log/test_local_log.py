"""One clone's log: what it keeps beside the ref, where it may write, and as whom."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gitmem import repo as place
from gitmem.errors import StoreError
from gitmem.git.port import DulwichGit
from gitmem.log.local_log import LocalLog
from gitmem.log.lock import Lock
from gitmem.text.digests import ALPHABET

from .logs import START, FakeClock, entry, open_log, record, waiting

DOCS = Path(__file__).parents[2] / "docs"


def test_the_names_of_what_a_clone_keeps_are_on_the_page(repo: Path) -> None:
    """Two programs that share a clone agree on the lock and the write-ahead log; README says what may be deleted."""
    page = (
        (DOCS / "local-state.md").read_text(encoding="utf-8").partition("## Files")[2].partition("\n## ")[0]
    )
    known = {
        name.rstrip("/")
        for row in re.findall(r"^\| (`.*?) \|", page, re.M)
        for name in re.findall(r"`(.*?)`", row)
    }
    log = open_log(repo)
    record(log, entry(log, "committed"))
    record(log, entry(log, "rides", deferred=True))
    log.clone_id()

    kept = set(os.listdir(log.repo.state))

    assert kept >= {"README", "lock", "clock", "segment", "clone", "wal"}
    assert kept <= known
    assert "wal/" in (Path(log.repo.state) / "README").read_text()


def test_a_clone_keeps_its_id_and_its_segment(repo: Path) -> None:
    """Random once, in the alphabet that is read aloud without mistakes, and the same for every process after."""
    log, other = open_log(repo, seed=1), open_log(repo, seed=2)
    assert log.make_state()

    made = log.clone_id(), log.token()

    assert [len(word) for word in made] == [10, 8]
    assert set("".join(made)) <= set(ALPHABET) and len(set(made[0])) > 1
    assert (other.clone_id(), other.token()) == made
    assert log.new_token() == other.token() != made[1]


def test_processes_that_make_the_id_of_a_clone_at_once_all_get_one_id(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the sessions of the slower process would not be this clone's, and get no flags."""
    log, other = open_log(repo, seed=1), open_log(repo, seed=2)
    real = log.random
    monkeypatch.setattr(log, "random", lambda size: (other.clone_id(), real(size))[1])

    assert log.clone_id() == other.clone_id() == open_log(repo).clone_id()
    assert not [name for name in os.listdir(log.repo.state) if name.startswith(".tmp-")]


def test_the_id_of_a_clone_is_kept_on_a_file_system_without_links(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    assert open_log(repo, seed=1).clone_id() == open_log(repo, seed=2).clone_id()


def test_clones_differ(repo: Path, tmp_path: Path) -> None:
    """Each byte of chance is used."""
    made = set()
    for number in range(32):
        log = open_log(repo)
        log.random = lambda size, number=number: bytes([number]) * size  # type: ignore[misc]
        made |= {log.new_token()[0]}
    assert made == set(ALPHABET)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\0\0\0\0\0", b"two words", b"../../x", b"\xff\xfe", "d\u00e9j\u00e0vu00".encode(), b"a" * 200, b"Segment"]
)  # fmt: skip
def test_a_small_file_that_is_damaged_is_made_anew(repo: Path, content: bytes) -> None:
    """As after a power loss: what is no word never becomes the name of a segment, nor of a spool file."""
    log = open_log(repo)
    assert log.make_state()
    for name in ("segment", "clone"):
        Path(log.repo.state, name).write_bytes(content)

    token, clone = log.token(), log.clone_id()

    assert (len(token), len(clone)) == (8, 10)
    assert (log.token(), log.clone_id()) == (token, clone)


def test_write_ahead_logs_elsewhere_are_read_in_their_order_and_trusted_when_they_are_ours(
    repo: Path, tmp_path: Path
) -> None:
    """Those that are written to, those of others, and one that appears while a process lives."""
    folders = [str(tmp_path / name / "gitmem-1" / "p") for name in ("own", "others", "later")]
    found = place.find(str(repo))
    log = LocalLog(
        found, DulwichGit(found.common), now=FakeClock(), wal_elsewhere=folders[:1], wals_read=folders[1:2]
    )
    others = log.others

    own = os.path.join(found.state, "wal")
    assert [wal.folder for wal in log.wals] == [own, *folders[:2]]
    log.read_also(folders[1:2])
    assert log.others is others, "what is known of a folder is kept while it is the same"
    log.read_also(folders[1:])
    assert [wal.folder for wal in log.wals[1:]] == folders
    for number, wal in enumerate(log.wals[1:]):
        one = entry(log, f"number {number}")
        one.token = log.token()
        wal.append(one)
        assert os.stat(wal.folder).st_mode & 0o777 == 0o700
    assert waiting(log) == ["number 0", "number 1", "number 2"]
    for folder in folders:
        os.chmod(folder, 0o777)
    assert waiting(log) == []
    log.others = others
    assert waiting(log) == []


def test_who_commits_and_when(repo: Path) -> None:
    """The person whose clone this is, at the clock's time; where nobody is known, who wrote it."""
    log = open_log(repo)
    signed = log.signature(("Planck", "a:b:c"))
    assert (signed.name, signed.mail, signed.seconds) == ("Test Person", "person@example.org", START // 10**6)
    assert isinstance(signed.seconds, int)

    log.committer = None
    signed = log.signature(("Planck", "a:b:c"))
    assert (signed.name, signed.mail) == ("Planck", "a:b:c")
    assert "@" in log.signature().mail


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_may_not_be_written_is_no_failure(
    repo: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A sandbox, or a read-only disk: the line goes to a write-ahead log elsewhere."""

    def no(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "mkdir", no)

    assert not open_log(repo).make_state()


def test_a_state_folder_that_cannot_be_made_is_told(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not a sandbox."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "mkdir", full)

    with pytest.raises(
        StoreError, match=r"gitmem cannot be made \(No space left.*Nothing was recorded"
    ) as failed:
        open_log(repo).make_state()
    assert failed.value.code == "state"


@pytest.mark.parametrize("closed", ["gitmem", "objects"])
def test_where_only_one_of_two_folders_can_be_written_nothing_is_committed(
    repo: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """The lock lies in one, the objects go to the other."""
    log, access = open_log(repo), os.access
    assert log.make_state()

    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith(closed) and access(path, mode))

    assert not log.make_state()


# The lock: one has it at a time, it goes with whoever has it, and nothing else goes with it.

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
