"""When a committer is started, and by what window."""

from __future__ import annotations

import builtins
import io
import os
import time
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import commit_process
from gitmem.api.log import BackgroundCommits
from gitmem.errors import StoreError
from gitmem.log.lock import Lock
from gitmem.open_store import open_store
from gitmem.repo import find
from gitmem.store import Store


@pytest.mark.parametrize(
    ("given", "window"),
    [(None, 1.0), ("0", 0.0), ("2.5s", 2.5), ("soon", 1.0), ("-1", 1.0), ("nan", 1.0), ("1e9", 1.0)],
)
def test_the_window_is_a_second_unless_a_number_is_given(given: str | None, window: float) -> None:
    assert commit_process.window(given) == window


def test_commands_commit_by_themselves_only_where_ended_processes_stay(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An init that takes a second to reap switches nothing off; one that never does it, for good."""
    place = find(str(repo))
    os.makedirs(place.state)
    Path(place.state, commit_process.LOCK).write_bytes(b"4242\n")
    now, zombies = [1_000_000.0], {4242}
    monkeypatch.setattr(time, "time", lambda: now[0])
    real = builtins.open

    def read(path: object, *args: Any) -> Any:
        if str(path) != "/proc/4242/stat":
            return real(path, *args)  # type: ignore[arg-type]
        return io.BytesIO(b"4242 (python3) %s 1 1 1" % (b"Z" if zombies else b"S"))

    monkeypatch.setattr(builtins, "open", read)

    assert commit_process.is_wanted(place) and commit_process.is_wanted(place)
    zombies.clear()
    now[0] += 100
    assert commit_process.is_wanted(place) and not commit_process.is_off(place)
    zombies.add(4242)
    assert commit_process.is_wanted(place)
    now[0] += commit_process.REAPED_SECONDS + 1
    assert not commit_process.is_wanted(place)
    assert commit_process.is_off(place)


def test_an_open_log_whose_commit_another_process_holds_up_makes_it_later(repo: Path) -> None:
    """Though nothing more is recorded; it asks once in a window."""
    with gitmem.open(str(repo), machine="test", commit_after=0.05) as log:
        log.sessions.start(name="Planck", agent_identity="test:worker:planck")
        with Lock(os.path.join(log.store.repo.state, "lock")) as lock:
            while not lock.take():
                time.sleep(0.01)
            log.signals.send("hello", broadcast=True)
            time.sleep(2 * commit_process.WINDOW_SECONDS)
            assert log.store.waits()
        until = time.monotonic() + 20
        while log.store.waits():
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_thread_whose_commit_fails_tries_again(repo: Path) -> None:
    """Though nothing more is recorded, and nobody reads."""
    tried: list[int] = []

    def fail_once() -> Store:
        tried.append(1)
        if len(tried) == 1:
            raise StoreError("The disk is full.", code="disk")
        return open_store(find(str(repo)), machine="test", long_lived=True)

    with gitmem.open(str(repo), machine="test", commit_after=60) as log:
        log.sessions.start(name="Planck", agent_identity="test:worker:planck")
        commits = BackgroundCommits(fail_once, 0.05)
        commits.notify()
        until = time.monotonic() + 20
        while log.store.waits():
            assert time.monotonic() < until
            time.sleep(0.05)
        commits.close()
