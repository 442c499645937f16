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

from tests import in_process
from tests.sandbox import worktree

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


def is_alive(pid: int) -> bool:
    """Whether a process runs: an ended one that nobody waits for counts as ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


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
        assert f"gitmem task ask {found['results'][0]['task_id']}" in found["message"]
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
    script = f'text=$(cat); case "$text" in *gross*) echo 119;; *) {gitmem} task ask "$GITMEM_TASK" "net or gross?" >/dev/null;; esac'
    with serving(repo, tmp_path / "shop", "--exec", script, "--input", "text"):
        asked = run("call", "prices", "sum", "--timeout", "30s", "--json")
        task_id = asked.json["results"][0]["task_id"]
        assert (asked.status, asked.json["state"], asked.json["message"]) == (
            1,
            "input-required",
            "net or gross?",
        )
        found = run("task", "input", task_id, "gross", "--timeout", "30s", "--json")
        assert (found.status, found.json["message"]) == (0, "119"), found.out + found.err
        again = run("task", "input", task_id, "gross")
        assert again.status == 2 and "asks nothing" in again.err


def test_i35_the_output_of_a_program_that_has_asked_is_no_result(
    repo: Path, tmp_path: Path, run: Call
) -> None:
    """Also if the answer comes before the program ends."""
    gitmem = f"PYTHONPATH={ROOT} {sys.executable} -m cli"
    script = f'text=$(cat); case "$text" in *gross*) echo 119;; *) {gitmem} task ask "$GITMEM_TASK" "net or gross?" >/dev/null; sleep 2; echo I have asked.;; esac'
    with serving(repo, tmp_path / "shop", "--exec", script, "--input", "text"):
        asked = run("call", "prices", "sum", "--timeout", "30s", "--json").json
        assert asked["state"] == "input-required"
        found = run("task", "input", asked["results"][0]["task_id"], "gross", "--timeout", "30s", "--json")
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
        (["--exec", "cat", "--callable", "a:b"], "not both"),
        (["--callable", "json:dumps", "--worktree"], "--worktree needs a program"),
        (["--exec", "cat", "--input", "xml"], "choose from frame, text"),
    ]:
        refused = run("serve-agent", "rates", *args)
        assert refused.status == 2 and text in refused.err
    assert "rates" not in run("roster", "--all").out
