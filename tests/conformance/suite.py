"""Runs the published suite inside a test, and keeps what became of each case."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli import main as front
from gitmem.conformance import command_line

SUITE = "gitmem.conformance"


class Ran:
    """Case → how it failed; and the cases that did not apply."""

    def __init__(self) -> None:
        self.status = -1
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}
        self.not_applicable: set[str] = set()

    def said(self) -> str:
        """How each failed."""
        return "\n".join(f"{name}:\n{text}" for name, text in self.failed.items())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::test_")[2]
        if report.failed:
            self.failed[name] = report.longreprtext
        elif report.skipped:
            self.not_applicable.add(name)
        elif report.when == "call":
            self.passed.add(name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = report.longreprtext


def run(adapter: str, tmp_path: Path, *more: str, of: Sequence[str] = (SUITE,)) -> Ran:
    """Try a bus in this process, away from this project's own settings."""
    nested = tmp_path / "nested"
    nested.mkdir()
    (nested / "pytest.ini").write_text("[pytest]\n")
    ran = Ran()
    options = ["-c", str(nested / "pytest.ini"), "--rootdir", str(nested), "--basetemp", str(nested / "temp"),
               "--noconftest", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist",
               "-p", "no:faulthandler", "-p", "gitmem.conformance.entry", "-qq"]  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*options, "--pyargs", *of, "--adapter", adapter, *more], plugins=[ran])
    ran.status = int(status)
    return ran


def in_process(args: Sequence[str]) -> tuple[int, str]:
    """The program without a process of its own, which is ten times as fast."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    here = os.getcwd()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = front.main(args)
    os.chdir(here)
    out.flush()
    printed: io.BytesIO = out.buffer
    return status, printed.getvalue().decode()


def make_in_process(folder: Path) -> command_line.CommandLine:
    return command_line.make(folder, in_process)
