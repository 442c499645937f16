"""What is said beside an answer: notes, remarks, and the frame that keeps peers' words apart from ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

Start = Callable[..., str]
Git = Callable[..., str]
TOKEN = "ghp_" + "a1B2" * 9


def test_who_one_is_taken_for_is_said_once_and_beside_the_answer(run: Run, start: Start) -> None:
    """On standard error; a JSON answer has a field for it."""
    start("Planck")
    note = "note: You act as Planck, the only session of this worktree in the last 24 hours.\n"
    for args in (["inbox"], ["whoami"], ["signal", "Hello"]):
        said = run(*args)
        assert said.err == note
        assert "only session" not in said.out
    said = run("whoami", "--json")
    assert (said.err, said.json["remark"]) == (
        "",
        "You act as Planck, the only session of this worktree in the last 24 hours.",
    )


def test_a_sync_that_fails_is_told_by_converged(
    run: Run, start: Start, repo: Path, git: Git, tmp_path: Path
) -> None:
    """A note, or `warnings`; the exit status is the answer's."""
    planck, curie = start("Planck"), start("Curie")
    root = run("signal", "So?", "--to", "Curie", "-q", session=planck).out.strip()
    git("remote", "add", "origin", str(tmp_path / "gone.git"), cwd=repo)

    said = run("converged", root, "--sync")
    assert said.status == 1
    assert "note: Not synced with origin" in said.err
    assert run("converged", root, "--json").json["warnings"] == []
    run("reply", root, "Yes", "--agree", session=curie)
    said = run("converged", root, "--sync", "--json")
    assert said.status == 0
    assert "Not synced with origin" in said.json["warnings"][0]


def test_a_long_first_line_is_cut_in_the_story(run: Run, start: Start) -> None:
    """A line of the terminal each; the record has all of it."""
    planck = start("Planck")
    for name in ("Ada", "Bob", "Cid", "Dan"):
        start(name)
    run("signal", "x" * 500, "--to", "Ada,Bob,Cid,Dan", session=planck)
    line = next(line for line in run("log").out.splitlines() if "Planck →" in line)

    assert "Planck → Ada, Bob and 2 more: xxx" in line
    assert line.endswith("…") and len(line) <= 140
    assert len(run("log", "--json").json["entries"][-1]["message"]) == 500


def test_no_line_of_a_frame_stands_outside_of_it(run: Run, start: Start) -> None:
    """The path of a file is the sender's word too: it stands in the head, on one line."""
    planck = start("Planck")
    sent = run("signal", "Look", "--artifact", "notes/a.md", "-q", session=planck).out.strip()
    lines = run("show", sent).out.splitlines()

    assert "file notes/a.md" in lines[0]
    assert lines[0].startswith("[") and lines[0].endswith("]")
    assert lines[1] == "| Look"
    assert not any(line.startswith("file") for line in lines)


def test_what_answers_nothing_is_remarked(run: Run, start: Start) -> None:
    """It is recorded all the same."""
    planck = start("Planck")
    said = run("signal", "Fine", "--intent", "agree", session=planck)
    assert (said.status, "This AGREE does not answer a signal" in said.out) == (0, True)
    asked = run("signal", "Fine?", "--requires-ack", "--json", session=planck)
    assert asked.json["warnings"] == [
        "This signal asks nobody, so the thread cannot converge; ask somebody with --to NAME."
    ]


def test_a_stranger_is_no_news(run: Run, start: Start) -> None:
    """Exit status 0, and a note that the name is not known."""
    planck = start("Planck")
    run("signal", "Hello", session=planck)
    for command in (["inbox", "--from", "Zed"], ["log", "--from", "Zed"]):
        said = run(*command, session=planck)
        assert said.status == 0
        assert "note: Unknown sender: Zed" in said.err
        assert run(*command[:2], "Planck", session=planck).err == ""
    assert run("log", "--from", "test:worker:planck").err == ""


def test_a_query_that_nobody_fits_says_who_is_here(run: Run, start: Start) -> None:
    """And whoever is alone is not told to signal itself."""
    planck = start("Planck")
    assert "No sessions match zzz; active sessions: 1." in run("roster", "zzz").out
    assert run("roster", "zzz", "--json").json["remark"] == "No sessions match zzz; active sessions: 1."
    assert "signal" not in run("roster", session=planck).out


def test_schemas_end_with_a_next_step_in_json(run: Run) -> None:
    """Without --json it is the schema and nothing else."""
    assert run("schema", "--json").json["next"] == ["gitmem schema signal"]
    assert "next" not in run("schema", "signal").json
    assert "next" not in run("inbox", "--count", "--json").json


def test_a_secret_may_be_meant(run: Run) -> None:
    """In sessions and names too: refused, unless GITMEM_ALLOW_SECRET=1 is set for the command; such a session can end."""
    assert run("session", "start", "--lane", TOKEN).status == 2
    said = run("session", "start", "--lane", TOKEN, "--json", GITMEM_ALLOW_SECRET="1")
    assert said.status == 0, said
    session = said.json["session_id"]
    assert run("session", "set", "--lane", f"{TOKEN} too", session=session).status == 2
    assert (
        run("session", "set", "--lane", f"{TOKEN} too", session=session, GITMEM_ALLOW_SECRET="1").status == 0
    )
    named = run("session", "start", "--name", TOKEN, "--json", GITMEM_ALLOW_SECRET="1").json["session_id"]
    assert run("session", "end", session=named).status == 0


def test_a_remote_without_a_log_has_none_yet(
    run: Run, repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` sends nothing, so it says so; a branch that was deleted is made again, and that is said again."""
    import sys

    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    program = tmp_path / "bin" / "gitmem-merge"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "gitmem")])

    assert "origin: no log on this remote yet" in run("setup", "--publish", "yes", "--autosync", "off").out
    assert "Made the branch gitmem on origin" in run("sync").out
    assert "Made the branch" not in run("sync").out
    git("update-ref", "-d", "refs/heads/gitmem", cwd=hub)
    assert "Made the branch gitmem on origin" in run("sync").out


@pytest.mark.usefixtures("commits")
def test_the_log_of_another_project_has_the_shape_of_a_sync(
    run: Run, repo: Path, git: Git, tmp_path: Path
) -> None:
    """`refused`, with exit status 5, whether there is one remote or several."""
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub))
    git("init", "--quiet", "--initial-branch=main", str(other))
    git("commit", "--quiet", "--allow-empty", "-m", "Another first", cwd=other)
    for clone in (other, repo):
        git("remote", "add", "origin", str(hub), cwd=clone)
    git("push", "--quiet", "origin", "main", cwd=other)
    run("session", "start", cwd=other)
    assert run("sync", "--publish", cwd=other).status == 0
    run("session", "start")

    said = run("sync", "--json")

    assert said.status == 5
    assert said.json["remotes"][0]["state"] == "refused"
    assert "--allow-foreign" in said.json["remotes"][0]["message"]


def test_doctor_notes_a_git_folder_that_cannot_be_written(
    run: Run, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said there waits outside; nothing is wrong with the log."""
    planck = start("Planck")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    said = run("doctor", "--json", session=planck)

    found = {each["code"]: each for each in said.json["findings"]}
    assert found["read-only"]["severity"] == "note"
    assert found["read-only"]["where"].endswith(".git")


@pytest.mark.parametrize(
    "args",
    [
        ["mem", "create", "x"], ["mem", "checkpoint", "x"], ["mem", "context"], ["mem", "recover"], ["mem", "list"],
        ["mem", "ready"], ["mem", "search", "x"], ["mem", "export"], ["mem", "triage"], ["inbox"],
    ],
)  # fmt: skip
def test_a_unit_that_nobody_named_is_warned_about(run: Run, start: Start, args: list[str]) -> None:
    """A typing error would look like an empty memory or inbox; a unit that a record names is not warned about."""
    session = start("Planck", "--wu", "WU-7")
    unnamed, named = (run(*args, "--wu", wu, session=session) for wu in ("WU-8", "#wu-7"))
    said = "note: No session, signal or memory node names the work unit WU-8 yet. Check its spelling."

    assert (unnamed.status, (unnamed.out + unnamed.err).count(said)) == (0, 1)
    assert (named.status, "No session" in named.out + named.err) == (0, False)
    if args == ["inbox"]:
        found = run(*args, "--wu", "WU-8", "--json", session=session)
        assert (found.json["warnings"], found.err) == ([said.removeprefix("note: ")], "")


def start_in(start: Start, repo: Path, name: str, workspace: str) -> str:
    """Start a session while the setting of the clone names a workspace."""
    subprocess.run(["git", "config", "gitmem.workspace", workspace], cwd=repo, check=True)
    session = start(name)
    subprocess.run(["git", "config", "--unset", "gitmem.workspace"], cwd=repo, check=True)
    return session


def test_what_belongs_to_another_workspace_is_named(run: Run, start: Start, repo: Path) -> None:
    """By thread and roster; not to its own agents, and not to who has no workspace."""
    red, blue = start_in(start, repo, "Planck", "red"), start_in(start, repo, "Curie", "blue")
    signal = run("signal", "hi", "--broadcast", "-q", session=red).out.strip()
    none = start("Bohr")
    for args in (["thread", signal], ["roster"]):
        shown = {who: run(*args, session=who) for who in (red, blue, none)}
        said = {who: "of another workspace: " in found.out + found.err for who, found in shown.items()}
        assert said == {blue: True, red: args == ["roster"], none: False}, args
    found = run("thread", signal, "--json", session=blue).json
    assert found["warnings"] == ["This is of another workspace: red; yours is blue."]


def test_a_workspace_is_selected_beside_the_session(run: Run, start: Start, repo: Path) -> None:
    """By git config, for new sessions and for people; an earlier session keeps its own."""
    other = start_in(start, repo, "Planck", "red")
    sessions = [start_in(start, repo, "Bohr", "red"), start("Noether")]
    subprocess.run(["git", "config", "gitmem.workspace", "blue"], cwd=repo, check=True)
    sessions.insert(0, start("Curie"))
    listed = run("roster", "--json").json["sessions"]
    found = {each["session_id"]: each["workspace_id"] for each in listed}

    assert [found[each] for each in (other, *sessions)] == ["red", "blue", "red", None]
    person = "human:person@example.org"
    assert (
        run("signal", "hi", "--broadcast", "--as", person, "--json").json["signal"]["workspace_id"] == "blue"
    )
    assert run("inbox", "--count", session=sessions[0]).out == "1\n"
    assert run("inbox", "--count", session=sessions[1]).out == "0\n"


def test_a_thread_says_to_whom_a_signal_was_delivered(run: Run, start: Start) -> None:
    """Not by whom: the reader delivers nothing."""
    planck, curie = start("Planck"), start("Curie")
    sent = run("signal", "Hello", "--to", "Curie", "-q", session=planck).out.strip()
    run("inbox", session=curie)
    assert "seen by Curie" in run("thread", sent, session=planck).out
    run("reply", sent, "yes", "--agree", session=curie)
    assert "agreed by Curie" in run("thread", sent, session=planck).out


def test_an_inbox_tells_a_broadcast_from_a_message_to_its_reader(run: Run, start: Start) -> None:
    """In the head of the frame."""
    planck, curie = start("Planck"), start("Curie")
    run("inbox", session=curie)
    run("signal", "To all", session=planck)
    run("signal", "To you", "--to", "Curie", session=planck)
    heads = [line for line in run("inbox", session=curie).out.splitlines() if line.startswith("[")]
    assert ["to everybody]" in each for each in heads] == [True, False], heads


def test_a_broadcast_and_whoami_name_the_workspace(run: Run, start: Start, repo: Path) -> None:
    """Agents of another workspace never see the broadcast; without a workspace it goes to everybody."""
    red, plain = start_in(start, repo, "Planck", "red"), start("Curie")
    assert " · to everybody in workspace red · " in run("signal", "one", session=red).out
    assert " · to everybody · " in run("signal", "two", session=plain).out
    assert "workspace id: red\n" in run("whoami", session=red).out
    assert "workspace" not in run("whoami", session=plain).out
