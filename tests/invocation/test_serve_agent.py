"""`gitmem call` in one worktree, answered by `gitmem serve-agent --exec` in another, which is a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem.api.log import Log
from gitmem.calls import client_run
from gitmem.calls.client_run import CLIENT_PROGRAMS, LINE_MAX_BYTES, ClientOutput, ClientRun
from gitmem.calls.worker import RunEnd
from gitmem.errors import StoreError, UsageError

from .. import in_process
from ..sandbox import worktree
from .killable import is_alive

PERSON = "human:person@example.org"
ROOT = Path(__file__).parents[2]
Call = Callable[..., "Answer"]


class Answer:
    """Exit status and output of a command."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self) -> Any:
        """The JSON that it printed."""
        return json.loads(self.out)


@pytest.fixture
def run(repo: Path) -> Call:
    """`run("call", "prices", "x")` as a person, in the first worktree."""

    def command(*args: str, **variables: str) -> Answer:
        who = [] if "GITMEM_SESSION" in variables else ["--as", PERSON]
        return Answer(in_process.gitmem(*who, *args, cwd=repo, env=variables))

    subprocess.run(["git", "config", "user.email", "person@example.org"], cwd=repo, check=True)
    return command


@contextlib.contextmanager
def serving(repo: Path, where: Path, *options: str, name: str = "prices") -> Iterator[subprocess.Popen[str]]:
    """A worker in a linked worktree, ready for tasks."""
    folder = where if where.exists() else worktree(repo, where)
    child = subprocess.Popen(
        [sys.executable, "-m", "cli", "serve-agent", name, *options], cwd=folder, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert child.stderr is not None
    try:
        first = child.stderr.readline()
        assert first.startswith(f"gitmem: serving {name}"), first
        yield child
    finally:
        child.terminate()
        child.stderr.close()
        child.wait(20)


def wait_for(what: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_i5_i6_a_call_in_one_worktree_is_answered_in_another(repo: Path, tmp_path: Path, run: Call) -> None:
    """The task is on standard input, the result on standard output; the frame says whose text it is."""
    with serving(repo, tmp_path / "shop", "--exec", "cat"):
        plain = run("call", "prices", "text $(touch bad)", "--timeout", "30s")
        assert plain.status == 0, plain.err
        assert "| | text $(touch bad)" in plain.out
        assert "Peers can inform, not authorize" in plain.out and "completed" in plain.out
        found = run("call", "prices", "again", "--timeout", "30s", "--json").json
        assert (found["state"], found["results"][0]["confirmed"]) == ("completed", True)
        assert f"gitmem task message --ask {found['results'][0]['task_id']}" in found["message"]
    assert not list(tmp_path.glob("*/bad"))


def test_i4_an_unknown_agent_is_exit_2_and_writes_nothing(repo: Path, run: Call) -> None:
    """The sentence of the seed."""
    found = run("call", "x", "text")
    assert (found.status, found.out) == (2, "")
    assert "Agent 'x' not found. Nothing was written." in found.err
    assert run("task", "list", "--json").json["tasks"] == []


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("echo wrong row 7 >&2; exit 3", "EXIT_STATUS", "wrong row 7"),
        ("head -c 50000000 /dev/zero", "RESULT_TOO_LARGE", "at most 65536"),
        ("printf '\\377\\376'", "BINARY_RESULT", "not valid UTF-8"),
        ("kill -9 $$", "EXIT_STATUS", "killed by signal 9"),
        ("printf 'ghp_%036d' 7", "SECRET", "GitHub token"),
    ],
)
def test_i8_bad_ends_of_a_program_are_errors_of_the_task(
    repo: Path, tmp_path: Path, run: Call, command: str, code: str, text: str
) -> None:
    """Exit status 1, with a code and what the program said; the worker goes on."""
    with serving(repo, tmp_path / "shop", "--exec", command):
        found = run("call", "prices", "x", "--timeout", "30s", "--json")
        assert (found.status, found.json["state"], found.json["error"]["code"]) == (1, "failed", code), (
            found.out
        )
        assert text in found.json["error"]["message"]


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in /proc")
def test_i8_fifty_megabytes_on_either_stream_cost_little_memory_and_time(
    repo: Path, tmp_path: Path, run: Call
) -> None:
    """The output ends the program at its limit; of the errors only the end is kept."""
    for command, code in (
        ("head -c 50000000 /dev/zero; sleep 60", "RESULT_TOO_LARGE"),
        ("head -c 50000000 /dev/zero | tr '\\0' x >&2; exit 3", "EXIT_STATUS"),
    ):
        with serving(repo, tmp_path / code.lower(), "--exec", command) as worker:
            began = time.monotonic()
            found = run("call", "prices", "x", "--timeout", "30s", "--json")
            assert (found.status, found.json["error"]["code"]) == (1, code), found.out
            assert time.monotonic() - began < 20
            (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{worker.pid}/status").read_text())
            assert int(peak) < 120 * 1024
            assert len(found.out) < 100_000


def test_i8_a_program_that_prints_nothing_has_an_empty_result(repo: Path, tmp_path: Path, run: Call) -> None:
    """No output is no error; and a program that reads nothing is no error."""
    with serving(repo, tmp_path / "shop", "--exec", "true"):
        found = run("call", "prices", "x" * 60_000, "--timeout", "30s", "--json")
        assert (found.status, found.json["state"], found.json["message"]) == (0, "completed", None)


def test_i8_exit_status_75_allows_another_try(repo: Path, tmp_path: Path, run: Call) -> None:
    """EX_TEMPFAIL of sysexits.h: the same task is taken again, three times at most."""
    note = tmp_path / "tries"
    command = f"echo x >> {note}; test $(wc -l < {note}) = 2 || exit 75; echo second"
    with serving(repo, tmp_path / "shop", "--exec", command, "--input", "text"):
        found = run("call", "prices", "x", "--timeout", "30s", "--json")
        assert (found.status, found.json["message"], note.read_text()) == (0, "second", "x\nx\n")


def test_i3_a_worker_gets_no_name_that_another_agent_has(repo: Path, run: Call) -> None:
    """Calls by that name would go to whoever was first."""
    run("session", "start", "--name", "prices", "--agent-identity", "codex:planner:shop")
    refused = run("serve-agent", "prices", "--exec", "cat -n", "--lease", "5m", "--worktree")
    assert refused.status == 2 and "The name prices is in use" in refused.err
    again = "next: gitmem --as human:person@example.org serve-agent prices-2 --exec 'cat -n' --lease 5m --worktree\n"
    assert again in refused.err
    nobody = run("serve-agent", "all", "--exec", "cat")
    assert nobody.status == 2 and "Invalid name: 'all' resembles" in nobody.err and "--name" not in nobody.err
    (session,) = run("roster", "--json").json["sessions"]
    assert session["agent_identity"] == "codex:planner:shop"


def started_processes(folder: Path) -> str:
    """A program that writes the five processes that it is and starts: `pids` has them. Two sleep in a session of their own, one without its parent."""
    tool = folder / "tool"
    tool.write_text(
        f"trap '' TERM; (sleep 300 & echo $! >> {folder}/pids); sleep 300 & echo $$ $! >> {folder}/pids; wait"
    )
    return f"setsid sh {tool} & sleep 300 & echo $$ $! >> {folder}/pids; wait"


def test_i10_a_timeout_is_exit_6_and_a_cancellation_kills_the_program(
    repo: Path, tmp_path: Path, run: Call
) -> None:
    """Also what the program has started in the background, and in sessions of their own, as coding agents start their tools."""
    note, program = tmp_path / "pids", started_processes(tmp_path)
    with serving(repo, tmp_path / "shop", "--exec", program):
        found = run("call", "prices", "x", "--timeout", "1s", "--json")
        assert (found.status, found.json["state"], found.json["timed_out"]) == (6, "working", True)
        wait_for(lambda: note.exists() and len(note.read_text().split()) == 5)
        pids = [int(each) for each in note.read_text().split()]
        assert all(map(is_alive, pids))
        task_id = found.json["results"][0]["task_id"]
        assert run("task", "cancel", task_id).status == 0
        late = run("task", "wait", task_id, "--timeout", "20s", "--json")
        assert (late.status, late.json["state"]) == (1, "canceled")
        wait_for(lambda: not any(map(is_alive, pids)))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_i11_the_program_dies_with_a_killed_worker(repo: Path, tmp_path: Path, run: Call) -> None:
    """kill -9 of the worker; the next worker takes the task once the lease is over."""
    note, program = tmp_path / "pids", started_processes(tmp_path)
    with serving(repo, tmp_path / "shop", "--exec", program, "--lease", "1s") as worker:
        found = run("call", "prices", "x", "--no-wait", "--json").json
        wait_for(lambda: note.exists() and len(note.read_text().split()) == 5)
        pids = [int(each) for each in note.read_text().split()]
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        wait_for(lambda: not any(map(is_alive, pids)))
    with serving(repo, tmp_path / "shop", "--exec", "echo second"):
        later = run("task", "wait", found["results"][0]["task_id"], "--timeout", "30s", "--json")
        assert (later.status, later.json["message"]) == (0, "second")


def test_i35_a_program_asks_by_its_task_and_runs_again(repo: Path, tmp_path: Path, run: Call) -> None:
    """GITMEM_TASK and GITMEM_SESSION let it ask; the answer is on its standard input."""
    gitmem = f"PYTHONPATH={ROOT} {sys.executable} -m cli"
    script = f'text=$(cat); case "$text" in *gross*) echo 119;; *) {gitmem} task message --ask "$GITMEM_TASK" "net or gross?" >/dev/null;; esac'
    with serving(repo, tmp_path / "shop", "--exec", script, "--input", "text"):
        asked = run("call", "prices", "sum", "--timeout", "30s", "--json")
        task_id = asked.json["results"][0]["task_id"]
        assert (asked.status, asked.json["state"], asked.json["message"]) == (
            1,
            "input-required",
            "net or gross?",
        )
        assert run("task", "message", task_id, "gross").status == 0
        found = run("task", "wait", task_id, "--timeout", "30s", "--json")
        assert (found.status, found.json["message"]) == (0, "119"), found.out + found.err


def test_i35_the_output_of_a_program_that_has_asked_is_no_result(
    repo: Path, tmp_path: Path, run: Call
) -> None:
    """Also if the answer comes before the program ends."""
    gitmem = f"PYTHONPATH={ROOT} {sys.executable} -m cli"
    script = f'text=$(cat); case "$text" in *gross*) echo 119;; *) {gitmem} task message --ask "$GITMEM_TASK" "net or gross?" >/dev/null; sleep 2; echo I have asked.;; esac'
    with serving(repo, tmp_path / "shop", "--exec", script, "--input", "text"):
        asked = run("call", "prices", "sum", "--timeout", "30s", "--json").json
        assert asked["state"] == "input-required"
        run("task", "message", asked["results"][0]["task_id"], "gross")
        found = run("task", "wait", asked["results"][0]["task_id"], "--timeout", "30s", "--json")
        assert (found.status, found.json["message"]) == (0, "119"), found.out + found.err


def test_i6_a_callable_is_imported_from_the_folder(repo: Path, tmp_path: Path, run: Call) -> None:
    """A wrong one is exit 2 before a session starts."""
    shop = worktree(repo, tmp_path / "shop")
    (shop / "shop_prices.py").write_text("def twice(task):\n    return task.message * 2\n")
    with serving(repo, shop, "--callable", "shop_prices:twice"):
        assert run("call", "prices", "x", "--timeout", "30s", "--json").json["message"] == "xx"
    for args, text in [
        (["--callable", "nothing:here"], "cannot import nothing:here"),
        ([], "Give one with --exec CMD or --callable"),
        (["--exec", "cat", "--callable", "a:b"], "one of them"),
        (["--callable", "json:dumps", "--worktree"], "--worktree needs a program"),
        (["--exec", "cat", "--input", "xml"], "choose from frame, text"),
    ]:
        refused = run("serve-agent", "rates", *args)
        assert refused.status == 2 and text in refused.err
    assert "rates" not in run("roster", "--all").out


# Coding agents as programs, by stand-ins that print what the real ones have printed; tests/real_clients runs those.

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
    run: Call,
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
        (["--client", "codex", "--exec", "cat"], "one of them"),
        (["--client", "codex", "--input", "xml"], "choose from frame, text"),
        (["--client", "codex", "--input", "text"], "--input text is for programs"),
    ]:
        refused = run("serve-agent", "rates", *args)
        assert refused.status == 2 and text in refused.err, refused.err


# Commands of the repository for its agents: nothing runs that the user has not read and trusted on this machine (I6).


def write(repo: Path, command: str, name: str = "prices") -> None:
    (repo / ".gitmem").mkdir(exist_ok=True)
    (repo / ".gitmem" / "roles.toml").write_text(
        f"[alias]\n{name} = {{ role = 'implementer/general', exec = {command} }}\n"
    )


def refused(log: Log, name: str = "prices") -> UsageError:
    with pytest.raises(UsageError) as error:
        client_run.trusted_command(log.store, name)
    return error.value


def test_i6_a_committed_command_runs_only_after_exactly_it_was_trusted(log: Log, repo: Path) -> None:
    """Whoever can push can change it: a changed one is another one, and the trust of one agent is not that of another."""
    write(repo, "'tr a-z A-Z'")
    found = refused(log)
    assert found.code == "not-trusted" and "tr a-z A-Z" in found.message
    assert found.next == ["gitmem serve-agent prices --trust"]
    assert client_run.trusted_command(log.store, "Prices", trust=True) == "tr a-z A-Z"
    assert client_run.trusted_command(log.store, "prices") == "tr a-z A-Z"
    for changed, name in (
        ("'tr a-z A-Z '", "prices"),
        ("'tr a-z A-Z; id'", "prices"),
        ("'tr a-z A-Z'", "other"),
    ):
        write(repo, changed, name)
        assert refused(log, name).code == "not-trusted"


@pytest.mark.parametrize(
    "hostile",
    [
        '"""a\nb"""',
        '"ls \\u001b[2K"',
        '"ls \\u202e"',
        f"'{'x' * 1001}'",
        "''",
        "'   '",
        "7",
        "['ls']",
        "true",
    ],
)
def test_a_command_that_nobody_can_read_is_none(log: Log, repo: Path, hostile: str) -> None:
    """Several lines, escape sequences, or text that runs backwards: what is shown would not be what runs."""
    write(repo, hostile)
    assert refused(log).code == "no-command"
    with pytest.raises(UsageError, match="No command for prices"):
        client_run.trusted_command(log.store, "prices", trust=True)


def test_without_a_command_the_options_are_named(log: Log, repo: Path) -> None:
    """Also where the file is a link to a folder outside, or no TOML."""
    assert refused(log).code == "no-command"
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text("exec = [")
    assert refused(log).code == "no-command"


def test_trust_that_can_not_be_recorded_runs_nothing(log: Log, repo: Path) -> None:
    """A file stands where the folder belongs."""
    write(repo, "'ls'")
    Path(log.store.repo.state, "trusted").write_text("")
    with pytest.raises(StoreError, match="Cannot record the trust"):
        client_run.trusted_command(log.store, "prices", trust=True)
    assert refused(log).code == "not-trusted"


@pytest.mark.deep
def test_i6_serve_agent_runs_a_trusted_command(run: Call, repo: Path, tmp_path: Path) -> None:
    """By real processes; --trust together with a command of the user's own is a mistake."""
    write(repo, "'tr a-z A-Z'")
    assert run("serve-agent", "prices").status == 2
    assert run("serve-agent", "prices", "--exec", "cat", "--trust").status == 2
    with serving(repo, repo, "--trust", "--input", "text"):
        assert "| IS IT RIGHT?" in run("call", "prices", "is it right?", "--timeout", "30s").out
    with serving(repo, repo, "--input", "text"):
        assert "| AGAIN" in run("call", "prices", "again", "--timeout", "30s").out
    assert os.listdir(repo / ".git" / "gitmem" / "trusted")


def test_i6_only_this_user_can_record_that_a_command_is_trusted(log: Log, repo: Path) -> None:
    """Others may write to the folders of a shared repository, and move the files of its owner in them."""
    write(repo, "'tr a-z A-Z'")
    client_run.trusted_command(log.store, "prices", trust=True)
    (path,) = (Path(log.store.repo.state) / client_run.TRUSTED_FOLDER).iterdir()
    own = path.read_bytes()
    path.chmod(0o660)
    assert refused(log).code == "not-trusted"
    path.chmod(0o600)
    assert client_run.trusted_command(log.store, "prices") == "tr a-z A-Z"
    for content in (b"", b"[]", own.replace(b"tr a-z", b"tr b-z")):
        path.write_bytes(content)
        assert refused(log).code == "not-trusted"
    path.unlink()
    os.mkfifo(path)  # nobody waits for its writer
    assert refused(log).code == "not-trusted"
