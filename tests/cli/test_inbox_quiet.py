"""`gitmem inbox -q` and `--watch`: for scripts, and for those who know the words of another program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

Start = Callable[..., str]


def test_quiet_prints_the_signals_alone_and_marks_them(run: Run, start: Start) -> None:
    """In their frames, without heading and next commands; then nothing at all."""
    planck, curie = start("Planck"), start("Curie")
    for words in ("one", "two\nlines"):
        run("signal", words, "--to", "Curie", session=planck)

    lines = run("inbox", "-q", session=curie).out.splitlines()

    assert lines[0].startswith("[") and lines[1] == "| one"
    assert [line for line in lines if line.startswith("| ")][1:] == ["| two", "| lines"]
    assert not [line for line in lines if line.startswith(("next:", "2 unread"))]
    again = run("inbox", "--quiet", session=curie)
    assert (again.status, again.out, again.err) == (0, "", "")
    assert run("inbox", "--count", session=curie).out.strip() == "0"


def test_quiet_says_elsewhere_what_it_left_and_marks_only_what_it_showed(run: Run, start: Start) -> None:
    """On standard error, with the command that shows the rest."""
    planck, curie = start("Planck"), start("Curie")
    for words in ("one", "two"):
        run("signal", words, "--to", "Curie", session=planck)

    first = run("inbox", "-q", "--limit", "1", session=curie)

    assert "| one" in first.out and "| two" not in first.out
    assert "1 more not shown: gitmem inbox" in first.err
    assert run("inbox", "-q", "--no-mark", session=curie).out.count("| two") == 1
    assert json.loads(run("inbox", "-q", "--json", session=curie).out)["signals"][0]["message"] == "two"


def test_watch_is_the_watch(run: Run, start: Start, repo: Path) -> None:
    """It shows what is unread and goes on until it is stopped."""
    planck, curie = start("Planck"), start("Curie")
    run("signal", "hello", "--to", "Curie", session=planck)
    watching = subprocess.Popen(
        [sys.executable, "-m", "cli", "-C", str(repo), "--json", "--as", curie, "inbox", "--watch"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "GITMEM_SESSION": curie},
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert watching.stdout is not None
    with watching:
        shown = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGTERM)

    assert (shown["event"], shown["message"]) == ("signal:received", "hello")
    assert watching.returncode == 0
    assert run("inbox", "--count", session=curie).out.strip() == "0"


@pytest.mark.parametrize("option", [["--count"], ["-q"], ["--all"], ["--limit", "1"], ["--wu", "WU-1"]])
def test_watch_takes_no_filters(run: Run, start: Start, option: list[str]) -> None:
    """It is refused: a watch that ignores them would mark what was not meant."""
    planck, curie = start("Planck"), start("Curie")
    run("signal", "hello", "--to", "Curie", session=planck)

    refused = run("inbox", "--watch", *option, session=curie)

    assert refused.status == 2
    assert "gitmem watch --help" in refused.out + refused.err
    assert run("inbox", "--count", session=curie).out.strip() == "1"
