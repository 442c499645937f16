"""A tenant is a repository: a call finds and reads nothing of another one (decision 128)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.errors import UsageError
from tests.sandbox import bodies, new_repo

from .conftest import PLANNER, PRICES, Serve

ROOT = Path(__file__).parents[2]
# Calls in the repository of its first argument, and prints whatever it opened, listed or started that names the second.
WATCHED = """
import json, os, sys
here, other = sys.argv[1:]
touched = []
def note(event, values):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "subprocess.Popen", "sqlite3.connect"):
        touched.extend(f"{event} {value}" for value in values if other in str(value))
import gitmem
sys.addaudithook(note)
with gitmem.open(here, session="Planck") as log:
    found = log.call("prices", "x", context=True, memory="rounding", variables={"path": other}, wait=False)
    shown = log.tasks.show(found.results[0].task_id)
    assert shown.task["context"]["variables"] == {"path": other}
print(json.dumps(touched))
open(os.path.join(other, "README"))
assert touched, "the hook notes nothing"
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another tenant, with an agent, a task and a node."""
    path = new_repo(tmp_path / "other tenant")
    (path / "README").write_text("x")
    return path


def test_i26_i27_agents_tasks_and_nodes_of_another_repository_are_not_found(
    log: Log, serve: Serve, other: Path
) -> None:
    """Neither by name nor by id; nothing is written in either."""
    serve()
    with gitmem.open(str(other), identity=PLANNER) as far:
        far.sessions.start(name="Planck", agent_identity=PLANNER)
        with gitmem.open(str(other), identity="claude:rates:far") as rates:
            rates.sessions.start(name="rates")
        node = far.memory.append("rounding of the other tenant").node.id
        task = far.call("rates", "x", wait=False).results[0].task_id
        there, here = bodies(far.store), bodies(log.store)
        for refused, message in (
            (lambda: log.call("rates", "x", wait=False), "Agent 'rates' not found"),
            (lambda: log.call("prices", "x", memory=[node], wait=False), "No such node"),
            (lambda: log.call("prices", "x", within=task, wait=False), task),
            (lambda: log.wait_for(task, timeout=1), task),
        ):
            with pytest.raises(UsageError, match=message):
                refused()
        assert (bodies(far.store), bodies(log.store)) == (there, here)
    found = log.call("prices", "x", memory="rounding", timeout=20)
    assert found.results[0].state == "completed", vars(found.results[0])
    assert found.results[0].agent == PRICES and found.transfer is not None and not found.transfer.counts


def test_i28_a_call_opens_no_file_of_another_repository(
    log: Log, serve: Serve, repo: Path, other: Path
) -> None:
    """Seen by the interpreter's own audit events, with a variable that names the other one."""
    serve()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(repo), str(other)], capture_output=True, text=True, cwd=repo, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout or "null")) == (0, []), done.stderr
