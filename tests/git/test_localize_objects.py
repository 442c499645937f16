"""Repositories that lend each other their objects in a row."""

from __future__ import annotations

from pathlib import Path

from gitmem.git import packs

from ..conftest import Git


def test_a_row_of_lenders_is_followed_as_far_as_git_follows_it(tmp_path: Path, git: Git) -> None:
    """Git gives up at some depth: what it does not read is not ours either."""
    git("init", "--quiet", "--bare", str(tmp_path / "0"))
    for number in range(9):
        lender = tmp_path / str(number + 1) / "objects"
        lender.mkdir(parents=True)
        (tmp_path / str(number) / "objects" / "info").mkdir(exist_ok=True)
        (tmp_path / str(number) / "objects/info/alternates").write_text(f"{lender}\n")
    out = git("count-objects", "-v", cwd=tmp_path / "0")
    told = [row.partition(": ")[2] for row in out.splitlines() if row.startswith("alternate: ")]

    found = packs.alternates(str(tmp_path / "0" / "objects"))

    assert len(found) > 1
    assert found == told
