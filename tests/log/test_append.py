"""Append: what is answered, what is kept, and who commits for whom."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import StoreError
from gitmem.log import append, ref, spool
from gitmem.log.append import drain, drain_all
from gitmem.log.spool import Spool
from gitmem.log.telling import tell

from .logs import FakeClock, all_lines, entry, open_log


def test_an_append_is_one_commit_on_the_ref(repo: Path) -> None:
    """The answer names the commit, and the ref is at it."""
    log = open_log(repo)

    done = append.append(log, entry(log, "hello"))

    assert done.commit == log.git.tip(ref.LOG_REF)
    assert [b'"hello"' in line for line in all_lines(log)] == [True]


def test_every_log_starts_with_the_same_commit(repo: Path) -> None:
    """Logs that are started apart are related."""
    log = open_log(repo)
    append.append(log, entry(log, "hello"))

    assert log.git.history(log.git.tip(ref.LOG_REF) or "")[0] == ref.GENESIS


def test_the_same_entry_twice_is_there_once(repo: Path) -> None:
    """Equal bytes are one line, also when they are committed again."""
    log = open_log(repo)
    once = entry(log, "hello")

    append.append(log, once)
    append.append(log, once)

    assert len(all_lines(log)) == 1


def test_a_riding_entry_makes_no_commit_and_goes_with_the_next_one(repo: Path) -> None:
    """Reading makes no commits."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    tip = log.git.tip(ref.LOG_REF)

    assert append.append(log, entry(log, "receipt", stream="receipts", rides=True)).queued
    assert drain(log)
    assert log.git.tip(ref.LOG_REF) == tip

    append.append(log, entry(log, "second"))

    assert len(all_lines(log)) == 3
    assert log.spool.names() == []


def test_everything_that_waits_goes_into_one_commit(repo: Path) -> None:
    """Who has the lock commits for all."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    before = len(log.git.history(log.git.tip(ref.LOG_REF) or ""))
    for number in range(5):
        waiting = entry(log, f"waits {number}")
        waiting.token = log.token()
        log.spool.put(waiting, log.now())

    assert drain_all(log)

    assert len(log.git.history(log.git.tip(ref.LOG_REF) or "")) == before + 1
    assert len(all_lines(log)) == 6


def test_a_writer_that_cannot_lead_in_time_is_queued_and_not_lost(repo: Path) -> None:
    """No lock is no failure: the next process commits the line."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    other = log.lock()
    assert other.take()

    done = append.append(log, entry(log, "second"), wait_seconds=0.05)

    assert done.queued
    other.release()
    assert drain(log)
    assert len(all_lines(log)) == 2


def test_a_queued_writer_learns_its_commit_from_the_leader(repo: Path) -> None:
    """A writer that finds its file done reads its commit there."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    waiting = entry(log, "second")
    waiting.token = log.token()
    name = log.spool.put(waiting, log.now())

    append.append(log, entry(log, "third"))

    assert log.spool.take_done(name) == log.git.tip(ref.LOG_REF)
    assert log.spool.take_done(name) is None


@pytest.mark.parametrize(
    "error", [KeyError("x"), OSError(28, "full"), ValueError("x"), StoreError("no", code="locked")]
)
def test_what_follows_a_commit_cannot_make_it_fail(repo: Path, error: Exception) -> None:
    """The ref has moved: whatever the index says then, the answer is the commit, and the line is there once."""
    log = open_log(repo)

    def committed() -> None:
        raise error

    log.committed = committed
    waiting = entry(log, "waits")
    waiting.token = log.token()
    log.spool.put(waiting, log.now())

    done = append.append(log, entry(log, "hello"))

    assert done.commit == log.git.tip(ref.LOG_REF)
    assert len(all_lines(log)) == 2
    assert log.spool.names() == []


def test_a_spool_file_of_a_closed_segment_is_not_written_twice(repo: Path) -> None:
    """A crash between swap and removal, then a new segment: the line goes to the one that it was meant for."""
    log = open_log(repo)
    waiting = entry(log, "hello")
    waiting.token = log.token()
    name = log.spool.put(waiting, log.now())
    content = (Path(log.spool.folder) / name).read_bytes()
    drain_all(log)
    (Path(log.spool.folder) / name).write_bytes(content)
    log.new_token()

    drain_all(log)

    assert len(all_lines(log)) == 1


def test_a_segment_closes_at_its_limit(repo: Path) -> None:
    """Files stay small: the next line after 16 KiB goes to a new one."""
    log = open_log(repo)
    first = log.token()

    append.append(log, entry(log, "x" * ref.SEGMENT_MAX_BYTES))

    assert log.token() != first


def test_a_newer_format_is_read_and_never_written(repo: Path) -> None:
    """A clone that meets a higher format says which version to install."""
    log = open_log(repo)
    tip = append.append(log, entry(log, "hello")).commit
    newer = _draft_format(log, b'{"format":2,"epoch":0,"turn":0}\n')
    assert tip and log.git.advance(ref.LOG_REF, tip, newer, "test")

    with pytest.raises(StoreError, match="format 2"):
        append.append(log, entry(log, "world"))

    assert len(all_lines(log)) == 1
    assert log.spool.names() == []


def test_what_fails_in_the_spool_is_withdrawn(repo: Path) -> None:
    """A writer that waited, then led, and failed does not leave its line behind."""
    log = open_log(repo)
    tip = append.append(log, entry(log, "hello")).commit
    assert tip and log.git.advance(ref.LOG_REF, tip, _draft_format(log, b'{"format":2}\n'), "test")
    waiting = entry(log, "world")
    waiting.token = log.token()
    name = log.spool.put(waiting, log.now())

    with pytest.raises(StoreError):
        append._drain_or_withdraw(log, waiting, name)

    assert log.spool.names() == []


def test_what_is_withdrawn_is_not_there_again_after_a_power_loss(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced once the file has gone from it."""
    log = open_log(repo)
    log.make_state()
    waiting = entry(log, "hello")
    waiting.token = log.token()
    name = log.spool.put(waiting, log.now())
    steps: list[str] = []
    sync, unlink = os.fsync, os.unlink

    def synced(handle: int) -> None:
        steps.append("synced" if os.path.samestat(os.fstat(handle), os.stat(log.spool.folder)) else "other")
        sync(handle)

    def unlinked(path: str) -> None:
        steps.append(os.path.basename(path))
        unlink(path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "unlink", unlinked)

    assert spool.take_back(os.path.join(log.spool.folder, name))
    assert steps == [name, "synced"]


def test_what_a_dead_leader_committed_does_not_fail(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader put it into a commit and died before it said so; whoever then fails with others' lines keeps it."""
    log = open_log(repo)
    waiting, later = entry(log, "hello"), entry(log, "world")
    waiting.token = later.token = log.token()
    log.make_state()
    name = log.spool.put(waiting, log.now())
    append.commit_entries(log, [waiting])
    log.spool.put(later, log.now())

    def full(*_: object) -> None:
        raise StoreError("the disk is full", code="store-files")

    with monkeypatch.context() as patch:
        patch.setattr(log.git, "advance", full)
        append._drain_or_withdraw(log, waiting, name)
    assert name in log.spool.names()
    append.drain_all(log)

    assert len(all_lines(log)) == 2
    assert log.spool.names() == []


def no_fsync(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None) -> None:
    """The spool's folder can't be synced, which comes out when the file is already there for all to see."""

    def fails(folder: str) -> None:
        before()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("gitmem.log.spool.fsync_folder", fails)


def test_what_nobody_leads_for_is_withdrawn_whole(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's fsync fails and the lock is free: failed, and it will not appear later."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    no_fsync(monkeypatch)

    with pytest.raises(StoreError, match="nothing was recorded"):
        append.append(log, entry(log, "rides", rides=True))

    assert log.spool.names() == []
    assert log.lock().take(), "the lock is free again"


def test_what_a_leader_may_have_read_is_not_withdrawn(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's fsync fails while somebody leads who has read the file: it is queued, and there once."""
    log, other = open_log(repo), open_log(repo)
    append.append(log, entry(log, "first"))
    lock = other.lock()
    assert lock.take()
    read: list[Any] = []
    no_fsync(monkeypatch, lambda: read.extend(append.collect(other)))

    done = append.append(log, entry(log, "second"), wait_seconds=0.05)

    assert done.queued
    commit = append.commit_entries(other, [found for _, _, found in read])
    assert commit is not None
    append._finish(other, read, commit)
    lock.release()
    assert [b'"second"' in line for line in all_lines(log)] == [False, True]
    assert log.spool.names() == []


def test_what_was_committed_while_its_folder_could_not_be_synced_is_recorded(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader was faster than the failure: the answer is its commit."""
    log, other = open_log(repo), open_log(repo)
    append.append(log, entry(log, "first"))
    lock = log.lock()
    assert lock.take()

    def lead() -> None:
        append.drain_locked(other)
        lock.release()

    no_fsync(monkeypatch, lead)

    assert append.append(log, entry(log, "second")).commit == log.git.tip(ref.LOG_REF)
    assert len(all_lines(log)) == 2


def test_where_a_line_waits_outside_the_repository_is_said(repo: Path, tmp_path: Path) -> None:
    """The first folder that takes it is written to, and named; what waits at home has no such name."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    assert append.append(log, entry(log, "rides", rides=True)).where is None
    (tmp_path / "file").write_text("no folder\n")
    folders = [tmp_path / "file" / "gitmem-1" / "p", tmp_path / "state" / "gitmem" / "p"]
    log.elsewhere = [Spool(str(folder), os.urandom, check_owner=True) for folder in folders]
    log.make_state = lambda: False  # type: ignore[method-assign]

    done = append.append(log, entry(log, "second"))

    assert done.queued
    assert done.where == str(folders[1])
    assert len(list(folders[1].glob("*.spool"))) == 1


def test_a_reader_does_not_wait_for_a_lock_on_the_ref(repo: Path) -> None:
    """What waits for a commit goes on waiting where git holds the ref: readers have other things to do."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    waiting = entry(log, "second")
    waiting.token = log.token()
    log.spool.put(waiting, log.now())
    lock = Path(log.place.common) / f"{ref.LOG_REF}.lock"
    lock.touch()
    began = time.monotonic()

    assert not drain(log, swaps=append.SWAPS_OF_A_READER)

    assert time.monotonic() - began < 1
    lock.unlink()
    assert drain(log, swaps=append.SWAPS_OF_A_READER)
    assert len(all_lines(log)) == 2


def test_somebody_elses_ref_is_left_alone(repo: Path, git) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """A ref of our name that is no log is reported, and nothing is written."""
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    git("update-ref", ref.LOG_REF, head, cwd=repo)
    log = open_log(repo)

    with pytest.raises(StoreError, match="no gitmem log"):
        append.append(log, entry(log, "hello"))

    assert git("rev-parse", ref.LOG_REF, cwd=repo).strip() == head


def test_the_message_of_a_shared_commit_counts(repo: Path) -> None:
    """Several entries are told as a count, with the trailers of all."""
    log = open_log(repo)
    told = tell([entry(log, "a"), entry(log, "b"), entry(log, "c", rides=True)])

    assert told.subject == "3 records from 1 agent"


def test_the_log_is_readable_with_git(repo: Path) -> None:
    """`git log gitmem/log` and the reflog work."""
    log = open_log(repo)
    append.append(log, entry(log, "hello"))

    shown = subprocess.run(
        ["git", "log", "-g", "--format=%an %s", "gitmem/log"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Planck Planck → all: hello" in shown.stdout


def test_times_never_repeat_in_a_clone(repo: Path) -> None:
    """Two processes' worth of ticks at one instant differ, and a remembered future is not believed."""
    clock = FakeClock()
    ticks = [open_log(repo, clock=clock).clock.tick() for _ in range(3)]
    log = open_log(repo, clock=clock)
    log.make_state()
    ticks += [log.clock.tick() for _ in range(3)]
    clock.forward(-3600)

    assert open_log(repo, clock=clock).clock.tick() == clock()
    assert ticks[3:] == sorted(set(ticks[3:]))


def _draft_format(log, content: bytes):  # type: ignore[no-untyped-def]  # a helper of two tests
    from gitmem.git.port import Draft, Signature

    nobody = Signature("a", "b", 0)
    return Draft({"format": content}, nobody, nobody, "a newer gitmem\n")
