"""A repository, real git in it, and the driver's console script as a checkout can have it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.repo import Repo

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _unattended(isolated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No editor opens, and the module path is the script's own."""
    monkeypatch.setenv("GIT_EDITOR", "true")
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., str]:
    """As everywhere, but in `repo` where nothing is said, and with `check=False` for what may conflict."""

    def run(*args: str, cwd: Path | None = None, check: bool = True) -> str:
        repo = tmp_path / "repo"
        where = cwd or (repo if repo.exists() else tmp_path)
        done = subprocess.run(["git", *args], cwd=where, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def place(repo: Path) -> Repo:
    return Repo(str(repo / ".git"), str(repo / ".git"), str(repo))


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The driver's program, in a folder whose name needs every kind of quoting.

    As with a console script, the first entry of the module path is the script's own folder.
    """
    folder = tmp_path / 'it\'s 100%A "odd" $HOME\\ #; bin'
    folder.mkdir()
    module = folder / "driver.py"
    module.write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\nfrom merge_driver.main import main\nsys.exit(main())\n"
    )
    script = folder / "gitmem-merge"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "${{0%/*}}/driver.py" "$@"\n')
    script.chmod(0o755)
    return str(script)
