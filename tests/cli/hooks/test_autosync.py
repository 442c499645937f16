"""Hooks have a clone synced that is to sync by itself: a session gets its mail whether it writes or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...clones import git
from ...in_process import background_starts
from .conftest import Hook


@pytest.fixture
def started(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have been started, in a clone that syncs by itself where a session has begun."""
    hook.start("claude-code")
    git("config", "gitmem.autosync", "30s", cwd=hook.repo)
    return background_starts(monkeypatch)


def test_a_hook_that_hands_mail_over_does(hook: Hook, started: list[list[str]]) -> None:
    hook("claude-code", "PostToolUse")

    assert started == [["background", "autosync"]]


def test_who_has_no_session_here_does_not(hook: Hook, started: list[list[str]], tmp_path: Path) -> None:
    """A hook of the whole user runs in every repository."""
    other = tmp_path / "other"
    git("init", "--quiet", str(other), cwd=tmp_path)
    git("config", "gitmem.autosync", "30s", cwd=other)
    hook("claude-code", "PostToolUse", "h-2", cwd=other)

    assert started == []
    assert not (other / ".git" / "gitmem").exists()
