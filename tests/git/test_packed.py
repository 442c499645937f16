"""Kind and size of what is in packs: as git says, however it is stored there, and without building any of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.git import inprocess, packed, run
from gitmem.git.inprocess import DulwichGit
from tests.conftest import Git

MISSING = "1234567890" * 4


@pytest.fixture
def port(common: str) -> Iterator[DulwichGit]:
    opened = DulwichGit(common)
    yield opened
    opened.close()


def versions(repo: Path, git: Git, count: int = 12) -> None:
    """Commits of a file that grows and of one that shrinks, so that git stores most of them as deltas."""
    dice = random.Random(1)
    rows = ["".join(dice.choices("0123456789abcdef", k=400)) for _ in range(4 * count)]
    for number in range(count):
        (repo / "grows").write_text("\n".join(rows[: 8 + 3 * number]))
        (repo / "shrinks").write_text("\n".join(rows[number:]))
        git("add", ".", cwd=repo)
        git("commit", "--quiet", "-m", f"Version {number}", cwd=repo)
    git("tag", "-a", "-m", "A tag", "v1", cwd=repo)


def said(common: str, ids: str) -> dict[str, tuple[str, int]]:
    """What git says of them."""
    rows = run.run(common, ["cat-file", "--batch-check"], input=ids.encode()).out.decode().splitlines()
    return {oid: (kind, int(size)) for oid, kind, size in map(str.split, rows)}


@pytest.mark.parametrize("offsets", ["true", "false"])
def test_what_is_packed_is_known_without_git(
    port: DulwichGit, common: str, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch, offsets: str
) -> None:
    """Commits, trees, files and tags, whole and as deltas of either kind, against a base in the same pack."""
    versions(repo, git)
    git("-c", f"repack.useDeltaBaseOffset={offsets}", "repack", "-adfq", "--depth=50", cwd=repo)
    ids = git("rev-list", "--objects", "--no-object-names", "--all", cwd=repo)
    expected = said(common, ids)
    kinds = [kind for kind, _ in expected.values()]
    assert set(kinds) == {"commit", "tree", "blob", "tag"}
    (pack,) = (repo / ".git" / "objects" / "pack").glob("*.pack")
    depths = [row for row in git("verify-pack", "-v", str(pack), cwd=repo).splitlines() if row[:5] == "chain"]
    assert len(depths) > 2, "there are deltas of deltas"

    def never(*_: object, **__: object) -> run.Result:
        raise AssertionError("git was asked")

    monkeypatch.setattr(run, "run", never)
    assert port.heads(list(expected)) == expected


def test_of_many_git_is_asked(
    port: DulwichGit, common: str, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is of those that are in no pack here: it borrows from other repositories."""
    versions(repo, git, 3)
    git("repack", "-adq", cwd=repo)
    expected = said(common, git("rev-list", "--objects", "--no-object-names", "--all", cwd=repo))
    assert port.heads([*expected, MISSING]) == expected
    monkeypatch.setattr("gitmem.git.repository.HEADS_BY_HAND_MAX", 1)
    monkeypatch.setattr(inprocess.packed, "heads", lambda *_: {})
    assert port.heads(list(expected)) == expected


@pytest.mark.parametrize(
    "start", [b"", b"\x50", b"\xff" * 600, b"\x00" * 40, b"\x60\x01" + b"\xff" * 30, b"\xe0" + b"\xff" * 600]
)
def test_a_damaged_pack_is_left_to_git(
    port: DulwichGit, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    """Cut, of a kind that there is not, a delta that leads nowhere: no answer, and no error."""
    versions(repo, git, 2)
    git("repack", "-adfq", cwd=repo)
    oid = git("rev-parse", "HEAD:grows", cwd=repo).strip()
    packs = port._packs_in(port._objects).packs
    assert packed.heads(packs, [oid, MISSING]).keys() == {oid}
    (pack,) = packs
    path = Path(str(pack.data.path))
    path.chmod(0o600)
    content = path.read_bytes()
    at = pack.index.object_offset(bytes.fromhex(oid))  # type: ignore[arg-type]
    path.write_bytes(content[:at] + start + (content[at + len(start) :] if start else b""))

    assert packed.heads(packs, [oid]) == {}
