"""Outboxes as they are read, brought and folded; where histories meet; what is remembered of a host."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import CUT_SECONDS, STEPS_MAX, HistoryWalk
from gitmem.log import log_refs, ref, tree_union
from gitmem.log.local_log import LocalLog
from gitmem.log.log_refs import LogTip
from gitmem.log.squash import squash, trailers
from gitmem.log.start import start
from gitmem.sync import outbox
from gitmem.sync.outbox import RemoteState
from tests.log.logs import open_log


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
    return log_refs.read(log, ref.LOG_REF, put(log, start(log), "old", b"0"))


def read(log: LocalLog, shared: LogTip, *oids: str) -> list[outbox.Outbox]:
    return [box for oid in oids if (box := outbox.read(log, oid, shared)) is not None]


def test_an_outbox_is_what_its_commits_added(log: LocalLog, shared: LogTip) -> None:
    """Whatever the shared log has come to since it was made."""
    one = put(log, shared.oid, "a", b"1", seconds=5)
    two = put(log, one, "a", b"2", seconds=6)
    moved = log_refs.read(log, ref.LOG_REF, put(log, put(log, shared.oid, "b", b"3"), "old", b"4"))
    (box,) = read(log, moved, two)
    assert box.commits == [one, two] and box.base == shared.oid
    assert box.lines == {"notes/2026-11/21/gm-a.jsonl": {b"1", b"2"}}
    assert not box.is_in(log.git, moved.tree)
    assert box.is_in(log.git, log.git.commit(outbox.merge(log.git, [box], moved.oid)).tree)


def test_one_that_the_shared_history_has_is_empty(log: LocalLog, shared: LogTip) -> None:
    """It was folded as it was: nothing of it waits."""
    one = put(log, shared.oid, "a", b"1")
    (box,) = read(log, log_refs.read(log, ref.LOG_REF, put(log, one, "b", b"2")), one)
    assert box.commits == [] and box.is_in(log.git, log.git.commit(one).tree)


def test_what_does_more_than_add_lines_is_read_as_any_other_log(log: LocalLog, shared: LogTip) -> None:
    """A file that holds no lines, an id of another project: whether they belong here is asked as of a whole log."""
    who = Signature("a", "a@b", 1)
    for path in ("notes.txt", "projects/" + "a" * 40):
        (oid,) = log.git.write([Draft({path: b"x\n"}, who, who, "odd\n")], shared.oid)
        assert outbox.read(log, oid, shared) is None
    assert outbox.read(log, "0" * 40, shared) is None


def test_one_that_stands_on_what_may_not_be_read_is_not_read(log: LocalLog, shared: LogTip) -> None:
    """It is asked before any file of it is."""
    asked: list[str] = []
    one = put(log, shared.oid, "a", b"1")
    assert (
        outbox.read(log, put(log, one, "a", b"2"), shared, None, lambda base: bool(asked.append(base)))
        is None
    )
    assert asked == [shared.oid]


def test_its_lines_are_found_again_by_what_is_kept_of_it(log: LocalLog, shared: LogTip) -> None:
    """And read anew where the shared log was rewound below it."""
    base = log_refs.read(log, ref.LOG_REF, put(log, shared.oid, "b", b"1"))
    box_tip = put(log, base.oid, "a", b"2")
    (first,) = read(log, base, box_tip)
    (again,) = read(log, base, box_tip)
    assert again is first
    (rewound,) = read(log, shared, box_tip)
    assert rewound.lines is not None and len(rewound.lines) == 2


def test_they_are_folded_in_the_order_of_their_dates(log: LocalLog, shared: LogTip) -> None:
    """The commit is the same in every clone."""
    a1 = put(log, shared.oid, "a", b"a1", seconds=10)
    a2 = put(log, a1, "a", b"a2", seconds=30)
    b1 = put(log, shared.oid, "b", b"b1", seconds=20)
    c1 = put(log, shared.oid, "c", b"c1", seconds=40)
    first, second = (
        outbox.merge(log.git, read(log, shared, *order), shared.oid) for order in ((a2, b1, c1), (c1, b1, a2))
    )
    assert first == second
    assert log.git.commit(first).message == (
        "b: 1 +3\n\nb: 1\na: 1\na: 1\nc: 1\n\nNote: b\nNote: a\nNote: c\n"
    )


def test_unsent_is_what_neither_the_log_nor_an_outbox_has(log: LocalLog, shared: LogTip) -> None:
    """Line by line, and told of the commits that have any; whatever an outbox is that is a log of its own counts, too."""
    one = put(log, shared.oid, "a", b"1")
    two = put(log, put(log, one, "a", b"2"), "old", b"0")
    own = [one, *log.git.history(two, [one]), put(log, two, "b", b"3")]
    plain = read(log, shared, put(log, shared.oid, "a", b"1"))
    apart = outbox.whole(log.git, log_refs.read(log, ref.LOG_REF, plain[0].oid), None)
    for boxes in (plain, [apart]):
        new = log.git.commit(squash(log.git, own, shared.oid, outbox.OutboxSent(log.git, boxes)))
        assert outbox.lines_at(log.git, new.tree, "notes/2026-11/21/gm-a.jsonl") == {b"2"}
        assert new.message == "a: 1 +1\n\na: 1\nb: 1\n\nNote: a\nNote: b\n"
    assert outbox.OutboxSent(log.git, [apart]).has("format", log.git.tree(shared.tree)["format"])
    assert not outbox.OutboxSent(log.git, plain).has("format", log.git.tree(shared.tree)["format"])
    assert squash(log.git, own, shared.oid, None) == own[-1]


def test_what_is_brought_is_one_commit_until_it_is_folded(log: LocalLog, shared: LogTip) -> None:
    """With the trailers of all; who brings it again has nothing to bring."""
    boxes = read(log, shared, put(log, shared.oid, "a", b"1"), put(log, shared.oid, "b", b"2"))
    tip = outbox.merge(log.git, boxes, shared.oid)
    commit = log.git.commit(tip)
    assert commit.parents == [shared.oid]
    assert sorted(trailers(commit.message)) == ["Note: a", "Note: b"]
    assert all(box.is_in(log.git, commit.tree) for box in boxes)
    assert outbox.merge(log.git, boxes, tip) == tip


def test_what_is_brought_stands_beside_what_came_to_the_same_segment(log: LocalLog, shared: LogTip) -> None:
    """Its writer's earlier lines were folded meanwhile, and its later ones wait in another outbox."""
    one = put(log, shared.oid, "a", b"1")
    two = put(log, put(log, shared.oid, "a", b"1"), "a", b"2")
    moved = log_refs.read(log, ref.LOG_REF, put(log, one, "b", b"3"))
    boxes = read(log, moved, two, put(log, shared.oid, "a", b"5"))
    tree = log.git.commit(outbox.merge(log.git, boxes, moved.oid)).tree
    assert outbox.lines_at(log.git, tree, "notes/2026-11/21/gm-a.jsonl") == {b"1", b"2", b"5"}


def test_outboxes_that_are_too_large_together_make_no_large_file(log: LocalLog, shared: LogTip) -> None:
    """Brought or folded every line is there, and both count as taken in: neither waits for ever."""
    size = ref.UNION_BYTES_MAX * 3 // 4
    oids = [put(log, shared.oid, "a", b"x" * size), put(log, shared.oid, "a", b"y" * (size + 1))]
    boxes = read(log, shared, *oids)
    tip = outbox.merge(log.git, boxes, shared.oid)
    tree = log.git.commit(tip).tree
    assert tree_union.new_lines(log.git, tree, [shared.tree]) == 2
    assert all(box.is_in(log.git, tree) for box in boxes)
    assert outbox.merge(log.git, boxes, tip) == tip
    sizes = [
        len(log.git.blob(entry.oid)) for _, entry, _ in tree_union.differing(log.git, tree, [shared.tree])
    ]
    assert sorted(sizes) == [size + 1, size + 2]
    for oid in oids:
        assert squash(log.git, [oid], tip, outbox.OutboxSent(log.git, boxes)) == tip
    # What the log has lost elsewhere does not make an outbox wait: its own lines are there.
    who = Signature("a", "a@b", 1)
    (less,) = log.git.write([Draft({"notes/2026-11/21/gm-old.jsonl": None}, who, who, "lost\n")], tip)
    assert all(box.is_in(log.git, log.git.commit(less).tree) for box in boxes)


@pytest.mark.parametrize("more", [-1, pytest.param(1, marks=pytest.mark.deep)])
def test_an_outbox_that_two_full_segments_had_no_room_for_is_taken_in(
    log: LocalLog, shared: LogTip, more: int
) -> None:
    """Its lines are beside the second one, be that shorter or longer: it does not wait for ever."""
    size, path = ref.UNION_BYTES_MAX * 3 // 4, "notes/2026-11/21/gm-a.jsonl"
    mine = b"y" * size + b"\n"
    beside = tree_union.overflow_path(path, mine)
    who = Signature("a", "a@b", 1)
    full = {path: b"x" * (size + 1) + b"\n", beside: b"z" * (size + more) + b"\n"}
    (taken,) = log.git.write([Draft(full, who, who, "full\n")], shared.oid)
    (box,) = read(log, log_refs.read(log, ref.LOG_REF, taken), put(log, shared.oid, "a", b"y" * size))
    assert not box.is_in(log.git, log.git.commit(taken).tree)

    tip = outbox.merge(log.git, [box], taken)

    tree = log.git.commit(tip).tree
    found = [entry for _, entry in tree_union.walk(log.git, tree) if not entry.is_tree]
    lines = [
        line[:1] for entry in found for line in log.git.blob(entry.oid).splitlines() if len(line) > size // 2
    ]
    assert sorted(lines) == [b"x", b"y", b"z"]
    assert box.is_in(log.git, tree)
    assert outbox.merge(log.git, [box], tip) == tip


@pytest.mark.parametrize(("number", "is_read"), [(1, True), (8, True), (9, False)])
def test_a_limited_number_of_overflow_files_is_read(
    log: LocalLog, shared: LogTip, number: int, is_read: bool
) -> None:
    """A peer cannot make a sync read more files by a longer chain of them."""
    paths = ["notes/2026-11/21/gm-a.jsonl"]
    for _ in range(number):
        paths.append(tree_union.overflow_path(paths[-1], b"y\n"))
    who = Signature("a", "a@b", 1)
    chain = {**dict.fromkeys(paths, b"z\n"), paths[-1]: b"y\n"}
    (taken,) = log.git.write([Draft(chain, who, who, "chain\n")], shared.oid)
    (box,) = read(log, log_refs.read(log, ref.LOG_REF, taken), put(log, shared.oid, "a", b"y"))

    assert box.is_in(log.git, log.git.commit(taken).tree) == is_read


@pytest.mark.parametrize("length", [1, 40, STEPS_MAX + 50])
def test_where_two_histories_meet(log: LocalLog, length: int) -> None:
    """Near it is seen from here; farther off git says it, with the same answer."""
    root = start(log)
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
    host.refused_prefixes.append(outbox.PREFIXES[0])
    host.concurrent, host.seen = 3, {"b", "a"}
    host.save()
    again = RemoteState(state, "origin", "https://example.org/x")
    assert (again.prefixes, again.concurrent, again.seen) == ([outbox.PREFIXES[1]], 3, {"a", "b"})
    again.keeps_refs = True
    again.save()
    again = RemoteState(state, "origin", "https://example.org/x")
    assert again.prefixes == []
    again.retry()
    assert again.prefixes == list(outbox.PREFIXES)
    other = RemoteState(state, "origin", "https://example.org/y")
    assert (other.prefixes, other.concurrent, other.seen) == (list(outbox.PREFIXES), 0, set())


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
    tip = put(log, start(log), "a", b"1")
    shallow = repo / ".git" / "shallow"
    fresh = DulwichGit(str(repo / ".git"))
    shallow.write_text(tip + "\n")
    assert fresh.commit(tip).parents == []
    shallow.unlink()
    assert fresh.commit(tip).parents != []
    fresh.close()
