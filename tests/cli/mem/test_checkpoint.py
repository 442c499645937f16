"""`gitmem mem checkpoint` as agents call it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Run

Start = Callable[..., str]


def test_a_checkpoint_is_answered_with_what_shows_it(run: Run, start: Start, repo: Path) -> None:
    """The id, the commit, the totals of the diff stat, and how to get back to it."""
    session = start("Planck", "--wu", "WU-7")
    (repo / "README").write_text("other\n")
    (repo / "new").write_text("1\n")

    said = run("mem", "checkpoint", "parser done", "--next-steps", "lexer", session=session)

    assert said.status == 0
    head, changes, untracked, *rest = said.out.splitlines()
    assert head.startswith("mem-")
    assert "checkpoint" in head
    assert changes == "  1 file changed, 1 insertion(+), 1 deletion(-)"
    assert untracked == "  1 untracked file"
    assert "gitmem mem recover --wu WU-7" in "\n".join(rest)


def test_its_json_has_the_names_of_the_contract(run: Run, start: Start, repo: Path) -> None:
    """`progress`, `nextSteps`, `trigger`, `gitDiffStat`."""
    session = start("Planck")
    (repo / "README").write_text("other\n")

    said = run(
        "mem", "checkpoint", "note", "--progress", "half", "--next-steps", "rest", "--trigger", "pre-compact",
        "--wu", "WU-9", "--json", session=session,
    )  # fmt: skip

    node = said.json["node"]
    assert sorted(node["metadata"]) == ["gitDiffStat", "nextSteps", "progress", "trigger"]
    assert (node["content"], node["wu_id"]) == ("Checkpoint: note", "WU-9")
    assert said.json["next"][0] == "gitmem mem recover --wu WU-9"
    bare = run("mem", "checkpoint", "--progress", "half", "--json", session=session)
    assert bare.json["node"]["metadata"].keys() == {"progress", "gitDiffStat"}


def test_the_note_may_come_on_standard_input(run: Run, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    session = start("Planck")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"two\nlines\n")))

    said = run("mem", "checkpoint", "-", "--json", session=session)

    assert said.json["node"]["content"] == "Checkpoint: two\nlines"


def test_nothing_to_say_is_a_usage_error(run: Run, start: Start) -> None:
    """With the command that explains."""
    session = start("Planck")

    said = run("mem", "checkpoint", "--trigger", "x", session=session)

    assert said.status == 2
    assert "Nothing was written" in said.err
    assert "--help" in said.err


def test_done_tells_everybody(run: Run, start: Start, repo: Path) -> None:
    """The option reaches the operation: readers see the broadcast, and the answer says so."""
    reader, session = start("Bohr"), start("Planck", "--wu", "WU-7")

    said = run("mem", "checkpoint", "parser done", "--done", session=session)

    assert "Everybody is told that WU-7 is done" in said.out + said.err
    assert "WU-7 is done." in run("inbox", session=reader).out
