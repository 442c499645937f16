"""`gitmem mem archive|cleanup|delete` as typed: options, JSON, text and exit status."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..conftest import Run

pytestmark = pytest.mark.usefixtures("commits")

Start = Callable[..., str]


@pytest.fixture
def write(run: Run, start: Start) -> Callable[..., str]:
    """A session, and in it `write("text", …)`: the id of a new node."""
    session = start("Planck", "--wu", "WU-7")

    def node(text: str, *more: str) -> str:
        return run("mem", "create", text, *more, "--quiet", session=session).out.strip()

    return node


def test_archive_answers_with_the_names_that_scripts_know(run: Run, write: Callable[..., str]) -> None:
    low, high = write("low", "--priority", "P3"), write("high", "--priority", "P0")
    project = write("for ever", "--lifecycle", "project")

    dry = run("mem", "archive", "--threshold", "0.7", "--dry-run", "--json").json
    done = run("mem", "archive", "--threshold", "0.7", "--json").json

    for found in (dry, done):
        assert (found["archived_ids"], found["retained_ids"], found["skipped_ids"]) == (
            [low],
            [high],
            [project],
        )
        assert found["total_processed"] == 3
    assert (dry["dry_run"], dry["commit"], done["dry_run"]) == (True, None, False)
    assert done["commit"]
    assert run("mem", "list", "--json").json["total"] == 2


def test_archive_as_text(run: Run, write: Callable[..., str]) -> None:
    low = write("low", "--priority", "P3")

    said = run("mem", "archive", "--threshold", "0.7")

    assert said.out.startswith("archived 1 of 1 node · 0 kept · 0 skipped · commit ")
    assert f"{low}  0.5" in said.out
    assert "next: gitmem mem list --include-archived" in said.out


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["archive", "--threshold", "low"], "Invalid number"),
        (["archive", "--threshold", "0"], "threshold"),
        (["archive", "--threshold", "-1"], "threshold"),
        (["archive", "--threshold", "nan"], "threshold"),
        (["archive", "--threshold", "inf"], "threshold"),
        (["cleanup", "--ttl", "0d"], "time to live"),
        (["cleanup", "--ttl", "soon"], "Invalid duration"),
        (["cleanup", "--ttl", "-3d"], "Invalid duration"),
        (["cleanup", "--session", "sess-nobody00"], "Unknown session"),
        (["delete", "--older-than", "old"], "Invalid duration"),
        (["delete"], "Missing ids or filters"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    run: Run, write: Callable[..., str], options: list[str], what: str
) -> None:
    write("one", "--lifecycle", "ephemeral")

    said = run("mem", *options, "--json")

    assert said.status == 2
    error = said.json["error"]
    assert what in error["message"]
    assert error["hint"] or said.json["next"]
    assert run("mem", "list", "--json").json["total"] == 1


def test_cleanup_tells_which_rule_took_what(run: Run, write: Callable[..., str]) -> None:
    scratch, kept = write("scratch", "--lifecycle", "ephemeral"), write("kept", "--sensitive")
    low = write("low", "--priority", "P3")

    dry = run("mem", "cleanup", "--decay", "--dry-run", "--json").json
    said = run("mem", "cleanup", "--decay")

    assert dry["removed_ids"] == [scratch]
    assert dry["retained_ids"] == [kept, low]
    assert dry["decay_result"]["retained_ids"] == [low]
    assert said.out.startswith("deleted 1 of 3 nodes · commit ")
    assert "1 ephemeral · 1 sensitive, kept" in said.out
    assert run("show", scratch, "--json").json["node"]["status"] == "deleted"


def test_delete_by_ids_by_filters_and_back(run: Run, write: Callable[..., str]) -> None:
    one, other = write("one", "--tag", "x"), write("other")

    assert run("mem", "delete", "--tag", "x", "--dry-run", "--json").json["ids"] == [one]
    done = run("mem", "delete", one, other)
    assert done.out.startswith("deleted 2 nodes · commit ")
    again = run("mem", "delete", one)
    assert f"{one}: already deleted" in again.out
    assert run("mem", "list", "--json").json["total"] == 0
    assert run("mem", "update", one, "--clear", "deleted").status == 0
    assert run("mem", "list", "--json").json["total"] == 1
