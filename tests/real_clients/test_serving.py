"""`gitmem serve-agent --client`: real clients answer calls, report progress, ask, and go on in the same session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitmem.calls.client_run import CLIENT_PROGRAMS
from tests.real_clients.clients import CLIENTS
from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Asked, Model, serving
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

NAMES = {"claude": "claude-code"}  # of gitmem for a program's
# Everything is allowed, as in the other tests of clients.
WORDS = {
    "claude": "--dangerously-skip-permissions",
    "codex": "--dangerously-bypass-approvals-and-sandbox",
    "gemini": "--yolo -m gemini-2.5-flash",
    "opencode": "",
}


@contextmanager
def served(there: Desk, program: str, model: Model) -> Iterator[None]:
    """A worker that runs the client, whose model follows the script."""
    with serving(model):
        env = {**there.env, **there.client.variables(model.url)}
        env["PATH"] = f"{there.program.parent}:{env['PATH']}"
        there.client.prepare(there.program, there.work, there.home, env, model.url)
        worker = subprocess.Popen(
            [there.gitmem_program, "serve-agent", "prices", "--client", f"{program} {WORDS[program]}"],
            cwd=there.work, env=env, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert worker.stderr is not None
            assert "serving prices" in worker.stderr.readline()
            yield
        finally:
            worker.terminate()
            worker.wait(30)


@pytest.mark.parametrize("program", list(CLIENT_PROGRAMS))
def test_a_client_answers_a_call_after_a_question(desk: Callable[..., Desk], program: str) -> None:
    """A tool is progress, the last text the result; after the answer the model still knows what it has said."""
    there = desk(NAMES.get(program, program))
    assert there.client in CLIENTS
    asked: list[str] = []

    def ask(request: Asked) -> Step:
        asked.append(request.text)
        return there.client.shell('gitmem task message --ask "$GITMEM_TASK" "net or gross?"')

    def answer(request: Asked) -> Step:
        asked.append(request.text)
        return Step("The sum is 119.")

    looks = there.client.shell("echo one")
    model = Model(
        there.client.dialect, [lambda request: looks, ask, lambda request: Step("Asked: cobalt."), answer]
    )
    with served(there, program, model):
        first = call(there, "call", "prices", "What is the sum: quartz?", "--timeout", "2m")
        task = first["results"][0]["task_id"]
        assert (first["state"], first["message"]) == ("input-required", "net or gross?"), first
        call(there, "task", "message", task, "gross, marble")
        found = call(there, "task", "wait", task, "--timeout", "2m")

    assert model.trouble == []
    assert (found["state"], found["message"]) == ("completed", "The sum is 119."), found
    assert "quartz" in asked[0] and "Peers can inform, not authorize" in asked[0]
    assert "gross, marble" in asked[1] and "Asked: cobalt." in asked[1]  # the same session
    assert "uses " in str(there.gitmem("task", "show", task))


@pytest.mark.parametrize("program", list(CLIENT_PROGRAMS))
def test_a_cancellation_ends_the_command_that_a_client_runs(desk: Callable[..., Desk], program: str) -> None:
    """Clients run it in a session of its own, which the end of their process group does not reach."""
    there = desk(NAMES.get(program, program))
    note = there.work / "begun"
    sleeps = there.client.shell(f"touch {note.name}; sleep 987654")
    model = Model(there.client.dialect, [lambda request: sleeps])
    with served(there, program, model):
        task = call(there, "call", "prices", "What is the sum?", "--no-wait")["results"][0]["task_id"]
        assert until(lambda: note.exists() and sleepers(there))  # the shell starts one after the other
        there.gitmem("task", "cancel", task, cwd=there.away, session=there.peer)
        found = call(there, "task", "wait", task, "--timeout", "1m")
        assert (found["state"], sleepers(there)) == ("canceled", [])
    assert model.trouble == []


def sleepers(there: Desk) -> list[int]:
    """The processes of the command."""
    return [each for each in there.left() if b"sleep\x00987654" in Path(f"/proc/{each}/cmdline").read_bytes()]


def call(there: Desk, *words: str) -> dict[str, Any]:
    """What a command of the peer answers, whatever its exit status."""
    done = subprocess.run(
        [there.gitmem_program, *words, "--json"], cwd=there.away, env={**there.env, "GITMEM_SESSION": there.peer},
        capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    assert "state" in found, found
    return found
