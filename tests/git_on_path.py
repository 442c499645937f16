"""A `git` on PATH that notes how it is started, and does what a test wants."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest


class GitOnPath:
    """Whatever starts `git` in this test starts this one; make it once in a test.

    Attributes:
        folder: Has the program and its notes.
    """

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path / "git-on-path"
        self.folder.mkdir()
        self._notes = self.folder / "notes"
        self._notes.touch()
        self._program = (
            f'git={shlex.quote(str(shutil.which("git")))}\necho "$$ $*" >>{shlex.quote(str(self._notes))}'
        )
        self.does('exec "$git" "$@"')
        monkeypatch.setenv("PATH", f"{self.folder}{os.pathsep}{os.environ['PATH']}")

    def does(self, script: str, *, to: str = "*") -> None:
        """Let it run this in a shell, where `$git` is git, if `to` is one of its arguments."""
        program = self.folder / "git"
        cases = f'case " $* " in *" "{to}" "*)\n{script}\nexit;; esac'
        program.write_text(f'#!/bin/sh\n{self._program}\n{cases}\nexec "$git" "$@"\n')
        program.chmod(0o755)

    def says(self, code: int, out: str = "", err: str = "", *, to: str) -> None:
        """Let it answer this, and do nothing, if `to` is one of its arguments."""
        (self.folder / "out").write_text(out)
        (self.folder / "err").write_text(err)
        here = shlex.quote(str(self.folder))
        self.does(f"cat {here}/out; cat {here}/err >&2; exit {code}", to=to)

    @property
    def started(self) -> list[tuple[int, str]]:
        """The processes so far, also those that git started: id and arguments."""
        rows = [line.partition(" ") for line in self._notes.read_text().splitlines()]
        return [(int(pid), args) for pid, _, args in rows]
