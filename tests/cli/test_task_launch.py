"""`gitmem task verify`: exit statuses, text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

Start = Callable[..., str]


@pytest.mark.parametrize(
    ("now", "status", "sentence"),
    [
        ("twelve cases\n", 0, " · brief.md · matches\n"),
        ("one case\n", 1, "note: The brief brief.md is not what the caller attested"),
        (None, 2, "note: The brief brief.md can't be read in this work tree: there is no such file"),
    ],
)
def test_r18_the_exit_status_says_whether_the_brief_is_the_attested_one(
    now: str | None, status: int, sentence: str, run: Run, start: Start, repo: Path
) -> None:
    """0, 1 and 2, with the same answer in JSON; `--brief` names another file."""
    planck = start("Planck")
    brief = repo / "brief.md"
    brief.write_text("twelve cases\n")
    (repo / "copy.md").write_text("twelve cases\n")
    id = run("delegate", "x", "--to", "role:implementer/test", "--wu", "WU-7", "--brief", "brief.md", "-q",
             session=planck).out.strip()  # fmt: skip
    brief.unlink() if now is None else brief.write_text(now)

    text, found = run("task", "verify", id[:12]), run("task", "verify", id, "--json")

    assert (text.status, found.status, sentence in text.out) == (status, status, True), text
    assert (
        "attested just now · 13 bytes · SHA-256 " in text.out and f"next: gitmem task show {id}" in text.out
    )
    assert found.json["status"] == ("matches", "changed", "missing")[status]
    assert run("task", "verify", id, "--brief", "copy.md").status == 0


def test_r18_a_brief_that_nobody_attested_is_exit_2(run: Run, start: Start, repo: Path) -> None:
    """As an unknown task is."""
    id = run(
        "delegate", "x", "--to", "role:implementer/test", "--wu", "WU-7", "-q", session=start("Planck")
    ).out.strip()
    for args in ([id], ["task-nothere0"], [id, "--brief", "../x"]):
        said = run("task", "verify", *args)
        assert said.status == 2 and said.err.startswith("gitmem: "), said
