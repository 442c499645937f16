"""Second names: what a gc takes of objects that a ref had not reached yet is given back."""

from __future__ import annotations

import errno
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import held, loose, loose_ref
from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
from gitmem.git.port import Draft, Signature

REF = "refs/gitmem/log"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)
NEW = {"signals/2026-11/21/gm-a.jsonl": b"a line\n"}
Run = Callable[..., str]
Port = DulwichGit | PlumbingGit


@pytest.fixture
def objects(repo: Path) -> str:
    return str(repo / ".git" / "objects")


@pytest.fixture(params=[DulwichGit, PlumbingGit])
def port(request: pytest.FixtureRequest, repo: Path) -> Iterator[Port]:
    opened: Port = request.param(str(repo / ".git"))
    yield opened
    opened.close()


def draft(changes: dict[str, bytes]) -> Draft:
    return Draft(dict(changes), WHO, WHO, "m\n")


def started(port: Port) -> str:
    """The tip of a ref with one commit."""
    (tip,) = port.write([draft({"format": b"{}"})], None)
    assert port.swap(REF, None, tip, "start")
    return tip


def loose_objects(objects: str) -> set[str]:
    return {
        folder + name for folder in os.listdir(objects) if len(folder) == 2 for name in os.listdir(Path(objects, folder))
    }  # fmt: skip


def check(git: Run, repo: Path) -> None:
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def gc_begins(repo: Path, pid: int) -> None:
    (repo / ".git" / "gc.pid").write_text(f"{pid} {platform.node()}")


def test_a_prune_before_the_ref_moves_loses_nothing(
    port: Port, repo: Path, git: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes what was written and not reached yet; as soon as the ref has moved all is there again."""
    tip = started(port)
    swap = loose_ref.swap

    def prune_and_swap(*args: str) -> bool:
        git("prune", "--expire=now", cwd=repo)
        assert not git("cat-file", "--batch-check", cwd=repo, input=args[3]).endswith("commit\n")
        return swap(*args)

    monkeypatch.setattr(loose_ref, "swap", prune_and_swap)
    new = port.advance(REF, tip, draft(NEW), "append")

    assert new is not None
    assert git("show", f"{new}:{next(iter(NEW))}", cwd=repo) == "a line\n"
    check(git, repo)


def test_what_a_prune_took_later_is_given_back_where_it_is_read(
    port: Port, repo: Path, git: Run, objects: str
) -> None:
    """A prune that looked long ago removes what the ref reaches by now. Both ports find it nevertheless."""
    tip = port.advance(REF, started(port), draft(NEW), "append")
    assert tip is not None
    taken = loose_objects(objects) & set(held.names(objects))
    assert tip in taken and len(taken) == 9
    for oid in taken:
        os.unlink(Path(objects, oid[:2], oid[2:]))

    other = type(port)(str(repo / ".git"))
    top = other.tree(other.commit(tip).tree)
    assert other.blob(top["format"].oid) == b"{}"
    assert other.has(top["signals"].oid)
    assert len(other.history(tip)) == 2
    assert other.advance(REF, tip, draft({"more": b"1"}), "append")
    other.close()


@pytest.mark.parametrize("by", ["advance", "swap"])
def test_the_next_move_of_the_ref_gives_everything_back(
    port: Port, repo: Path, git: Run, objects: str, by: str
) -> None:
    """Also what nobody would read: a prune tells that it ended, by the file that it takes as its last."""
    first = port.advance(REF, started(port), draft(NEW), "append")
    assert first is not None
    old = port.commit(first).tree
    tip = port.advance(REF, first, draft({next(iter(NEW)): b"another\n"}), "append")
    assert tip is not None
    assert not held.was_pruned(objects)
    git("prune", "--expire=now", cwd=repo)
    os.unlink(Path(objects, old[:2], old[2:]))  # as one that looked before that
    assert held.was_pruned(objects)

    if by == "advance":
        assert port.advance(REF, tip, draft({"more": b"1"}), "append")
    else:
        assert port.swap(REF, tip, port.write([draft({"more": b"1"})], tip)[0], "sync")
    assert Path(objects, old[:2], old[2:]).exists()
    assert not held.was_pruned(objects)
    check(git, repo)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), StoreError("git failed")], ids=["full", "git"]
)
@pytest.mark.parametrize("by", ["advance", "swap"])
def test_a_line_is_recorded_though_what_was_pruned_cannot_be_given_back(
    port: Port, repo: Path, git: Run, objects: str, monkeypatch: pytest.MonkeyPatch, by: str, error: Exception
) -> None:
    """The ref has moved: a failure would tell that nothing was recorded. The next one gives it back."""
    first = port.advance(REF, started(port), draft(NEW), "append")
    assert first is not None
    old = port.commit(first).tree
    tip = port.advance(REF, first, draft({next(iter(NEW)): b"another\n"}), "append")
    assert tip is not None
    git("prune", "--expire=now", cwd=repo)
    os.unlink(Path(objects, old[:2], old[2:]))

    def fails(*args: object) -> bool:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(held, "give_back", fails)
        new: str | None
        if by == "advance":
            new = port.advance(REF, tip, draft({"more": b"1"}), "append")
        else:
            (new,) = port.write([draft({"more": b"1"})], tip)
            assert port.swap(REF, tip, new, "sync")
    assert new is not None and port.tip(REF) == new
    assert held.was_pruned(objects)
    assert port.advance(REF, new, draft({"late": b"1"}), "append")
    assert Path(objects, old[:2], old[2:]).exists()
    check(git, repo)


def test_during_a_gc_a_line_is_recorded_though_its_pack_gets_no_second_name(
    port: Port, repo: Path, git: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has moved the ref by then."""
    tip = started(port)
    gc_begins(repo, os.getpid())

    def full(*args: object) -> bool:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(held, "hold_packs", full)
    new = port.advance(REF, tip, draft(NEW), "append")
    assert new is not None and port.tip(REF) == new
    check(git, repo)


def test_what_lies_in_a_pack_is_not_given_back(port: Port, repo: Path, git: Run, objects: str) -> None:
    """After the user's gc the objects are in its pack; they do not become loose once more."""
    tip = port.advance(REF, started(port), draft(NEW), "append")
    assert tip is not None
    git("gc", "--quiet", "--prune=now", cwd=repo)
    assert held.was_pruned(objects)

    assert held.give_back_all(objects) == 0
    assert not loose_objects(objects)


def test_during_a_gc_an_append_makes_a_pack(port: Port, repo: Path, git: Run, objects: str) -> None:
    """Nothing is loose at any time, so the gc that runs neither takes it nor stumbles."""
    tip = started(port)
    before = loose_objects(objects)
    gc_begins(repo, os.getpid())
    new = port.advance(REF, tip, draft(NEW), "append")
    assert new is not None
    later = port.write([draft({"more": b"1"})], new)

    assert loose_objects(objects) == before
    assert len([name for name in held.names(objects) if name.endswith(".pack")]) == 2
    assert port.swap(REF, new, later[0], "sync")
    assert port.advance(REF, new, draft({"late": b"1"}), "append") is None
    check(git, repo)


def test_a_gc_that_died_does_not_count(port: Port, repo: Path, objects: str) -> None:
    """Its file stays behind: the process is gone, or it is older than git would believe.

    Another machine's is believed for minutes: each append makes a pack until then.
    """
    tip = started(port)
    gc_begins(repo, 2**22 + 1)
    assert not held.gc_runs(objects)
    gc_begins(repo, os.getpid())
    assert held.gc_runs(objects)
    (repo / ".git" / "gc.pid").write_text("1 another-machine.example")
    assert held.gc_runs(objects)
    long_ago = time.time() - held.ELSEWHERE_SECONDS - 1
    os.utime(repo / ".git" / "gc.pid", (long_ago, long_ago))
    assert not held.gc_runs(objects)
    gc_begins(repo, os.getpid())
    os.utime(repo / ".git" / "gc.pid", (long_ago, long_ago))
    assert held.gc_runs(objects)
    os.utime(repo / ".git" / "gc.pid", (0, 0))
    assert not held.gc_runs(objects)

    assert port.advance(REF, tip, draft(NEW), "append")
    assert not [name for name in os.listdir(Path(objects, "pack")) if name.endswith(".pack")]


def test_a_pack_of_ours_that_a_repack_took_is_given_back(
    port: Port, repo: Path, git: Run, objects: str
) -> None:
    """Many commits go into a pack, which no ref reaches until the swap."""
    tip = started(port)
    oids = port.write([draft({f"{number:03d}": b"%d" % number}) for number in range(120)], tip)
    packs = [name for name in os.listdir(Path(objects, "pack")) if name.endswith(".pack")]
    assert len(packs) == 1
    git("repack", "-adq", cwd=repo)
    git("prune", "--expire=now", cwd=repo)
    assert packs[0] not in os.listdir(Path(objects, "pack"))

    assert port.swap(REF, tip, oids[-1], "sync")
    assert len(port.history(oids[-1])) == 121
    check(git, repo)


def test_without_hard_links_there_are_copies(objects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none."""

    def link(path: str, name: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    oid = loose.write(objects, b"blob", b"x")
    path = Path(objects, oid[:2], oid[2:])
    assert loose.read(objects, oid) == (b"blob", b"x")
    assert path.stat().st_mode & 0o777 == 0o444
    path.unlink()

    assert held.give_back(objects, oid)
    assert loose.read(objects, oid) == (b"blob", b"x")


def test_a_copy_that_was_killed_is_taken_for_no_object(
    objects: str, repo: Path, git: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no hard links, what is half copied has a name of its own."""

    def link(path: str, name: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def killed(path: str, name: str) -> None:
        raise KeyboardInterrupt

    oid = git("hash-object", "-w", "--stdin", cwd=repo, input="x").strip()
    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        held.hold(objects, oid)
    assert os.listdir(held.folder(objects))
    assert held.names(objects) == []


def test_a_folder_that_git_removes_meanwhile_is_made_again(
    objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git removes folders of objects that are empty, also just after we made one."""
    link, left = os.link, [2]

    def removing(path: str, name: str) -> None:
        if left[0] and len(os.path.basename(os.path.dirname(name))) == 2:
            left[0] -= 1
            os.makedirs(os.path.dirname(name), exist_ok=True)
            os.rmdir(os.path.dirname(name))
        link(path, name)

    monkeypatch.setattr(os, "link", removing)
    oid = loose.write(objects, b"blob", b"x")
    assert loose.read(objects, oid) == (b"blob", b"x")
    assert left == [0]


def test_a_folder_that_git_removes_as_it_is_made_is_made_again(
    objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and the setting of its mode."""
    chmod, left = os.chmod, [1]

    def removing(path: str, mode: int) -> None:
        if left[0] and len(os.path.basename(path)) == 2:
            left[0] -= 1
            os.rmdir(path)
        chmod(path, mode)

    monkeypatch.setattr(os, "chmod", removing)
    oid = loose.write(objects, b"blob", b"x")
    assert loose.read(objects, oid) == (b"blob", b"x")
    assert left == [0]


def test_what_a_gc_takes_while_it_is_written_is_written_again(
    repo: Path, git: Run, objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's objects have no second name yet when it ends: they are looked for, and made once more."""
    port = PlumbingGit(str(repo / ".git"))
    tip = started(port)
    hold, left = held.hold, [1]

    def pruned(objects: str, oid: str) -> bool:
        if left[0]:
            left[0] -= 1
            git("prune", "--expire=now", cwd=repo)
        return hold(objects, oid)

    monkeypatch.setattr(held, "hold", pruned)
    assert port.advance(REF, tip, draft(NEW), "append")
    port.close()
    assert left == [0]
    check(git, repo)


def test_a_keep_without_a_pack_is_swept(objects: str, repo: Path, git: Run) -> None:
    """A fast-import whose pack was taken before it was finished leaves one. The user's own stay."""
    packs = Path(objects, "pack")
    packs.mkdir(exist_ok=True)
    git("repack", "-adq", cwd=repo)
    (real,) = packs.glob("*.pack")
    for name, text in ((real.stem, "fast-import"), ("pack-0", "fast-import"), ("pack-1", "of the user")):
        (packs / f"{name}.keep").write_text(text)
        os.utime(packs / f"{name}.keep", (0, 0))

    held.drop_keeps(objects)
    assert {path.stem for path in packs.glob("*.keep")} == {real.stem, "pack-1"}


def test_a_keep_of_an_import_that_makes_its_pack_stays(
    objects: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own: it gets its pack at once. The one that ours left goes, so that it can run again."""
    packs = Path(objects, "pack")
    packs.mkdir(exist_ok=True)
    for name in ("pack-0", "pack-1"):
        (packs / f"{name}.keep").write_text("fast-import")
    held.drop_keeps(objects)
    assert {path.stem for path in packs.glob("*.keep")} == {"pack-0", "pack-1"}

    monkeypatch.setattr(time, "sleep", lambda seconds: (packs / "pack-0.pack").touch())
    assert held.put_right(objects, "fatal: cannot create keep file")
    assert {path.stem for path in packs.glob("*.keep")} == {"pack-0"}
