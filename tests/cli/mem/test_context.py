"""`gitmem mem context|recover|profile`: a block that can be pasted into a prompt, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..conftest import Run

Start = Callable[..., str]


def write(run: Run, session: str, text: str, *more: str) -> str:
    found = run("mem", "create", text, *more, "--json", session=session)
    assert found.status == 0, found
    return str(found.json["node"]["id"])


def test_an_empty_memory_prints_nothing(run: Run, start: Start) -> None:
    session = start("Planck", "--wu", "WU-1")

    text = run("mem", "context", "--wu", "WU-1", session=session)
    values = run("mem", "context", "--json", session=session)

    assert (text.status, text.out, text.err) == (0, "", "")
    assert values.json["block"] == "" and values.json["total"] == 0
    assert values.json["next"] == []


def test_the_text_is_the_block_and_nothing_else(run: Run, start: Start) -> None:
    session = start("Planck", "--wu", "WU-1")
    id = write(run, session, "The parser drops tabs", "--type", "bug")

    text = run("mem", "context", "--no-roster", session=session)
    values = run("mem", "context", "--no-roster", "--json", session=session).json

    assert text.out == values["block"] + "\n"
    assert text.out.endswith("): The parser drops tabs\n")
    assert values["included"] == {"Discoveries": [id]}
    assert values["bytes"] == len(text.out.encode()) - 1
    assert values["next"][0] == f"gitmem show {id}"


def test_what_is_printed_is_within_the_budget_and_ends_with_the_command_for_the_rest(
    run: Run, start: Start
) -> None:
    session = start("Planck", "--wu", "WU-1")
    for number in range(12):
        write(run, session, f"Größe {number} " + "ß" * 30)

    small = run("mem", "context", "--no-roster", "--max-size", "600", session=session)
    command = small.out.rstrip("\n").rpartition(": gitmem ")[2]
    all = run(*command.split(), session=session)

    assert len(small.out.encode()) <= 600
    assert all.out.count("- [mem-") == 12 and len(all.out.encode()) == int(command.split()[-1])


def test_a_budget_smaller_than_a_line_is_refused_with_the_least(run: Run, start: Start) -> None:
    session = start("Planck", "--wu", "WU-1")
    write(run, session, "a note of some length, so that it is longer than what is said of it\n" * 5)

    refused = run("mem", "context", "--max-size", "20", session=session)
    least = refused.err.partition("--max-size ")[2].split(".")[0]
    found = run("mem", "context", "--max-size", least, session=session)

    assert refused.status == 2 and refused.out == ""
    assert found.status == 0 and len(found.out.encode()) <= int(least)


@pytest.mark.usefixtures("commits")
def test_reading_can_be_tracked_and_the_past_can_be_read(run: Run, start: Start) -> None:
    session = start("Planck", "--wu", "WU-1")
    id = write(run, session, "known then")
    write(run, session, "came later")

    then = run("mem", "context", "--as-of", "refs/gitmem/log~1", session=session)
    tracked = run("mem", "context", "--track-access", "--json", session=session)
    refused = run("mem", "context", "--as-of", "refs/gitmem/log~1", "--track-access", session=session)

    assert "known then" in then.out and "came later" not in then.out and id in then.out
    assert tracked.json["access_tracked"] == 2
    assert refused.status == 2 and "--track-access cannot be combined" in refused.err


def test_somebody_who_has_forgotten_everything_recovers(run: Run, start: Start) -> None:
    session = start("Planck", "--wu", "WU-1")
    saved = run("mem", "checkpoint", "half done", "--next-steps", "write the docs", "--json", session=session)
    assert saved.status == 0, saved

    text = run("mem", "recover", session=session)
    by_id = run("mem", "recover", "--session", session, "--json")

    assert f"export GITMEM_SESSION={session}" in text.out
    assert "next steps: write the docs" in text.out
    assert by_id.json["checkpoint"]["id"] == saved.json["node"]["id"]
    assert by_id.json["session_id"] == session and by_id.json["wu_id"] == "WU-1"


def test_the_profile_is_shown_with_its_tags(run: Run, start: Start) -> None:
    session = start("Planck")
    nothing = run("mem", "profile", session=session)
    id = write(run, session, "Modules are nouns", "--lifecycle", "project", "--tag", "convention")

    text = run("mem", "profile", session=session)
    values = run("mem", "profile", "--tag", "convention", "--limit", "1", "--json", session=session).json

    assert nothing.status == 0 and nothing.out.startswith("No project nodes")
    assert f"- [{id}] " in text.out and "1 node; tags: convention 1" in text.out
    assert f"next: gitmem show {id}" in text.out
    assert values["by_tag"] == {"convention": 1} and values["total"] == 1
    assert [node["id"] for node in values["nodes"]] == [id]
