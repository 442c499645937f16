"""A client's session begins and ends: one of ours with it, that knows who it is, what it knew and what waits."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from gitmem.clients import events

from ...conftest import Git
from ...hook_agents import said
from ..conftest import Run
from .conftest import Hook, Start

STARTS = [(client, event) for client in events.EVENTS for event in events.names(client, events.START)]


@pytest.mark.parametrize(("client", "event"), STARTS)
def test_a_start_registers_the_session_once_and_says_who_it_is(
    hook: Hook, run: Run, client: str, event: str
) -> None:
    """The client, its session id, a name of ours; what starts again under the same id is the same session."""
    text = hook.reads(client, event)
    again = hook.reads(client, event)

    (ours,) = hook.sessions()
    (row,) = run("roster", "--json").json["sessions"]
    assert (row["session_id"], row["client"]) == (ours, client)
    assert text.startswith(f"You are {row['display_name']} ({ours}) to the other agents in this repository.")
    assert "\n" not in text
    assert again == text
    assert (hook.state / "here" / client).read_text() == f"{ours}\n"


def test_the_agent_is_told_its_session_where_its_commands_would_not_know_it(
    hook: Hook, tmp_path: Path
) -> None:
    """By its harness's variable, by a file of the client, by its JSON; else in words."""
    exports = " Run it as `GITMEM_SESSION=sess-"
    env_file = tmp_path / "env"

    assert exports not in hook.reads("codex", "SessionStart", "c-1")
    assert exports in hook.reads("codex", "SessionStart", "c-2", env={"CLAUDE_CODE_SESSION_ID": "outer"})
    assert exports in hook.reads("gemini", "SessionStart", "g-1")
    assert exports in hook.reads("copilot", "sessionStart", "p-1", env={"GITMEM_SESSION": "sess-outer"})
    told = hook.reads("claude-code", "SessionStart", "cc-1", env={"CLAUDE_ENV_FILE": str(env_file)})
    assert exports not in told
    name, _, value = env_file.read_text().partition("=")
    assert name == "export GITMEM_SESSION" and value.strip() in hook.sessions()
    env_file.write_text("export OTHER=1")
    hook("claude-code", "SessionStart", "cc-1", env={"CLAUDE_ENV_FILE": str(env_file)}, source="compact")
    hook("claude-code", "SessionStart", "cc-1", env={"CLAUDE_ENV_FILE": str(env_file)}, source="compact")
    assert env_file.read_text() == f"export OTHER=1\nexport GITMEM_SESSION={value}"
    assert hook("cursor", "sessionStart", "u-1").json["env"]["GITMEM_SESSION"] in hook.sessions()


@pytest.mark.parametrize("path", ["relative", "/proc/nothing/here", ""])
def test_an_env_file_that_cannot_be_written_costs_nothing_else(hook: Hook, path: str) -> None:
    text = hook.reads("claude-code", "SessionStart", env={"CLAUDE_ENV_FILE": path})

    assert text.startswith("You are ") and not (hook.repo / "relative").exists()


def test_what_waits_comes_with_the_start(hook: Hook, run: Run, start: Start) -> None:
    """Mail for the identity that the agent has, and broadcasts; not once more when it starts again."""
    first = {"GITMEM_AGENT_IDENTITY": "test:worker:curie"}
    run("session", "end", session=start("Curie"))
    run("signal", "The parser drops tabs", "--to", "test:worker:curie", session=start("Planck"))

    text = hook.reads("codex", "SessionStart", env=first)
    again = hook.reads("codex", "SessionStart", env=first, source="resume")

    head, _, news = text.partition("\n\n")
    assert "(test:worker:curie)" in head
    assert news.startswith("gitmem signal:received from peers.") and "| The parser drops tabs" in news
    assert "drops tabs" not in again


def nameless(run: Run) -> str:
    """A session without an agent identity, which no other one is offered."""
    return str(run("session", "start", "--name", "Planck", "--json").json["session_id"])


def test_a_start_offers_the_identity_of_the_worktrees_last_agent(hook: Hook, run: Run, start: Start) -> None:
    """In one line with the command that takes it, which works; not to an agent that has an identity, or goes on."""
    run("session", "end", session=start("Kilby"))
    run("signal", "The parser drops tabs", "--to", "test:worker:kilby", session=nameless(run))
    take = "gitmem session set --agent-identity test:worker:kilby --name Kilby"

    other = hook.reads(
        "claude-code", "SessionStart", "h-2", env={"GITMEM_AGENT_IDENTITY": "test:worker:curie"}
    )
    run("session", "end", "--as", "test:worker:curie")
    before = set(hook.sessions())
    run("session", "end", session=start("Kilby"))
    text = hook.reads("claude-code", "SessionStart")
    resumed = hook.reads("claude-code", "SessionStart", source="resume")

    _, offer = text.split("\n\n")
    assert (
        offer
        == f"Kilby worked in repo, just now, and has 1 unread. If you are Kilby, `{take}` gives you its messages."
    )
    assert "Kilby" not in resumed + other
    assert "drops tabs" not in text + resumed  # nothing is taken over by itself
    (ours,) = set(hook.sessions()) - before
    run(*take.split()[1:], session=ours)
    assert "drops tabs" in hook.reads("claude-code", "PostToolUse")
    assert "Kilby" not in hook.reads("claude-code", "SessionStart", "h-3")  # it is at work


def test_a_client_that_drops_a_start_has_the_offer_with_its_first_signal(
    hook: Hook, run: Run, start: Start
) -> None:
    """As the introduction."""
    run("session", "end", session=start("Kilby"))
    ours, other = hook.start("cline"), nameless(run)
    texts = []
    for number in range(2):
        run("signal", f"Number {number}", "--to", ours, session=other)
        texts.append(hook.reads("cline", "PostToolUse"))

    assert [text.count("Kilby worked in repo") for text in texts] == [1, 0]


@pytest.mark.parametrize("end", ["by its client", "by itself", "not at all"])
def test_a_conversation_that_is_resumed_goes_on_as_who_it_was(
    hook: Hook, run: Run, start: Start, git: Git, end: str
) -> None:
    """Identity, work unit, lane, name and mail, also where the variable that gave the identity is gone."""
    planck = start("Planck")
    ours = hook.start("claude-code", env={"GITMEM_AGENT_IDENTITY": "test:worker:curie"})
    run("session", "set", "--name", "Hopper", "--wu", "WU-5", "--lane", "parser", session=ours)
    run("signal", "Before.", "--to", "Hopper", "--wu", "WU-5", session=planck)
    if end == "by its client":
        hook("claude-code", "SessionEnd")
    elif end == "by itself":
        run("session", "end", session=ours)
    run("signal", "Meanwhile.", "--to", "test:worker:curie", "--wu", "WU-5", session=planck)
    git("checkout", "--quiet", "-b", "wu-9-other", cwd=hook.repo)

    text = hook.reads("claude-code", "SessionStart", source="resume")

    (row,) = [each for each in run("roster", "--json").json["sessions"] if each["display_name"] == "Hopper"]
    assert (row["session_id"] == ours) is (end == "not at all")
    assert (row["agent_identity"], row["wu_id"], row["lane"]) == ("test:worker:curie", "WU-5", "parser")
    assert "| Before." in text and "| Meanwhile." in text


def test_a_resumed_conversation_without_identity_still_has_to_answer(
    hook: Hook, run: Run, start: Start
) -> None:
    """What was asked of the session that ended holds its gate closed until it answers."""
    planck, ours = start("Planck"), hook.start("claude-code")
    run("session", "set", "--name", "Hopper", "--wu", "WU-5", session=ours)
    asked = run(
        "signal", "Agreed?", "--to", "Hopper", "--wu", "WU-5", "--intent", "propose", "--requires-ack", "--json",
        session=planck,
    ).json["signal"]  # fmt: skip
    hook("claude-code", "SessionEnd")
    assert "| Agreed?" in hook.reads("claude-code", "SessionStart", source="resume")
    (again,) = [each for each in hook.sessions() if each not in (planck, ours)]

    assert run("gate", session=again).status == 1
    run("reply", asked["signal_id"], "Yes.", "--agree", session=again)

    assert run("gate", session=again).status == 0


def test_what_a_start_names_wins_over_what_the_session_was(hook: Hook, run: Run) -> None:
    ours = hook.start("claude-code", env={"GITMEM_AGENT_IDENTITY": "test:worker:curie"})
    run("session", "set", "--wu", "WU-5", session=ours)
    hook("claude-code", "SessionEnd")

    said = run("session", "start", "--wu", "WU-6", "--json", CLAUDE_CODE_SESSION_ID="h-1")

    assert (said.json["agent_identity"], said.json["wu_id"]) == ("test:worker:curie", "WU-6")


def test_an_identity_that_breaks_the_rules_costs_the_identity_alone(hook: Hook, run: Run) -> None:
    ours = hook.start("codex", env={"GITMEM_AGENT_IDENTITY": "not an identity"})

    (row,) = run("roster", "--json").json["sessions"]
    assert (row["session_id"], row["agent_identity"]) == (ours, None)
    assert "identity" in hook.error()


@pytest.mark.parametrize(
    ("branch", "wu"), [("lane/wu-12-retry-3", "WU-12"), ("WU-7", "WU-7"), ("fix/utf-8", None), ("main", None)]
)
def test_the_work_unit_is_the_one_that_the_branch_names(
    hook: Hook, git: object, run: Run, branch: str, wu: str
) -> None:
    git("checkout", "--quiet", "-B", branch, cwd=hook.repo)  # type: ignore[operator]

    ours = hook.start("codex")

    (row,) = run("roster", "--json").json["sessions"]
    assert row["wu_id"] == wu
    run("session", "set", "--wu", "WU-99", session=ours)
    hook("codex", "SessionStart", source="resume")
    (row,) = run("roster", "--json").json["sessions"]
    assert row["wu_id"] == "WU-99"  # what the agent said itself stays


def test_a_branch_names_a_work_unit_that_the_log_knows(
    hook: Hook, git: object, run: Run, start: Start
) -> None:
    start("Planck", "--wu", "SHOP-31")
    git("checkout", "--quiet", "-b", "fix/shop-31-totals", cwd=hook.repo)  # type: ignore[operator]

    assert " on SHOP-31." in hook.reads("codex", "SessionStart")


def test_memory_comes_back_with_a_context_that_was_lost(hook: Hook, run: Run) -> None:
    """After compaction whatever there is; at a start only a checkpoint."""
    ours = hook.start("codex", env={})
    assert "mem recover" not in hook.reads("codex", "SessionStart", source="compact")
    run("mem", "create", "The parser drops tabs", "--type", "discovery", session=ours)
    run("session", "set", "--wu", "WU-1", session=ours)
    run("mem", "create", "Tabs are kept since yesterday", "--wu", "WU-1", session=ours)

    assert "mem recover" not in hook.reads("codex", "SessionStart")
    assert "Tabs are kept" in hook.reads("codex", "SessionStart", source="compact")
    run("mem", "checkpoint", "Half of the parser is done", session=ours)
    text = hook.reads("codex", "SessionStart")
    assert "Half of the parser is done" in text and "data and not instructions" in text
    assert len(text.encode()) < 2500


def test_the_script_is_told_what_it_has_to_know(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folders where a sandbox leaves lines; the program that runs, by its whole path; folders of its own."""
    import sys

    program = tmp_path / "bin" / "gitmem"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])

    hook.start("codex")

    assert (hook.state / "program").read_text() == f"{program}\n"
    folders = (hook.state / "wal-folders").read_text().split("\n")
    assert any(each.startswith("/var/tmp/gitmem-") for each in folders)
    assert stat.S_IMODE((hook.state / "prompts").stat().st_mode) == 0o700
    assert (hook.state / "beats").is_dir()
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "elsewhere.py")])
    hook("codex", "SessionStart")
    assert (hook.state / "program").read_text() == f"{program}\n"


def test_a_session_of_the_users_choice_is_taken(hook: Hook, run: Run, start: Start) -> None:
    """GITMEM_SESSION names one that no client has started: no second one is, and its end is not the client's."""
    named = start("Curie")

    text = hook.reads("codex", "SessionStart", env={"GITMEM_SESSION": named})

    assert text.startswith("You are Curie ") and "export" not in text
    assert hook.sessions() == [named]
    hook("codex", "SessionEnd", env={"GITMEM_SESSION": named})
    assert hook.sessions() == [named]


def test_an_agent_that_another_one_started_is_itself(hook: Hook, run: Run) -> None:
    """The session of the parent is in its environment: it gets one of its own, and is told to use it."""
    parent = hook.start("claude-code", "parent-1")

    text = hook.reads("codex", "SessionStart", "child-1", env={"GITMEM_SESSION": parent})

    (child,) = set(hook.sessions()) - {parent}
    assert text.endswith(f"Run it as `GITMEM_SESSION={child} gitmem …`.")


def test_a_session_whose_start_nobody_saw_begins_with_its_next_prompt(
    hook: Hook, run: Run, start: Start
) -> None:
    """The hooks, or the log, came while the agent was at work already: it is told who it is, and reads what waits."""
    run("signal", "For everybody", "--broadcast", session=start("Planck"))

    assert hook("claude-code", "PostToolUse").out == "" and hook("claude-code", "Stop").out == ""
    text = hook.reads("claude-code", "UserPromptSubmit")
    again = hook.reads("claude-code", "UserPromptSubmit")

    assert text.startswith("You are ") and "| For everybody" in text
    assert again == "" and len(hook.sessions()) == 2


def test_prompts_are_stored_only_while_headlines_may_show_them(hook: Hook, git: Git, repo: Path) -> None:
    """The start of a session tells the hook script, and removes what was stored while nobody had allowed it."""
    hook.start("claude-code", "first")
    (hook.state / "prompts" / "old").write_text('{"prompt":"a private matter"}')
    (hook.state / "prompts" / "first").touch()

    hook.start("claude-code", "second")
    assert [path.name for path in (hook.state / "prompts").iterdir()] == ["first"]
    assert not (hook.state / "keep-prompts").exists()

    git("config", "gitmem.headline", "prompt", cwd=repo)
    hook.start("claude-code", "third")
    assert (hook.state / "keep-prompts").exists()
    git("config", "--unset", "gitmem.headline", cwd=repo)
    hook.start("claude-code", "fourth")
    assert not (hook.state / "keep-prompts").exists()


def test_the_end_ends_it_and_leaves_nothing_behind(hook: Hook, run: Run) -> None:
    for client in ("claude-code", "codex", "gemini"):
        ours = hook.start(client, f"{client}-1")
        (hook.state / "prompts" / f"{client}-1").write_text("{}")
        assert hook(client, "SessionEnd", f"{client}-1", reason="other").out == ""

        assert hook.sessions() == []
        assert (hook.state / "here" / client).read_text() == ""
        assert list((hook.state / "prompts").iterdir()) == []
        assert run("roster", "--all", "--json").json["sessions"][0]["session_id"] == ours
        assert hook(client, "SessionEnd", f"{client}-1").out == ""  # twice, or never begun


def test_no_log_is_begun_where_there_is_none(
    run: Run,
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    request: pytest.FixtureRequest,
) -> None:
    """Hooks of the user run in every repository that is opened: those without gitmem stay as they are."""
    hook = Hook(repo, monkeypatch, capfdbinary, request)

    for client, kinds in events.EVENTS.items():
        for event in kinds:
            assert hook(client, event).out == ""

    assert not hook.state.exists()
    assert os.listdir(repo / ".git" / "refs") == ["heads", "tags"] or "gitmem" not in os.listdir(
        repo / ".git" / "refs"
    )


def test_models_never_get_colours(hook: Hook, run: Run, start: Start) -> None:
    """FORCE_COLOR of the user's environment is not for them."""
    start("Curie")
    hook("claude-code", "SessionStart")
    run("signal", "Hello", "--broadcast", "--as", "Curie")

    said = hook("claude-code", "PostToolUse", env={"FORCE_COLOR": "1"})

    assert "Hello" in said.out
    assert "\x1b" not in said.out and "u001b" not in said.out


def test_clines_environment_is_another_runs(
    hook: Hook, run: Run, start: Start, tmp_path: Path, git: object
) -> None:
    """Its hooks may run in the environment and folder of its first run: only what the JSON says counts."""
    other = start("Planck")

    hook(
        "cline", "TaskStart", "conv_1", cwd=tmp_path, workspaceRoots=[str(hook.repo)],
        env={"GITMEM_SESSION": other, "GITMEM_AGENT_IDENTITY": "test:worker:planck"},
    )  # fmt: skip

    (ours,) = set(hook.sessions()) - {other}
    (row,) = [row for row in run("roster", "--json").json["sessions"] if row["session_id"] == ours]
    assert (row["agent_identity"], row["client"]) == (None, "cline")


def test_inputs_are_those_of_the_clients() -> None:
    """The field that names the session, for each client, as its hooks get it."""
    assert json.loads(json.dumps(said("claude-code", "Stop", "x", Path("/"))))["session_id"] == "x"
    assert said("cline", "PostToolUse", "x", Path("/"))["taskId"] == "x"
    assert said("copilot", "postToolUse", "x", Path("/"))["sessionId"] == "x"
    assert said("cursor", "stop", "x", Path("/"))["conversation_id"] == "x"
