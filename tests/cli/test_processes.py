"""The processes that an everyday command starts, counted by a `git` on PATH that writes down how it was called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import config

from .conftest import Run

SETTINGS = (" config ", " var ", " rev-parse ", " remote ", " for-each-ref ", " symbolic-ref ")


class Calls:
    """What the git program was called with since the last `clear`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def all(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def of_settings(self) -> list[str]:
        """Those that ask for settings, not for the log."""
        return [call for call in self.all() if any(word in f" {call} " for word in SETTINGS)]


@pytest.fixture
def calls(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls(tmp_path / "calls")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >>"{tmp_path}/calls"\nexec "{shutil.which("git")}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    # The files of this test are too young for a cache that another process reads.
    monkeypatch.setattr(config, "RACY_NS", -3_600_000_000_000)
    return found


@pytest.mark.parametrize("remote", [False, True])
def test_everyday_commands_ask_git_for_no_setting_while_none_changed(
    run: Run, start: Callable[..., str], calls: Calls, repo: Path, remote: bool
) -> None:
    """Sending, answering, reading and remembering; a change of any file is seen by the next command."""
    if remote:
        with (repo / ".git" / "config").open("a") as config:
            config.write('[remote "origin"]\n\turl = https://example.org/a.git\n')
    planck, curie = start("Planck"), start("Curie")
    run("signal", "hello", "--to", "Curie", session=planck)
    calls.clear()

    sent = run("signal", "again", "--to", "Curie", "--json", session=planck).json["signal"]
    assert run("inbox", session=curie).status == 0
    assert run("reply", sent["signal_id"], "yes", session=curie).status == 0
    assert run("mem", "create", "a note", session=curie).status == 0
    assert run("inbox", session=planck).status == 0
    assert calls.of_settings() == []

    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[gitmem]\n\troles = refuse\n")
    assert run("session", "set", "--role", "wizard", session=planck).status == 2
    assert any("--show-origin --list" in call for call in calls.of_settings())
