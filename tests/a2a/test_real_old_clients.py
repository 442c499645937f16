"""The real a2a-sdk 0.3.26 and strands-agents, in an environment of their own: they call `gitmem a2a serve`, and `gitmem call` calls their server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Gateway, _wait_for, run

pytestmark = pytest.mark.tools

OLD = ("a2a-sdk[grpc,http-server]==0.3.26", "uvicorn")
SCRIPT = Path(__file__).with_name("old_client.py")


def environment(place: Path, *packages: str) -> Path:
    """Return the Python of a new environment with these packages."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = place / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True, timeout=280)
    return python


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with a2a-sdk 0.3.26."""
    return environment(tmp_path_factory.mktemp("old") / "venv", *OLD)


def said(python: Path, *words: str) -> object:
    """Return what the script prints."""
    done = subprocess.run([str(python), str(SCRIPT), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("transport", ["JSONRPC", "HTTP+JSON", "GRPC"])
def test_a_client_of_0_3_reads_the_card_and_sends(
    old: Path, gateway: Gateway, worker: Path, transport: str
) -> None:
    """With and without a stream the answer is the artifact of the completed task."""
    found = said(old, "send", gateway.url, gateway.token, transport)
    assert found == [["completed", "Hello from TCK"]] * 2


def test_strands_agents_call_it(tmp_path: Path, gateway: Gateway, worker: Path) -> None:
    python = environment(tmp_path / "venv", "strands-agents[a2a]")
    assert "Hello from TCK" in str(said(python, "strands", gateway.url, gateway.token))


def test_gitmem_call_calls_a_server_of_0_3(old: Path, repo: Path) -> None:
    subprocess.run(["git", "-C", str(repo), "config", "user.email", "person@example.org"], check=True)
    server = subprocess.Popen([str(old), str(SCRIPT), "serve"], stderr=subprocess.PIPE, text=True)
    try:
        url = _wait_for(server, r"(http://\S+)")[1]
        shown = run(repo, "--as", "human:person@example.org", "call", url, "is it right?", "--timeout", "20s")
        assert "| IS IT RIGHT?" in shown, shown
    finally:
        server.kill()
        server.wait()
