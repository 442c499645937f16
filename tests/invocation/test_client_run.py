"""Coding agents as programs, by stand-ins that print what the real ones have printed; tests/real_clients runs those."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gitmem.calls.client_run import CLIENT_PROGRAMS, LINE_MAX_BYTES, ClientOutput, ClientRun
from gitmem.calls.served_task import RunEnd

from .test_serve_agent import Call, run, serving  # noqa: F401  (run is a fixture)

# A tool, a text, another tool, and the answer, as each client prints them.
LINES: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s-1"},
        {"type": "assistant", "session_id": "s-1", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
        {"type": "assistant", "session_id": "s-1", "message": {"content": [{"type": "text", "text": "So far."}]}},
        {"type": "assistant", "parent_tool_use_id": "t", "message": {"content": [{"type": "text", "text": "Sub."}]}},
        {"type": "assistant", "session_id": "s-1", "message": {"content": [{"type": "tool_use", "name": "Edit"}]}},
        {"type": "assistant", "session_id": "s-1", "message": {"content": [{"type": "text", "text": "119"}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "119", "session_id": "s-1"},
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "s-1"},
        {"type": "item.completed", "item": {"type": "error", "message": "Model metadata not found."}},
        {"type": "item.started", "item": {"type": "command_execution"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "So far."}},
        {"type": "item.started", "item": {"type": "file_change"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "119"}},
        {"type": "turn.completed", "usage": {}},
    ],
    "gemini": [
        {"type": "init", "session_id": "s-1"},
        {"type": "message", "role": "user", "content": "the task"},
        {"type": "tool_use", "tool_name": "run_shell_command"},
        {"type": "message", "role": "assistant", "content": "So ", "delta": True},
        {"type": "message", "role": "assistant", "content": "far.", "delta": True},
        {"type": "tool_use", "tool_name": "write_file"},
        {"type": "message", "role": "assistant", "content": "119", "delta": True},
        {"type": "result", "status": "success"},
    ],
    "opencode": [
        {"type": "step_start", "sessionID": "s-1", "part": {}},
        {"type": "tool_use", "sessionID": "s-1", "part": {"tool": "bash"}},
        {"type": "text", "sessionID": "s-1", "part": {"text": "So far."}},
        {"type": "tool_use", "sessionID": "s-1", "part": {"tool": "edit"}},
        {"type": "text", "sessionID": "s-1", "part": {"text": "119"}},
    ],
}  # fmt: skip


def said(client: str, lines: list[bytes]) -> tuple[ClientOutput, list[str]]:
    progress: list[str] = []
    found = ClientOutput(CLIENT_PROGRAMS[client].read, progress.append)
    for line in lines:
        found.add(line)
    return found, progress


def ended(output: ClientOutput, command: str, *, is_resumed: bool = False) -> RunEnd:
    started = ClientRun(
        command, b"", dict(os.environ), "/", output=output, ended=lambda session: None, is_resumed=is_resumed
    )
    end = time.monotonic() + 20
    while (found := started.poll(0.05)) is None:
        assert time.monotonic() < end
    return found


@pytest.mark.parametrize("client", list(CLIENT_PROGRAMS))
def test_tools_and_earlier_texts_are_progress_and_the_last_text_is_the_result(client: str) -> None:
    """Every client of the table has lines here."""
    found, progress = said(client, [json.dumps(each).encode() for each in LINES[client]])
    assert (found.text, found.session, found.error) == ("119", "s-1", None)
    assert [each.startswith("uses ") for each in progress] == [True, False, True] and progress[1] == "So far."


@pytest.mark.parametrize("client", list(CLIENT_PROGRAMS))
@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff\xfe", b"[]", b"7", b"{", b"[" * 100_000, b'{"type": "assistant", "message": 7}', b'{"type": "assistant", "message": {"content": [7]}}',
        b'{"type": "item.completed", "item": {"type": "agent_message"}}', b'{"type": "text", "part": []}', b'{"type": "message", "role": "assistant"}',
    ],
)  # fmt: skip
def test_a_line_of_another_form_says_nothing(client: str, line: bytes) -> None:
    """Of a version to come, or of a program that the client runs."""
    found, progress = said(client, [line])
    assert (found.text, found.session, found.error, progress) == ("", None, None, [])


@pytest.mark.parametrize("session", ["-rf", "--model=x", "a b", "", "x" * 101, "$(id)", 7, None])
def test_a_session_id_that_is_none_is_not_resumed(session: object) -> None:
    """It would be part of a command line."""
    line = json.dumps({"type": "init", "session_id": session}).encode()
    assert said("gemini", [line])[0].session in (None, "7", "None")


def test_the_command_line_of_each_client_with_the_users_words() -> None:
    """A session is resumed; words are quoted for sh."""
    commands = {name: each.command(["-m", "a b"], "s-1") for name, each in CLIENT_PROGRAMS.items()}
    assert commands == {
        "claude": "claude -p -m 'a b' --output-format stream-json --verbose --resume s-1",
        "codex": "codex exec -m 'a b' --json resume s-1 -",
        "gemini": "gemini -m 'a b' --output-format stream-json --resume s-1",
        "opencode": "opencode run -m 'a b' --format json --session s-1",
    }
    assert CLIENT_PROGRAMS["codex"].command([], None) == "codex exec --json -"


def test_long_lines_are_skipped_and_long_answers_refused(tmp_path: Path) -> None:
    """More than 50 MB on one line; the memory that it needs is limited."""
    text = json.dumps({"type": "text", "part": {"text": "119"}})
    (tmp_path / "text").write_text(f"\n{text}\n")
    output, _ = said("opencode", [])
    end = ended(output, f"head -c 50000000 /dev/zero | tr '\\0' x; cat {tmp_path}/text")
    assert (end.state, end.message) == ("completed", "119")
    long = json.dumps({"type": "text", "part": {"text": "x" * 70_000}})
    assert len(long) < LINE_MAX_BYTES
    (tmp_path / "text").write_text(f"{long}\n")
    output, _ = said("opencode", [])
    assert ended(output, f"cat {tmp_path}/text").payload["error"]["code"] == "RESULT_TOO_LARGE"


FAILURES: list[tuple[str, dict[str, Any]]] = [
    ("claude", {"type": "result", "subtype": "success", "is_error": True, "result": "no credit"}),
    ("claude", {"type": "result", "subtype": "error_max_turns", "is_error": False, "errors": ["no credit"]}),
    ("claude", {"type": "result", "subtype": "no credit"}),
    ("codex", {"type": "turn.failed", "error": {"message": "no credit"}}),
    ("gemini", {"type": "result", "status": "error", "error": {"type": "unknown", "message": "no credit"}}),
]
ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("codex", {"type": "error", "message": "no credit"}),
    ("gemini", {"type": "error", "message": "no credit"}),
    ("opencode", {"type": "error", "error": {"name": "APIError", "data": {"message": "no credit", "statusCode": 400}}}),
    ("opencode", {"type": "error", "error": {"name": "no credit"}}),
]  # fmt: skip


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(("client", "line"), FAILURES + ERRORS)
def test_an_error_that_a_client_names_is_that_of_the_task(
    client: str, line: dict[str, Any], status: int
) -> None:
    """Whatever its exit status is. A client goes on after some errors; one that has failed has no result, whatever it said."""
    output, _ = said(client, [json.dumps(line).encode()])
    error = ended(output, f"echo other >&2; exit {status}").payload["error"]
    assert (error["code"], error["message"], error["retryable"]) == ("CLIENT", "no credit", False)
    answer = [json.dumps(each).encode() for each in LINES[client]]
    end = ended(said(client, [json.dumps(line).encode(), *answer])[0], "exit 0")
    assert (end.state == "completed") == ((client, line) in ERRORS)


def test_an_error_on_standard_error_is_that_of_the_task() -> None:
    """As of Codex CLI, which names none for a session that is gone: another try begins a new one."""
    for client in CLIENT_PROGRAMS:
        first, again = (
            ended(said(client, [])[0], f"echo other >&2; exit {status}").payload["error"]
            for status in (9, 75)
        )
        assert (first["message"], first["retryable"]) == ("other", False)
        assert again["retryable"] is True
        gone = ended(said(client, [])[0], "echo gone >&2; exit 1", is_resumed=True).payload["error"]
        assert (gone["message"], gone["retryable"]) == ("gone", True)
        found = said(client, [json.dumps(LINES[client][0]).encode()])[0]
        assert ended(found, "exit 1", is_resumed=True).payload["error"]["retryable"] is False


@pytest.mark.parametrize("client", list(CLIENT_PROGRAMS))
@pytest.mark.parametrize("output", ["", "Sure, done!", r"\0377\0376\0", r"{\n}\n[]\n"])
def test_an_end_without_an_answer_is_a_failure_unless_it_has_asked(client: str, output: str) -> None:
    """Empty, not JSON, or of a version with another form: the caller is not told that the work was done."""
    end = ended(said(client, [])[0], f"printf '{output}'")
    assert end.payload["error"]["code"] == "NO_ANSWER" and end.may_have_asked
    assert not ended(said(client, [])[0], "exit 1").may_have_asked


@pytest.mark.skipif(sys.platform != "linux", reason="pipes have one size elsewhere")
def test_a_client_that_writes_without_waiting_loses_nothing(tmp_path: Path) -> None:
    """As Gemini CLI does: of the output of a tool and its answer at once, what the pipe did not take was gone."""
    lines = [
        {"type": "tool_result", "output": "x" * 500_000}, {"type": "message", "role": "assistant", "content": "119"}
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines)).encode()
    program = tmp_path / "program.py"
    program.write_text(f"import os, time; time.sleep(0.5); os.set_blocking(1, False); os.write(1, {text!r})")
    assert ended(said("gemini", [])[0], f"{sys.executable} {program}").message == "119"


@pytest.mark.parametrize("client", list(CLIENT_PROGRAMS))
def test_half_a_surrogate_pair_is_replaced(client: str) -> None:
    """A client cuts a text within a character; no record can have the rest."""
    lines = [json.dumps(each).replace("119", r"1\ud83d").encode() for each in LINES[client]]
    assert said(client, lines)[0].text == "1?"


def test_serve_agent_runs_a_client_of_the_path(
    repo: Path,
    tmp_path: Path,
    run: Call,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task is on its standard input; an unknown client, or one that is not there, is exit 2."""
    folder = tmp_path / "bin"
    folder.mkdir()
    answer = json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": "TEXT"}})
    program = folder / "codex"
    program.write_text(
        f"#!/bin/sh\ntest \"$3\" = low || exit 9\nline=$(grep 'quartz$')\nprintf '%s\\n' '{answer}' | sed \"s/TEXT/$line/\"\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    with serving(repo, tmp_path / "shop", "--client", "codex -x low"):
        assert run("call", "prices", "quartz", "--timeout", "30s", "--json").json["message"] == "| quartz"
    monkeypatch.setenv(
        "PATH",
        os.pathsep.join(
            each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "opencode").exists()
        ),
    )
    for args, text in [
        (["--client", "cobol"], "Invalid --client: cobol; choose from claude, codex, gemini, opencode"),
        (["--client", "claude 'x"], "Invalid --client"),
        (["--client", "opencode"], "is not on PATH"),
        (["--client", "codex", "--exec", "cat"], "not both"),
        (["--client", "codex", "--input", "xml"], "choose from frame, text"),
        (["--client", "codex", "--input", "text"], "--input text is for programs"),
    ]:
        refused = run("serve-agent", "rates", *args)
        assert refused.status == 2 and text in refused.err, refused.err
