"""A log with everything that the page shows, made once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.page_log import PageLog

from .. import templates

NOW = 1_795_000_000_000_000  # microseconds
SIGNALS, NODES, AGENTS = 200, 60, 8


@pytest.fixture
def page_log(tmp_path: Path) -> Path:
    """A repository whose log has 200 signals and 60 nodes of 8 agents, and ends at `NOW`."""

    def make(path: Path) -> None:
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True)
        subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "First"], cwd=path, check=True)
        PageLog(SIGNALS, NODES, AGENTS, last=NOW).build(str(path))

    templates.copy("page-log", tmp_path / "page-log", make)
    return tmp_path / "page-log"
