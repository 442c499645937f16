"""Somebody at work in a repository of its own, or its user alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.store import Store

from ..sandbox import Clock, open_store
from .desk import Desk


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    """Planck, at work on WU-7."""
    found = Desk(repo, name="Planck", wu="WU-7")
    yield found
    found.store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(repo: Path, clock: Clock) -> Store:
    """The repository's log for its user, see `desk.me`."""
    return open_store(repo, clock)
