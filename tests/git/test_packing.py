"""Packs of ours: no gc takes one before its ref has moved, few are left, and nothing goes before another pack has it."""

from __future__ import annotations

import errno
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import packs
from gitmem.git.network import GitNetwork
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit

from ..conftest import Git
from ..file_faults import at, full
from ..git_on_path import GitOnPath

REF = "refs/gitmem/log"
INTO = "refs/gitmem/remotes/hub/"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)
PRUNES = {
    "prune": ["prune", "--expire=now"],
    "repack": ["repack", "-adq"],
    "gc": ["gc", "--quiet", "--prune=now"],
}
Run = Callable[..., str]


class Clone:
    """A repository with a log."""

    def __init__(self, path: Path, git: Run) -> None:
        self.path = path
        self.run = git
        self.common = str(path / ".git")
        self.objects = path / ".git" / "objects"
        self.own = path / ".git" / "gitmem" / "own-packs"
        self.port = DulwichGit(self.common)
        self.count = 0
        (self.tip,) = self.port.write([Draft({"format": b"{}"}, WHO, WHO, "start\n")], None)
        assert self.port.swap(REF, None, self.tip, "start")

    def git(self, *args: str, input: str | None = None) -> str:
        return self.run(*args, cwd=self.path, input=input)

    def draft(self) -> Draft:
        self.count += 1
        text = b"".join(b"line %d\n" % number for number in range(self.count))
        return Draft({"signals/2026-11/21/gm-a.jsonl": text}, WHO, WHO, f"{self.count}\n")

    def add(self, commits: int = 5) -> None:
        for _ in range(commits):
            tip = self.port.advance(REF, self.tip, self.draft(), "append")
            assert tip is not None
            self.tip = tip

    def names(self, end: str) -> set[str]:
        return {path.name.partition(".")[0] for path in (self.objects / "pack").glob(f"*{end}")}

    @property
    def packs(self) -> set[str]:
        return self.names(".pack")

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
def clone(repo: Path, git: Run) -> Iterator[Clone]:
    found = Clone(repo, git)
    yield found
    found.port.close()


def gc_begins(clone: Clone) -> None:
    (clone.path / ".git" / "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")


# Before the ref moves, and after it.
@pytest.mark.parametrize("args", PRUNES.values(), ids=PRUNES)
def test_what_is_written_is_there_when_its_ref_moves(clone: Clone, args: list[str]) -> None:
    """Nothing reaches it yet, and no gc may take it; afterwards it is the user's to repack as anything else."""
    first, second = clone.draft(), clone.draft()
    (lower,) = clone.port.write([first], clone.tip)
    (upper,) = clone.port.write([second], lower)
    assert len(clone.names(".keep")) == 2

    clone.git(*args)
    assert clone.port.swap(REF, clone.tip, upper, "sync")
    assert not clone.names(".keep")
    clone.tip = upper
    clone.git(*args)
    clone.check()


@pytest.mark.parametrize("args", PRUNES.values(), ids=PRUNES)
def test_a_prune_in_the_middle_of_an_append_takes_nothing(
    clone: Clone, args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the pack and the move of the ref."""
    GitOnPath(tmp_path, monkeypatch).does(
        f'"$git" -C "{clone.common}" {shlex.join(args)}; exec "$git" "$@"', to="update-ref"
    )
    clone.add(2)
    clone.git(*args)
    clone.check()


def test_a_race_that_was_lost_takes_no_object_away(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gc of that moment may have left out of its pack what the loser's has. The pack stays, released, until it is united."""
    draft, before = clone.draft(), clone.packs
    program = GitOnPath(tmp_path, monkeypatch)
    program.says(128, err="reference already exists", to="update-ref")
    assert clone.port.advance(REF, clone.tip, draft, "append") is None
    (lost,) = clone.packs - before
    assert not Path(clone.common, "objects", "pack", f"{lost}.keep").exists()
    assert clone.packs == set(os.listdir(clone.own))

    with closing(PlumbingGit(clone.common)) as other:
        (won,) = other.write([draft], clone.tip)
        overtakes = f'"$git" -C "{clone.common}" update-ref {REF} {won} {clone.tip}; exec "$git" "$@"'
        program.does(overtakes, to="update-ref")
        assert clone.port.advance(REF, clone.tip, draft, "append") is None
    clone.tip = clone.port.tip(REF) or ""
    assert clone.tip == won
    assert len(clone.packs) == 4  # the first one, the winner's, and two of losers
    clone.check()


def test_what_was_given_up_is_left_to_git_in_the_end(clone: Clone) -> None:
    """When the port is closed; an hour later where the process was killed. What somebody else told git to keep stays."""
    (given_up,) = clone.port.write([Draft({"lost": b"1"}, WHO, WHO, "m\n")], clone.tip)
    assert clone.names(".keep")
    clone.port.close()
    assert not clone.names(".keep")

    killed = DulwichGit(clone.common)
    killed.write([Draft({"lost": b"2"}, WHO, WHO, "m\n")], clone.tip)
    (name,) = clone.names(".keep")
    clone.add(1)
    theirs = (clone.packs - {name}).pop()
    (clone.objects / "pack" / f"{theirs}.keep").write_text("mine\n")
    (clone.own / "pack-gone").touch()
    (clone.objects / "pack" / "gitmem-new-1.pack").touch()
    half = clone.objects / "pack" / f"pack-{'1' * 40}"
    for path in (Path(f"{half}.keep"), Path(f"{half}.pack"), Path(f"{half}.idx.part"), clone.own / half.name):
        path.touch()
    packs.clean_up(clone.common)
    assert clone.names(".keep") == {name, theirs, half.name}
    assert "gitmem-new-1" not in clone.packs

    for path in clone.own.iterdir():
        os.utime(path, (time.time() - packs.LEFT_SECONDS - 1,) * 2)
    packs.clean_up(clone.common)
    assert clone.names(".keep") == {theirs}
    assert not list((clone.objects / "pack").glob(f"{half.name}*"))
    assert set(os.listdir(clone.own)) == clone.packs
    assert clone.port.has(given_up)
    clone.check()


@pytest.mark.parametrize("failing", ["fsync", "rename", "open"])
def test_a_write_that_fails_leaves_nothing(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A full disk at any step: the error says that it was the disk."""
    before = sorted(os.listdir(clone.objects / "pack"))

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(StoreError, match="No space left on device") as caught:
            clone.port.write([Draft({"more": b"1"}, WHO, WHO, "m\n")], clone.tip)
    assert caught.value.code == "store-files"
    assert sorted(os.listdir(clone.objects / "pack")) == before
    assert len(os.listdir(clone.own)) == 1
    clone.add()
    clone.check()


def test_a_pack_is_on_the_disk_before_its_ref_moves(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its two files and their folder are synced, and only then is there a ref that needs them."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    (new,) = clone.port.write([clone.draft()], clone.tip)
    (name,) = clone.names(".keep")
    assert synced == [f"{name}.pack", f"{name}.idx.part", "pack"]
    assert clone.port.swap(REF, clone.tip, new, "append")


# One of many.
def test_few_packs_are_left_whatever_is_written(clone: Clone) -> None:
    """A commit a second for long must not reach the 50 packs at which git's own gc begins."""
    most = runs = 0
    for _ in range(70):
        clone.add(1)
        most = max(most, len(clone.packs))
        runs += bool(packs.objects_due(clone.common) and packs.combine(clone.common))
    assert most <= 2 * packs.PACKS_MAX and runs <= 70 / 5
    assert set(packs.own_packs(clone.common)) == clone.packs
    assert f"in-pack: {6 * 70 + 3}\n" in clone.git("count-objects", "-v")
    clone.check()


def test_a_pack_that_is_much_larger_than_the_others_stays(clone: Clone) -> None:
    """Each object is packed again only a few times in its life. A commit has six."""
    clone.add(20)
    assert packs.combine(clone.common) == 21
    (large,) = clone.packs
    clone.add(9)
    assert not packs.objects_due(clone.common)
    clone.add(1)
    assert packs.objects_due(clone.common) == 60
    assert packs.combine(clone.common) == 10
    assert large in clone.packs and len(clone.packs) == 2
    clone.add(10)
    assert packs.combine(clone.common) == 12
    assert len(clone.packs) == 1
    clone.check()


def test_one_tiny_pack_hinders_nothing(clone: Clone) -> None:
    """All others are more than twice as large."""
    clone.port.write([Draft({}, WHO, WHO, "m\n")], clone.tip)
    clone.port.close()
    clone.add(12)
    assert packs.objects_due(clone.common)
    assert packs.combine(clone.common) == 14


def test_only_packs_of_ours_become_one(clone: Clone) -> None:
    """The user's stay as they are, also one with the log's objects, and what is loose stays loose."""
    clone.add()
    clone.git("gc", "--quiet")
    (users,) = clone.packs
    loose = clone.git("hash-object", "-w", "--stdin", input="nobody's\n").strip()
    clone.add()
    assert packs.combine(clone.common) == 5
    assert users in clone.packs and len(clone.packs) == 2
    assert (clone.objects / loose[:2] / loose[2:]).exists()
    clone.check()


def test_packs_that_are_to_be_kept_stay(clone: Clone) -> None:
    """Somebody's `.keep`, what git's index of many packs counts on, and what a remote promised the rest of."""
    clone.add(5)
    first, second, *_ = sorted(clone.packs)
    (clone.objects / "pack" / f"{first}.keep").write_text("mine\n")
    (clone.objects / "pack" / f"{second}.promisor").touch()
    packs.combine(clone.common)
    assert {first, second} < clone.packs and len(clone.packs) == 3
    (clone.objects / "pack" / f"{second}.promisor").unlink()
    clone.git("multi-pack-index", "write")
    indexed = clone.packs
    clone.add(3)
    assert packs.combine(clone.common) == 3
    assert indexed < clone.packs and len(clone.packs) == 4
    clone.git("multi-pack-index", "verify")
    clone.check()


def test_what_is_about_to_be_reached_is_not_touched(clone: Clone) -> None:
    """Its pack has a `.keep` of ours."""
    clone.add(3)
    (new,) = clone.port.write([clone.draft()], clone.tip)
    (name,) = clone.names(".keep")
    assert packs.combine(clone.common) == 4
    assert name in clone.packs and len(clone.packs) == 2
    clone.git("gc", "--quiet", "--prune=now")
    assert clone.port.swap(REF, clone.tip, new, "sync")
    clone.tip = new
    clone.check()


def test_readers_that_have_a_pack_open_find_everything(clone: Clone) -> None:
    """Theirs is gone by the time that they read on."""
    clone.add()
    ports = [DulwichGit(clone.common), PlumbingGit(clone.common)]
    first = clone.port.history(clone.tip)
    for port in ports:
        port.commit(first[0])
    clone.add()
    packs.combine(clone.common)
    assert len(clone.packs) == 1
    for port in ports:
        for oid in [*first, clone.tip]:
            assert "format" in port.tree(port.commit(oid).tree)
        port.close()


def test_who_borrows_from_us_finds_everything(clone: Clone, tmp_path: Path) -> None:
    """A clone with our objects as its alternates, whose refs we do not know."""
    clone.add()
    clone.git("clone", "--quiet", "--shared", ".", str(tmp_path / "borrower"))
    clone.run("fetch", "--quiet", "origin", f"{REF}:refs/heads/borrowed", cwd=tmp_path / "borrower")
    clone.git("update-ref", REF, f"{REF}~3")
    left, clone.tip, clone.count = clone.tip, clone.git("rev-parse", REF).strip(), clone.count - 3
    clone.add(9)
    packs.combine(clone.common)

    assert len(clone.packs) == 1
    assert clone.git("cat-file", "-t", left) == "commit\n"
    clone.run("fsck", "--strict", cwd=tmp_path / "borrower")
    clone.check()


@pytest.mark.parametrize("failing", ["pack-objects", "list", "left out", "an index"])
def test_what_fails_in_the_middle_loses_nothing(
    clone: Clone, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed before the pack that has it was looked at, and the next time does it."""
    clone.add()
    before = clone.packs
    index = clone.objects / "pack" / f"{min(before)}.idx"
    content = index.read_bytes()
    with monkeypatch.context() as patch:
        program = GitOnPath(tmp_path, patch)
        if failing == "pack-objects":
            program.says(128, err="fatal: out of memory", to="pack-objects")
        elif failing == "list":
            at(patch, "open", "*/own-packs/*", full)
        elif failing == "left out":
            program.does('tail -n +2 | "$git" "$@"', to="pack-objects")
        else:
            index.chmod(0o644)
            index.write_bytes(b"damaged")
        if failing == "an index":
            assert packs.combine(clone.common) == 0
            index.write_bytes(content)
        else:
            with pytest.raises(StoreError):
                packs.combine(clone.common)
    assert before <= clone.packs
    clone.check()
    assert packs.combine(clone.common) == 6
    clone.check()


def test_it_waits_for_a_gc(clone: Clone) -> None:
    """There is no hurry."""
    clone.add(12)
    assert packs.objects_due(clone.common)
    gc_begins(clone)
    assert not packs.objects_due(clone.common) and packs.combine(clone.common) == 0


def test_a_gc_that_died_does_not_count(clone: Clone) -> None:
    """Its file stays behind: the process is gone, or it is older than git would believe. Another machine's counts for minutes."""
    pid = clone.path / ".git" / "gc.pid"

    def runs(content: str, age: float = 0.0) -> bool:
        pid.write_text(content)
        os.utime(pid, (time.time() - age,) * 2)
        return packs.gc_runs(clone.common)

    here, there = f"{os.getpid()} {os.uname().nodename}", "1 another-machine.example"
    assert runs(here) and runs(here, packs.ELSEWHERE_SECONDS + 1)
    assert not runs(here, packs.GC_SECONDS + 1)
    assert runs(there) and not runs(there, packs.ELSEWHERE_SECONDS + 1)
    assert not runs(f"{2**22 + 1} {os.uname().nodename}") and not runs("")


def test_ids_of_sha256(tmp_path: Path, git: Run) -> None:
    """Nothing counts on 40 digits."""
    git("init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(tmp_path / "long"))
    git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=tmp_path / "long")
    clone = Clone(tmp_path / "long", git)
    for _ in range(3):
        clone.add()
        packs.combine(clone.common)
    assert len(clone.packs) == 2 and len(clone.tip) == 64
    clone.check()


# What a fetch brings.
def test_a_fetched_pack_is_ours_and_others_are_not(clone: Clone, tmp_path: Path) -> None:
    """It comes as a pack however small it is; what the user's git makes meanwhile stays the user's."""
    clone.git("clone", "--quiet", "--bare", ".", str(tmp_path / "hub.git"))
    there = DulwichGit(str(tmp_path / "hub.git"))
    (oid,) = there.write([Draft({"theirs": b"1"}, WHO, WHO, "m\n")], None)
    assert there.swap("refs/heads/gitmem", None, oid, "start")
    there.close()
    before = clone.packs

    class Meanwhile(GitNetwork):
        def _fetch_into(self, *args: object) -> dict[str, tuple[str, str]]:  # type: ignore[override]
            done = super()._fetch_into(*args)  # type: ignore[arg-type]
            clone.git("pack-objects", "-q", str(clone.objects / "pack" / "pack"), input=head)
            return done

    head = clone.git("rev-parse", "HEAD")
    Meanwhile(clone.common).fetch(str(tmp_path / "hub.git"), INTO)
    new = clone.packs - before
    (brought,) = new & set(packs.own_packs(clone.common))
    assert len(new) == 2
    clone.git("clone", "--quiet", ".", str(tmp_path / "fresh"))
    GitNetwork(str(tmp_path / "fresh/.git")).fetch(str(tmp_path / "hub.git"), INTO)
    assert not (tmp_path / "fresh/.git/gitmem").exists()
    assert oid in packs.ids_in(str(clone.objects / "pack" / f"{brought}.idx"), 40)
    assert not (clone.objects / oid[:2] / oid[2:]).exists()


@pytest.mark.parametrize("what", ["too large", "a repack beside it"])
def test_a_pack_that_may_be_the_users_is_not_taken_over(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The user's git makes a pack of everything in that moment, and a large pack costs too much to combine."""
    clone.git("clone", "--quiet", "--bare", ".", str(tmp_path / "hub.git"))
    with closing(DulwichGit(str(tmp_path / "hub.git"))) as there:
        (oid,) = there.write([Draft({"theirs": b"1"}, WHO, WHO, "m\n")], None)
        assert there.swap("refs/heads/gitmem", None, oid, "start")
    clone.git("repack", "-q", "-d")
    before, own, brought = clone.packs, packs.own_packs(clone.common), set[str]()

    class Meanwhile(GitNetwork):
        def _fetch_into(self, *args: object) -> dict[str, tuple[str, str]]:  # type: ignore[override]
            done = super()._fetch_into(*args)  # type: ignore[arg-type]
            brought.update(clone.packs - before)
            if what == "a repack beside it":
                clone.git("repack", "-q", "-a", "-d")
                assert before - clone.packs
            return done

    if what == "too large":
        monkeypatch.setattr(packs, "FETCHED_MAX", 0)
    Meanwhile(clone.common).fetch(str(tmp_path / "hub.git"), INTO)
    assert clone.packs - before
    assert brought <= clone.packs, "it is kept until the ref has moved"
    assert set(packs.own_packs(clone.common)) - set(own) == (set() if what == "too large" else brought)


# Packs written here are packs for git, of any kind and size of object and in either hash.

SIZES = (0, 1, 15, 16, 17, 2047, 2048, 300_000)


def written(
    common: Path, id_length: int, sizes: tuple[int, ...] = SIZES
) -> tuple[str, dict[str, tuple[bytes, bytes]]]:
    objects = {}
    for size in sizes:
        content = os.urandom(size)
        objects[packs.object_id(b"blob", content, id_length)] = (b"blob", content)
    path = str(common / "objects" / "pack" / f"pack-{'a' * id_length}")
    packs.write_pack(path, objects, id_length)
    return path, objects


@pytest.mark.parametrize(("form", "id_length"), [("sha1", 40), ("sha256", 64)])
def test_git_verifies_and_reads_it(tmp_path: Path, git: Git, form: str, id_length: int) -> None:
    """Each object by its id, with git's own index of the same pack to the byte."""
    git("init", "--quiet", "--bare", f"--object-format={form}", "r")
    path, objects = written(tmp_path / "r", id_length)

    git("verify-pack", path + ".pack", cwd=tmp_path / "r")
    git("index-pack", "-o", str(tmp_path / "again.idx"), path + ".pack", cwd=tmp_path / "r")
    assert (tmp_path / "again.idx").read_bytes() == Path(path + ".idx").read_bytes()
    for oid, (_, content) in objects.items():
        assert git("cat-file", "-s", oid, cwd=tmp_path / "r") == f"{len(content)}\n"
    assert packs.ids_in(path + ".idx", id_length) == sorted(objects)
    assert packs.count_in(path + ".idx", id_length) == len(objects)
    assert {os.stat(path + end).st_mode & 0o777 for end in (".pack", ".idx")} == {0o444}


@pytest.mark.parametrize("content", [b"", b"\377tOc", b"\0" * 2000, b"\377tOc\0\0\0\2" + b"\0\0\1\0" * 256])
def test_what_is_no_index_has_no_ids(tmp_path: Path, content: bytes) -> None:
    """Torn, of git's oldest form, or with more ids than bytes."""
    path = tmp_path / "pack-0.idx"
    assert packs.ids_in(str(path), 40) == []
    path.write_bytes(content)
    assert packs.ids_in(str(path), 40) == []


def test_nothing_is_replaced(repo: Path) -> None:
    """A name is used once: what stands there may be what somebody's ref reaches."""
    path, objects = written(repo / ".git", 40)
    before = Path(path + ".pack").read_bytes()
    with pytest.raises(FileExistsError):
        packs.write_pack(path, objects, 40)
    assert Path(path + ".pack").read_bytes() == before
