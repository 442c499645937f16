"""Real clients, installed for the tests alone, each with a home of its own and a model that follows a script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real_clients.clients import CLIENTS, Client
from tests.real_clients.desk import Desk

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = "GITMEM_TEST_CLIENTS"  # a folder for the installed clients, for those who clear pytest's cache
INSTALL_SECONDS = 600
OUTSIDE = dict(os.environ)  # the tests' own has no home, and npm's settings are there


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    """Where installed clients are kept between runs."""
    if os.name == "nt":
        pytest.skip("the clients are run on POSIX systems only")
    named = OUTSIDE.get(CACHE)
    if not named:
        return Path(pytestconfig.cache.mkdir("clients"))
    Path(named).mkdir(parents=True, exist_ok=True)
    return Path(named).resolve()


@pytest.fixture
def alone(cache: Path) -> Iterator[None]:
    """One client at a time, over all processes of a run: each of them wants two cores."""
    with _locked(cache / "turn.lock"):
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def desk(cache: Path, gitmem: Path, alone: None, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """`desk("codex", "--scope", "user")`: two worktrees, and the hooks of a client, installed as the words say."""
    found: list[Desk] = []

    def one(name: str, *words: str) -> Desk:
        client = next(each for each in CLIENTS if each.name == name)
        found.append(Desk(tmp_path, gitmem, client, installed(client, cache)))
        found[0].gitmem("setup", "--client", name, *words)
        return found[0]

    yield one
    for each in found:
        each.clear()


@pytest.fixture(scope="session")
def gitmem() -> Path:
    """The program of this checkout, as it is installed beside the Python that runs the tests."""
    program = Path(sys.executable).parent / "gitmem"
    if not program.exists():
        pytest.skip(f"gitmem is not installed beside {sys.executable}: pip install --editable .")
    where = "import gitmem, os; print(os.path.dirname(gitmem.__file__))"
    found = subprocess.run([sys.executable, "-c", where], cwd="/", capture_output=True, text=True, timeout=60)
    assert Path(found.stdout.strip()) == ROOT / "gitmem", "gitmem is installed from somewhere else"
    return program


def installed(client: Client, cache: Path) -> Path:
    """The client's program, installed from npm below the cache; a skip that says why where that can't be."""
    npm = shutil.which("npm", path=OUTSIDE.get("PATH"))
    if npm is None:
        pytest.skip("npm is not on PATH")
    folder = cache / client.package.replace("/", "+")
    program = folder / "node_modules" / ".bin" / client.program
    with _locked(cache / "install.lock"):
        if not program.exists():
            half = folder.with_suffix(".part")
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            quiet = ("--no-save", "--no-audit", "--no-fund", "--loglevel=error")
            try:
                done = subprocess.run(
                    [npm, "install", "--prefix", str(half), *quiet, client.package],
                    cwd=half,
                    env=OUTSIDE,
                    capture_output=True,
                    text=True,
                    timeout=INSTALL_SECONDS,
                )
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm install {client.package} took more than {INSTALL_SECONDS} s")
            if done.returncode:
                pytest.skip(f"npm install {client.package}: {done.stderr.strip()[-300:]}")
            shutil.rmtree(folder, ignore_errors=True)
            half.rename(folder)
    return program
