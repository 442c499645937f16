"""Two real clones of one remote, with an agent at work in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.store import Store
from tests.clones import Clone, Hub
from tests.sandbox import Clock as HandClock
from tests.sandbox import open_store


@pytest.fixture
def clock() -> HandClock:
    """A clock that the test moves."""
    return HandClock()


@pytest.fixture
def store(repo: Path, clock: HandClock) -> Iterator[Store]:
    """One clone."""
    found = open_store(repo, clock)
    yield found
    found.close()


@pytest.fixture
def hub(hub: Hub) -> Hub:
    """A remote whose clones commit what they record when they sync."""
    hub.commit_after = 3600.0
    return hub


@pytest.fixture
def two(hub: Hub) -> tuple[Clone, Clone]:
    """Two clones that sync through one remote."""
    return hub.clone("planner"), hub.clone("worker")
