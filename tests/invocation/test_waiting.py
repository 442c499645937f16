"""What a call does while it waits."""

from __future__ import annotations

from pathlib import Path

import gitmem
from gitmem.api import Log
from gitmem.commit_process import NOW
from gitmem.invocation import WORKER

from .conftest import PRICES


def test_a_call_ticks_when_its_task_is_recorded(log: Log, repo: Path) -> None:
    """And the task asks for a sync at once: a command that waits for another clone must not sync only at its end."""
    with gitmem.open(str(repo), identity=PRICES) as own:
        own.sessions.start(name="prices", client=WORKER)
    log.store.wrote = 0
    ticks: list[tuple[int, int]] = []

    found = log.call(
        "prices",
        "add",
        timeout=0.0,
        tick=lambda: ticks.append((len(log.tasks.list().tasks), log.store.wrote)),
    )

    assert found.timed_out
    assert ticks == [(1, NOW)]
