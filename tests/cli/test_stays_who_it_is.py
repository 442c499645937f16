"""An agent stays who it is: for commands in a terminal, for names, and across clones."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import Git

from .conftest import Run


def in_terminal(repo: Path, *args: str) -> str:
    """What a command prints for a person who sits before it."""
    window, end = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli", *args], cwd=repo, stdin=end, capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
    finally:
        os.close(window)
        os.close(end)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_that_starts_in_a_terminal_does_not_act_there_yet(run: Run, repo: Path) -> None:
    """The person goes on as before, and is told so, with the command; every answer to a send names its sender."""
    run("setup")
    started = in_terminal(repo, "session", "start", "--name", "Hal")
    export = started.splitlines()[-1]
    assert export.startswith("export GITMEM_SESSION=sess-")
    assert "You are Hal" not in started and "gitmem inbox" not in started
    assert f"In this terminal you are still Test Person; to act as Hal: {export}" in started

    assert " · from Test Person · to everybody · " in in_terminal(repo, "signal", "one", "--broadcast")
    session = export.partition("=")[2]
    sent = run("signal", "two", session=session)
    assert " · from Hal · to everybody · " in sent.out
    assert " · from Test Person · to Hal " in in_terminal(repo, "signal", "three", "--to", "Hal")
    changed = run("session", "set", "--lane", "docs", "--as", session).out
    assert changed.startswith("Hal (sess-")


def test_a_session_that_acts_at_once_is_told_who_it_is(run: Run, repo: Path) -> None:
    """The only session of a worktree, for a program without a terminal: what is said is true for the next command."""
    run("setup")
    started = run("session", "start", "--name", "Hal").out
    assert started.startswith("You are Hal (")
    assert " · from Hal · " in run("signal", "one").out
    second = run("session", "start", "--name", "Ida", "--json").json
    assert "Here you are nobody yet; to act as Ida: export" in second["remark"]
    assert second["next"] == [f"export GITMEM_SESSION={second['session_id']}", "gitmem roster"]


def test_a_session_that_does_not_act_yet_gets_the_identity_by_its_id(run: Run, repo: Path) -> None:
    """The command would otherwise be for whom the caller still is."""
    run("setup")
    first = run("session", "start", "--agent-identity", "claude:impl:z", "--json").json["session_id"]
    run("session", "end", session=first)
    second = run("session", "start", "--name", "Ida", "--json", session=first).json
    take = f"gitmem --as {second['session_id']} session set --agent-identity claude:impl:z"
    (found,) = [each for each in second["next"] if each.startswith(take)]
    assert run(*found.split()[1:]).status == 0
    assert run("whoami", "--json", session=second["session_id"]).json["agent_identity"] == "claude:impl:z"


@pytest.mark.parametrize("way", ["set", "start"])
def test_who_goes_on_as_an_agent_is_led_to_what_that_has_left_open(run: Run, way: str) -> None:
    """An unanswered proposal that it has read, and a task that it has: the end says it, and the new session's `next` shows it."""
    run("setup")

    def begin(*more: str) -> str:
        return str(run("session", "start", *more, "--json").json["session_id"])

    identity = ("--agent-identity", "claude:impl:z")
    planck, curt = begin("--name", "Planck"), begin("--name", "Curt", *identity)
    task = run("delegate", "Write the tests", "--to", "Curt", "-q", session=planck).out.strip()
    assert run("task", "take", task, session=curt).status == 0
    run("signal", "Use one table.", "--to", "Curt", "--intent", "PROPOSE", session=planck)
    assert "Use one table." in run("inbox", session=curt).out
    run("signal", "Use two tables.", "--to", "Curt", "--intent", "PROPOSE", session=planck)  # not read
    ended = run("session", "end", session=curt).out
    assert "Left open: 1 task. Unanswered: 1 signal. Before a session ends, `gitmem handoff " in ended

    if way == "set":
        new = begin()
        changed = run("session", "set", *identity, "--json", session=new)
        assert changed.json["next"] == ["gitmem mem recover", "gitmem roster"]
    else:
        started = run("session", "start", *identity, "--json").json
        new = started["session_id"]
        assert started["next"] == [f"export GITMEM_SESSION={new}", "gitmem mem recover", "gitmem roster"]
    shown = run("mem", "recover", session=new).out
    assert "Use one table." in shown and task in shown


def test_an_agent_without_earlier_sessions_is_not_told_to_recover(run: Run) -> None:
    """Nor one that only changes something else."""
    run("setup")
    first = run("session", "start", "--agent-identity", "claude:impl:z", "--json").json
    assert first["next"] == [f"export GITMEM_SESSION={first['session_id']}", "gitmem inbox", "gitmem roster"]
    run("session", "start", "--agent-identity", "claude:impl:z")
    changed = run("session", "set", "--lane", "docs", "--json", session=first["session_id"])
    assert changed.json["next"] == ["gitmem roster"]


@pytest.mark.parametrize("text", ["Plank", "plank", "Nobody", "implementer", "codex:implementer:host4"])
def test_nobodys_inbox_is_guessed(run: Run, text: str) -> None:
    """Exact, or exit status 2 with suggestions: never somebody's mail under another one's name."""
    run("setup")
    for name, host in (("Planck", "host42"), ("Plancke", "host43")):
        run("session", "start", "--name", name, "--agent-identity", f"codex:implementer:{host}")
    run("signal", "Only for Planck.", "--to", "Planck", "--as", "human:person@example.org")

    looked = run("inbox", "--for", text)
    assert (looked.status, looked.out) == (2, "")
    assert f"--for: unknown recipient: {text}" in looked.err and "Only for Planck." not in looked.err
    assert text.lower() != "plank" or "Planck (codex:implementer:host42" in looked.err


def test_names_that_follow_one_another_do_not_look_alike(run: Run, repo: Path) -> None:
    """No two of six begin with the same letter: nobody mixes up Hadamard, Haldane and Halley."""
    run("setup")
    first = [json.loads(in_terminal(repo, "session", "start", "--json"))["display_name"][0] for _ in range(6)]
    assert len(set(first)) >= 5 and all(a != b for a, b in pairwise(first)), first


def test_no_role_is_made_of_an_identity(run: Run) -> None:
    """Its middle is a label: a role is what a session states."""
    run("setup")
    me = run("session", "start", "--agent-identity", "codex:reviewer:shop", "--json").json["session_id"]
    assert "sender_role" not in run("signal", "one", "--json", session=me).json["signal"]
    run("session", "set", "--role", "implementer/test", session=me)
    assert run("signal", "two", "--json", session=me).json["signal"]["sender_role"] == "implementer/test"


def test_a_session_that_takes_its_first_identity_is_written_to_from_another_clone_without_a_warning(
    run: Run, repo: Path, git: Git, tmp_path: Path
) -> None:
    """It does so every day. The signal goes to its id, whoever wrote that line, and it reads it."""
    git("clone", "--quiet", "--bare", str(repo), str(tmp_path / "hub.git"))
    there = tmp_path / "there"
    git("clone", "--quiet", str(tmp_path / "hub.git"), str(there))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
    for clone in (repo, there):
        run("setup", cwd=clone)
    session = run("session", "start", "--name", "Curie", "--json", cwd=there).json["session_id"]
    run("session", "set", "--agent-identity", "codex:reviewer:there", cwd=there, session=session)
    for clone in (there, repo):
        assert run("sync", "--publish", cwd=clone).status == 0
    sent = run("signal", "Hello", "--to", "Curie", "--json", "--as", "human:person@example.org").json
    assert not [each for each in sent["warnings"] if "identity" in each]
    for clone in (repo, there):
        assert run("sync", "--publish", cwd=clone).status == 0
    assert [
        each["message"] for each in run("inbox", "--json", cwd=there, session=session).json["signals"]
    ] == ["Hello"]


def test_the_next_session_of_an_agent_reads_what_went_to_the_id_of_its_last_one(
    run: Run, repo: Path, git: Git, tmp_path: Path
) -> None:
    """Another clone writes to the id of a session that took its identity later: counts, inbox and task say the same."""
    git("clone", "--quiet", "--bare", str(repo), str(tmp_path / "hub.git"))
    there, me = tmp_path / "there", ("--as", "human:person@example.org")
    git("clone", "--quiet", str(tmp_path / "hub.git"), str(there))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
    for clone in (repo, there):
        run("setup", cwd=clone)
    agent = ("--agent-identity", "codex:reviewer:there")
    first = run("session", "start", "--name", "Curie", "--json", cwd=there).json["session_id"]
    for clone in (there, repo):
        assert run("sync", "--publish", cwd=clone).status == 0
    assert run("signal", "Hello", "--to", "Curie", "--json", *me).json["signal"]["recipients"] == [first]
    task = run("delegate", "Review it", "--to", "Curie", "--json", *me).json["task"]["task_id"]
    asked = run("signal", "Quartz?", "--to", "Curie", "--intent", "propose", "-q", *me).out.strip()
    assert "--wait" in run("converged", asked, *me).out
    run("session", "set", *agent, cwd=there, session=first)
    for clone in (repo, there):
        assert run("sync", cwd=clone).status == 0
    beside = run("session", "start", "--name", "Bohr", *agent, "--json", cwd=there).json["session_id"]
    assert run("whoami", "--json", cwd=there, session=beside).json["unread"] == 0, "Curie is at work"
    ended = run("session", "end", cwd=there, session=first)
    assert "3 unread (2 want an answer). The next session of codex:reviewer:there reads them." in ended.out
    second = run("session", "start", "--name", "Curie", *agent, "--json", cwd=there).json["session_id"]
    rows = run("roster", "--json", cwd=there, session=second).json["sessions"]
    assert {each["unread"] for each in rows} == {3}
    read = run("inbox", "--json", cwd=there, session=second).json["signals"]
    assert [each["message"] for each in read] == ["Hello", "Review it", "Quartz?"]
    assert run("inbox", "--json", cwd=there, session=beside).json["signals"] == []
    assert run("task", "take", task, cwd=there, session=second).status == 0
    for clone in (there, repo):
        assert run("sync", cwd=clone).status == 0
    rows = run("roster", "--all", "--json").json["sessions"]
    assert {each["unread"] for each in rows if each["agent_identity"] == "codex:reviewer:there"} == {0}
    shown = run("task", "show", task, "--json").json
    assert shown["holder"]["sender_identity"] == "codex:reviewer:there"
    waits = run("converged", asked, *me)
    assert f"Curie ({first}) has ended: unless it is resumed, nobody answers for it." in waits.out + waits.err
    assert "--wait" not in waits.out
