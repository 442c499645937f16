"""What mending looks at and takes away: reflogs, refs that are none, refs in the way, objects that are damaged."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import packs as packing
from gitmem.git import plumbing, repair
from gitmem.git.inprocess import DulwichGit
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import Git as PlumbingGit
from tests import newer_git
from tests.loose_objects import path_of

Run = Callable[..., str]
REF = "refs/gitmem/log"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)


def commits(git: Run, repo: Path, count: int) -> list[str]:
    """Some commits in a row, of no ref."""
    made = [git("commit-tree", "-m", "0", "HEAD^{tree}", cwd=repo).strip()]
    for number in range(1, count):
        made.append(
            git("commit-tree", "-m", str(number), "-p", made[-1], f"{made[-1]}^{{tree}}", cwd=repo).strip()
        )
    return made


def moves(common: str, ref: str = REF) -> list[tuple[str | None, str, str]]:
    return [(move.old, move.new, move.why) for move in repair.reflog(common, ref)]


@pytest.mark.parametrize("form", ["files", "reftable"])
def test_where_a_ref_has_been_is_told_oldest_first(
    tmp_path: Path, git: Run, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The same of either form of refs, with the reason of each move."""
    more = []
    if form == "reftable":
        newer_git.put_on_path(tmp_path, monkeypatch)
        more = ["--ref-format=reftable"]
    git("init", "--quiet", *more, "a")
    repo = tmp_path / "a"
    git("commit", "--quiet", "--allow-empty", "-m", "m", cwd=repo)
    one, two, three = commits(git, repo, 3)
    for why, oid in (("stärt", one), ("append", three), ("sync", two)):
        git("update-ref", "--create-reflog", "-m", why, REF, oid, cwd=repo)
    common = str(repo / ".git")

    assert moves(common) == [(None, one, "stärt"), (one, three, "append"), (three, two, "sync")]
    assert moves(common, "refs/gitmem/other") == []


def test_what_is_torn_of_a_reflog_is_left_out(common: str, repo: Path, git: Run) -> None:
    """After a power loss a line may be half there; those around it count."""
    one, two = commits(git, repo, 2)
    path = repo / ".git/logs" / REF
    path.parent.mkdir(parents=True)
    rows = [
        f"{'0' * 40} {one} x 1 +0000\tstart",
        f"{one} {two[:20]}",
        "",
        "\0" * 90,
        f"{two} {'0' * 40} x 1 +0000\tgone",
    ]
    path.write_text("\n".join([*rows, f"{one} {two} x 1 +0000\tlast \udcff\n"]), errors="surrogateescape")

    assert moves(common) == [(None, one, "start"), (one, two, "last \ufffd")]


def test_moves_to_what_is_gone_are_forgotten(common: str, repo: Path, git: Run) -> None:
    """A gc would stop at them; what is whole stays told."""
    one, two = commits(git, repo, 2)
    for oid in (one, two, one):
        git("update-ref", "--create-reflog", "-m", "m", REF, oid, cwd=repo)
    os.unlink(repo / ".git/objects" / two[:2] / two[2:])

    assert repair.expire_broken(common, REF)
    assert two not in [new for _, new, _ in moves(common)]
    assert moves(common)[0] == (None, one, "m")
    assert not repair.expire_broken(str(repo), REF)


def test_a_ref_goes_only_from_where_it_was_seen(common: str, repo: Path, git: Run) -> None:
    """Somebody may have moved it since."""
    one, two = commits(git, repo, 2)
    git("update-ref", REF, two, cwd=repo)

    assert not repair.delete(common, REF, one)
    assert plumbing.tip_of(common, REF) == two
    assert repair.delete(common, REF, two)
    assert plumbing.tip_of(common, REF) is None


def test_a_ref_in_the_way_keeps_a_name(common: str, repo: Path, git: Run) -> None:
    """Killed in the middle it is done again; where the new name is another's, or the old one moved, it has its old one."""
    one, two = commits(git, repo, 2)
    way, free = REF + "/x", "refs/gitmem/aside-x"
    for left in (None, one):  # the second: it was killed before it deleted
        if left is None:
            git("update-ref", way, one, cwd=repo)
        else:
            git("update-ref", free, one, cwd=repo)
            git("update-ref", way, one, cwd=repo)
        assert repair.rename(common, way, one, free)
        assert plumbing.refs_below(common, "refs/gitmem/") == {free: one}

    git("update-ref", way, two, cwd=repo)
    assert not repair.rename(common, way, two, free)
    assert not repair.rename(common, way, one, free)
    assert plumbing.refs_below(common, "refs/gitmem/") == {free: one, way: two}


def test_refs_that_are_none_are_named(common: str, repo: Path, git: Run) -> None:
    """Empty, torn and odd ones; a lock, a symbolic one and what git writes in another form are none of them."""
    folder = repo / ".git/refs/gitmem"
    (folder / "deep").mkdir(parents=True)
    whole = commits(git, repo, 1)[0]
    for name, text in {
        "empty": "", "torn": whole[:30] + "\n", "deep/odd": "\0" * 41,
        "whole": whole + "\n", "crlf": whole + "\r\n", "bare": whole, "sha256": "a" * 64, "symbolic": "ref: refs/heads/main\n",
        "log.lock": "",
    }.items():  # fmt: skip
        (folder / name).write_text(text)

    assert sorted(repair.damaged_refs(common, "refs/gitmem")) == [
        f"refs/gitmem/{name}" for name in ("deep/odd", "empty", "torn")
    ]
    assert list(repair.damaged_refs(common, "refs/gitmem/empty")) == ["refs/gitmem/empty"]
    assert list(repair.damaged_refs(common, "refs/none")) == []


def test_the_file_of_a_damaged_object_is_put_away(common: str, repo: Path, tmp_path: Path, git: Run) -> None:
    """A fetch may bring it then."""
    oid, aside = (
        git("hash-object", "-w", "--stdin", cwd=repo, input="one").strip(),
        tmp_path / "aside" / "objects",
    )
    path = path_of(repo / ".git", oid)
    whole = path.read_bytes()

    assert repair.move_aside(common, oid, str(aside)) == str(aside / oid)
    assert not path.exists() and (aside / oid).read_bytes() == whole
    assert repair.move_aside(common, "0" * 40, str(aside)) is None


def test_of_a_damaged_pack_what_can_be_read_is_kept(common: str, repo: Path, tmp_path: Path) -> None:
    """Everything else of it is in another pack before it goes. One that is not ours stays where it is."""
    port, packs = PlumbingGit(common), repo / ".git/objects/pack"
    (oid,) = port.write([Draft({"a": b"a" * 900, "b": b"b" * 900}, WHO, WHO, "m\n")], None)
    assert port.swap("refs/gitmem/log", None, oid, "start")
    entries = port.tree(port.commit(oid).tree)
    port.close()
    (path,) = packs.glob("*.pack")
    data = path.read_bytes()
    damaged = zlib.compress(b"a" * 900)
    path.chmod(0o644)
    path.write_bytes(data.replace(damaged, b"\0" * len(damaged)))
    for reader in (PlumbingGit(common), DulwichGit(common)):
        assert not reader.has(entries["a"].oid) and reader.has(entries["b"].oid)
        reader.close()

    own = repo / ".git/gitmem/own-packs" / path.stem
    own.rename(tmp_path / "own")
    assert repair.move_aside(common, entries["a"].oid, str(tmp_path / "aside")) is None
    (tmp_path / "own").rename(own)
    to = repair.move_aside(common, entries["a"].oid, str(tmp_path / "aside"))

    assert to == str(tmp_path / "aside" / path.name) and not path.exists()
    for reader in (PlumbingGit(common), DulwichGit(common)):
        assert reader.blob(entries["b"].oid) == b"b" * 900 and not reader.has(entries["a"].oid)
        assert reader.commit(oid).parents == []
        (again,) = reader.write([Draft({"a": b"a" * 900}, WHO, WHO, "m\n")], None)
        assert reader.blob(entries["a"].oid) == b"a" * 900 and again
        reader.close()
        for name in packs.glob("*.pack"):
            if entries["a"].oid in packing.ids_in(str(name.with_suffix(".idx")), 40):
                packing.remove(common, name.stem)
    assert not list(packs.glob("*.keep"))
