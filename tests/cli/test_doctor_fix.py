"""`gitmem doctor --fix` as a command: what it says, and with which exit status."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.usefixtures("commits")
def test_what_was_mended_is_said_and_the_rest_is_left(
    run: Run, start: Callable[..., str], repo: Path
) -> None:
    """The merge driver that nobody installed is a note; the log that was moved back is whole again."""
    planck = start("Planck")
    assert run("signal", "--", "hello", session=planck).status == 0
    for moved in (["refs/heads/gitmem", "refs/gitmem/log"], ["refs/gitmem/log", "refs/gitmem/log~1"]):
        subprocess.run(["git", "update-ref", *moved], cwd=repo, check=True)
    looked = run("doctor")
    assert looked.status == 1 and "next: gitmem doctor --fix" in looked.out

    found = run("doctor", "--fix", "--json")

    assert found.status == 0 and found.json["fixed"] == 1, found
    states = {each["code"]: each["state"] for each in found.json["findings"]}
    assert states == {"lost-lines": "fixed", "driver-missing": "left"}
    assert "hello" in run("log").out
    again = run("doctor", "--fix")
    assert (
        again.status == 0 and "fixed: " not in again.out and "Nothing is damaged; 1 note above" in again.out
    )


@pytest.mark.usefixtures("commits")
def test_it_is_told_in_text(run: Run, start: Callable[..., str], repo: Path) -> None:
    """A finding, what was done, and no advice to do it."""
    start("Planck")
    (repo / ".git/gitmem/wal/notes.txt").touch()
    lines = run("doctor", "--fix").out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("fixed: "))
    assert lines[at].endswith("[wal-file]") and "/gitmem/aside/" in lines[at + 1]
    assert "No problems found, 1 fixed; checked" in "\n".join(lines)


def test_the_driver_is_installed_again_where_it_was(run: Run, start: Callable[..., str], repo: Path) -> None:
    """Half of it is worse than none."""
    start("Planck")
    assert run("setup").status == 0
    attributes = repo / ".git/info/attributes"
    attributes.write_bytes(b"")

    found = run("doctor", "--fix", "--json")

    assert [each["code"] for each in found.json["findings"] if each["state"] == "fixed"] == ["driver-unused"]
    assert b"gm-*.jsonl merge=gitmem\n" in attributes.read_bytes()
