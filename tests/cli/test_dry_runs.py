"""A dry run writes nothing, so it needs no identity: with several sessions, and without any."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

DRY = (
    "mem archive", "mem cleanup", "mem index", "mem delete --older-than 1d", "import lumenflow .",
    "mem promote --wu WU-7 --tag decision", "call Planck x", "call https://agents.example.org/ x --var rate=7",
)  # fmt: skip


@pytest.mark.parametrize("who", ["nobody", "one of two"])
def test_a_dry_run_demands_no_identity(
    run: Run, start: Callable[..., str], repo: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    start("Planck")
    if who == "one of two":
        start("Bohr")
    else:
        run("session", "end", "--as", "Planck")
        subprocess.run(["git", "config", "--unset", "user.email"], cwd=repo, check=False)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    refused = run("mem", "archive")
    assert refused.status == 2 and "Cannot tell who you are" in refused.err
    before = run("log", "--json").json
    for command in DRY:
        said = run(*command.split(), "--dry-run")
        assert "Cannot tell who you are" not in said.err, said
        if who == "one of two" or "Planck" not in command:
            assert said.status in (0, 1) or "Nothing was written" in said.err, said
        assert run("log", "--json").json == before, command


def test_what_would_be_handed_over_is_the_callers(run: Run, start: Callable[..., str]) -> None:
    """So that dry run still asks whose memory it is."""
    start("Planck")
    start("Bohr")
    said = run("call", "Planck", "x", "--with-context", "--dry-run")
    assert said.status == 2 and "Cannot tell who you are" in said.err
