"""A log with everything that the page shows, made once; and one browser for all tests of the page."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.page_log import PageLog
from gitmem.page.page_file import Assets

from .. import templates
from .browser import Browser

NOW = 1_795_000_000_000_000  # microseconds
SIGNALS, NODES, AGENTS = 200, 60, 8
Show = Callable[[Any], Browser]


@pytest.fixture
def page_log(tmp_path: Path) -> Path:
    """A repository whose log has 200 signals and 60 nodes of 8 agents, and ends at `NOW`."""

    def make(path: Path) -> None:
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True)
        subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "First"], cwd=path, check=True)
        PageLog(SIGNALS, NODES, AGENTS, last=NOW).build(str(path))

    templates.copy("page-log", tmp_path / "page-log", make)
    return tmp_path / "page-log"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that runs until the last test."""
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.end()


@pytest.fixture(scope="session")
def assets() -> Assets:
    """The page without data."""
    return Assets()


@pytest.fixture
def show(chromium: Browser, assets: Assets) -> Show:
    """Opens the page of some data; no test sees what another has changed."""

    def opened(data: Any) -> Browser:
        chromium.reset()
        chromium.show(assets.page(data))
        return chromium

    return opened
