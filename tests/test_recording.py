"""docs/demo.cast is a recording of the demo as it is now, in the format asciicast v2."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tools import record_demo


def texts(recording: str) -> list[str]:
    """Return the lines of a recording, after a check of its form."""
    header, *events = map(json.loads, recording.splitlines())
    assert header["version"] == 2
    assert {"width", "height"} <= set(header)
    assert all(kind == "o" and text.endswith("\r\n") for _, kind, text in events)
    assert all(before <= after for (before, *_), (after, *_) in pairwise(events))
    return [text for _, _, text in events]


def shape(lines: list[str]) -> list[str]:
    """Return the headings, the commands, and the exit statuses: what is the same in every run of one demo."""
    return [line for line in lines if line.startswith("\x1b") or "(exit " in line]


def test_a_recording_has_no_ids_and_times_of_its_run() -> None:
    """An id stands for the same record or commit wherever it appears."""
    runs = [
        [
            "a Planck$ gitmem inbox", f"    sig-{id * 22} · commit {id * 12}", f"sig-{id * 22} 3 min ago", f"    * {id * 7} x",
            f"claim-{id * 22} until 2026-11-2{number} 10:0{number} UTC", f"/tmp/gitmem-demo-{id}8/project/README.md",
        ]
        for number, id in enumerate("ab")
    ]  # fmt: skip

    one, other = map(record_demo.cast, runs)

    assert one == other
    command, first, again, history, _, file = texts(one)
    assert command == "\x1b[1ma Planck$ gitmem inbox\x1b[0m\r\n"
    signal, commit = first.split()[0], first.split()[-1]
    assert again == f"{signal} just now\r\n"
    assert history.split()[1] == commit[:7]
    assert file == "project/README.md\r\n"
    assert "aaaa" not in one and "bbbb" not in one


@pytest.mark.deep
def test_the_recording_is_that_of_the_demo() -> None:
    """It is written anew by `python tools/record_demo.py` where the demo has changed."""
    recorded = texts(record_demo.RECORDING.read_text(encoding="utf-8"))
    played = texts(record_demo.cast(record_demo.demo()))

    assert shape(recorded) == shape(played)
    assert len(shape(recorded)) > 25
    for shown in (
        "all 3 parties agreed on",
        "working, other role",
        "The commit was stopped",
        "handed over: memory 1",
    ):
        assert sum(shown in line for line in recorded) == 1, shown
