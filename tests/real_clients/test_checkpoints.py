"""What hooks save without a model's help: every so many tool calls, at a subagent's end, and before a compaction."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.real_clients.clients import CLIENTS, RUN_SECONDS
from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Asked, Model, Play, serving
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

NOTE = "rounding the prices: amber"


def saved(desk: Desk) -> list[tuple[str, str]]:
    """The automatic checkpoints, oldest first: trigger and content."""
    nodes: list[dict[str, Any]] = desk.gitmem("mem", "list", "--type", "checkpoint")["nodes"]
    return [(str(node["metadata"]["trigger"]), node["content"]) for node in reversed(nodes)]


def noting(desk: Desk, command: str) -> Play:
    """A step in which the session gets a note, and then a tool call."""

    def step(asked: Asked) -> Step:
        assert until(desk.sessions), "no hook has registered the session"
        desk.gitmem("session", "note", NOTE, session=str(desk.sessions()[0]["session_id"]))
        return desk.client.shell(command)

    return step


@pytest.mark.parametrize("name", [each.name for each in CLIENTS])
def test_every_so_many_tool_calls_the_state_is_saved(name: str, desk: Callable[..., Desk]) -> None:
    """Four calls with a change before the first: saved after the second, and not again."""
    there = desk(name)
    there.git("config", "gitmem.checkpointEvery", "2")
    seen: list[int] = []

    def counts(command: str) -> Play:
        def step(asked: Asked) -> Step:
            seen.append(len(saved(there)))
            return there.client.shell(command)

        return step

    def ends(asked: Asked) -> Step:
        seen.append(len(saved(there)))
        return Step("Done.")

    there.turn(
        [noting(there, "echo one"), counts("echo two"), counts("echo three"), counts("echo four"), ends]
    )

    assert seen == [0, 1, 1, 1]
    assert saved(there) == [("auto-tool-calls", f"Checkpoint: {NOTE}")]


def test_at_a_subagent_s_end_the_state_is_saved(desk: Callable[..., Desk]) -> None:
    """That of the session which started it."""
    there = desk("claude-code")
    errand = {"description": "Count", "prompt": "Count the files.", "subagent_type": "general-purpose"}

    there.turn(
        [
            noting(there, "echo one"),
            lambda asked: Step(tool="Task", arguments={**errand, "run_in_background": False}),
            lambda asked: Step("Seven files."),  # the subagent
            lambda asked: Step("Done."),
        ]
    )

    assert saved(there) == [("auto-subagent-stop", f"Checkpoint: {NOTE}")]


def run(desk: Desk, words: Sequence[str], script: Sequence[Play]) -> Model:
    """A run of the client with other words than those of a turn."""
    model = Model(desk.client.dialect, script)
    with serving(model):
        env = {**desk.env, **desk.client.variables(model.url)}
        desk.client.prepare(desk.program, desk.work, desk.home, env, model.url)
        done = subprocess.run(
            [str(desk.program), *words], cwd=desk.work, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=RUN_SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for error in model.trouble:
        raise error
    return model


def test_before_a_compaction_claude_code_saves_the_state(desk: Callable[..., Desk]) -> None:
    """In a resumed conversation: what git says, for its work unit; the context that begins after it names that."""
    there = desk("claude-code")

    def works(asked: Asked) -> Step:
        there.gitmem("session", "set", "--wu", "WU-7", session=str(there.sessions()[0]["session_id"]))
        return there.client.shell("echo one >amber.txt")

    there.turn([works, lambda asked: Step("Done.")])
    assert saved(there) == []

    run(there, [*there.client.arguments("/compact"), "--continue"], [])

    assert saved(there) == [("auto-pre-compact", "Checkpoint: work in progress")]
    model = run(there, [*there.client.arguments("Go on."), "--continue"], [])
    line = next(line for line in model.asked[0].text.split("\n") if "(saved " in line)
    assert "auto-pre-compact" in line and "untracked file" in line


def test_before_a_compaction_codex_saves_the_state(desk: Callable[..., Desk]) -> None:
    """Codex compacts by itself when a turn has used more tokens than a setting says."""
    there = desk("codex")
    limit = ["-c", "model_auto_compact_token_limit=5"]
    words = list(there.client.arguments("Begin now."))
    run(there, [*words[:1], *limit, *words[1:]], [noting(there, "echo one")])

    assert saved(there) == [("auto-pre-compact", f"Checkpoint: {NOTE}")]
