"""Packs written here are packs for git, of any kind and size of object and in either hash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.git import packs
from tests.conftest import Git

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
