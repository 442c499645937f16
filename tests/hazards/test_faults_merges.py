"""Two clones with one segment, united by plain `git fetch`, `git merge` and `git push`: the next sync gives the union."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from gitmem.log import ref
from gitmem.log.union import canonical
from merge_driver.install import install
from tests.clones import Clone, Hub, git

from .conftest import ROOT
from .faults import fsck

HOW = ["the tree's own attributes", "our driver", "our driver without its program", "no attributes at all"]


def twins(hub: Hub) -> tuple[Clone, Clone]:
    """Clones that write to the same segment: one is a copy of the other, folder and all."""
    a = hub.clone("a")
    a.add("first")
    a.exchange()
    shutil.copytree(a.path, hub.root / "b", symlinks=True)
    b = hub.open(hub.root / "b")
    assert a.log.token() == b.log.token()
    for number in range(3):
        a.add(f"a{number}")
        b.add(f"b{number}")
    return a, b


def prepare(clone: Clone, how: str, folder: Path) -> None:
    """Give a clone what the case is about."""
    if how.startswith("our driver"):
        program = folder / "gitmem-merge"
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH="{ROOT}" PYTHONSAFEPATH=1 exec "{sys.executable}" -m merge_driver.main "$@"\n'
        )
        program.chmod(0o755)
        install(clone.store.repo, str(program))
        if how.endswith("program"):
            program.unlink()
    elif how == "no attributes at all":
        attributes = Path(clone.store.repo.common) / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("*.jsonl !merge\n")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("pushes", [True, False], ids=["and pushed", "and kept"])
def test_a_merge_by_hand_of_one_segment(hub: Hub, tmp_path: Path, how: str, pushes: bool) -> None:
    """With our driver, with git's union, or with conflict markers: every line once, and linear above the merge."""
    a, b = twins(hub)
    b.exchange()
    prepare(a, how, tmp_path)
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = tmp_path / "by-hand"
    git("worktree", "add", "--quiet", "-B", "gitmem", str(at), ref.LOG_REF, cwd=a.path)
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at, check=False)
    (segment,) = at.glob("notes/**/*.jsonl")
    merged = segment.read_bytes()
    if how == "our driver":
        assert merged == canonical(merged), "canonical at once"
    assert (b"<<<<<<<" in merged) == (how == "no attributes at all")
    if b"<<<<<<<" in merged:
        git("add", "-A", cwd=at)
        git("commit", "--quiet", "-m", "Merged, whatever this is", cwd=at)
    if pushes:
        git("push", "--quiet", "origin", "gitmem", cwd=at)
    else:
        git("update-ref", ref.LOG_REF, "gitmem", cwd=a.path)
    merge = git("rev-parse", "gitmem", "--", cwd=a.path).split()[0]
    a.add("after a")
    b.add("after b")
    for clone in (a, b, a, b):
        assert clone.exchange().state in ("synced", "up-to-date")
    expected = ["first", *(f"{name}{number}" for name in "ab" for number in range(3)), "after a", "after b"]
    for clone in (a, b):
        assert sorted(text for text in clone.texts() if text[0].isalpha()) == sorted(expected)
        assert len(clone.texts()) == len(expected) + (3 if how == "no attributes at all" else 0)
        assert clone.tip == hub.tip()
        above = ["rev-list", "--merges", "--count", clone.tip, *([f"^{merge}"] if pushes else []), "--"]
        assert git(*above, cwd=clone.path).strip() == "0", "linear above the shared tip"
        fsck(clone.path)
    for name in git("ls-tree", "-r", "--name-only", a.tip, cwd=a.path).split():
        if name.endswith(".jsonl"):
            content = git("show", f"{a.tip}:{name}", cwd=a.path).encode()
            assert content == canonical(content), "canonical again"
