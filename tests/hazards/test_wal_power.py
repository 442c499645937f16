"""A power loss: what was not synced may be gone, and what was acknowledged is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.log import committer, wal_files
from gitmem.log.local_log import LocalLog
from tests.log.logs import all_lines, entry, open_log, record

from .faults import check, check_index, open_store, speak


class Disk:
    """What would survive a power loss below a folder: names that a sync of their folder found, synced bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[Path, set[str]] = {}
        self.content: dict[int, bytes] = {}  # by inode
        for path in [folder, *folder.rglob("*")]:
            self._sync(path)

    def _sync(self, path: Path) -> None:
        if path.is_dir():
            self.names[path] = set(os.listdir(path))
        elif path.is_file():
            self.content[path.stat().st_ino] = path.read_bytes()

    def synced(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(handle: int) -> None:
            real(handle)
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            if path.is_relative_to(self.folder):
                self._sync(path)

        return sync

    def lose(self) -> None:
        """Cut the power: the folder is as the disk has it."""
        for path in sorted(self.folder.rglob("*"), key=lambda each: len(each.parts), reverse=True):
            if path.name not in self.names.get(path.parent, set()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif path.is_file():
                path.write_bytes(self.content.get(path.stat().st_ino, b""))


@pytest.fixture
def log(repo: Path) -> LocalLog:
    """A log that has its first line, and a state folder."""
    made = open_log(repo)
    record(made, entry(made, "first"))
    return made


@pytest.fixture
def disk(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(Path(log.repo.state))
    monkeypatch.setattr(os, "fsync", disk.synced(os.fsync))
    monkeypatch.setattr(os, "fdatasync", disk.synced(os.fdatasync))
    return disk


def texts(log: LocalLog) -> list[str]:
    committer.commit_waiting(log, deferred=True)
    return sorted(line.decode().split('"text":"')[1][:-2] for line in all_lines(log))


def interrupted(log: LocalLog, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something in a process that is killed at its first sync of a folder."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            act()


@pytest.mark.parametrize("deferred", [False, True])
def test_a_line_survives_in_a_generation_that_somebody_else_was_making(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch, deferred: bool
) -> None:
    """Its maker was killed before the folder was synced: whoever writes to it first syncs the folder."""
    shutil.rmtree(log.wal.folder)
    disk.names[disk.folder].discard("wal")
    interrupted(log, monkeypatch, lambda: log.append(entry(log, "never", deferred=deferred)))
    assert wal_files.newest(log.wal.folder, deferred=deferred)

    log.append(entry(log, "acknowledged", deferred=deferred))
    disk.lose()

    assert texts(log) == ["acknowledged", "first"]


def test_a_line_survives_in_a_generation_that_a_committer_was_making(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where the committer was killed: the older generation has its lines, and the new one, too."""
    log.append(entry(log, "older"))
    log.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
    interrupted(log, monkeypatch, log.wal.rotate)

    log.append(entry(log, "newer"))
    disk.lose()

    assert texts(log) == ["first", "newer", "older"]


def test_a_line_survives_in_the_first_generation_of_a_new_clone(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder, folder's folder and file: all names that lead to it are on the disk before the answer."""
    common = Path(repo, ".git")
    disk = Disk(common)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk.synced(os.fsync))
        patch.setattr(os, "fdatasync", disk.synced(os.fdatasync))
        log = open_log(repo)
        log.append(entry(log, "the very first"))
    disk.lose()

    assert texts(open_log(repo)) == ["the very first"]


def test_an_empty_generation_is_synced_once(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever made it: later answers cost one sync of the file."""
    log.append(entry(log, "one"))
    committer.commit_waiting(log)
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)

    log.append(entry(log, "two"))
    log.append(entry(log, "three"))

    assert calls == []


@pytest.mark.parametrize("keeps", ["nothing", "zeros", "half", "all"])
def test_a_record_that_was_not_synced_takes_none_with_it(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    """Its writer was killed before the sync: whatever the disk makes of its blocks, those before and after are there."""
    log.append(entry(log, "before"))
    (file,) = log.waiting()
    size = os.path.getsize(file.path)

    def killed(handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", killed)
        with pytest.raises(KeyboardInterrupt):
            log.append(entry(log, "unsynced"))
    path = Path(file.path)
    written = path.read_bytes()[size:]
    left = {
        "nothing": b"",
        "zeros": bytes(len(written)),
        "half": written[: len(written) // 2],
        "all": written,
    }
    disk.lose()
    path.write_bytes(path.read_bytes()[:size] + left[keeps])

    log.append(entry(log, "after"))

    assert texts(log) == sorted(["after", "before", "first", *(["unsynced"] if keeps == "all" else [])])


def test_a_removed_generation_that_comes_back_changes_nothing(log: LocalLog, disk: Disk) -> None:
    """Nobody syncs a removal: after the power loss the file is committed once more, to no effect."""
    log.append(entry(log, "one"))
    (file,) = log.waiting()
    content = Path(file.path).read_bytes()
    committer.commit_waiting(log)
    assert not os.path.exists(file.path)
    log.new_token()
    Path(file.path).write_bytes(content)
    tip = log.git.tip("refs/gitmem/log")

    assert texts(log) == ["first", "one"]
    assert log.git.tip("refs/gitmem/log") == tip and not log.waiting()


def test_an_index_whose_own_log_is_lost_answers_the_same(repo: Path) -> None:
    """SQLite's log is not synced by an answer: the index is behind then, and catches up with log and generations."""
    store = open_store(repo)
    speak(store, "one")
    store.index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    speak(store, "two")
    store.commit_after = 60.0
    speak(store, "three")
    kept = {path: path.read_bytes() for path in Path(store.repo.state).glob("index-*")}
    store.close()
    for path in Path(store.repo.state).glob("index-*"):
        path.unlink()
    for path, content in kept.items():
        if path.suffix == ".sqlite3":
            path.write_bytes(content)

    later = open_store(repo, commit_after=60.0)
    assert later.db().execute("SELECT count(*) FROM signal").fetchone() == (3,)
    check_index(later)
    later.close()
    check(repo, {"one", "two", "three"}, set())
