"""When a committer is started, and by what window."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.operations import committing
from gitmem.place import find


@pytest.mark.parametrize(
    ("given", "setting", "window"),
    [
        (None, None, 1.0),
        (None, "5", 5.0),
        ("0", "5", 0.0),
        ("2.5s", None, 2.5),
        ("soon", "3", 3.0),
        ("-1", None, 1.0),
        ("nan", None, 1.0),
        ("1e9", None, 1.0),
    ],
)
def test_the_window_is_what_says_so_first(given: str | None, setting: str | None, window: float) -> None:
    """What is no number of seconds is passed over."""
    settings = {committing.SETTING: setting} if setting is not None else {}

    assert committing.window(settings, given) == window


def test_commands_commit_by_themselves_only_where_ended_processes_stay(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An init that takes a second to reap switches nothing off; one that never does it, for good."""
    place = find(str(repo))
    os.makedirs(place.state)
    Path(place.state, committing.LOCK).write_bytes(b"4242\n")
    now, zombies = [1_000_000.0], {b"4242"}
    monkeypatch.setattr(committing.time, "time", lambda: now[0])
    monkeypatch.setattr(committing, "_is_zombie", lambda content: content.strip() in zombies)

    assert committing.is_wanted(place) and committing.is_wanted(place)
    zombies.clear()
    now[0] += 100
    assert committing.is_wanted(place) and not committing.is_off(place)
    zombies.add(b"4242")
    assert committing.is_wanted(place)
    now[0] += committing.REAPED_SECONDS + 1
    assert not committing.is_wanted(place)
    assert committing.is_off(place)
