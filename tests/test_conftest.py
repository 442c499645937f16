"""The guard around the tests: nothing of the machine's own git or home gets in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def test_home_cannot_be_used() -> None:
    """A test that writes below the home folder fails instead of touching the user's."""
    with pytest.raises(OSError):
        Path("~/.gitconfig").expanduser().write_text("x")


def test_git_reads_no_configuration_but_the_repository_s(git: Callable[..., str], repo: Path) -> None:
    """Every config value that git sees comes from the repository itself."""
    scopes = {row.split("\t")[0] for row in git("config", "--list", "--show-scope", cwd=repo).splitlines()}

    assert scopes == {"local"}


def test_no_session_and_one_identity(git: Callable[..., str], repo: Path) -> None:
    """No harness's session is inherited, and commits have a fixed author."""
    assert not [name for name in os.environ if name.startswith("GITMEM_")]
    assert "CLAUDE_CODE_SESSION_ID" not in os.environ
    assert "CODEX_THREAD_ID" not in os.environ
    assert git("log", "--format=%an <%ae>", cwd=repo) == "Test Person <person@example.org>\n"
