"""`gitmem view`, from the command line to the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..page.test_page_file import data_of
from .conftest import Run


def test_the_page_has_what_was_said(run: Run, repo: Path) -> None:
    """It is for its user alone, and not in the work tree."""
    run("session", "start", "--name", "Curie", "--agent-identity", "a:b:curie")
    run("signal", "Is it <b>done</b>?", "--broadcast", "--as", "Curie")

    said = run("view", "--json")

    path = Path(said.json["path"])
    assert path == repo / ".git" / "gitmem" / "view.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = data_of(path.read_bytes())
    assert [each["text"] for each in data["signals"]] == ["Is it <b>done</b>?"]
    assert [each["name"] for each in data["agents"]] == ["Curie"]
    assert b"Is it" not in path.read_bytes()


def test_a_file_that_can_not_be_written_is_named(run: Run, repo: Path) -> None:
    """A folder, and a folder that does not exist."""
    for out in (".", "no/where.html"):
        said = run("view", "--out", out)
        assert said.status == 2
        assert f"Cannot write {os.path.normpath(repo / out)}" in said.err
        assert "--out" in said.err


def test_figures_are_shown_as_a_table(run: Run, repo: Path) -> None:
    """An empty log gets a sentence, and --json the same figures."""
    assert run("stats").out.startswith("Nothing was said, and there are no tasks.")
    run("session", "start", "--name", "Curie", "--agent-identity", "a:b:curie")
    run("signal", "One", "--broadcast", "--as", "Curie")

    said = run("stats")

    assert said.out.splitlines()[0].split() == ["DAY", "SIGNALS", "AGENTS", "PROPOSALS", "ANSWERS"]
    assert said.out.splitlines()[1].split()[1:] == ["1", "1", "0", "0"]
    assert run("stats", "--since", "1h", "--json").json["days"][0]["signals"] == 1
    assert run("stats", "--agent", "nobody").status == 2
