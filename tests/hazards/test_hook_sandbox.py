"""An agent in a sandbox can't write the git folder: what it signals waits outside, and its hook, which can, commits it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ..hook_agents import Agent, note_program, program
from .conftest import Desk, powerless, process, waiting

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


def left(desk: Desk) -> list[str]:
    """What waits for a commit; receipts start none."""
    return [path for path in waiting(desk.repo) if path.endswith(".wal1")]


class Pair:
    """Two agents of one repository: Codex in a sandbox, Claude Code without."""

    def __init__(self, desk: Desk, tmp_path: Path) -> None:
        self.desk = desk
        self.state = desk.repo / ".git" / "gitmem"
        desk("setup")
        note_program(self.state, program(tmp_path))
        self.codex = Agent("codex", "codex-1", desk.repo)
        self.claude = Agent("claude-code", "claude-1", desk.repo)
        self.ids = []
        for agent in (self.codex, self.claude):
            before = set(os.listdir(self.state / "sessions")) if (self.state / "sessions").exists() else set()
            agent.reads("SessionStart")
            (new,) = set(os.listdir(self.state / "sessions")) - before
            self.ids.append(new)

    def seal(self, mode: int) -> None:
        for path in sorted((self.desk.repo / ".git").rglob("*"), reverse=mode == 0o500):
            if path.is_dir():
                path.chmod(mode)
        (self.desk.repo / ".git").chmod(mode)

    def signal(self, text: str, **env: str) -> None:
        """Codex's agent runs `gitmem signal` where the git folder can't be written."""
        self.seal(0o500)
        try:
            told = process(
                "signal", text, "--to", self.ids[1], "--json",
                cwd=self.desk.repo, env={"CODEX_THREAD_ID": "codex-1", **env}, before=powerless,
            )  # fmt: skip
        finally:
            self.seal(0o700)
        assert (told.status, told.json["recorded"]) == (0, True), told


@pytest.fixture
def pair(desk: Desk, tmp_path: Path) -> Pair:
    return Pair(desk, tmp_path)


def test_the_hook_commits_what_the_sandbox_left_and_the_other_reads_it(pair: Pair) -> None:
    """The signal waits outside; Codex's own next hook commits it; Claude's next tool call has it. Each once."""
    pair.signal("The parser drops tabs")
    (path,) = left(pair.desk)
    assert not path.startswith(str(pair.desk.repo))
    assert pair.claude.session  # nothing has fed its queue by now
    assert not (pair.state / "flags" / "claude-1").exists()

    assert pair.codex.call("PostToolUse").is_silent

    assert left(pair.desk) == []
    entries = pair.desk("log", "--json").json["entries"]
    assert [each["message"] for each in entries if each.get("message")] == ["The parser drops tabs"]
    text = pair.claude.reads("PostToolUse")
    assert "| The parser drops tabs" in text and pair.ids[0] in text
    assert pair.claude.call("PostToolUse").is_silent and pair.codex.call("PostToolUse").is_silent
    assert not (pair.state / "hook-stuck").exists()


def test_the_readers_own_hook_commits_it_too(pair: Pair) -> None:
    """Whoever comes first: the hook of the agent that it is for commits it and hands it over in one go."""
    pair.signal("The parser drops tabs")

    assert "| The parser drops tabs" in pair.claude.reads("PostToolUse")
    assert left(pair.desk) == []


def test_a_hook_in_the_sandbox_too_hands_over_and_asks_once_a_turn(pair: Pair) -> None:
    """A client whose hooks are sealed in as well: what waits is shown, nothing fails, no tool call asks in vain."""
    pair.signal("The parser drops tabs")
    (pair.state / "beats").mkdir(exist_ok=True)
    pair.seal(0o500)
    try:
        text = pair.claude.reads("PostToolUse", before=powerless)
        assert "| The parser drops tabs" in text
        assert pair.codex.call("PostToolUse", before=powerless).is_silent
        assert pair.codex.call("Stop", before=powerless).is_silent
    finally:
        pair.seal(0o700)
    assert pair.codex.call("PostToolUse").is_silent
    assert left(pair.desk) == []


def test_a_file_that_nobody_can_commit_does_not_start_gitmem_for_ever(pair: Pair, tmp_path: Path) -> None:
    """It is looked at in one tool call, and then once a turn."""
    pair.signal("The first one")
    (waits,) = map(Path, left(pair.desk))
    content = waits.read_bytes()
    assert "| The first one" in pair.claude.reads("PostToolUse") and left(pair.desk) == []
    waits.write_bytes(content)
    (waits.parent / "repository").write_text("clone of another\nroots \nfolder -\npath /elsewhere\n")
    assert pair.codex.call("PostToolUse").is_silent
    assert (pair.state / "hook-left").exists()
    started = tmp_path / "started"
    kept = (tmp_path / "gitmem").read_text()
    (tmp_path / "gitmem").write_text(f'#!/bin/sh\necho "$@" >>"{started}"\n')

    assert pair.codex.call("PostToolUse").is_silent and not started.exists()
    pair.codex.call("Stop")
    lines = [line for line in started.read_text().splitlines() if not line.endswith(" edits")]
    assert lines == ["hook codex Stop"], "and in the background what was edited"

    (tmp_path / "gitmem").write_text(kept)
    pair.desk.send(pair.ids[0], "Mail comes all the same", "--to", pair.ids[1])
    assert "| Mail comes all the same" in pair.claude.reads("PostToolUse")
    waits.unlink()
    pair.desk.send(pair.ids[0], "On we go", "--to", pair.ids[1])
    assert "| On we go" in pair.claude.reads("Stop")
    assert not (pair.state / "hook-left").exists()
