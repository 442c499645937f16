"""`gitmem task list --tree`: text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem

from .conftest import Run

Start = Callable[..., str]


def test_r19_the_tree_indents_what_was_written_within_a_task(run: Run, start: Start, repo: Path) -> None:
    """By work unit and by initiative; JSON has the depth, the parent and the whole row of each task."""
    planck = start("Planck")
    with gitmem.open(str(repo), session=planck) as log:
        top = str(
            log.tasks.delegate(
                "Write it", to="Planck", role="implementer", wu="WU-7", initiative="INI-1"
            ).task["task_id"]
        )
        below = str(
            log.tasks.delegate(
                "Test it", to="Planck", role="implementer", wu="WU-8", chain=[top], again=True
            ).task["task_id"]
        )

    for args in ((), ("--wu", "WU-7"), (top,)):
        found = run("task", "list", "--tree", *args)
        first, second, third = found.out.splitlines()[:3]
        assert (
            first == "INI-1 · WU-7" and second.startswith(f"  {top} ") and third.startswith(f"    {below} ")
        ), found
        assert f"next: gitmem task show {top}" in found.out
    (group,) = run("task", "list", "--tree", "--json").json["groups"]
    assert (group["initiative_id"], group["wu_id"]) == ("INI-1", "WU-7")
    assert [(row["task"]["task_id"], row["parent"], row["depth"]) for row in group["tasks"]] == [
        (top, None, 0),
        (below, top, 1),
    ]
    assert group["tasks"][1]["task"]["title"] == "Test it"
    assert "1 more not shown; use --limit N" in run("task", "list", "--tree", "--limit", "1").out
    assert run("task", "list", "--tree", "--wu", "WU-99").out == "No tasks.\n"


@pytest.mark.parametrize("args", [["task-nothere0"], ["--limit", "0"]])
def test_what_is_asked_wrongly_is_exit_2(run: Run, args: list[str]) -> None:
    """With a sentence."""
    said = run("task", "list", "--tree", *args)
    assert said.status == 2 and said.err


def test_stats_are_a_line_for_each_kind(run: Run, start: Start) -> None:
    """And the same numbers in JSON."""
    planck = start("Planck")
    assert run("task", "list", "--stats").out.splitlines()[0] == "0 tasks · 0 open"
    id = run(
        "delegate", "x", "--to", "role:implementer/test", "--wu", "WU-7", "-q", session=planck
    ).out.strip()
    run("task", "take", id, session=planck)
    run("task", "done", id, "ok", session=planck)
    lines = run("task", "list", "--stats", "--wu", "WU-7").out.splitlines()
    assert lines == [
        "1 task · 0 open", "states: 1 completed", "outcomes: 1 unconfirmed", "role implementer/test: 1 task, 0 open, 1 completed",
        "first taken after 0 s (median), 90% within 0 s, at most 0 s; 1 task", "done after 0 s (median), 90% within 0 s, at most 0 s; 1 task",
        "next: gitmem task list --open",
    ]  # fmt: skip
    found = run("task", "list", "--stats", "--json").json
    assert (found["tasks"], found["states"], found["to_end"]["count"]) == (1, {"completed": 1}, 1)


def test_r37_stuck_tasks_are_listed_with_the_next_command_and_told_once(
    run: Run, start: Start, repo: Path
) -> None:
    """The look of another session tells whoever asked; nothing is told twice; an unidentified look only reads."""
    import time

    planck, bohr = start("Planck"), start("Bohr")
    assert run("task", "list", "--stuck", session=bohr).out == "No stuck tasks.\n"
    with gitmem.open(str(repo), session=planck, now=lambda: int((time.time() - 5_000) * 1e6)) as log:
        id = str(log.tasks.delegate("Write it", to="role:implementer/test", wu="WU-7").task["task_id"])
    first = run("task", "list", "--stuck", session=bohr)
    assert f"{id}  error  untaken  nobody has taken it since 83 minutes ago  Write it" in first.out, first
    assert f"escalated: {id}" in first.out and f"next: gitmem task launch {id}" in first.out
    assert "escalated" not in run("task", "list", "--stuck", session=bohr).out
    assert f"The task {id} is stuck: error." in run("inbox", session=planck).out
    (found,) = run("task", "list", "--stuck", "--mine", "--json", session=planck).json["stuck"]
    assert (found["why"], found["level"], found["task"]["wu_id"]) == ("untaken", "error", "WU-7")
    assert run("task", "list", "--stuck", "--open", session=planck).status == 2
    assert "told that it is stuck · " in run("task", "show", id, session=planck).out
