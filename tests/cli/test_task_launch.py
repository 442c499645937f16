"""`gitmem task show --check-brief`, `launch` and `relaunch`: exit statuses, text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

Start = Callable[..., str]


@pytest.mark.parametrize(
    ("now", "status", "sentence"),
    [
        ("twelve cases\n", 0, "brief.md (as attested)"),
        ("one case\n", 1, "note: The brief brief.md differs in this work tree"),
        (None, 2, "note: The brief brief.md can't be read in this work tree: there is no such file"),
    ],
)
def test_r18_the_exit_status_says_whether_the_brief_is_the_attested_one(
    now: str | None, status: int, sentence: str, run: Run, start: Start, repo: Path
) -> None:
    """0, 1 and 2, with the task as it is shown without that."""
    planck = start("Planck")
    brief = repo / "brief.md"
    brief.write_text("twelve cases\n")
    id = run("delegate", "x", "--to", "role:implementer/test", "--wu", "WU-7", "--brief", "brief.md", "-q",
             session=planck).out.strip()  # fmt: skip
    brief.unlink() if now is None else brief.write_text(now)

    text, found = (
        run("task", "show", "--check-brief", id[:12]),
        run("task", "show", "--check-brief", id, "--json"),
    )

    assert (text.status, found.status, sentence in text.out) == (status, status, True), text
    assert found.json["brief"].startswith("brief.md (")


def test_r18_a_brief_that_nobody_attested_is_exit_2(run: Run, start: Start, repo: Path) -> None:
    """As an unknown task is."""
    id = run(
        "delegate", "x", "--to", "role:implementer/test", "--wu", "WU-7", "-q", session=start("Planck")
    ).out.strip()
    for args in ([id], ["task-nothere0"]):
        said = run("task", "show", "--check-brief", *args)
        assert said.status == 2 and said.err.startswith("gitmem: "), said


def test_r21_r23_a_launch_and_a_relaunch_are_recorded_and_shown(run: Run, start: Start) -> None:
    """With what was asked and what came; a live worker refuses with exit 1, a launch without a reason with exit 2."""
    planck, bohr = start("Planck"), start("Bohr", "--role", "reviewer/docs")
    id = run("delegate", "Write it", "--to", "role:implementer/test", "--wu", "WU-7", "-q",
             session=planck).out.strip()  # fmt: skip
    made = run("task", "launch", id, "--attempt", "first", "--branch", "wu-7", "--worktree", "../shop-wu7",
               "--client", "codex", "--model", "opus", session=planck)  # fmt: skip
    assert made.out.splitlines()[:2] == [
        f"{id} · launched · attempt 1 (first) · branch wu-7 · worktree shop-wu7 · WU-7 · codex · opus",
        "asked for implementer/test",
    ], made
    refused = run("task", "launch", id, session=planck)
    assert refused.status == 2 and f"next: gitmem task launch {id} --again " in refused.err

    run("task", "take", id, session=bohr)
    live = run("task", "launch", id, "--again", "slow", session=planck)
    assert live.status == 1 and "was taken by test:worker:bohr, who has it until 2" in live.err
    run("task", "release", id, session=bohr)
    assert run("task", "launch", id, "--again", "", session=planck).status == 2
    again = run("task", "launch", id, "--again", "given back", session=planck)
    assert "asked for implementer/test · the last worker was reviewer/docs" in again.out

    shown = run("task", "show", id, session=planck)
    assert "launched a worker · attempt 1 (first) · branch wu-7 · worktree shop-wu7 · " in shown.out
    assert "launched a worker · attempt 2 · " in shown.out and "given back" in shown.out
    first, second = run("task", "show", id, "--json").json["launches"]
    assert (first["role_mismatch"], second["relaunch_of"]) == (True, first["launch"])
    found = run("task", "launch", id, "--again", "once more", "--json", session=planck).json
    assert (found["relaunch_reason"], found["attempt_number"]) == ("once more", 3)
    assert found["requested_role"]["lifecycle_role"] == "implementer" and found["next"] == [
        f"gitmem task show {id}"
    ]
