"""Before a compaction and at a subagent's end a hook saves what is known, and never in the place of a written checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ...hook_agents import Agent, note_program, program
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


def live(run: Run) -> list[dict[str, object]]:
    """Those that no other one supersedes."""
    return [node for node in saved(run) if "superseded_by" not in node]


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
    run("mem", "checkpoint", "x", "--next-steps", secret, session=begun, GITMEM_ALLOW_SECRET="1")
    before = len(saved(run))
    assert hook("claude-code", "PreCompact").out == ""
    assert len(saved(run)) == before


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_what_was_never_written_down_is_there_after_a_compaction(
    client: str, hook: Hook, run: Run, repo: Path, tmp_path: Path
) -> None:
    """By the installed script, from the session's work to the context that the client begins with afterwards."""
    note_program(hook.state, program(tmp_path))
    agent = Agent(client, "h-1", repo)
    agent.call("SessionStart")
    (found,) = hook.sessions()
    run("session", "note", "rounding the prices", session=found)
    other = hook.start("gemini", "h-2")
    run("signal", "Split the parser?", "--to", found, "--intent", "propose", "--requires-ack", session=other)
    asked = run("inbox", "--json", session=found).json["signals"][0]["thread_id"]
    (repo / "prices.py").write_text("x = 1\n")

    assert agent.call("PreCompact", trigger="auto").is_silent
    text = agent.reads("SessionStart", source="compact")

    (line,) = (line for line in text.split("\n") if "(saved " in line)
    assert "auto-pre-compact): rounding the prices; 1 untracked file" in line
    (node,) = live(run)
    assert str(node["id"]) in line
    assert node["metadata"]["openThreads"] == asked  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "cached"),
    [("30", "30\n"), ("5000", ""), ("0", ""), ("", ""), ("-3", ""), ("thirty", ""), ("1e9", "")],
)
def test_tool_calls_are_counted_only_if_it_is_wanted(
    hook: Hook, repo: Path, git: Callable[..., str], value: str, cached: str
) -> None:
    """The script has the number of the last session start, and nothing to count with otherwise."""
    every = hook.state / "checkpoint-every"
    git("config", "gitmem.checkpointEvery", "7", cwd=repo)
    hook.start("claude-code", "h-1")
    assert every.read_text() == "7\n"
    git("config", "gitmem.checkpointEvery", value, cwd=repo)
    hook.start("claude-code", "h-2")

    assert (every.read_text() if every.exists() else "") == cached


def test_every_so_many_tool_calls_a_checkpoint_is_saved(
    hook: Hook, run: Run, repo: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    """From the setting to the node, by the script, whoever calls: only if anything changed, and one is live."""
    git("config", "gitmem.checkpointEvery", "3", cwd=repo)
    note_program(hook.state, program(tmp_path))
    agent = Agent("claude-code", "h-1", repo)
    agent.call("SessionStart")
    (found,) = hook.sessions()
    run("session", "note", "rounding", session=found)
    counter = hook.state / "tool-calls" / "h-1"

    seen: list[list[object]] = []
    for number in range(10):
        if number == 7:
            run("session", "note", "naming", session=found)
        assert agent.call("PostToolUse", **({"agent_id": "a-1"} if number % 2 else {})).is_silent
        seen.append([node["content"] for node in live(run)])
    first, second = "Checkpoint: rounding", "Checkpoint: naming"
    assert seen == [[], []] + [[first]] * 6 + [[second]] * 2
    (node,) = live(run)
    assert node["metadata"]["trigger"] == "auto-tool-calls"  # type: ignore[index]
    assert counter.read_bytes() == b"."
    agent.call("SessionEnd")
    assert not counter.exists()


def test_a_tool_call_that_saves_shows_signals_too(hook: Hook, run: Run, begun: str) -> None:
    """To the agent itself; a subagent's call saves, and leaves the signals."""
    assert (
        run("signal", "The parser drops tabs", "--to", begun, session=hook.start("codex", "h-2")).status == 0
    )
    saves = ["checkpoint"]

    assert hook("claude-code", "PostToolUse", words=saves, agent_id="a-1").out == ""
    (first,) = saved(run)
    run("session", "note", "naming", session=begun)
    assert "The parser drops tabs" in hook("claude-code", "PostToolUse", words=saves).out
    (second,) = live(run)
    assert second["id"] != first["id"]
    assert hook("claude-code", "PostToolUse", words=["anything"]).out == ""


def test_a_checkpoint_that_fails_keeps_no_signal_back(hook: Hook, run: Run, begun: str) -> None:
    """Its error is noted, and the next calls start gitmem as before."""
    run("mem", "checkpoint", "x", "--next-steps", "ghp_" + "a1B2" * 9, session=begun, GITMEM_ALLOW_SECRET="1")
    assert (
        run("signal", "The parser drops tabs", "--to", begun, session=hook.start("codex", "h-2")).status == 0
    )

    assert "The parser drops tabs" in hook("claude-code", "PostToolUse", words=["checkpoint"]).out
    assert saved(run) == []
    assert "GitHub token" in hook.error()
    assert not (hook.state / "hook-stuck").exists()


def test_hooks_that_save_at_once_leave_one_checkpoint(
    hook: Hook, run: Run, begun: str, repo: Path, tmp_path: Path
) -> None:
    """Several subagents end together; each process would supersede the same one."""
    hook("claude-code", "PreCompact")
    run("session", "note", "naming", session=begun)
    note_program(hook.state, program(tmp_path))
    agent = Agent("claude-code", "h-1", repo)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda number: agent.call("SubagentStop", agent_id=f"a-{number}"), range(4)))

    assert all(each.is_silent for each in done), done
    assert len(live(run)) == 1


def test_saving_imports_nothing_of_others(
    hook: Hook, run: Run, begun: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook has to be fast: no typer, pydantic, dulwich or filelock; the commit is the committer's."""
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "60")
    code = (
        "import sys; from cli import main; main.main(['hook', 'claude-code', 'PostToolUse', 'checkpoint']);"
        "print(sorted({name.split('.')[0] for name in sys.modules if name.split('.')[0] in"
        " ('typer', 'click', 'rich', 'pydantic', 'dulwich', 'filelock', 'rapidfuzz')}))"
    )
    said = json.dumps({"session_id": "h-1", "cwd": str(repo)})
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"],
        cwd=repo, input=said, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout == "[]\n"
    assert len(saved(run)) == 1
