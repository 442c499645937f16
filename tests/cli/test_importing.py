"""`gitmem import lumenflow` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

NODE = {
    "id": "mem-a1b2", "type": "discovery", "lifecycle": "wu", "content": "The parser drops tabs",
    "created_at": "2025-01-15T10:00:00.123Z", "metadata": {"priority": "P9"},
}  # fmt: skip


@pytest.fixture
def project(repo: Path) -> Path:
    """A checkout where LumenFlow ran, and was cut off while it wrote."""
    memory = repo / ".lumenflow" / "memory"
    memory.mkdir(parents=True)
    (memory / "memory.jsonl").write_text(json.dumps(NODE) + '\n{"id":"mem-torn","ty')
    return repo


@pytest.mark.usefixtures("commits")
def test_the_answer_says_what_became_of_every_line(run: Run, project: Path) -> None:
    """As a table, with what was skipped and what one should know."""
    said = run("import", "lumenflow", ".")

    head, *table = said.out.splitlines()
    assert said.status == 0
    assert head.startswith(f"{project}/.lumenflow/memory · commit ")
    assert table[0].split() == ["read", "imported", "present", "differs", "repeated", "bad"]
    assert table[1].split() == ["nodes", "2", "1", "0", "0", "0", "1"]
    assert "skipped: memory.jsonl:2: it is cut off, or not JSON" in table
    assert "note: memory.jsonl:1: its priority P9 is not valid here; it is kept in the metadata" in table
    assert table[-1] == "next: gitmem mem list"
    assert run("import", "lumenflow", ".").out.splitlines()[0].endswith(": nothing new")


@pytest.mark.usefixtures("commits")
def test_the_answer_as_json_has_stable_fields(run: Run, project: Path) -> None:
    """One line, the same fields always."""
    said = run("import", "lumenflow", ".", "--json")

    assert list(said.json) == [
        "folder", "dry_run", "counts", "unread", "problems", "problems_more", "remarks", "remarks_more", "commit", "recorded",
        "warnings", "next",
    ]  # fmt: skip
    assert said.json["counts"]["nodes"]["imported"] == 1
    assert said.json["problems"] == [
        {"file": "memory.jsonl", "line": 2, "reason": "it is cut off, or not JSON"}
    ]


def test_a_dry_run_names_the_command_that_does_it(run: Run, project: Path, tmp_path: Path) -> None:
    """With the folder, -C and --as as they were typed."""
    session = str(
        run("session", "start", "--agent-identity", "test:worker:planck", "--json").json["session_id"]
    )

    said = run("-C", "..", "import", "lumenflow", "repo", "--dry-run", "--as", session, cwd=project / ".git")
    outside = run("-C", str(project), "import", "lumenflow", ".", "--dry-run", cwd=tmp_path)

    assert said.status == 2  # relative to the folder that -C names
    assert outside.out.splitlines()[0].endswith(": dry run, nothing was written")
    assert outside.out.splitlines()[-1] == f"next: gitmem -C {project} import lumenflow ."
    assert run("show", "mem-a1b2").status == 2


def test_what_is_imported_is_there_for_every_command(
    run: Run, start: Callable[..., str], project: Path
) -> None:
    """By its four characters, too."""
    run("import", "lumenflow", ".")

    shown = run("show", "mem-a1b2", "--json")

    assert shown.status == 0, shown
    assert "The parser drops tabs" in shown.out


@pytest.mark.parametrize("args", [(), ("lumenflow",), ("lumenflow", "nowhere"), ("mem0", ".")])
def test_what_is_typed_wrongly_is_told(run: Run, args: tuple[str, ...]) -> None:
    """With the way on, and nothing is written."""
    said = run("import", *args)

    assert said.status == 2
    assert "othing was written" in said.err
    assert "next: gitmem import" in said.err


def test_what_the_files_say_moves_no_cursor(run: Run, project: Path) -> None:
    """A value that is repeated in an answer has its control characters spelled out."""
    bad = {**NODE, "id": "mem-\x1b[2J\u202e", "metadata": {"priority": "\x1b[2J\u202e"}}
    (project / ".lumenflow/memory/memory.jsonl").write_text(
        json.dumps(bad) + "\n" + json.dumps({**bad, "id": "mem-c3d4"}) + "\n"
    )

    for answer in (run("import", "lumenflow", "."), run("import", "lumenflow", ".", "--json")):
        assert "\x1b" not in answer.out
        assert "\u202e" not in answer.out
