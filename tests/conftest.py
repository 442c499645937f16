"""A git that nobody's own configuration can reach, and a repository to try things on."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import settings

from cli.render import output
from gitmem.git import config
from tests import templates

if TYPE_CHECKING:
    from gitmem.store import Store
    from tests.clones import Hub
    from tests.hazards.forging import Ring
    from tests.sandbox import Clock

settings.register_profile("default", max_examples=12, derandomize=True, deadline=None)
settings.register_profile("deep", max_examples=200, derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell ignores SIGINT and SIGQUIT in background jobs, and nohup ignores SIGHUP. Ignored signals are inherited by
# the programs under test; signals with a handler are reset to the default when a program starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

# Hundreds of tests start gitmem as a process: without compiled modules each start takes ten times as long. It counts
# for the workers, too, which inherit the variable.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test's configuration is always new: for 2.5 s each command would ask git for it. Clocks of files count in 4 or 10 ms.
config.RACY_NS = 20_000_000

# Tests of gRPC begin its threads in the process whose forks run gitmem for other tests: these must not begin them again.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

SESSION_VARIABLES = (
    "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CODEX_THREAD_ID", "CODEX_ENV_FILE",
    "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "CURSOR_PROJECT_DIR", "CURSOR_SESSION_ID", "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID", "OPENCODE_SESSION_ID", "CLAUDECODE", "CODEX_CI", "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI", "CURSOR_AGENT", "OPENCODE", "CLINE_ACTIVE", "AI_AGENT",
)  # fmt: skip
OURS = ("GITMEM_", "LUMENFLOW_", "GIT_")


class Git(Protocol):
    """Runs git and returns what it prints."""

    def __call__(self, *args: str, cwd: Path | None = None, input: str | None = None) -> str: ...


def pytest_collection_finish() -> None:
    """Leave what collection made out of every later scan for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _templates(tmp_path_factory: pytest.TempPathFactory) -> None:
    templates.keep_in(tmp_path_factory.mktemp("templates"))


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No home, no git configuration of a user or system, one identity, no session of a harness."""
    for name in list(os.environ):
        if name.startswith(OURS) or name in SESSION_VARIABLES:
            monkeypatch.delenv(name)
    home = tmp_path / "no-home"
    home.write_text("A file: whatever wants to keep something in the home folder fails.\n")
    monkeypatch.setenv("HOME", str(home))
    output.begin()  # without what the last command was given
    output.set_addresses(None)  # of the last command that another test ran in this process
    monkeypatch.delenv("FORCE_COLOR", raising=False)  # of whoever runs the tests in colour
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}-state")  # there from the first use on
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv(
        "GITMEM_COMMIT_AFTER", "0"
    )  # no process outlives a test; committers have tests of their own
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Test Person")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "person@example.org")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """`git("log", "-1", cwd=repo)` → its standard output; an exit status other than 0 fails the test."""

    def run(*args: str, cwd: Path | None = None, input: str | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=cwd or tmp_path, input=input, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A fresh repository with one commit on `main`."""
    templates.copy("repo", tmp_path / "repo", templates.first_commit)
    return tmp_path / "repo"


@pytest.fixture
def commits() -> Iterator[None]:
    """Let stores and commands commit what they record, before they answer. Otherwise most tests let it wait for a committer."""
    from tests import sandbox

    before, sandbox.commit_window = sandbox.commit_window, 0.0
    yield
    sandbox.commit_window = before


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A remote, and clones of it."""
    from tests.clones import hub_at

    yield from hub_at(tmp_path)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """A hub, and the clones of Planck and Curie, who are one user and know each other."""
    from tests.hazards.forging import Hub

    found = Hub(tmp_path)
    return found, *found.acquainted()


@pytest.fixture
def pool_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions without a name of their own get names in the order of the pool: each clone has another beginning."""
    from gitmem.agents import names

    monkeypatch.setattr(names, "_turn", lambda store, place, count: place)


@pytest.fixture
def clock() -> Clock:
    """A clock that the test moves."""
    from tests import sandbox

    return sandbox.Clock()


@pytest.fixture
def store(repo: Path, clock: Clock) -> Iterator[Store]:
    """One clone, for its user."""
    from tests import sandbox

    found = sandbox.open_store(repo, clock)
    yield found
    found.close()
