"""Two real clones of one remote, with an agent at work in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents.caller import Caller, CallerClaims
from gitmem.sessions import lifecycle
from gitmem.store import Store
from tests.clones import Clone, Hub
from tests.sandbox import Clock as HandClock
from tests.sandbox import acting, open_store


class Agent:
    """Somebody at work in a clone."""

    def __init__(self, store: Store, identity: str, **session: Any) -> None:
        self.store = store
        self.session = lifecycle.start(store, CallerClaims(), agent_identity=identity, **session)
        self.caller: Caller = acting(store, self.session)


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
def two(hub: Hub) -> tuple[Clone, Clone]:
    """Two clones that sync through one remote."""
    return hub.clone("planner"), hub.clone("worker")
