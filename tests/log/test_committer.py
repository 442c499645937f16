"""The committer: everything that waits goes into one commit, once, whatever happens on the way."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.log import committer, lock, ref
from gitmem.log.local_log import LocalLog
from gitmem.log.write_ahead import WriteAheadLog

from .logs import all_lines, entry, open_log, record, waiting, without_locks


def commits(log: LocalLog) -> int:
    return len(log.git.history(log.git.tip(ref.LOG_REF) or ""))


def names(log: LocalLog) -> list[str]:
    """The files of the write-ahead log that have anything in them, and what was put beside them."""
    return sorted(
        name for name in os.listdir(log.wal.folder) if os.path.getsize(os.path.join(log.wal.folder, name))
    )


def test_a_deferred_entry_makes_no_commit_and_goes_with_the_next_one(repo: Path) -> None:
    """Reading makes no commits."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    tip = log.git.tip(ref.LOG_REF)
    log.append(entry(log, "receipt", stream="receipts", deferred=True))

    assert committer.commit_waiting(log) is None
    assert log.waiting() == [] and waiting(log) == ["receipt"]
    assert log.git.tip(ref.LOG_REF) == tip
    record(log, entry(log, "second"))

    assert len(all_lines(log)) == 3 and waiting(log) == []


def test_where_deferred_entries_are_to_be_committed_they_are(repo: Path) -> None:
    """A sync sends them, and the end of a session records them."""
    log = open_log(repo)
    log.append(entry(log, "receipt", deferred=True))

    assert committer.commit_waiting(log, deferred=True) is not None
    assert len(all_lines(log)) == 1 and waiting(log) == []


def test_a_commit_of_another_process_is_waited_for(repo: Path) -> None:
    """What was recorded before the question is in a commit afterwards, whoever made it."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    log.append(entry(log, "second"))
    other = log.lock()
    assert other.take()

    assert committer.commit_within(log, 0.05) is None
    assert waiting(log) == ["second"]
    real = log.lock

    def busy() -> object:
        if other._fd >= 0:  # as if the other process committed between two looks
            other.release()
            committer.commit_waiting(open_log(repo))
            assert other.take()
        return real()

    log.lock = busy  # type: ignore[assignment,method-assign]
    assert committer.commit_within(log, 5.0) == log.git.tip(ref.LOG_REF)
    other.release()
    assert len(all_lines(log)) == 2


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            OSError(28, "No space left"),
            "disk",
            r"log cannot be written \(No space left\); the records are kept",
        ),
        (OSError("a bare word"), "disk", r"log cannot be written \(a bare word\)"),
        (KeyError("1234"), "missing-object", "object 1234 .*; the records are kept"),
        (
            StoreError("fatal: no", code="git-failed"),
            "git-failed",
            r"^fatal: no; the records are kept.*\.$",
        ),
        (StoreError("It is odd.", code="odd"), "odd", r"^It is odd\.$"),
    ],
    ids=["full", "no number", "missing", "git", "other"],
)
def test_a_commit_that_fails_says_that_the_lines_wait(
    repo: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, words: str
) -> None:
    """They are kept, there is a way out, and the next commit has them once."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    log.append(entry(log, "second"))

    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(log.git, "advance", fails)
        with pytest.raises(StoreError) as failed:
            committer.commit_waiting(log)

    assert failed.value.code == code
    assert re.search(words, failed.value.message), failed.value.message
    assert failed.value.hint or isinstance(error, StoreError)
    assert waiting(log) == ["second"] and len(all_lines(log)) == 1
    assert committer.commit_waiting(log) is not None
    assert len(all_lines(log)) == 2 and names(log) == []


def test_a_reader_does_not_wait_for_a_lock_on_the_ref(repo: Path) -> None:
    """What waits for a commit goes on waiting where git holds the ref: readers have other things to do."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    log.append(entry(log, "second"))
    lock = Path(log.repo.common) / f"{ref.LOG_REF}.lock"
    lock.touch()
    began = time.monotonic()

    assert committer.commit_waiting(log, swaps=committer.READER_SWAPS_MAX) is None

    assert time.monotonic() - began < 1
    lock.unlink()
    assert committer.commit_waiting(log, swaps=committer.READER_SWAPS_MAX) is not None
    assert len(all_lines(log)) == 2


@pytest.mark.parametrize(
    "error", [KeyError("x"), OSError(28, "full"), ValueError("x"), StoreError("no", code="locked")]
)
def test_what_follows_a_commit_cannot_make_it_fail(repo: Path, error: Exception) -> None:
    """The ref has moved: whatever the index says then, the answer is the commit, and the line is there once."""
    log = open_log(repo)

    def committed() -> None:
        raise error

    log.committed = committed
    log.append(entry(log, "waits"))

    assert committer.commit_waiting(log) == log.git.tip(ref.LOG_REF)
    assert len(all_lines(log)) == 1 and waiting(log) == []


def test_the_index_is_brought_up_to_date_before_a_file_goes_and_after_the_lock_was_released(
    repo: Path,
) -> None:
    """A reader finds each line in the one or the other; whoever keeps the index busy stops no other committer."""
    log = open_log(repo)
    seen: list[object] = []
    log.committed = lambda: seen.append((waiting(log), log.lock().take(), len(all_lines(log))))
    log.append(entry(log, "hello"))

    committer.commit_waiting(log)

    assert seen == [(["hello"], True, 1)]


def test_what_is_committed_twice_is_there_once(repo: Path) -> None:
    """A crash between swap and removal, and a new segment since: the line goes to the one that it was meant for."""
    log = open_log(repo)
    log.append(entry(log, "hello"))
    (file,) = log.waiting()
    shutil.copy(file.path, repo / "kept")
    committer.commit_waiting(log)
    shutil.copy(repo / "kept", file.path)
    log.new_token()
    tip = log.git.tip(ref.LOG_REF)

    assert committer.commit_waiting(log) == tip
    assert len(all_lines(log)) == 1 and names(log) == []


def test_a_file_that_is_being_written_is_committed_and_left(repo: Path) -> None:
    """Its writer was stopped with the lock: what it wrote since is committed by the next one."""
    log = open_log(repo)
    log.append(entry(log, "first"))
    (file,) = log.waiting()
    with open(file.path, "ab") as writer:
        assert lock.lock_file(writer.fileno(), exclusive=False)
        committer.commit_waiting(log)
        assert len(all_lines(log)) == 1 and names(log) == [file.name]
        late = entry(log, "late")
        late.token = log.token()
        other = WriteAheadLog(str(repo / "other"), log.now)
        other.append(late)
        writer.write(Path(other.files()[0].path).read_bytes())

    committer.commit_waiting(log)

    assert len(all_lines(log)) == 2 and names(log) == []


def test_a_file_that_has_grown_since_it_was_read_is_left(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be locked a writer may come at any time."""
    log = open_log(repo)
    without_locks(monkeypatch)
    log.append(entry(log, "first"))
    (file,) = log.waiting()
    late = entry(log, "late")
    late.token = log.token()
    other = WriteAheadLog(str(repo / "other"), log.now)
    other.append(late)

    def grows() -> None:
        with open(file.path, "ab") as writer:
            writer.write(Path(other.files()[0].path).read_bytes())

    log.committed = grows
    committer.commit_waiting(log)
    log.committed = lambda: None
    assert names(log) == [file.name]

    committer.commit_waiting(log)

    assert len(all_lines(log)) == 2 and names(log) == []


def test_a_file_that_is_none_of_ours_stays_where_it_is(repo: Path) -> None:
    """A folder, a pipe, another user's notes: they keep none of the others from their commit."""
    log = open_log(repo)
    log.append(entry(log, "first"))
    Path(log.wal.folder, "notes.txt").write_text("mine")
    Path(log.wal.folder, f"{1:017d}.wal1").mkdir()
    os.mkfifo(Path(log.wal.folder, f"{2:017d}.wal1"))

    assert committer.commit_waiting(log) is not None

    assert len(all_lines(log)) == 1
    assert {"notes.txt", f"{1:017d}.wal1", f"{2:017d}.wal1"} <= set(os.listdir(log.wal.folder))


def test_a_file_that_cannot_be_removed_keeps_none_of_the_others(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed: whoever commits it again adds nothing."""
    log = open_log(repo)
    log.append(entry(log, "first"))

    def fails(path: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fails)
        committer.commit_waiting(log)
    record(log, entry(log, "second"))

    assert len(all_lines(log)) == 2 and names(log) == []


def test_where_a_line_waits_outside_the_repository_is_said(repo: Path, tmp_path: Path) -> None:
    """The first folder that takes it is written to, and named; who may write the git folder commits it."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    assert record(log, entry(log, "deferred", deferred=True)).where is None
    (tmp_path / "file").write_text("no folder\n")
    folders = [tmp_path / "file" / "gitmem-1" / "p", tmp_path / "state" / "gitmem" / "p"]
    log.elsewhere = [WriteAheadLog(str(folder), log.now, check_owner=True) for folder in folders]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "make_state", lambda: False)
        done = log.append(entry(log, "second"))
        assert (done.commit, done.where) == (None, str(folders[1]))
        assert committer.commit_within(log, 0) is None

    committer.commit_waiting(log)

    assert len(all_lines(log)) == 3 and waiting(log) == []


def test_very_many_files_go_into_several_commits(repo: Path) -> None:
    """No commit opens more files than a process may."""
    log = open_log(repo)
    for number in range(7):
        log.append(entry(log, f"number {number}"))
        log.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
        log.wal.rotate()

    tip = committer.commit_waiting(log, files_max=3)

    assert tip is not None and len(all_lines(log)) == 7 and names(log) == []
    assert len(log.git.history(tip, [ref.genesis(tip)])) >= 3


@pytest.mark.parametrize("listing", range(1, 16))
def test_without_locks_the_newest_generation_is_never_removed(
    repo: Path, monkeypatch: pytest.MonkeyPatch, listing: int
) -> None:
    """Another committer makes a generation between two steps of this one; a writer trusts that the newest stays."""
    without_locks(monkeypatch)
    log = open_log(repo)
    log.append(entry(log, "before"))
    wal = log.wals[0]
    real, count, made = os.listdir, 0, []

    def listdir(path: str) -> list[str]:
        nonlocal count
        if path == wal.folder:
            count += 1
            if count == listing:
                made.append(wal._create(False, after=max(real(path))))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", listdir)
        committer.commit_within(log, 5.0)

    assert count < 16  # all steps are tried
    assert max(real(wal.folder)) >= max(made, default="")
    log.append(entry(log, "after"))
    assert waiting(log) == ["after"]
