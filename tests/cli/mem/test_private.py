"""`gitmem mem create --private`, as its user and others see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..conftest import Run


def start(run: Run, identity: str) -> str:
    return str(run("session", "start", "--agent-identity", identity, "--json").json["session_id"])


@pytest.mark.usefixtures("commits")
def test_i18_the_commands_of_the_memory_find_it_and_mark_it(run: Run, repo: Path) -> None:
    me, other = start(run, "codex:reviewer:shop"), start(run, "codex:worker:shop")
    created = run("mem", "create", "My guess on rounding", "--private", session=me)
    assert " · private · discovery · " in created.out and "recorded in this clone only" in created.out
    id = created.out.split()[0]

    for command in (("mem", "list"), ("mem", "search", "guess"), ("show", id)):
        assert "private" in run(*command, session=me).out
        assert "My guess" not in run(*command, session=other).out
    for command in (("context",), ("ready",), ("list", "--all"), ("recover",), ("export",)):
        said = run("mem", *command, session=other)
        assert "My guess" not in said.out + said.err and id not in said.out + said.err, command
    assert run("mem", "list", "--json", session=me).json["nodes"][0]["private"] is True
    assert run("show", id, session=other).status == 2
    assert "My guess" not in run("mem", "export", session=me).out
    assert run("mem", "update", id, "--status", "archived", session=me).status == 0
    assert run("mem", "list", session=me).out.startswith("No nodes match.")
    refused = run("mem", "create", "x", "--discovered-from", id, session=me)
    assert (refused.status, refused.err.split(":")[1]) == (2, " Private node")
    run("mem", "create", "shared", "--commit", session=me)
    found = subprocess.run(
        ["git", "grep", "-c", "guess", "refs/gitmem/log"], cwd=repo, capture_output=True, check=False
    )
    assert found.stdout == b""
