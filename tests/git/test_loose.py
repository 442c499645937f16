"""Loose objects: what git reads, written so that a crash or a twin does no harm."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import loose

Run = Callable[..., str]


@pytest.fixture
def objects(repo: Path) -> str:
    return str(repo / ".git" / "objects")


def test_git_reads_what_we_write_and_we_what_git_writes(objects: str, repo: Path, git: Run) -> None:
    """The same id, kind and content from either side, and no file left over."""
    oid = loose.write(objects, b"blob", b"ours\n")
    theirs = git("hash-object", "-w", "--stdin", cwd=repo, input="theirs\n").strip()

    assert git("cat-file", "blob", oid, cwd=repo) == "ours\n"
    assert git("hash-object", "--stdin", cwd=repo, input="ours\n").strip() == oid
    assert loose.read(objects, theirs) == (b"blob", b"theirs\n")
    assert loose.read(objects, "0" * 40) is None
    assert os.stat(os.path.join(objects, oid[:2], oid[2:])).st_mode & 0o777 == 0o444
    assert not [name for name in os.listdir(objects) if name.startswith("tmp_obj_")]


def test_an_object_that_exists_is_synced_and_kept(objects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote it may not have synced it, and we answer for it from now on."""
    oid = loose.write(objects, b"blob", b"x")
    path = os.path.join(objects, oid[:2], oid[2:])
    before = os.stat(path).st_ino
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_ino), sync(handle)))

    assert loose.write(objects, b"blob", b"x") == oid
    assert os.stat(path).st_ino == before
    assert before in synced


@pytest.mark.parametrize("torn", [b"", b"\x78\x01", b"garbage", zlib.compress(b"blob 100\0x")])
def test_a_torn_object_is_replaced(objects: str, torn: bytes) -> None:
    """A power loss during somebody else's write must not block that content for ever."""
    oid = loose.write(objects, b"blob", b"x" * 100)
    path = os.path.join(objects, oid[:2], oid[2:])
    os.chmod(path, 0o644)
    Path(path).write_bytes(torn)
    with pytest.raises(KeyError, match=oid):
        loose.read(objects, oid)

    loose.write(objects, b"blob", b"x" * 100)
    assert loose.read(objects, oid) == (b"blob", b"x" * 100)


def test_without_hard_links(objects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none; then it is renamed into place."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    oid = loose.write(objects, b"blob", b"renamed")
    assert loose.read(objects, oid) == (b"blob", b"renamed")


@pytest.mark.skipif(os.name == "nt", reason="modes of folders")
def test_a_shared_repository_stays_shared(repo: Path, objects: str, git: Run) -> None:
    """New folders have the mode of the one above, so that the group can write into them as well."""
    git("init", "--quiet", "--shared=group", cwd=repo)
    os.chmod(objects, 0o2775)
    oid = loose.write(objects, b"blob", b"for all of us")

    assert os.stat(os.path.join(objects, oid[:2])).st_mode & 0o7777 == 0o2775
