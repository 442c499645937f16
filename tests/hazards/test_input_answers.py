"""Answers: one line of JSON or short text, the exit status that was promised, and always the next step."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .. import templates
from ..conftest import Git
from .conftest import ROOT, Desk, Said, check_next, check_text, nothing_written, persons_desk, process

SHAPES: dict[str, tuple[list[str], set[str]]] = {
    "session start": (
        ["session", "start"],
        {"session_id", "agent_identity", "display_name", "reader_identity", "worktree", "wu_id", "lane"},
    ),
    "session set": (["session", "set", "--wu", "WU-9"], {"session_id", "display_name", "reader_identity", "wu_id"}),
    "session set nothing": (["session", "set"], {"session_id", "display_name"}),
    "session end": (["session", "end"], {"session_id"}),
    "whoami": (["whoami"], {"reader_identity", "session_id", "display_name", "unread", "headline"}),
    "roster": (["roster"], {"sessions"}),
    "roster query": (["roster", "curi"], {"sessions"}),
    "roster nobody": (["roster", "zzzzzzzzzz"], {"sessions"}),
    "roster all": (["roster", "--all"], {"sessions"}),
    "signal": (["signal", "hi", "--to", "Curie"], {"signal", "commit", "recorded", "pushed", "resolved", "warnings"}),
    "broadcast": (["signal", "hi"], {"signal", "commit", "pushed", "resolved", "warnings"}),
    "reply": (["reply", "{root}", "yes", "--agree"], {"signal", "commit", "pushed", "resolved", "warnings"}),
    "inbox": (["inbox", "--for", "Curie"], {"reader", "unread", "signals", "more"}),
    "inbox empty": (["inbox"], {"reader", "unread", "signals", "more"}),
    "inbox filtered": (["inbox", "--for", "Curie", "--wu", "WU-404"], {"reader", "unread", "signals", "more"}),
    "inbox cut": (["inbox", "--for", "Curie", "--limit", "1"], {"reader", "unread", "signals", "more"}),
    "thread": (["thread", "{thread}"], {"thread_id", "root", "signals", "recipients"}),
    "show signal": (["show", "{root}"], {"kind", "record", "commit"}),
    "show session": (["show", "{planck}"], {"kind", "record", "commit"}),
    "converged": (
        ["converged", "{root}"],
        {
            "thread_id", "root", "converged", "recipients", "agreed", "rejected", "countered", "pending", "commit",
        },
    ),
    "receipts": (["receipts", "{root}"], {"receipts", "more", "warnings"}),
    "receipts none": (["receipts", "--reader", "Zorba"], {"receipts", "more", "warnings"}),
    "log": (["log"], {"entries"}),
    "log empty": (["log", "--wu", "WU-404"], {"entries"}),
    "sync": (["sync", "--publish"], {"remotes"}),
    "setup": (["setup"], {"log", "changed", "clients"}),
    "doctor": (["doctor"], {"findings"}),
}  # fmt: skip
ERRORS: dict[str, tuple[list[str], int]] = {
    "unknown command": (["nonsense"], 2),
    "no command": ([], 2),
    "unknown option": (["inbox", "--nonsense"], 2),
    "unknown option of a write": (["signal", "hi", "--nope"], 2),
    "missing argument": (["signal"], 2),
    "missing second argument": (["reply", "sig-abcdef"], 2),
    "missing value": (["inbox", "--for"], 2),
    "too many arguments": (["signal", "hi", "there"], 2),
    "unknown subcommand": (["session", "nonsense"], 2),
    "bad number": (["inbox", "--limit", "0"], 2),
    "number in other digits": (["inbox", "--limit", "٣"], 2),
    "huge number": (["log", "-n", "9" * 40], 2),
    "bad time": (["log", "--since", "yesterday"], 2),
    "bad duration": (["converged", "sig-abcdef", "--wait", "soon"], 2),
    "endless duration": (["converged", "sig-abcdef", "--wait", "inf"], 2),
    "Invalid duration": (["sync", "--timeout", "nan"], 2),
    "bad work unit": (["signal", "hi", "--wu", "wu 1"], 2),
    "bad intent": (["signal", "hi", "--intent", "maybe"], 2),
    "bad interrupt": (["signal", "hi", "--interrupt", "now"], 2),
    "bad kind": (["schema", "rumour"], 2),
    "bad ref": (["setup", "--ref", "everywhere"], 2),
    "unknown remote": (["sync", "nowhere"], 2),
    "unknown id": (["show", "sig-zzzzzz"], 2),
    "unknown recipient": (["signal", "hi", "--to", "Nobody"], 2),
    "no thread": (["converged"], 2),
    "unknown caller": (["--as", "Nobody", "whoami"], 2),
    "empty name": (["session", "start", "--name", ""], 2),
    "bad identity": (["session", "start", "--agent-identity", "me"], 2),
    "a person's identity": (["session", "start", "--agent-identity", "human:me:x"], 2),
}


@pytest.fixture
def scene(desk: Desk, tmp_path: Path, git: Git) -> dict[str, str]:
    """A clone of a hub in which Planck has asked Curie twice."""

    def make(root: Path) -> dict[str, str]:
        hub, desk = root / "hub.git", persons_desk(root / "repo")
        git("init", "--quiet", "--bare", str(hub))
        git("remote", "add", "origin", str(hub), cwd=desk.repo)
        git("push", "--quiet", "origin", "HEAD:main", cwd=desk.repo)
        planck = desk.start("Planck")
        curie = desk.start("Curie")
        first = desk.send(planck, "one?", "--to", "Curie", "--intent", "propose", "--requires-ack")["signal"]
        desk.send(planck, "two", "--to", "Curie")
        return {"planck": planck, "curie": curie, "root": first["signal_id"], "thread": first["thread_id"]}

    return templates.copy("asked-twice", tmp_path, make)


def _filled(args: list[str], scene: dict[str, str]) -> list[str]:
    return [arg.format(**scene) if arg.startswith("{") else arg for arg in args]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge program beside the one that runs, for `init`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    merge = folder / "gitmem-merge"
    merge.write_text("#!/bin/sh\nexit 1\n")
    merge.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(folder / "gitmem")])


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(("args", "fields"), SHAPES.values(), ids=SHAPES.keys())
def test_each_answer_in_both_forms(
    desk: Desk, scene: dict[str, str], args: list[str], fields: set[str]
) -> None:
    """In JSON every documented field is there, on one line; in text the next steps come last; both exit alike."""
    session = scene["curie"] if args[0] == "reply" else scene["planck"]
    given = _filled(args, scene)
    if "end" in args:
        said = desk(*given, "--json", session=scene["curie"])
        text = desk(*given, session=session)
    else:
        said = desk(*given, "--json", session=session)
        text = desk(*given, session=session)
    assert said.status == (1 if args[0] == "converged" else 0), said
    assert fields | {"next"} <= set(said.json), said
    assert isinstance(said.json["next"], list), said
    check_next(said.json["next"])
    assert said.err == "", said
    assert text.status == said.status
    check_text(text)


def test_the_lists_in_answers_have_their_fields(desk: Desk, scene: dict[str, str]) -> None:
    """The records, recipients and rows inside answers have the documented fields."""
    (row, *_) = desk("roster", "--json").json["sessions"]
    assert {
        "session_id",
        "status",
        "last_seen",
        "unread",
        "agent_identity",
        "display_name",
        "wu_id",
        "lane",
    } <= set(row)
    assert row["status"] == "live"
    inbox = desk("inbox", "--json", session=scene["curie"]).json
    for shown in inbox["signals"]:
        assert {"signal_id", "created_at", "delivery_state", "sender_name", "message"} <= set(shown)
        assert None not in shown.values() or shown["delivery_state"] is None
    thread = desk("thread", scene["root"], "--json").json
    for each in thread["recipients"]:
        assert {"identity", "display_name", "delivery_state", "decision"} <= set(each)
    for each in desk("converged", scene["root"], "--json").json["recipients"]:
        assert {"identity", "display_name", "decision", "signal_id", "proposal"} <= set(each)
    for each in desk("sync", "--json").json["remotes"]:
        assert {"name", "state", "received", "sent", "attempts", "tip", "message"} <= set(each)


def test_count_is_the_one_answer_without_next(desk: Desk, scene: dict[str, str]) -> None:
    """`inbox --count` is the number and nothing else; in JSON reader and unread."""
    for session, unread in ((scene["curie"], 2), (scene["planck"], 0)):
        assert desk("inbox", "--count", session=session).out == f"{unread}\n"
        found = desk("inbox", "--count", "--json", session=session).json
        assert set(found) == {"reader", "unread"} and found["unread"] == unread


def test_quiet_is_the_id_alone(desk: Desk, scene: dict[str, str]) -> None:
    """`signal -q` and `reply -q` print the id, for a script."""
    said = desk("signal", "hi", "-q", session=scene["planck"])
    assert said.out.startswith("sig-") and said.out.count("\n") == 1
    said = desk("reply", scene["root"], "yes", "-q", session=scene["curie"])
    assert said.out.startswith("sig-") and said.out.count("\n") == 1


def test_session_start_ends_with_the_export(desk: Desk) -> None:
    """The last line of `session start` can be evaluated by a shell."""
    said = desk("session", "start")
    assert said.out.splitlines()[-1].startswith("export GITMEM_SESSION=sess-")
    check_text(said)


def test_each_error_in_both_forms(desk: Desk, scene: dict[str, str], subtests: pytest.Subtests) -> None:
    """An error is one line of JSON with code, message, hint, suggestions and next; in text only on standard error."""
    for name, (args, status) in ERRORS.items():  # none of them writes: one repository serves all
        with subtests.test(name):
            _check_error(desk, scene, args, status)


def _check_error(desk: Desk, scene: dict[str, str], args: list[str], status: int) -> None:
    with nothing_written(desk.repo):
        text = desk(*args, session=scene["planck"])
        before = desk("--json", *args, session=scene["planck"])
        after = before if args[-1:] in ([], ["--for"]) else desk(*args, "--json", session=scene["planck"])
    if not args:
        assert text.status == 0 and "gitmem help --all" in text.out
    else:
        assert text.status == status, text
        assert text.out == ""
        check_text(text)
    for said in (before, after):
        assert said.status == status, said
        error = said.error
        assert error["message"].endswith((".", "?")), error
        assert error["message"].split("\n")[0] in said.err
        assert said.json["next"], said
        check_next(said.json["next"])


def test_an_error_says_what_became_of_the_data(desk: Desk, scene: dict[str, str]) -> None:
    """Where a write was refused, the sentence says that nothing was written."""
    for args in (["signal"], ["signal", "hi", "--wu", "x y"], ["signal", "hi", "--to", ""], ["signal", "hi", "--nope"],
                 ["session", "start", "--name", "a,b"], ["session", "start", "--lane", "\n"]):  # fmt: skip
        message = desk(*args, "--json", session=scene["planck"]).error["message"].lower()
        assert "nothing was written" in message or "nothing was recorded" in message, message


def test_json_behind_two_dashes_is_a_message(desk: Desk, scene: dict[str, str]) -> None:
    """`-- --json` is text to send, not a wish for JSON."""
    said = desk("signal", "-q", "--", "--json", session=scene["planck"])
    assert said.status == 0 and said.out.startswith("sig-")
    said = desk("signal", "--to", "Nobody", "--", "--json", session=scene["planck"])
    assert said.status == 2 and said.out == ""


def test_help_and_version_are_answers(desk: Desk) -> None:
    """--help of every command and --version exit 0 and say something."""
    for args in (
        ["--help"],
        ["-h"],
        ["--version"],
        ["signal", "--help"],
        ["session", "start", "-h"],
        ["sync", "--help"],
    ):
        said = desk(*args)
        assert said.status == 0 and len(said.out) > 10, said


def test_a_reader_that_goes_away_is_no_failure(desk: Desk, scene: dict[str, str]) -> None:
    """A closed pipe leaves no traceback and marks nothing as read."""
    read, write = os.pipe()
    os.close(read)
    said = process(
        "inbox", "--json", cwd=desk.repo, env={"GITMEM_SESSION": scene["curie"]}, before=lambda: _to(write)
    )
    os.close(write)
    assert said.out == "" and said.err == "", said
    assert desk("inbox", "--count", session=scene["curie"]).out == "2\n"


def test_closed_standard_streams_are_survived(desk: Desk, git: Git, scene: dict[str, str]) -> None:
    """Without standard input, output or error a write is still made, and no file is written in their stead."""
    env = {"GITMEM_SESSION": scene["planck"]}
    for descriptor in (0, 1, 2):

        def close(at: int = descriptor) -> None:
            os.close(at)

        assert process("signal", f"without {descriptor}", cwd=desk.repo, env=env, before=close).status == 0
    said = process("signal", "-", cwd=desk.repo, env=env, before=lambda: os.close(0))
    assert said.status == 2
    entries = desk("log", "--json").json["entries"]
    assert [each.get("message") for each in entries[-3:]] == ["without 0", "without 1", "without 2"]
    git("fsck", "--strict", cwd=desk.repo)


def _to(write: int) -> None:
    os.dup2(write, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_an_answer_that_cannot_be_written_marks_nothing(desk: Desk, scene: dict[str, str]) -> None:
    """Where standard output is full, the mail stays unread and the exit status is not 0."""
    full = os.open("/dev/full", os.O_WRONLY)
    env = {**os.environ, "GITMEM_SESSION": scene["curie"]}
    done = subprocess.run(
        [sys.executable, "-m", "cli", "inbox"],
        cwd=desk.repo, env={**env, "PYTHONPATH": str(ROOT)}, stdout=full, stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    os.close(full)
    assert done.returncode != 0
    assert desk("inbox", "--count", session=scene["curie"]).out == "2\n"


def test_offline_sync_says_so_in_both_forms(desk: Desk, git: Git, tmp_path: Path) -> None:
    """A remote that is away: exit 5, the shape of `sync` with its state, and the command to try again."""
    git("remote", "add", "origin", str(tmp_path / "gone.git"), cwd=desk.repo)
    planck = desk.start("Planck")
    said = desk("sync", "--json")
    assert said.status == 5
    (remote,) = said.json["remotes"]
    assert remote["state"] == "offline" and remote["message"]
    assert said.json["next"] == ["gitmem sync origin"]
    text = desk("sync")
    assert text.status == 5 and "offline" in text.out
    assert text.next == ["gitmem sync origin"]
    sent: Said = desk("signal", "hi", "--sync", "--json", session=planck)
    assert sent.status == 0 and sent.json["pushed"] is False
    assert any("Not synced" in each for each in sent.json["warnings"])


def _run(desk: Desk, git: Git, command: str, session: str) -> None:
    words = shlex.split(command)
    if words[0] == "gitmem":
        said = desk(*("1s" if word == "60s" else word for word in words[1:]), session=session)
        assert said.status in (0, 1), f"{command}: {said}"
    elif words[0] == "git":
        git(*words[1:], cwd=desk.repo)


@pytest.mark.usefixtures("program")
def test_every_next_step_can_be_taken(desk: Desk, git: Git, scene: dict[str, str]) -> None:
    """Each command that an answer or an error ends with does what it says, as it stands."""
    commands: dict[str, str] = {}
    for args, _ in SHAPES.values():
        if "end" not in args:
            session = scene["curie"] if args[0] == "reply" else scene["planck"]
            commands.update(
                dict.fromkeys(desk(*_filled(args, scene), "--json", session=session).json["next"], session)
            )
    for wrong, _ in ERRORS.values():
        if wrong:
            commands.update(
                dict.fromkeys(desk("--json", *wrong, session=scene["planck"]).json["next"], scene["planck"])
            )
    assert len(commands) > 20
    for command, session in commands.items():
        _run(desk, git, command, session)


@pytest.mark.parametrize("args", [["log"], ["roster"], ["inbox"], ["whoami"]])
def test_every_next_step_can_be_taken_in_an_empty_log(desk: Desk, git: Git, args: list[str]) -> None:
    """The first command in a clone leads on, and not to what is not there yet."""
    found = desk(*args, "--json")
    assert found.status == 0
    for command in found.json["next"]:
        _run(desk, git, command, desk.start("Planck") if "signal" in command else "")
