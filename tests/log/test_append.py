"""Append: what is answered, what is kept, and who commits for whom."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import StoreError
from gitmem.git.port import Draft
from gitmem.log import append, ref, spool
from gitmem.log.append import drain, drain_all
from gitmem.log.lock import Lock
from gitmem.log.log import Log
from gitmem.log.spool import Entry, Spool
from gitmem.log.telling import tell
from gitmem.log.trees import differing

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


def test_a_writer_that_waited_and_then_leads_answers_with_its_commit(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody led when it came, and had gone when it looked again."""
    log = open_log(repo)
    takes, real = iter([False]), Lock.take
    monkeypatch.setattr(Lock, "take", lambda lock: next(takes, True) and real(lock))

    done = append.append(log, entry(log, "hello"))

    assert done.commit is not None and done.commit == log.git.tip(ref.LOG_REF)
    assert log.spool.names() == [] and log.lock().take()


def test_a_lock_that_cannot_be_opened_is_no_failure_of_what_is_spooled(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows who leads: the entry waits, and is there once."""
    log = open_log(repo)
    takes = iter([False])

    def take(lock: Lock) -> bool:
        for taken in takes:
            return taken
        raise StoreError("It cannot be opened.", code="lock")

    with monkeypatch.context() as patch:
        patch.setattr(Lock, "take", take)
        assert append.append(log, entry(log, "hello"), wait_seconds=0).queued

    assert len(log.spool.names()) == 1
    assert drain(log)
    assert len(all_lines(log)) == 1


def test_a_drain_says_whether_anything_waits_still(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing there, a leader at work, a folder that may not be written; and what nobody can read waits for no commit."""
    log, other = open_log(repo), open_log(repo)
    assert drain_all(log)
    one = entry(log, "hello")
    one.token = log.token()
    log.spool.put(one, log.now())

    with monkeypatch.context() as patch:
        patch.setattr(log, "make_state", lambda: False)
        assert not drain_all(log)
    assert log.make_state()
    held = other.lock()
    assert held.take()
    assert not drain_all(log)
    held.release()
    assert drain_all(log) and log.spool.names() == []

    (Path(log.spool.folder) / "0-torn-wait.spool").write_bytes(b"to")
    assert drain_all(log) and log.spool.names() == ["0-torn-wait.spool"]


def test_a_damaged_spool_file_costs_itself(repo: Path) -> None:
    """It comes first, and what was accepted after it is committed all the same."""
    log = open_log(repo)
    one = entry(log, "hello")
    one.token = log.token()
    log.spool.put(one, log.now())
    (Path(log.spool.folder) / "0-torn-wait.spool").write_bytes(b"to")

    assert drain(log)

    assert len(all_lines(log)) == 1
    assert log.spool.names() == ["0-torn-wait.spool"]


def test_a_spool_file_that_cannot_be_removed_keeps_none_of_the_others(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed: whoever drains it again adds nothing."""
    log = open_log(repo)
    names: list[str] = []
    for text in ("one", "two"):
        waiting = entry(log, text)
        waiting.token = log.token()
        names.append(log.spool.put(waiting, log.now() + len(names)))
    finish = Spool.finish

    def fails(spool: Spool, name: str, commit: str, *, tell: bool) -> None:
        if name == names[0]:
            raise OSError(1, "Operation not permitted")
        finish(spool, name, commit, tell=tell)

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "finish", fails)
        assert drain_all(log)

    assert log.spool.names() == names[:1]
    assert drain_all(log) and log.spool.names() == []
    assert len(all_lines(log)) == 2


def test_the_index_is_told_once_of_each_step_and_after_the_lock_is_released(repo: Path) -> None:
    """Whoever keeps the index busy then stops no other writer; a writer that finds its file gone has its commit."""
    log = open_log(repo)
    told: list[object] = []
    log.spooled = lambda entries: told.extend(each.story.subject for each in entries)
    log.committed = lambda: told.append((len(log.spool.names()), log.lock().take()))

    append.append(log, entry(log, "rides", rides=True))
    append.append(log, entry(log, "hello"))

    assert told == ["Planck → all: rides", (0, True)]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            OSError(28, "No space left"),
            "disk",
            r"log cannot be written \(No space left\); nothing was recorded",
        ),
        (OSError("a bare word"), "disk", r"log cannot be written \(a bare word\)"),
        (KeyError("1234"), "missing-object", "object 1234 .*; nothing was recorded"),
        (StoreError("fatal: no", code="git-failed"), "git-failed", r"^fatal: no; nothing was recorded\.$"),
        (StoreError("It is odd.", code="odd"), "odd", r"^It is odd\.$"),
    ],
    ids=["full", "no number", "missing", "git", "other"],
)
def test_a_commit_that_fails_says_what_became_of_the_line(
    repo: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, words: str
) -> None:
    """Nothing was recorded, nothing waits, and there is a way out."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))

    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(log.git, "advance", fails)
        with pytest.raises(StoreError) as failed:
            append.append(log, entry(log, "second"))

    assert failed.value.code == code
    assert re.search(words, failed.value.message), failed.value.message
    assert failed.value.hint or isinstance(error, StoreError)
    assert log.spool.names() == [] and len(all_lines(log)) == 1


def test_a_ref_that_stays_locked_is_no_failure(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a swap that was lost: the entry waits."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))

    def locked(*_: object) -> None:
        raise StoreError("It is locked.", code="locked")

    with monkeypatch.context() as patch:
        patch.setattr(log.git, "advance", locked)
        assert append.append(log, entry(log, "second")).queued

    assert drain(log)
    assert len(all_lines(log)) == 2


def test_a_lock_that_breaks_is_no_failure_of_what_is_spooled(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk or a network that fails at the second look: the entry waits, so its writer is not told that it failed."""
    fcntl = pytest.importorskip("fcntl")
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    numbers = iter([errno.EWOULDBLOCK])

    def flock(*_: object) -> None:
        raise OSError(next(numbers, errno.EIO), "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", flock)
        assert append.append(log, entry(log, "second"), wait_seconds=0).queued

    assert drain(log)
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


def sizes(log: Log) -> list[int]:
    """The sizes of all segments, the largest first."""
    tree = log.git.commit(log.git.tip(ref.LOG_REF) or "").tree
    found = [len(log.git.blob(each.oid)) for path, each, _ in differing(log.git, tree, []) if "gm-" in path]
    return sorted(found, reverse=True)


def test_a_segment_that_a_peer_has_filled_is_not_added_to(repo: Path) -> None:
    """Else the next append makes a file above the limit, and everybody else leaves this clone's log out."""
    log = open_log(repo)
    append.append(log, entry(log, "first"))
    tip = log.git.tip(ref.LOG_REF) or ""
    tree = log.git.commit(tip).tree
    ((path, _, _),) = [each for each in differing(log.git, tree, []) if "gm-" in each[0]]
    filled = b"x" * ref.SEGMENT_BYTES_MAX + b"\n"
    nobody = log.signature()
    (new,) = log.git.write([Draft({path: filled}, nobody, nobody, "Fill it")], tip)
    assert log.git.swap(ref.LOG_REF, tip, new, "sync")
    waiting = entry(log, "second")

    append.append(log, waiting)
    append.append(log, waiting)  # as after a crash between swap and removal

    assert sizes(log)[0] == len(filled)
    assert len(all_lines(log)) == 2 and any(b"second" in line for line in all_lines(log))


def test_one_append_of_many_lines_makes_many_segments(repo: Path) -> None:
    """An import may add more than a file may hold; repeated it adds nothing."""
    log = open_log(repo)
    many = entry(log, "y" * 60_000)
    many.lines.extend(line for _ in range(60) for line in entry(log, "y" * 60_000).lines)

    append.append(log, many)
    append.append(log, many)

    assert len(all_lines(log)) == 61
    assert ref.SEGMENT_BYTES_MAX <= sizes(log)[0] <= ref.SEGMENT_BYTES_MAX + 61_000


def test_a_segment_closes_at_its_limit(repo: Path) -> None:
    """Files stay small: the next line after 16 KiB goes to a new one, and not before."""
    log = open_log(repo)
    assert log.make_state()
    first = log.token()

    append.append(log, entry(log, "hello"))
    append.moved(log)  # as a sync does
    assert log.token() == first
    long, short = entry(log, "x" * ref.SEGMENT_MAX_BYTES), entry(log, "y", stream="receipts")
    append.append(log, Entry([*long.lines, *short.lines], long.story))

    assert log.token() != first
    tree = log.git.commit(log.git.tip(ref.LOG_REF) or "").tree
    for stream in ("signals", "receipts"):
        found = ref.lookup(log.git, tree, f"{stream}/2026-10/26/gm-{first}.jsonl")
        assert found is not None and not found.is_tree


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


def test_what_a_leader_committed_and_could_not_clear_away_is_recorded(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed between the two, and the folder can't be synced: the line is in the log, so it has not failed."""
    log, other = open_log(repo), open_log(repo)
    append.append(log, entry(log, "first"))
    lock = log.lock()
    assert lock.take()

    def lead() -> None:
        append.commit_entries(other, [found for _, _, found in append.collect(other)])
        lock.release()

    with monkeypatch.context() as patch:
        no_fsync(patch, lead)
        done = append.append(log, entry(log, "second"))

    assert done.commit == log.git.tip(ref.LOG_REF)
    assert len(all_lines(log)) == 2 and log.spool.names() == []


def test_where_nothing_takes_a_line_it_has_failed_with_a_way_out(repo: Path) -> None:
    """The git folder can't be written, and there is no spool elsewhere."""
    log = open_log(repo)
    log.make_state = lambda: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match="cannot be written; nothing was recorded") as failed:
        append.append(log, entry(log, "hello"))

    assert failed.value.code == "read-only" and failed.value.hint


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

    with pytest.raises(StoreError, match=rf"{ref.LOG_REF} is at {head[:12]}.*no gitmem log") as failed:
        append.append(log, entry(log, "hello"))

    assert failed.value.code == "not-a-log" and failed.value.hint
    assert failed.value.next == ["gitmem doctor"]
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
