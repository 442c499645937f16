"""Packing: only the log's loose objects, in packs of ours, and nothing goes before the pack is there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import durable, held, packing, run
from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
from gitmem.git.port import Draft, Signature

REF = "refs/gitmem/log"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)
Run = Callable[..., str]


class Clone:
    """A repository with a log."""

    def __init__(self, path: Path, git: Run) -> None:
        self.path = path
        self.run = git
        self.common = str(path / ".git")
        self.objects = path / ".git" / "objects"
        self.port = DulwichGit(self.common)
        self.count = 0
        self.users = self.loose()
        (self.tip,) = self.port.write([Draft({"format": b"{}"}, WHO, WHO, "start\n")], None)
        assert self.port.swap(REF, None, self.tip, "start")

    def git(self, *args: str, input: str | None = None) -> str:
        return self.run(*args, cwd=self.path, input=input)

    def add(self, commits: int = 5) -> None:
        for _ in range(commits):
            self.count += 1
            text = b"".join(b"line %d\n" % number for number in range(self.count))
            draft = Draft({"signals/2026-11/21/gm-a.jsonl": text}, WHO, WHO, f"{self.count}\n")
            tip = self.port.advance(REF, self.tip, draft, "append")
            assert tip is not None
            self.tip = tip

    def pack(self, least: int = 1) -> int:
        return packing.pack(self.common, self.tip, least=least)

    def loose(self) -> set[str]:
        folders = [name for name in os.listdir(self.objects) if len(name) == 2]
        return {folder + name for folder in folders for name in os.listdir(self.objects / folder)}

    def packs(self) -> set[str]:
        return {path.stem for path in (self.objects / "pack").glob("*.pack")}

    def check(self) -> None:
        """Everything is there, for git and for both ports."""
        self.git("fsck", "--strict", "--no-dangling")
        for port in (DulwichGit(self.common), PlumbingGit(self.common)):
            history = port.history(self.tip)
            assert len(history) == self.count + 1
            for oid in history[1:]:
                tree = port.commit(oid).tree
                for name in ("signals", "2026-11", "21", "gm-a.jsonl"):
                    tree = port.tree(tree)[name].oid
                assert port.blob(tree).count(b"line") == history.index(oid)
            port.close()


@pytest.fixture
def clone(repo: Path, git: Run) -> Clone:
    return Clone(repo, git)


def test_only_the_log_s_objects_are_packed(clone: Clone) -> None:
    """What is loose of the user's stays as it is, reached or not; so do the user's packs."""
    clone.git("repack", "-adq", "--no-write-bitmap-index")
    users_pack = clone.packs()
    (clone.path / "more").write_text("more\n")
    clone.git("add", "more")
    clone.git("commit", "--quiet", "-m", "More")
    clone.git("hash-object", "-w", "--stdin", input="nobody's\n")
    logs = set(clone.git("rev-list", "--objects", "--no-object-names", REF).split())
    users = clone.loose() - logs
    clone.add()

    assert clone.pack() == 3 + 30
    assert clone.loose() == users
    assert len(clone.packs() - users_pack) == 1 and users_pack <= clone.packs()
    assert not held.names(str(clone.objects))
    clone.check()


def test_what_has_no_second_name_is_packed_too(clone: Clone) -> None:
    """It came by a fetch, or an older gitmem wrote it."""
    clone.add()
    shutil.rmtree(clone.objects.parent / "gitmem" / "held")
    assert clone.pack() == 33
    clone.check()


def test_few_are_left_as_they_are(clone: Clone) -> None:
    """A pack for each handful would be worse than loose objects."""
    clone.add(2)
    before = clone.loose()
    assert clone.pack(least=100) == 0
    assert clone.loose() == before
    assert not clone.packs()
    assert not packing.is_due(clone.common)


def test_it_is_due_when_much_lies_about(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by what has a second name, or was made a pack while a gc ran."""
    clone.add(2)
    monkeypatch.setattr(packing, "OBJECTS_MAX", len(held.names(str(clone.objects))))
    assert packing.is_due(clone.common)
    clone.pack()
    assert not packing.is_due(clone.common)
    for number in range(packing.PACKS_MAX):
        for end in (".pack", ".idx"):
            (clone.objects.parent / "gitmem" / "held" / f"pack-{number}{end}").touch()
    monkeypatch.undo()
    assert packing.is_due(clone.common)


def test_small_packs_of_ours_become_one(clone: Clone) -> None:
    """However many there were: a few are left, and nothing is in two of them."""
    for _ in range(12):
        clone.add(3)
        clone.pack()
        assert len(clone.packs()) <= 4
    listed = [each.name for each in packing.own_packs(clone.common)]
    assert set(listed) == clone.packs()
    assert f"in-pack: {6 * 36 + 3}" in clone.git("count-objects", "-v")
    clone.check()


def test_a_pack_that_is_much_larger_than_what_is_new_stays(clone: Clone) -> None:
    """Each object is packed again only a few times in its life. A commit has six: 12 are twice as many as 6."""
    counts = []
    for commits in (20, 2, 1, 1):
        clone.add(commits)
        clone.pack()
        counts.append(len(clone.packs()))

    assert counts == [1, 2, 3, 2]
    clone.check()


def test_packs_that_are_to_be_kept_stay(clone: Clone) -> None:
    """Somebody's `.keep`, and what git's index of many packs counts on."""
    clone.add()
    clone.pack()
    (kept,) = clone.packs()
    (clone.objects / "pack" / f"{kept}.keep").write_text("mine\n")
    clone.add()
    clone.pack()
    assert kept in clone.packs() and len(clone.packs()) == 2
    assert "in-pack: 63\n" in clone.git("count-objects", "-v")
    clone.git("multi-pack-index", "write")
    indexed = clone.packs()
    clone.add()
    clone.pack()
    assert indexed < clone.packs()
    clone.git("multi-pack-index", "verify")
    clone.check()


def test_a_pack_of_the_user_s_is_never_united(clone: Clone) -> None:
    """Also one that has the log's objects, because the user's gc made it of ours."""
    clone.add()
    clone.pack()
    clone.git("gc", "--quiet")
    (users,) = clone.packs()
    clone.add()
    clone.pack()
    assert users in clone.packs() and len(clone.packs()) == 2
    clone.check()


def test_readers_that_have_a_pack_open_find_everything(clone: Clone) -> None:
    """Theirs is gone by the time that they read on."""
    clone.add()
    clone.pack()
    ports = [DulwichGit(clone.common), PlumbingGit(clone.common)]
    first = clone.port.history(clone.tip)
    for port in ports:
        port.commit(first[0])
    (old,) = clone.packs()
    clone.add()
    clone.pack()
    assert old not in clone.packs()

    for port in ports:
        for oid in [*first, clone.tip]:
            assert "format" in port.tree(port.commit(oid).tree)
        port.close()


def test_who_borrows_from_us_finds_everything(clone: Clone, tmp_path: Path) -> None:
    """A clone with our objects as its alternates, whose refs we do not know."""
    clone.add()
    clone.pack()
    clone.git("clone", "--quiet", "--shared", ".", str(tmp_path / "borrower"))
    clone.run("fetch", "--quiet", "origin", f"{REF}:refs/heads/borrowed", cwd=tmp_path / "borrower")
    clone.git("update-ref", REF, f"{REF}~3")
    left, clone.tip, clone.count = clone.tip, clone.git("rev-parse", REF).strip(), clone.count - 3
    clone.add(9)
    clone.pack()

    assert len(clone.packs()) == 1
    assert clone.git("cat-file", "-t", left) == "commit\n"
    clone.run("fsck", "--strict", cwd=tmp_path / "borrower")
    clone.check()


def test_a_writer_of_the_same_object_is_safe(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """It found the file there and did not write it: its second name stays when ours goes, or the pack has it."""
    clone.add()
    oid = clone.port.tree(clone.port.commit(clone.tip).tree)["signals"].oid
    kind, content = clone.port._object(oid)
    drop = packing.aside.drop

    def writing(path: str) -> None:
        if path.endswith(oid[2:]):
            clone.port._put(kind, content)
        drop(path)

    monkeypatch.setattr(packing.aside, "drop", writing)
    clone.pack()
    clone.check()


@pytest.mark.parametrize("failing", ["pack-objects", "move", "list", "nothing"])
def test_what_fails_in_the_middle_loses_nothing(
    clone: Clone, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: what was loose is loose, and the next time packs it. What was left half is swept."""
    clone.add()
    before = clone.loose()

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    half = clone.objects.parent / "gitmem" / "packing" / "pack" / "tmp_pack_half"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"PACK")
    with monkeypatch.context() as patch:
        if failing == "pack-objects":
            patch.setattr(packing, "_CONFIG", ("-c", "pack.window=none"))
        elif failing == "move":
            patch.setattr(durable, "add_name", full)
        elif failing == "list":
            patch.setattr(packing.aside, "replace", full)
        if failing != "nothing":
            with pytest.raises(StoreError):
                clone.pack()
            assert clone.loose() == before
            assert len(held.names(str(clone.objects))) == len(before) - 3
            clone.check()
    assert clone.pack() == 30 + 3
    assert not half.exists() and not os.listdir(half.parent)
    clone.check()


def test_a_pack_that_lacks_something_removes_nothing(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever git has made there: it is looked at before anything goes."""
    clone.add()
    before = clone.loose()
    make = packing._make
    monkeypatch.setattr(packing, "_make", lambda common, rows: make(common, list(rows)[:-1]))
    with pytest.raises(StoreError, match="left something out") as caught:
        clone.pack()
    assert caught.value.code == "git-failed"
    assert clone.loose() == before


def test_it_waits_for_a_gc(clone: Clone) -> None:
    """There is no hurry."""
    clone.add()
    (clone.path / ".git" / "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")
    assert clone.pack() == 0
    assert clone.loose()


def test_what_was_written_during_a_gc_is_packed(clone: Clone) -> None:
    """A pack an append, until then; afterwards it is one of ours."""
    clone.add()
    pid = clone.path / ".git" / "gc.pid"
    pid.write_text(f"{os.getpid()} {os.uname().nodename}")
    clone.add(4)
    assert len(clone.packs()) == 4
    pid.unlink()
    clone.pack()
    assert len(clone.packs()) == 1
    assert not held.names(str(clone.objects))
    clone.check()


def test_what_was_written_during_a_gc_stays_where_git_was_told_to_keep_it(clone: Clone) -> None:
    """Somebody, or a git that is at work on it, needs that very pack."""
    pid = clone.path / ".git" / "gc.pid"
    pid.write_text(f"{os.getpid()} {os.uname().nodename}")
    clone.add(2)
    kept = min(clone.packs())
    (clone.objects / "pack" / f"{kept}.keep").touch()
    pid.unlink()
    clone.pack()

    assert kept in clone.packs() and len(clone.packs()) == 2
    assert not held.names(str(clone.objects))
    clone.check()


def test_second_names_of_long_ago_go(clone: Clone) -> None:
    """What no ref has reached after a day is of a command that failed."""
    lost = clone.port.write([Draft({"lost": b"1"}, WHO, WHO, "m\n")], None)[0]
    fresh = clone.port.write([Draft({"lost": b"2"}, WHO, WHO, "m\n")], None)[0]
    path = clone.objects.parent / "gitmem" / "held" / lost
    os.utime(path, (path.stat().st_mtime - packing.HELD_SECONDS - 1,) * 2)
    clone.add()
    clone.pack()
    assert lost not in held.names(str(clone.objects))
    assert fresh in held.names(str(clone.objects))


def test_what_no_ref_reaches_does_not_make_it_due(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for its day to be over; only as much again as is packed at once makes it due."""
    monkeypatch.setattr(packing, "OBJECTS_MAX", 20)
    clone.port.write(
        [Draft({f"lost-{number}": b"%d" % number for number in range(30)}, WHO, WHO, "m\n")], None
    )
    assert packing.is_due(clone.common)
    clone.pack(least=10)
    assert not packing.is_due(clone.common)
    assert packing.waiting(clone.common) == 3
    clone.add(3)
    assert packing.is_due(clone.common)
    assert clone.pack(least=10) == 21
    assert not packing.waiting(clone.common)
    assert len(held.names(str(clone.objects))) == 32
    clone.check()


def test_second_names_of_long_ago_go_where_little_is_packed(clone: Clone) -> None:
    """But not those of what the log reaches: they are waiting for the next pack."""
    clone.add(1)
    clone.port.write([Draft({"lost": b"1"}, WHO, WHO, "m\n")], None)
    folder = clone.objects.parent / "gitmem" / "held"
    for path in folder.iterdir():
        os.utime(path, (path.stat().st_mtime - packing.HELD_SECONDS - 1,) * 2)
    assert clone.pack(least=100) == 0
    logs = set(clone.git("rev-list", "--objects", "--no-object-names", REF).split())
    assert set(held.names(str(clone.objects))) == logs


def test_what_a_pack_of_ours_has_already_goes(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packing that was killed over it left it; what the log reaches no longer stays as it is."""
    clone.add()
    first = clone.tip
    clone.add(1)
    undone = clone.loose()
    with monkeypatch.context() as patch:
        patch.setattr(packing, "_drop", lambda objects, oids: None)
        clone.pack()
    clone.git("update-ref", REF, first)
    clone.tip, clone.count = first, clone.count - 1
    logs = set(clone.git("rev-list", "--objects", "--no-object-names", REF).split())
    assert len(undone) > len(undone & logs) == 33

    clone.pack()
    assert clone.loose() == undone - logs
    assert set(held.names(str(clone.objects))) == undone - logs - clone.users
    clone.check()


def test_it_is_not_due_while_a_gc_runs(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process would be started for nothing, at every look."""
    clone.add()
    monkeypatch.setattr(packing, "OBJECTS_MAX", 10)
    assert packing.is_due(clone.common)
    (clone.path / ".git" / "gc.pid").write_text("4242 another-machine.example")
    assert not packing.is_due(clone.common)


def test_a_process_that_makes_packs_closes_them(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """One an append, while a gc runs: it would be out of files in the end."""
    monkeypatch.setattr("gitmem.git.inprocess.PACKS_OPEN_MAX", 3)
    (clone.path / ".git" / "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")
    closed = []
    close = clone.port.close
    monkeypatch.setattr(clone.port, "close", lambda: closed.append(close()))
    clone.add(7)
    assert len(closed) == 2 and len(clone.packs()) == 7
    clone.check()


def test_ids_of_sha256(tmp_path: Path, git: Run) -> None:
    """Nothing counts on 40 digits."""
    git("init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(tmp_path / "long"))
    git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=tmp_path / "long")
    clone = Clone(tmp_path / "long", git)
    for _ in range(3):
        clone.add()
        clone.pack()
    assert len(clone.packs()) <= 2
    assert len(clone.tip) == 64
    clone.check()


def test_the_list_of_packs_is_no_more_than_a_list(clone: Clone) -> None:
    """Torn, old or gone: what it names and is not there does not count, and nothing of the user's gets into it."""
    clone.add()
    clone.pack()
    listed = clone.objects.parent / "gitmem" / "packs"
    (name,) = clone.packs()
    listed.write_text(f"pack-{'0' * 40} {clone.tip}\n{name}\n../x {clone.tip}\n{name} --all\n\0\n")
    assert packing.own_packs(clone.common) == []
    clone.add()
    clone.pack()
    assert name in clone.packs()
    listed.unlink()
    clone.check()


def test_damage_leaves_all_as_it_is(clone: Clone) -> None:
    """`doctor` says what is missing; packing the rest is no mending."""
    clone.add()
    (path,) = [clone.objects / oid[:2] / oid[2:] for oid in [clone.port.history(clone.tip)[2]]]
    shutil.copy(path, clone.path / "aside")
    os.chmod(path, 0o644)
    path.write_bytes(b"")
    before = clone.loose()
    with pytest.raises(StoreError):
        clone.pack()
    assert clone.loose() == before
    assert run.once(clone.common, ["fsck"]).code != 0
