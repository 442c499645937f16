"""`gitmem call URL`: a call to an A2A server is a task of the log, like any other."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.background import program
from gitmem.a2a.remote import identity_of
from gitmem.errors import UsageError
from tests.a2a.conftest import Local

if TYPE_CHECKING:
    from gitmem.api import Log

pytestmark = pytest.mark.deep


@pytest.fixture
def caller(tmp_path: Path) -> Path:
    """Another repository, whose agents know nothing of the server's."""
    path = tmp_path / "caller"
    subprocess.run(["git", "init", "--quiet", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "config", "user.email", "person@example.org"], check=True)
    return path


def call(place: Path, url: str, text: str, token: str = "") -> tuple[int, Any]:
    """Return the exit status and the answer of a call."""
    done = subprocess.run(
        [*program(), "--as", "human:person@example.org", "--json", "call", url, text, "--timeout", "20s"], cwd=place,
        capture_output=True, text=True, timeout=60, env={**os.environ, "GITMEM_A2A_TOKEN": token},
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or done.stderr.strip().splitlines()[-1])


def test_i33_an_external_server_is_called_as_any_agent_and_its_task_is_on_the_log(
    local: Local, answering: Callable[..., Log], caller: Path
) -> None:
    """Its result, its error with its text, and a refusal by its token: each is sealed."""

    def answer(task: Any) -> str:
        if task.message == "bad":
            raise ValueError("no such price")
        task.artifact("the table", name="table")
        return task.message.upper()

    answering(answer)
    status, found = call(caller, f"{local.url}/", "is it right?", local.token)
    assert (status, found["message"]) == (0, "IS IT RIGHT?"), found
    status, found = call(caller, f"{local.url}/", "bad", local.token)
    assert (status, found["state"]) == (1, "failed")
    assert "no such price" in found["error"]["message"]
    status, found = call(caller, f"{local.url}/", "is it right?", "gm_wrong")
    assert (status, found["state"]) == (1, "failed")
    assert local.token not in json.dumps(found)

    listed = json.loads(
        subprocess.run(
            [*program(), "--json", "task", "list"], cwd=caller, capture_output=True, text=True
        ).stdout
    )["tasks"]
    assert {each["agent"] for each in listed} == {identity_of(local.url)}
    assert sorted(each["state"] for each in listed) == ["completed", "failed", "failed"]


@pytest.mark.parametrize(
    "url", ["http://example.org/", "https://user:x@example.org/", "https://", "http://[::1", "https://a,b/"]
)
def test_i33_an_url_without_encryption_or_with_a_password_is_refused(url: str) -> None:
    """Before anything is written or sent."""
    with pytest.raises(UsageError):
        identity_of(url)
