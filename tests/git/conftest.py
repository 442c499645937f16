"""A repository and its remote, as the port and the network see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Git as Run


@pytest.fixture
def hub(tmp_path: Path, repo: Path, git: Run) -> Path:
    """A bare remote of `repo`, with its branch `main`."""
    path = tmp_path / "hub.git"
    git("clone", "--quiet", "--bare", str(repo), str(path))
    git("remote", "add", "origin", str(path), cwd=repo)
    return path


@pytest.fixture
def common(repo: Path) -> str:
    return str(repo / ".git")
