"""The front door: exit statuses, errors on both ways, and what a reader that goes away may spoil."""

from __future__ import annotations

import _sqlite3
import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import failure, main
from cli.render import output
from gitmem.errors import RemoteError, StoreError

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [
    sys.executable,
    "-P",
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.main import main; sys.exit(main())",
]


def test_a_usage_error_is_a_sentence_and_status_2(run: Run) -> None:
    """What happened, what to do, and the command that shows more; on standard error only."""
    said = run("inbox", "--bogus")

    assert said.status == 2
    assert said.out == ""
    assert "No such option: --bogus" in said.err
    assert "next: gitmem inbox --help" in said.err


def test_a_usage_error_with_json_is_an_object_too(run: Run) -> None:
    """The shape that all errors have, with the sentence still on standard error."""
    said = run("signal", "--json")

    assert said.status == 2
    assert set(said.json) == {"error", "next"}
    assert set(said.json["error"]) == {"code", "message", "hint", "suggestions"}
    assert "Missing argument" in said.err


def test_a_message_that_starts_with_a_dash_is_told_how_to_stand(run: Run) -> None:
    """The hint shows where `--` goes, and there it works."""
    said = run("signal", "-1 for this", "--broadcast")
    assert said.status == 2
    assert "Put -- before" in said.err

    assert run("signal", "--broadcast", "--", "-1 for this").status == 0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError("The disk is full."), 4),
        (RemoteError("Nobody there."), 5),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 4),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 4),
        (sqlite3.OperationalError("database or disk is full"), 4),
        (FileNotFoundError(errno.ENOENT, "No such file", "/x"), 3),
        (ValueError("a bug"), 3),
    ],
)
def test_each_kind_of_error_has_its_status(
    error: Exception, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """One place maps them."""
    assert failure.report(error, ["roster"]) == status
    assert capfd.readouterr().err


def test_the_unexpected_is_a_report_to_paste_without_anybody_s_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions, the command, the place; never the message."""

    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("trouble with a private matter")

    monkeypatch.setattr(_sqlite3, "connect", fail)
    said = run("signal", "a private matter", "--to", "somebody", "--json")

    assert said.status == 3
    assert said.json["error"]["code"] == "unexpected"
    assert "RuntimeError" in said.err
    assert "gitmem signal (hidden) --to (hidden) --json" in said.err
    assert "private" not in said.out + said.err


def test_an_interrupt_is_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As shells have it."""

    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_sqlite3, "connect", interrupt)

    assert run("roster").status == 130


def test_help_and_version_need_no_repository(run: Run, tmp_path: Path) -> None:
    """They work anywhere."""
    for args in (["--help"], ["--version"], [], ["signal", "--help"], ["schema"], ["schema", "signal"]):
        assert run(*args, cwd=tmp_path).status == 0, args


def test_outside_a_repository_is_a_sentence(run: Run, tmp_path: Path) -> None:
    """No traceback, and the way out."""
    for args in (["inbox"], ["roster", "--json"], ["log"], ["session", "start"]):
        said = run(*args, cwd=tmp_path)
        assert said.status == 2, args
        assert "git repository" in said.err


def test_minus_c_may_stand_before_and_behind(run: Run, repo: Path, tmp_path: Path) -> None:
    """Two of them add up, as with git."""
    (repo / "sub").mkdir()

    assert run("-C", "repo", "log", "-C", "sub", cwd=tmp_path).status == 0
    assert run("-C", "repo", "roster", "-C", "sub", cwd=tmp_path).status == 0
    assert run("-C", "repo", "roster", "-C", "nowhere", cwd=tmp_path).status == 2


def test_a_closed_pipe_marks_nothing(run: Run, start: Callable[..., str], repo: Path) -> None:
    """`gitmem inbox | head -0`: what nobody read stays unread, and nobody sees a traceback."""
    planck = start("Planck")
    start("Curie")
    assert run("signal", "x" * 60_000, "--to", "Planck", "--as", "Curie").status == 0
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "inbox"], cwd=repo, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60,
        env={**os.environ, "GITMEM_SESSION": planck},
    )  # fmt: skip
    os.close(writing)

    assert done.stderr == ""
    assert run("inbox", "--count", session=planck).out == "1\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_standard_output_marks_nothing(
    run: Run, start: Callable[..., str], repo: Path
) -> None:
    """The answer was not seen: an error, and the mail stays unread."""
    planck = start("Planck")
    start("Curie")
    run("signal", "Hello", "--to", "Planck", "--as", "Curie")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "inbox"], cwd=repo, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            env={**os.environ, "GITMEM_SESSION": planck},
        )  # fmt: skip

    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert run("inbox", "--count", session=planck).out == "1\n"


def test_main_takes_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The console script calls it without any."""
    monkeypatch.setattr(sys, "argv", ["gitmem", "--version"])

    assert main.main() == 0
    assert capfdbinary.readouterr().out.startswith(b"gitmem ")
    assert not output.is_last()  # this process has threads, and goes on
