"""A hook that nags is torn out: what was said is said once, whatever follows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitmem.clients import client_scope, events

from ..hook_agents import SHELL, Agent, note_program, program
from .conftest import Desk

CALLS = 1000


@pytest.mark.deep
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_thousand_tool_calls_after_a_delivery_print_nothing(
    desk: Desk, tmp_path: Path, client: str
) -> None:
    """Nor do they start anything: the program is gone by then, and nobody notices."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agent = Agent(client, "c-1", desk.repo)
    agent.reads("SessionStart")
    (ours,) = {path.name for path in (state / "sessions").iterdir()} - {peer}
    for text in ("The parser drops tabs", "And so does the printer"):
        desk.send(peer, text, "--to", ours)
    desk.send(peer, "For everybody", "--broadcast")
    text = agent.reads("PostToolUse")
    assert text.count("\n| ") == 3
    started = tmp_path / "started"
    (tmp_path / "gitmem").write_text(f'#!/bin/sh\necho "$@" >>"{started}"\n')

    variable = events.SESSION_VARIABLES.get(client)
    done = subprocess.run(
        [SHELL, "-c", f'i=0; while [ $i -lt {CALLS} ]; do {SHELL} "$0" PostToolUse </dev/null || echo no; i=$((i+1)); done',
         str(agent.script)],
        cwd=desk.repo, env={**os.environ, **({variable: "c-1"} if variable else {})}, capture_output=True, timeout=300,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not started.exists()


@pytest.mark.deep
def test_ten_signals_in_many_calls_come_once_each_to_every_agent(desk: Desk, tmp_path: Path) -> None:
    """Two agents of different clients, tool calls without end: each reads each signal that is for it once."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agents = {}
    for client in ("claude-code", "gemini"):
        before = {path.name for path in (state / "sessions").iterdir()}
        agent = Agent(client, f"{client}-1", desk.repo)
        agent.reads("SessionStart")
        (agents[agent],) = {path.name for path in (state / "sessions").iterdir()} - before
    read: dict[Agent, str] = dict.fromkeys(agents, "")
    for number in range(10):
        desk.send(peer, f"Message {number} of ten", "--to", ",".join(agents.values()))
        for agent in agents:
            for _ in range(3):
                (event, *_) = events.names(agent.client, events.TOOL)
                read[agent] += agent.reads(event)

    for text in read.values():
        assert [text.count(f"| Message {number} of ten") for number in range(10)] == [1] * 10


def test_two_hooks_of_one_call_hand_it_over_once(desk: Desk, tmp_path: Path) -> None:
    """A client that runs hooks of the user and of the project, or of several tools at once."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agent = Agent("claude-code", "c-1", desk.repo)
    agent.reads("SessionStart")
    (ours,) = {path.name for path in (state / "sessions").iterdir()} - {peer}
    desk.send(peer, "The parser drops tabs", "--to", ours)
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": "c-1"}

    several = [
        subprocess.Popen(
            [SHELL, str(agent.script), event], cwd=desk.repo, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for event in ("PostToolUse", "PostToolUse", "PostToolBatch", "PostToolUse")
    ]  # fmt: skip
    answers = [each.communicate(b'{"session_id":"c-1"}', timeout=60) for each in several]

    assert sorted(len(out) > 0 for out, _ in answers) in ([False, False, False, True],)
    assert all(err == b"" for _, err in answers)
    assert agent.call("PostToolUse").is_silent


def test_the_script_says_nothing_in_words(desk: Desk) -> None:
    """No echo, no printf, but to the file that counts: what reaches an agent is gitmem's answer alone."""
    counts = '  printf . >>"$calls" || return 1'
    for client in events.EVENTS:
        lines = client_scope.script_text(client).split("\n")
        assert not [line for line in lines if line.lstrip().startswith(("echo", "printf")) and line != counts]
