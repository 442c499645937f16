"""The command line as the hazards meet it: in this process, or in one of its own that may be bent."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import templates
from tests.in_process import gitmem

from .peers import Town

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "session", "whoami", "roster", "signal", "reply", "inbox", "thread", "show", "receipts", "converged", "log", "sync",
    "setup", "remove", "doctor", "name", "schema", "demo",
}  # fmt: skip
NOBODYS = ("git", "export", "unset", "pip", "rm")
DROP_BOUNDING, DAC_OVERRIDE = 24, 1


class Said:
    """What a command answered."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.raw = out
        self.out = out.decode()
        self.err = err.decode("utf-8", "backslashreplace")

    @property
    def json(self) -> Any:
        assert self.out.endswith("\n"), self
        assert self.out.count("\n") == 1, f"not one line: {self}"
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error of an answer with --json: whole, and with its next steps."""
        assert set(self.json) >= {"error", "next"}, self
        assert set(self.json["error"]) >= {"code", "message", "hint", "suggestions"}, self
        return self.json["error"]

    @property
    def next(self) -> list[str]:
        """The commands at the end of an answer in text."""
        return [line[6:] for line in (self.out + self.err).splitlines() if line.startswith("next: ")]

    def __repr__(self) -> str:
        return f"exit {self.status}\n{self.out}\n--- err\n{self.err}"


class Desk:
    """Runs gitmem in one repository, as whoever `session` says."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo

    def __call__(
        self,
        *args: str,
        session: str | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> Said:
        """Run a command in this process; its exit status and what it printed. A traceback fails the test."""
        own = {} if session is None else {"GITMEM_SESSION": session}
        done = gitmem(*args, cwd=cwd or self.repo, env={**own, **(env or {})}, given=stdin)
        return _checked(Said(done.returncode, done.stdout, done.stderr))

    def start(self, name: str, *more: str, cwd: Path | None = None) -> str:
        """A new session of that name, with the identity `test:worker:<name>`; its id."""
        identity = () if "--agent-identity" in more else ("--agent-identity", f"test:worker:{name.lower()}")
        found = self("session", "start", "--name", name, *identity, *more, "--json", cwd=cwd)
        assert found.status == 0, found
        return str(found.json["session_id"])

    def send(self, session: str, message: str, *more: str, cwd: Path | None = None) -> Any:
        """A signal that must be recorded: the answer's JSON."""
        found = self("signal", *more, "--json", "--", message, session=session, cwd=cwd)
        assert found.status == 0, found
        return found.json


def process(
    *args: str | bytes,
    cwd: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Said:
    """Run a command in a process of its own; `before` runs in it first."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", **(env or {})},
        input=stdin,
        capture_output=True,
        timeout=60,
        preexec_fn=before,
    )
    return _checked(Said(done.returncode, done.stdout, done.stderr))


def _checked(said: Said) -> Said:
    assert "Traceback" not in said.err + said.out, said
    assert said.status in (0, 1, 2, 4, 5), said
    return said


def powerless() -> None:
    """For `before`: permissions bind this process, also where it is root's."""
    if os.getuid() == 0:
        ctypes.CDLL(None, use_errno=True).prctl(DROP_BOUNDING, DAC_OVERRIDE, 0, 0, 0)


def refs(repo: Path) -> str:
    """Every ref of a repository and what it is at."""
    return subprocess.run(
        ["git", "for-each-ref", "--format=%(refname) %(objectname)"],
        cwd=repo, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def _size(file: Path) -> int:
    """Return the size of a file in bytes; 0 if it was removed since it was listed."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def waiting(repo: Path) -> list[str]:
    """Files with recorded lines that wait for a commit of a repository, those in the state folder and $TMPDIR too."""
    common = subprocess.run(
        ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
        cwd=repo, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    folders = [
        Path(common) / "gitmem" / "wal",
        Path(os.environ["TMPDIR"]),
        Path(os.environ["XDG_STATE_HOME"]),
    ]
    found = [
        file for folder in folders for end in ("wal1", "deferred1") for file in folder.rglob(f"[0-9]*.{end}")
    ]
    return sorted(str(file) for file in found if _size(file))


@contextmanager
def nothing_written(repo: Path) -> Iterator[None]:
    """What happens inside moves no ref and records nothing."""
    before = refs(repo), waiting(repo)
    yield
    assert (refs(repo), waiting(repo)) == before


def check_next(commands: list[str]) -> None:
    """At most three, each a complete command of ours or of git's."""
    assert len(commands) <= 3, commands
    for command in commands:
        words = shlex.split(command)
        assert words, commands
        if words[0] == "gitmem":
            rest = words[1:]
            while rest and rest[0] in ("-C", "--as"):
                rest = rest[2:]
            assert rest and (rest[0] in COMMANDS or rest[0] == "--help"), command
        else:
            assert words[0] in NOBODYS, command


def check_text(said: Said) -> None:
    """An answer in text ends with the next steps, if there are any, and nothing follows them."""
    text = [line for line in (said.out if said.status in (0, 1) else said.err).split("\n") if line]
    commands = [line for line in text if line.startswith("next: ")]
    tail = [line for line in text if line.startswith(("next: ", "export GITMEM_SESSION="))]
    assert text[len(text) - len(tail) :] == tail, said
    check_next([line[6:] for line in commands])


@pytest.fixture(autouse=True)
def _commits(commits: None) -> None:
    """What is recorded is committed at once: hazards are mostly those of the log."""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A $TMPDIR of the test's own, where write-ahead logs of unwritable repositories go."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def desk(repo: Path) -> Desk:
    """A desk in a fresh repository whose user is Test Person <person@example.org>."""
    return persons_desk(repo)


def persons_desk(repo: Path) -> Desk:
    """A desk of Test Person in a repository, in which there is one commit if it is not there yet."""
    if not repo.exists():
        templates.copy("repo", repo, templates.first_commit)
    with (repo / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")
    return Desk(repo)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A hub without clones, which use the installed program."""
    return Town(tmp_path)
