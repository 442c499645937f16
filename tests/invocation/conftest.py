"""A repository with a caller, and workers in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.calls import WORKER
from gitmem.calls.worker import ServedTask
from tests.sandbox import annas
from tests.signing import own_key

if TYPE_CHECKING:
    from gitmem.calls.worker import Function

PLANNER, PRICES = map(annas, ("codex:planner:one", "claude:prices:shop"))

Serve = Callable[..., Log]


def upper(task: ServedTask) -> str:
    """What the usual worker of these tests does."""
    return task.message.upper()


@pytest.fixture
def log(repo: Path) -> Iterator[Log]:
    """The caller's log."""
    own_key(repo)
    with gitmem.open(str(repo), identity=PLANNER) as found:
        found.sessions.start(name="Planck")
        yield found


@pytest.fixture
def serve(repo: Path) -> Iterator[Serve]:
    """`serve(function, name="prices")` starts a worker in a thread of its own, with a log of its own."""
    stop = threading.Event()
    started: list[tuple[Log, threading.Thread]] = []

    def start(
        function: Function = upper, name: str = "prices", identity: str = PRICES, **options: float
    ) -> Log:
        own = gitmem.open(str(repo), identity=identity)
        own.sessions.start(name=name, client=WORKER)
        thread = threading.Thread(
            target=own.serve, args=(function,), kwargs={"stop": stop, **options}, daemon=True
        )
        thread.start()
        started.append((own, thread))
        return own

    yield start
    stop.set()
    for own, thread in started:
        thread.join(10)
        own.close()
