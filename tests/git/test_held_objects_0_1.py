"""A clone that an earlier version has written: objects may be in its `held` folder alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitmem.git import held_objects_0_1
from gitmem.git.open_git import open_port
from gitmem.repo import find
from tests.conftest import Git
from tests.loose_objects import loosen, path_of

LONG_AGO = time.time() - held_objects_0_1.YOUNG_SECONDS - 1


@pytest.fixture
def held(repo: Path) -> Path:
    """Its folder, and what else such a version keeps."""
    state = repo / ".git" / "gitmem"
    (state / "held").mkdir(parents=True)
    (state / "packing" / "pack").mkdir(parents=True)
    (state / "packing" / "pack" / "tmp_pack_half").touch()
    (state / "packs").write_text("pack-0 0\n")
    (repo / ".git/objects/tmp_gitmem").touch()
    return state / "held"


@pytest.mark.parametrize("long_lived", [False, True])
def test_what_a_gc_took_is_read_again(repo: Path, git: Git, held: Path, long_lived: bool) -> None:
    """A loose object and a pack, and nothing of that version is left."""
    first = git("hash-object", "-w", "--stdin", cwd=repo, input="one\n").strip()
    os.rename(path_of(repo / ".git", first), held / first)
    second = git("hash-object", "-w", "--stdin", cwd=repo, input="two\n").strip()
    empty = git("hash-object", "-t", "tree", "-w", "--stdin", cwd=repo, input="").strip()
    git("update-ref", "refs/gitmem/log", git("commit-tree", "-m", "m", empty, cwd=repo).strip(), cwd=repo)
    os.rename(path_of(repo / ".git", empty), held / empty)
    name = git("pack-objects", "-q", str(held / "pack"), cwd=repo, input=second).strip()
    path_of(repo / ".git", second).unlink()

    port = open_port(find(str(repo)), long_lived=long_lived)
    assert (port.blob(first), port.blob(second)) == (b"one\n", b"two\n")
    port.close()
    assert (
        not held.exists() and not (held.parent / "packing").exists() and not (held.parent / "packs").exists()
    )
    assert not (repo / ".git/objects/tmp_gitmem").exists()
    assert (repo / ".git/objects/pack" / f"pack-{name}.idx").exists()
    assert "missing" not in git("fsck", "--strict", cwd=repo)


def test_what_is_there_is_not_given_back(repo: Path, git: Git, held: Path) -> None:
    """Loose, or in a pack: only the second name goes, and that of one that is young stays for a while."""
    loosen(repo / ".git")
    oids = git("rev-list", "--objects", "--no-object-names", "HEAD", cwd=repo).split()
    for oid in oids:
        os.link(path_of(repo / ".git", oid), held / oid)
    git("repack", "-adq", cwd=repo)
    git("prune-packed", "-q", cwd=repo)
    os.utime(held / oids[0], (LONG_AGO, LONG_AGO))
    for oid in oids[1:]:
        assert not path_of(repo / ".git", oid).exists()
        os.utime(held / oid)  # the repository is a copy, which may be as old as the whole run

    held_objects_0_1.restore(str(repo / ".git"))
    assert not any(path_of(repo / ".git", oid).exists() for oid in oids)
    assert oids[0] not in os.listdir(held) and set(oids[1:]) == set(os.listdir(held))
    for oid in oids[1:]:
        os.utime(held / oid, (LONG_AGO, LONG_AGO))
    held_objects_0_1.restore(str(repo / ".git"))
    assert not held.exists()


def test_a_folder_that_cannot_be_written_stops_nobody(
    repo: Path, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever only reads opens the repository nevertheless."""

    def refuse(path: object, *args: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (held / ("1" * 40)).touch()
    os.utime(held / ("1" * 40), (LONG_AGO, LONG_AGO))
    for name in ("unlink", "replace", "rmdir"):
        monkeypatch.setattr(os, name, refuse)
    held_objects_0_1.restore(str(repo / ".git"))
    monkeypatch.undo()
    assert os.listdir(held) == ["1" * 40]
