"""An inbox with nothing new is answered from the index alone, with the same bytes, and only where that is certain."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import empty_inbox, surroundings

from .conftest import Run


@pytest.fixture
def scene(run: Run, start: Callable[..., str]) -> tuple[str, str]:
    """Planck and Curie at work, and a proposal of Curie's that Planck has not read."""
    planck, curie = start("Planck"), start("Curie")
    sent = run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--json", session=curie).json
    return planck, str(sent["signal"]["signal_id"])


@pytest.mark.parametrize(
    "args", [["inbox"], ["inbox", "--json"], ["inbox", "--count"], ["inbox", "--count", "--json"]]
)
def test_nothing_new_is_answered_from_the_index_alone(
    args: list[str], run: Run, scene: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a store, and with the bytes that the usual way gives."""
    planck, _ = scene
    assert run("inbox", session=planck).status == 0
    run("roster")  # what was marked is in the index now

    with monkeypatch.context() as patch:
        patch.setattr(surroundings.Surroundings, "store", None)
        quickly = run(*args, session=planck)
    monkeypatch.setattr(empty_inbox, "answer", lambda at, count: False)
    wholly = run(*args, session=planck)

    assert quickly.status == 0
    assert (quickly.out, quickly.err) == (wholly.out, wholly.err)


def test_nothing_new_is_not_said_while_the_index_is_behind(
    run: Run, scene: tuple[str, str], git: Callable[..., str], repo: Path
) -> None:
    """Mail that git alone brought is seen at once."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "set", "--wu", "WU-7", session=planck)  # commits the receipts, too
    before = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    run("signal", "One more", "--broadcast", "--as", "Curie")
    after = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    git("update-ref", "refs/gitmem/log", before, cwd=repo)
    assert run("inbox", "--count", session=planck).out == "0\n"
    git("update-ref", "refs/gitmem/log", after, cwd=repo)

    assert run("inbox", "--count", session=planck).out == "1\n"


def test_an_ended_session_is_refused_though_nothing_is_unread(run: Run, scene: tuple[str, str]) -> None:
    """The index alone does not answer for sessions that are over."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "end", session=planck)

    assert run("inbox", session=planck).status == 2


def test_looking_is_a_sign_of_life(run: Run, scene: tuple[str, str], repo: Path) -> None:
    """An agent that only looks is live all the same."""
    planck, _ = scene
    run("inbox", session=planck)
    beat = repo / ".git" / "gitmem" / "sessions" / planck
    os.utime(beat, (1, 1))

    run("inbox", session=planck)

    assert beat.stat().st_mtime > 1


def test_a_session_that_only_asks_for_mail_keeps_its_name(
    run: Run, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day after its last record the index alone does not answer, and the usual way writes another."""
    planck = start("Planck")
    run("inbox", session=planck)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 25 * 3600 * 1_000_000_000)
    run("inbox", session=planck)

    kinds = [entry["kind"] for entry in run("log", "--json", session=planck).json["entries"]]
    assert kinds == ["session", "session"]


def test_an_inbox_with_nothing_new_needs_no_key_and_checks_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents ask after every step: the session is found by the id of its client in a local file."""
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True, timeout=60)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "4f1d9f0e-1111-4222-8333-944445555666")
    commands = ["session", "start"], ["inbox"], ["inbox"]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "cli", *command, "-C", str(repo)],
            cwd=Path(empty_inbox.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert "Nothing new" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gitmem.operations.mail" in loaded
    assert loaded.isdisjoint(
        {"gitmem.agents.clone_key", "gitmem.agents.authenticity", "gitmem.mac", "gitmem.log.log"}
    )
