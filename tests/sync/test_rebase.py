"""Settling: the log becomes the union of what it knows, on top of what is shared, whatever happens meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.log import ledger, log_refs, ref
from gitmem.log.local_log import LocalLog
from gitmem.log.log_refs import LogTip
from gitmem.sync import rebase
from tests.clones import git
from tests.log.logs import all_lines, entry, open_log, record

WHO = Signature("A", "a@a", 1)
SEGMENT = "s/2026-11/21/gm-a.jsonl"


@pytest.fixture
def log(repo: Path) -> LocalLog:
    return open_log(repo, seed=1)


@pytest.fixture
def root(log: LocalLog) -> str:
    """The log's tip, with two lines."""
    tip = put(log, rebase.start_alone(log), **{SEGMENT: b"1\n2\n"})
    git("update-ref", ref.LOG_REF, tip, cwd=Path(log.repo.common))
    return tip


def put(log: LocalLog, onto: str, **files: bytes | None) -> str:
    named = {"format" if path == "form" else path: content for path, content in files.items()}
    return log.git.write([Draft(named, WHO, WHO, "By hand\n")], onto)[0]


def read(log: LocalLog, oid: str) -> LogTip:
    return log_refs.read(log, "refs/x", oid)


def leave_lock(log: LocalLog, name: str, seconds: float) -> Path:
    """The lock of a process that was killed so long ago."""
    path = Path(log.repo.common, f"{name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


def test_a_repair_says_how_many_lines_it_brings(log: LocalLog, root: str) -> None:
    """Each once, and only lines: not those of other files, nor of a link that stood there."""
    first = log.git.commit(root).parents[0]
    form = {"form": ref.Format.make(turn=1).content}
    one = read(log, put(log, first, **{SEGMENT: b"2\n3\n"}))
    tip = rebase.rebase_log(log, None, [one])
    assert log.git.commit(tip).message == "Repair: 1 line that was missing\n"
    assert log.git.commit(tip).parents == [root]
    more = {"t/gm-b.jsonl": b"7\n8\n", "t/notes.txt": b"a\nb\n", "notes.txt": b"c\nd\n"}
    many = read(log, put(log, first, **{SEGMENT: b"3\n4\n", **more, **form}))
    tip = rebase.rebase_log(log, None, [many])
    assert log.git.commit(tip).message == "Repair: 3 lines that were missing\n"
    two = read(log, put(log, first, **{SEGMENT: b"5\n6\n", **form}))
    tip = rebase.rebase_log(log, None, [two])
    assert log.git.commit(tip).message == "Repair: 2 lines that were missing\n"
    last = read(log, put(log, first, form=ref.Format.make(turn=2).content))
    tip = rebase.rebase_log(log, None, [last])
    assert log.git.commit(tip).message == "Repair: the form of the log's files\n"
    assert log.git.commit(tip).author.name == "Test Person"
    assert all_lines(log) == [b"%d" % number for number in range(1, 9)]
    assert rebase.rebase_log(log, None, [one, many, two, last]) == tip == log.git.tip(ref.LOG_REF)


def test_a_lines_file_that_stands_where_a_link_was_is_counted_whole(log: LocalLog, root: str) -> None:
    """What the link holds is the name of another file."""
    first = log.git.commit(root).parents[0]
    file = ref.lookup(log.git, log.git.commit(root).tree, SEGMENT)
    assert file is not None
    link = TreeEntry("120000", file.oid)
    (tip,) = log.git.write([Draft({SEGMENT: link}, WHO, WHO, "A link\n")], first)
    git("update-ref", ref.LOG_REF, tip, cwd=Path(log.repo.common))
    new = rebase.rebase_log(log, None, [read(log, root)])
    assert log.git.commit(new).message == "Repair: 2 lines that were missing\n"


def test_what_a_remote_has_is_remembered_and_never_less(log: LocalLog, root: str) -> None:
    """A rewound remote does not make published commits our own again; a redacted one does."""
    second = put(log, root, **{"s/gm-b.jsonl": b"3\n"})
    third = put(log, second, **{"s/gm-c.jsonl": b"4\n"})
    for oid, remembered in ((second, second), (root, second), (second, second), (third, third)):
        rebase.note_published(log, third, oid)
        assert log.git.tip(ref.PUBLISHED_REF) == remembered
    other = put(log, root, **{"s/gm-d.jsonl": b"5\n"})
    rebase.note_published(log, other, other)
    assert log.git.tip(ref.PUBLISHED_REF) == other
    rebase.note_published(log, second, root)
    assert log.git.tip(ref.PUBLISHED_REF) == root, "what the log does not have was not published"
    left = leave_lock(log, ref.PUBLISHED_REF, 60)
    rebase.note_published(log, second, second)
    assert log.git.tip(ref.PUBLISHED_REF) == second and not left.exists()
    left = leave_lock(log, ref.PUBLISHED_REF, 0)
    rebase.note_published(log, third, third)
    assert log.git.tip(ref.PUBLISHED_REF) == second and left.exists(), "it is told again by the next sync"


def test_only_old_locks_on_refs_of_ours_are_broken(log: LocalLog, root: str) -> None:
    """One on any of them is told; a user's own, and one that is alive, stay."""
    assert not rebase.break_stale_locks(log)
    theirs = leave_lock(log, "refs/heads/main", 60)
    alive = leave_lock(log, f"{ref.REMOTES_PREFIX}origin/heads/z", 0)
    other = Path(log.repo.common, "refs/gitmem/remotes/a.lck")
    other.touch()
    assert not rebase.break_stale_locks(log)
    names = (
        ref.LOG_REF,
        ref.PUBLISHED_REF,
        f"{ref.REMOTES_PREFIX}origin/heads/gitmem",
        f"{ref.REMOTES_PREFIX}zz/heads/gitmem",
    )
    for name in names:
        left = leave_lock(log, name, 60)
        assert rebase.break_stale_locks(log), name
        assert not left.exists() and theirs.exists() and alive.exists()
    several = [leave_lock(log, name, 60) for name in names]
    assert rebase.break_stale_locks(log)
    assert not any(left.exists() for left in several)
    assert not rebase.break_stale_locks(log)


def test_locks_are_broken_by_the_holder_of_ours_alone(log: LocalLog, root: str) -> None:
    """Two who did it at once could break one that is alive; ours is waited for only so long."""
    log.lock_seconds = 0.05
    left = leave_lock(log, ref.LOG_REF, 60)
    lock = log.lock()
    with lock:
        assert lock.take()
        assert not rebase.take_lock(log).is_held
        assert not rebase.break_stale_locks(log)
        assert left.exists()
    taken = rebase.take_lock(log)
    assert taken.is_held and not log.lock().take()
    taken.release()


def test_a_log_is_started_by_the_holder_of_our_lock(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts may break a lock that the dead left; and ours is free afterwards."""
    held: list[bool] = []

    swap = log.git.swap

    def held_swap(*move: Any) -> bool:
        held.append(not log.lock().take())
        return swap(*move)

    monkeypatch.setattr(log.git, "swap", held_swap)
    assert rebase.rebase_log(log, None, []) == log.git.tip(ref.LOG_REF)
    lock = log.lock()
    assert held and all(held) and lock.take()
    lock.release()


def test_what_waits_is_committed_or_said_to_wait(log: LocalLog, root: str) -> None:
    """Riding entries too; another process is waited for, and not for ever."""
    log.lock_seconds = 0.05
    record(log, entry(log, "rides", deferred=True))
    lock = log.lock()
    with lock:
        assert lock.take()
        assert not rebase.commit_before_sync(log)
    assert rebase.commit_before_sync(log)
    assert any(b"rides" in line for line in all_lines(log))
    assert rebase.commit_before_sync(log)


def test_a_ref_that_is_no_log_or_a_newer_one_is_left_alone(log: LocalLog, root: str) -> None:
    """Whatever else is known: nothing is united with it."""
    at = Path(log.repo.common)
    for tip, code in (
        (git("rev-parse", "main", cwd=at).strip(), "not-a-log"),
        (put(log, root, form=b'{"format":2}\n'), "newer-format"),
    ):
        git("update-ref", ref.LOG_REF, tip, cwd=at)
        with pytest.raises(StoreError) as refused:
            rebase.rebase_log(log, None, [read(log, root)])
        assert refused.value.code == code
        assert refused.value.hint and refused.value.next
        assert log.git.tip(ref.LOG_REF) == tip
        if code == "not-a-log":
            assert tip[:12] in refused.value.message and tip[:13] not in refused.value.message
            assert refused.value.next == [f"git reflog {ref.LOG_REF}", "gitmem doctor"]


def test_an_object_that_is_gone_is_named_and_nothing_moves(log: LocalLog, root: str) -> None:
    """Here one of the other log's."""
    other = read(log, put(log, root, **{SEGMENT: b"1\n2\n3\n"}))
    other = other._replace(tree="a0" * 20)
    with pytest.raises(StoreError) as refused:
        rebase.rebase_log(log, None, [other])
    assert (refused.value.code, refused.value.next) == ("missing-object", ["gitmem doctor"])
    assert "a0" * 20 in refused.value.message and "nothing was changed" in refused.value.message
    assert "doctor" in refused.value.hint and log.git.tip(ref.LOG_REF) == root


def test_a_lock_of_the_dead_is_broken_and_one_that_is_alive_is_said(log: LocalLog, root: str) -> None:
    """The ref is as it was then, and our lock is free."""
    log.random = bytes  # pauses of no time
    other = read(log, put(log, root, **{SEGMENT: b"1\n2\n3\n"}))
    left = leave_lock(log, ref.LOG_REF, 0)
    with pytest.raises(StoreError) as refused:
        rebase.rebase_log(log, other, [other])
    assert (refused.value.code, refused.value.next) == ("locked", ["gitmem doctor"])
    assert ref.LOG_REF in refused.value.message and "again" in refused.value.hint
    assert left.exists() and log.git.tip(ref.LOG_REF) == root
    leave_lock(log, ref.LOG_REF, 60)
    told: list[bool] = []
    log.committed = lambda: told.append(True)
    assert rebase.rebase_log(log, other, [other]) == other.oid == log.git.tip(ref.LOG_REF)
    assert not left.exists() and told == [True]
    assert log.git.tip(ref.PUBLISHED_REF) == other.oid
    last = list(ledger.read(log.repo))[-1]
    assert (last.commit, last.digests) == (other.oid, [])
    assert rebase.rebase_log(log, other, [other]) == other.oid and told == [True], "nothing has moved"


def test_a_log_that_is_made_anew_meanwhile_is_settled_anew(
    log: LocalLog, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody moved the ref elsewhere, or deleted it, while the union was made: what is there now counts."""
    at = Path(log.repo.common)
    first = log.git.commit(root).parents[0]
    other = read(log, put(log, first, **{"s/gm-b.jsonl": b"3\n"}))
    elsewhere = put(log, first, **{"s/gm-c.jsonl": b"4\n"})
    real = rebase.build_tip
    for args, lines in (
        (["update-ref", ref.LOG_REF, elsewhere], [b"3", b"4"]),
        (["update-ref", "-d", ref.LOG_REF], [b"3"]),
    ):
        meanwhile = [args]

        def assemble(*given: Any) -> str:
            done = real(*given)
            while meanwhile:  # noqa: B023
                git(*meanwhile.pop(), cwd=at)  # noqa: B023
            return done

        monkeypatch.setattr(rebase, "build_tip", assemble)
        tip = rebase.rebase_log(log, other, [other])
        assert log.git.tip(ref.LOG_REF) == tip and all_lines(log) == lines
