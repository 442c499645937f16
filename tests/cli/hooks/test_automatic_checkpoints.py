"""Before a compaction and at a subagent's end a hook saves what is known, and never in the place of a written checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Run
from .conftest import Hook

ENV = "CLAUDE_CODE_SESSION_ID"


@pytest.fixture
def begun(hook: Hook, run: Run, repo: Path) -> str:
    """A session of Claude Code with a note, a written checkpoint and a changed file."""
    found = hook.start("claude-code", "h-1")
    (repo / "parser.py").write_text("x = 1\n")
    run("session", "note", "rounding", session=found)
    said = run("mem", "checkpoint", "Tests pass", "--next-steps", "split the parser", session=found)
    assert said.status == 0, said
    return found


def saved(run: Run) -> list[dict[str, object]]:
    """The active automatic checkpoints."""
    nodes = run("mem", "list", "--type", "checkpoint", "--json").json["nodes"]
    return [
        node for node in nodes if str((node.get("metadata") or {}).get("trigger", "")).startswith("auto-")
    ]


@pytest.mark.parametrize("client", ["claude-code", "codex"])
@pytest.mark.parametrize(
    ("event", "more"), [("PreCompact", {"trigger": "auto"}), ("SubagentStop", {"agent_id": "a-1"})]
)
def test_what_is_known_is_saved_without_a_word(
    client: str, event: str, more: dict[str, object], hook: Hook, run: Run
) -> None:
    """A subagent's end saves the state of the session that started it."""
    found = hook.start(client, "h-1")
    run("session", "note", "rounding", session=found)
    run("mem", "checkpoint", "Tests pass", "--next-steps", "split the parser", session=found)

    assert hook(client, event, "h-1", **more).out == ""

    (node,) = saved(run)
    assert node["session_id"] == found
    assert node["content"] == "Checkpoint: rounding"
    assert node["metadata"]["nextSteps"] == "split the parser"  # type: ignore[index]
    assert (
        node["metadata"]["trigger"]
        == {"PreCompact": "auto-pre-compact", "SubagentStop": "auto-subagent-stop"}[event]
    )  # type: ignore[index]


def test_it_is_written_only_after_a_change_and_replaces_its_predecessor(
    hook: Hook, run: Run, begun: str, repo: Path, git: Callable[..., str]
) -> None:
    """A note, a node, a file or a commit is a change."""
    hook("claude-code", "PreCompact")
    (first,) = saved(run)
    hook("claude-code", "PreCompact")
    hook("claude-code", "SubagentStop", agent_id="a-1")
    assert [node["id"] for node in saved(run)] == [first["id"]]

    changes: list[Callable[[], object]] = [
        lambda: run("session", "note", "naming", session=begun),
        lambda: run("mem", "create", "Prices round per line", session=begun),
        lambda: git("commit", "-q", "--allow-empty", "-m", "more", cwd=repo),
    ]
    seen = {str(first["id"])}
    for change in changes:
        change()
        hook("claude-code", "PreCompact")
        text = (
            run("mem", "context", "--wu", "WU-1", session=begun).out
            + run("mem", "recover", session=begun).out
        )
        new = {str(node["id"]) for node in saved(run)} - seen
        assert len(new) == 1, change
        assert not any(old in text for old in seen)
        seen |= new


def test_it_never_takes_the_place_of_a_written_checkpoint(hook: Hook, run: Run, begun: str) -> None:
    """Context and recover show the written one, and one line about the saved state."""
    run("session", "set", "--wu", "WU-1", session=begun)
    run("mem", "checkpoint", "Parser is split", "--next-steps", "write tests", session=begun)
    hook("claude-code", "PreCompact")
    (node,) = saved(run)

    for command in (["mem", "recover"], ["mem", "context"]):
        text = run(*command, session=begun).out
        assert "Checkpoint: Parser is split" in text, command
        lines = [line for line in text.splitlines() if str(node["id"]) in line]
        assert len(lines) == 1 and "(saved " in lines[0], text
    assert (
        "Parser is split"
        not in run("signal", "hello", "--broadcast", "--json", session=begun).json["signal"][
            "sender_headline"
        ]
    )


def test_any_spelling_of_the_work_unit_finds_it(hook: Hook, run: Run, begun: str) -> None:
    """Another session sees the line about the saved state, not an ordinary node."""
    run("session", "set", "--wu", "WU-1", session=begun)
    hook("claude-code", "PreCompact")
    (node,) = saved(run)
    other = hook.start("codex", "h-2")

    for unit in ("WU-1", "wu-1", "#WU-1"):
        for command in ("recover", "context"):
            text = run("mem", command, "--wu", unit, session=other).out
            lines = [line for line in text.splitlines() if str(node["id"]) in line]
            assert len(lines) == 1 and "(saved " in lines[0], (command, unit, text)


def test_it_is_at_most_a_kibibyte(hook: Hook, run: Run, repo: Path) -> None:
    """Whatever the written checkpoint and the diff have."""
    found = hook.start("claude-code", "h-1")
    run("session", "note", "ü" * 100, session=found)
    run("mem", "checkpoint", "é" * 500, "--next-steps", "ö" * 5000, session=found)
    for number in range(40):
        (repo / f"a-file-with-a-rather-long-name-{number}.py").write_text("x\n")
    hook("claude-code", "PreCompact")

    (node,) = saved(run)
    texts = [str(node["content"]), *map(str, node["metadata"].values())]  # type: ignore[attr-defined]
    assert sum(len(text.encode()) for text in texts) <= 1024


def test_nothing_is_saved_where_nothing_is_known(hook: Hook, run: Run) -> None:
    """Neither for a client's session that has no session of ours."""
    hook("claude-code", "PreCompact", "unknown")
    hook.start("claude-code", "h-1")
    hook("claude-code", "PreCompact")

    assert saved(run) == []


def test_a_failure_never_stops_the_client(hook: Hook, run: Run, begun: str) -> None:
    """Hostile or no input, and a next step that looks like a secret: exit 0 and no output."""
    for raw in (b"", b"[]", b"{" * 100_000, json.dumps({"session_id": "../../x", "trigger": 7}).encode()):
        assert hook("claude-code", "PreCompact", raw=raw).out == ""
    secret = "ghp_" + "a1B2" * 9
    run("mem", "checkpoint", "x", "--next-steps", secret, "--allow-secret", session=begun)
    before = len(saved(run))
    assert hook("claude-code", "PreCompact").out == ""
    assert len(saved(run)) == before
