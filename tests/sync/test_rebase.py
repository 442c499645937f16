"""Outboxes as they are read, brought and folded; where histories meet; what is remembered of a host."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import CUT_SECONDS, STEPS_MAX, DulwichGit, HistoryWalk
from gitmem.log import ledger, log_refs, ref, tree_union
from gitmem.log.committer import start_log
from gitmem.log.local_log import LocalLog
from gitmem.log.log_refs import LogTip
from gitmem.log.squash import squash, trailers
from gitmem.sync import rebase
from gitmem.sync.init import set_publish_ref
from gitmem.sync.remote import PREFIXES, RemoteState

from ..clones import git
from ..log.logs import all_lines, entry, limit_unions, open_log, record


def put(
    log: LocalLog, onto: str, name: str, *lines: bytes, seconds: int = 1, path: str = "notes/2026-11/21"
) -> str:
    """One commit that adds lines to a segment."""
    full = f"{path}/gm-{name}.jsonl"
    entry = ref.lookup(log.git, log.git.commit(onto).tree, full)
    content = (log.git.blob(entry.oid) if entry is not None else b"") + b"".join(
        line + b"\n" for line in lines
    )
    who = Signature(name, f"{name}@agents", seconds)
    return log.git.write([Draft({full: content}, who, who, f"{name}: {len(lines)}\n\nNote: {name}\n")], onto)[
        0
    ]


@pytest.fixture
def log(repo: Path) -> LocalLog:
    return open_log(repo, seed=1)


@pytest.fixture
def shared(log: LocalLog) -> LogTip:
    return log_refs.read(log, ref.LOG_REF, put(log, start_log(log), "old", b"0"))


def read(log: LocalLog, *oids: str) -> list[LogTip]:
    return [log_refs.read(log, ref.LOG_REF, oid) for oid in oids]


def is_in(log: LocalLog, tip: str, box: LogTip) -> bool:
    return not tree_union.union_changes(log.git, log.git.commit(tip).tree, [box.tree])


def lines_at(log: LocalLog, tip: str) -> set[bytes]:
    path = "notes/2026-11/21/gm-a.jsonl"
    return tree_union.lines_in(log.git, path, ref.lookup(log.git, log.git.commit(tip).tree, path))


def test_they_are_folded_in_the_order_of_their_dates(log: LocalLog, shared: LogTip) -> None:
    """The commit is the same in every clone."""
    a1 = put(log, shared.oid, "a", b"a1", seconds=10)
    a2 = put(log, a1, "a", b"a2", seconds=30)
    b1 = put(log, shared.oid, "b", b"b1", seconds=20)
    c1 = put(log, shared.oid, "c", b"c1", seconds=40)
    first, second = (
        rebase.fold(log.git, read(log, *order), shared.oid) for order in ((a2, b1, c1), (c1, b1, a2))
    )
    assert first == second
    assert log.git.commit(first).message == (
        "b: 1 +3\n\nb: 1\na: 1\na: 1\nc: 1\n\nNote: b\nNote: a\nNote: c\n"
    )


def test_unsent_is_what_neither_the_log_nor_an_outbox_has(log: LocalLog, shared: LogTip) -> None:
    """Line by line, and told of the commits that have any."""
    one = put(log, shared.oid, "a", b"1")
    two = put(log, put(log, one, "a", b"2"), "old", b"0")
    own = [one, *log.git.history(two, [one]), put(log, two, "b", b"3")]
    (box,) = read(log, put(log, shared.oid, "a", b"1"))
    new = squash(log.git, own, shared.oid, [box.tree])
    assert lines_at(log, new) == {b"2"}
    assert log.git.commit(new).message == "a: 1 +1\n\na: 1\nb: 1\n\nNote: a\nNote: b\n"
    assert squash(log.git, own, shared.oid) == own[-1]


def test_what_is_brought_is_one_commit_until_it_is_folded(log: LocalLog, shared: LogTip) -> None:
    """With the trailers of all; who brings it again has nothing to bring."""
    boxes = read(log, put(log, shared.oid, "a", b"1"), put(log, shared.oid, "b", b"2"))
    tip = rebase.fold(log.git, boxes, shared.oid)
    commit = log.git.commit(tip)
    assert commit.parents == [shared.oid]
    assert sorted(trailers(commit.message)) == ["Note: a", "Note: b"]
    assert all(is_in(log, tip, box) for box in boxes)
    assert rebase.fold(log.git, boxes, tip) == tip


def test_what_is_brought_stands_beside_what_came_to_the_same_segment(log: LocalLog, shared: LogTip) -> None:
    """Its writer's earlier lines were folded meanwhile, and its later ones wait in another outbox."""
    one = put(log, shared.oid, "a", b"1")
    two = put(log, put(log, shared.oid, "a", b"1"), "a", b"2")
    moved = log_refs.read(log, ref.LOG_REF, put(log, one, "b", b"3"))
    boxes = read(log, two, put(log, shared.oid, "a", b"5"))
    assert lines_at(log, rebase.fold(log.git, boxes, moved.oid)) == {b"1", b"2", b"5"}


def test_outboxes_that_are_too_large_together_make_no_large_file(
    log: LocalLog, shared: LogTip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brought or folded every line is there, and both count as taken in: neither waits for ever."""
    limit_unions(monkeypatch)
    size = ref.UNION_BYTES_MAX * 3 // 4
    oids = [put(log, shared.oid, "a", b"x" * size), put(log, shared.oid, "a", b"y" * (size + 1))]
    boxes = read(log, *oids)
    tip = rebase.fold(log.git, boxes, shared.oid)
    tree = log.git.commit(tip).tree
    assert tree_union.new_lines(log.git, tree, [shared.tree]) == 2
    assert all(is_in(log, tip, box) for box in boxes)
    assert rebase.fold(log.git, boxes, tip) == tip
    sizes = [
        len(log.git.blob(entry.oid)) for _, entry, _ in tree_union.differing(log.git, tree, [shared.tree])
    ]
    assert sorted(sizes) == [size + 1, size + 2]
    for oid in oids:
        assert squash(log.git, [oid], tip, [box.tree for box in boxes]) == tip


@pytest.mark.parametrize("more", [-1, pytest.param(1, marks=pytest.mark.deep)])
def test_an_outbox_that_two_full_segments_had_no_room_for_is_taken_in(
    log: LocalLog, shared: LogTip, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are beside the second one, be that shorter or longer: it does not wait for ever."""
    limit_unions(monkeypatch)
    size, path = ref.UNION_BYTES_MAX * 3 // 4, "notes/2026-11/21/gm-a.jsonl"
    mine = b"y" * size + b"\n"
    beside = tree_union.overflow_path(path, mine)
    who = Signature("a", "a@b", 1)
    full = {path: b"x" * (size + 1) + b"\n", beside: b"z" * (size + more) + b"\n"}
    (taken,) = log.git.write([Draft(full, who, who, "full\n")], shared.oid)
    (box,) = read(log, put(log, shared.oid, "a", b"y" * size))
    assert not is_in(log, taken, box)

    tip = rebase.fold(log.git, [box], taken)

    tree = log.git.commit(tip).tree
    found = [entry for _, entry in tree_union.walk(log.git, tree) if not entry.is_tree]
    lines = [
        line[:1] for entry in found for line in log.git.blob(entry.oid).splitlines() if len(line) > size // 2
    ]
    assert sorted(lines) == [b"x", b"y", b"z"]
    assert is_in(log, tip, box)
    assert rebase.fold(log.git, [box], tip) == tip


@pytest.mark.parametrize("length", [1, 40, STEPS_MAX + 50])
def test_where_two_histories_meet(log: LocalLog, length: int) -> None:
    """Near it is seen from here; farther off git says it, with the same answer."""
    root = start_log(log)
    who = Signature("a", "a@b", 1)
    drafts = [Draft({f"t{number}": b"x"}, who, who, "t\n") for number in range(length)]
    trunk = log.git.write(drafts, root)[-1]
    below = put(log, root, "b", b"1")
    branch = put(log, below, "b", b"2")
    assert HistoryWalk(log.git, trunk).above(branch) == (None if length > STEPS_MAX else [below, branch])
    assert log.git.history(branch, [trunk]) == log.git.history(branch, [root]) == [below, branch]
    assert not log.git.contains(branch, trunk) and log.git.contains(branch, root)
    assert HistoryWalk(log.git, trunk).above(root) == ([] if length < STEPS_MAX else None)


def test_what_a_host_refuses_is_kept_for_its_url(tmp_path: Path) -> None:
    """Nothing is written while there is nothing to remember."""
    state = str(tmp_path)
    host = RemoteState(state, "origin", "https://example.org/x")
    host.save()
    assert not (tmp_path / "remotes").exists()
    host.refused_prefixes.append(PREFIXES[0])
    host.concurrent, host.seen = 3, {"b", "a"}
    host.save()
    again = RemoteState(state, "origin", "https://example.org/x")
    assert (again.prefixes, again.concurrent, again.seen) == ([PREFIXES[1]], 3, {"a", "b"})
    again.keeps_refs = True
    again.save()
    again = RemoteState(state, "origin", "https://example.org/x")
    assert again.prefixes == []
    again.retry()
    assert again.prefixes == list(PREFIXES)
    other = RemoteState(state, "origin", "https://example.org/y")
    assert (other.prefixes, other.concurrent, other.seen) == (list(PREFIXES), 0, set())


def test_an_outbox_is_named_after_a_commit() -> None:
    """Whatever else begins in the same way is somebody's own."""
    for prefix in ("refs/", f"{ref.REMOTES_PREFIX}origin/"):
        for oid in ("a0" * 20, "b1" * 32):
            assert log_refs.is_outbox(f"{prefix}gitmem/outbox/{oid}")
            assert log_refs.is_outbox(f"{prefix}heads/gitmem-outbox-{oid}")
        for last in ("", "backup", "a0" * 19, "a0" * 20 + "-old", "A0" * 20):
            assert not log_refs.is_synced_ref(f"{prefix}gitmem/outbox/{last}")
            assert not log_refs.is_synced_ref(f"{prefix}heads/gitmem-outbox-{last}")


def test_a_commit_that_was_read_is_kept_but_where_a_shallow_clone_may_be_cut(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone that gets its history later sees it."""
    seconds = itertools.count(time.monotonic(), CUT_SECONDS)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    log = open_log(repo)
    tip = put(log, start_log(log), "a", b"1")
    shallow = repo / ".git" / "shallow"
    fresh = DulwichGit(str(repo / ".git"))
    shallow.write_text(tip + "\n")
    assert fresh.commit(tip).parents == []
    shallow.unlink()
    assert fresh.commit(tip).parents != []
    fresh.close()


# Publication: where remotes keep the log is a field of the log itself, set by one commit.


def leave_lock(log: LocalLog, seconds: float) -> Path:
    """The lock of a process that was killed so long ago."""
    path = Path(log.repo.common, f"{ref.LOG_REF}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


def form(log: LocalLog) -> ref.Format:
    tip = log.git.tip(ref.LOG_REF)
    assert tip is not None
    found = ref.read_format(log.git, log.git.tree(log.git.commit(tip).tree))
    assert found is not None
    return found


def test_a_choice_is_one_commit_of_the_person_with_the_next_turn(log: LocalLog) -> None:
    """So that it wins over the choice before in every clone; the same again is none, and no turn."""
    assert set_publish_ref(log, ref.LOG_REF)
    assert (form(log).publish, form(log).turn) == (ref.LOG_REF, 1)
    tip = log.git.tip(ref.LOG_REF)
    assert not set_publish_ref(log, ref.LOG_REF)
    assert log.git.tip(ref.LOG_REF) == tip
    assert tip is not None and log.git.commit(tip).author.name == "Test Person"
    assert set_publish_ref(log, ref.BRANCH)
    assert (form(log).publish, form(log).turn) == (ref.BRANCH, 2)


@pytest.mark.parametrize("started", [True, False], ids=["a log", "no log yet"])
def test_a_lock_that_the_dead_left_is_no_hindrance(log: LocalLog, started: bool) -> None:
    """It is broken under our own lock, which is free again afterwards."""
    if started:
        record(log, entry(log, "one"))
    left = leave_lock(log, 60)
    assert set_publish_ref(log, ref.LOG_REF)
    assert not left.exists() and form(log).publish == ref.LOG_REF
    lock = log.lock()
    assert lock.take()
    lock.release()


def test_a_lock_that_is_alive_is_said_and_left(log: LocalLog) -> None:
    """Nothing has changed then, and our own lock is free."""
    record(log, entry(log, "one"))
    left = leave_lock(log, 0)
    with pytest.raises(StoreError) as refused:
        set_publish_ref(log, ref.LOG_REF, 3)
    assert (refused.value.code, refused.value.next) == ("locked", ["gitmem doctor"])
    assert ref.LOG_REF in refused.value.message and "again" in refused.value.hint
    assert left.exists() and form(log).publish == ref.BRANCH
    lock = log.lock()
    assert lock.take()
    lock.release()


def test_who_loses_the_race_chooses_on_top_of_what_came(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append without the lock in between: its line stays."""
    record(log, entry(log, "one"))
    tip = log.git.tip(ref.LOG_REF)
    assert tip is not None
    real = log.git.advance
    who = log.signature()
    races = [Draft({"signals/2026-11/21/gm-x.jsonl": b"two\n"}, who, who, "Race\n")]

    def advance(name: str, old: str, draft: Draft, why: str) -> str | None:
        while races:
            assert real(name, old, races.pop(), "race")
        return real(name, old, draft, why)

    monkeypatch.setattr(log.git, "advance", advance)
    assert set_publish_ref(log, ref.LOG_REF)
    assert form(log).publish == ref.LOG_REF and b"two" in all_lines(log) and len(all_lines(log)) == 2


# Settling: the log becomes the union of what it knows, on top of what is shared, whatever happens meanwhile.

WHO = Signature("A", "a@a", 1)
SEGMENT = "s/2026-11/21/gm-a.jsonl"


@pytest.fixture
def root(log: LocalLog) -> str:
    """The log's tip, with two lines."""
    tip = put_line(log, rebase.start_alone(log), **{SEGMENT: b"1\n2\n"})
    git("update-ref", ref.LOG_REF, tip, cwd=Path(log.repo.common))
    return tip


def put_line(log: LocalLog, onto: str, **files: bytes | None) -> str:
    named = {"format" if path == "form" else path: content for path, content in files.items()}
    return log.git.write([Draft(named, WHO, WHO, "By hand\n")], onto)[0]


def read_texts(log: LocalLog, oid: str) -> LogTip:
    return log_refs.read(log, "refs/x", oid)


def leave_old_lock(log: LocalLog, name: str, seconds: float) -> Path:
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
    one = read_texts(log, put_line(log, first, **{SEGMENT: b"2\n3\n"}))
    tip = rebase.rebase_log(log, None, [one])
    assert log.git.commit(tip).message == "Repair: 1 line that was missing\n"
    assert log.git.commit(tip).parents == [root]
    more = {"t/gm-b.jsonl": b"7\n8\n", "t/notes.txt": b"a\nb\n", "notes.txt": b"c\nd\n"}
    many = read_texts(log, put_line(log, first, **{SEGMENT: b"3\n4\n", **more, **form}))
    tip = rebase.rebase_log(log, None, [many])
    assert log.git.commit(tip).message == "Repair: 3 lines that were missing\n"
    two = read_texts(log, put_line(log, first, **{SEGMENT: b"5\n6\n", **form}))
    tip = rebase.rebase_log(log, None, [two])
    assert log.git.commit(tip).message == "Repair: 2 lines that were missing\n"
    last = read_texts(log, put_line(log, first, form=ref.Format.make(turn=2).content))
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
    new = rebase.rebase_log(log, None, [read_texts(log, root)])
    assert log.git.commit(new).message == "Repair: 2 lines that were missing\n"


def test_what_a_remote_has_is_remembered_and_never_less(log: LocalLog, root: str) -> None:
    """A rewound remote does not make published commits our own again; a redacted one does."""
    second = put_line(log, root, **{"s/gm-b.jsonl": b"3\n"})
    third = put_line(log, second, **{"s/gm-c.jsonl": b"4\n"})
    for oid, remembered in ((second, second), (root, second), (second, second), (third, third)):
        rebase.note_published(log, third, oid)
        assert log.git.tip(ref.PUBLISHED_REF) == remembered
    other = put_line(log, root, **{"s/gm-d.jsonl": b"5\n"})
    rebase.note_published(log, other, other)
    assert log.git.tip(ref.PUBLISHED_REF) == other
    rebase.note_published(log, second, root)
    assert log.git.tip(ref.PUBLISHED_REF) == root, "what the log does not have was not published"
    left = leave_old_lock(log, ref.PUBLISHED_REF, 60)
    rebase.note_published(log, second, second)
    assert log.git.tip(ref.PUBLISHED_REF) == second and not left.exists()
    left = leave_old_lock(log, ref.PUBLISHED_REF, 0)
    rebase.note_published(log, third, third)
    assert log.git.tip(ref.PUBLISHED_REF) == second and left.exists(), "it is told again by the next sync"


def test_only_old_locks_on_refs_of_ours_are_broken(log: LocalLog, root: str) -> None:
    """One on any of them is told; a user's own, and one that is alive, stay."""
    assert not rebase.break_stale_locks(log)
    theirs = leave_old_lock(log, "refs/heads/main", 60)
    alive = leave_old_lock(log, f"{ref.REMOTES_PREFIX}origin/heads/z", 0)
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
        left = leave_old_lock(log, name, 60)
        assert rebase.break_stale_locks(log), name
        assert not left.exists() and theirs.exists() and alive.exists()
    several = [leave_old_lock(log, name, 60) for name in names]
    assert rebase.break_stale_locks(log)
    assert not any(left.exists() for left in several)
    assert not rebase.break_stale_locks(log)


def test_locks_are_broken_by_the_holder_of_ours_alone(log: LocalLog, root: str) -> None:
    """Two who did it at once could break one that is alive; ours is waited for only so long."""
    log.lock_seconds = 0.05
    left = leave_old_lock(log, ref.LOG_REF, 60)
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
        assert "lock" in rebase.commit_before_sync(log)
    assert not rebase.commit_before_sync(log)
    assert any(b"rides" in line for line in all_lines(log))
    assert not rebase.commit_before_sync(log)


def test_a_ref_that_is_no_log_or_a_newer_one_is_left_alone(log: LocalLog, root: str) -> None:
    """Whatever else is known: nothing is united with it."""
    at = Path(log.repo.common)
    for tip, code in (
        (git("rev-parse", "main", cwd=at).strip(), "not-a-log"),
        (put_line(log, root, form=b'{"format":2}\n'), "newer-format"),
    ):
        git("update-ref", ref.LOG_REF, tip, cwd=at)
        with pytest.raises(StoreError) as refused:
            rebase.rebase_log(log, None, [read_texts(log, root)])
        assert refused.value.code == code
        assert refused.value.hint and refused.value.next
        assert log.git.tip(ref.LOG_REF) == tip
        if code == "not-a-log":
            assert tip[:12] in refused.value.message and tip[:13] not in refused.value.message
            assert refused.value.next == [f"git reflog {ref.LOG_REF}", "gitmem doctor"]


def test_an_object_that_is_gone_is_named_and_nothing_moves(log: LocalLog, root: str) -> None:
    """Here one of the other log's."""
    other = read_texts(log, put_line(log, root, **{SEGMENT: b"1\n2\n3\n"}))
    other = other._replace(tree="a0" * 20)
    with pytest.raises(StoreError) as refused:
        rebase.rebase_log(log, None, [other])
    assert (refused.value.code, refused.value.next) == ("missing-object", ["gitmem doctor"])
    assert "a0" * 20 in refused.value.message and "nothing was changed" in refused.value.message
    assert "doctor" in refused.value.hint and log.git.tip(ref.LOG_REF) == root


def test_a_lock_of_the_dead_is_broken_and_one_that_is_alive_is_said(log: LocalLog, root: str) -> None:
    """The ref is as it was then, and our lock is free."""
    log.random = bytes  # pauses of no time
    other = read_texts(log, put_line(log, root, **{SEGMENT: b"1\n2\n3\n"}))
    left = leave_old_lock(log, ref.LOG_REF, 0)
    with pytest.raises(StoreError) as refused:
        rebase.rebase_log(log, other, [other])
    assert (refused.value.code, refused.value.next) == ("locked", ["gitmem doctor"])
    assert ref.LOG_REF in refused.value.message and "again" in refused.value.hint
    assert left.exists() and log.git.tip(ref.LOG_REF) == root
    leave_old_lock(log, ref.LOG_REF, 60)
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
    other = read_texts(log, put_line(log, first, **{"s/gm-b.jsonl": b"3\n"}))
    elsewhere = put_line(log, first, **{"s/gm-c.jsonl": b"4\n"})
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
