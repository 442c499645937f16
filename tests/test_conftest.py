"""The guard around the tests: nothing of the machine's own git or home gets in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def test_home_cannot_be_used() -> None:
    """A test that writes below the home folder fails instead of touching the user's."""
    with pytest.raises(OSError):
        Path("~/.gitconfig").expanduser().write_text("x")


def test_git_reads_no_configuration_but_the_repository_s(git: Callable[..., str], repo: Path) -> None:
    """Every config value that git sees comes from the repository itself."""
    scopes = {row.split("\t")[0] for row in git("config", "--list", "--show-scope", cwd=repo).splitlines()}

    assert scopes == {"local"}


def test_no_session_and_one_identity(git: Callable[..., str], repo: Path) -> None:
    """No harness's session is inherited, and commits have a fixed author."""
    assert not [name for name in os.environ if name.startswith("GITMEM_") and name != "GITMEM_COMMIT_AFTER"]
    assert "CLAUDE_CODE_SESSION_ID" not in os.environ
    assert "CODEX_THREAD_ID" not in os.environ
    assert git("log", "--format=%an <%ae>", cwd=repo) == "Test Person <person@example.org>\n"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")
def test_programs_under_test_get_the_default_signals() -> None:
    """Also where the tests run in the background of a shell, or under nohup: as agents start them."""
    names = ("INT", "QUIT", "HUP")
    code = (
        "import tests.conftest, signal, subprocess, sys\n"
        "for name in sys.argv[1:]:\n"
        "    sleeping = subprocess.Popen(['sleep', '60'])\n"
        "    sleeping.send_signal(getattr(signal, f'SIG{name}'))\n"
        "    print(sleeping.wait(10))\n"
    )
    root = Path(__file__).resolve().parents[1]

    done = subprocess.run(
        ["sh", "-c", f"trap '' {' '.join(names)}; exec \"$@\"", "sh", sys.executable, "-c", code, *names],
        cwd=root, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.stdout.split() == [str(-getattr(signal, f"SIG{name}")) for name in names], done.stderr


def test_each_test_has_a_time_limit(request: pytest.FixtureRequest) -> None:
    """A test that hangs fails and says where, rather than stopping the run."""
    assert request.config.pluginmanager.hasplugin("timeout")
    assert 60 <= float(request.config.getini("timeout")) <= 600
