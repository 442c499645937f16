"""Runs the published suite inside a test, and keeps what became of each case."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli import main as front
from gitmem.conformance import command_line
from gitmem.conformance.adapter import Factory, Refused
from gitmem.conformance.reference import Reference

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


class HasOnePlace(Reference):
    """Nothing is wrong with this one: it says what it can't do."""

    lacks = {"second": "one place for everybody"}


class ForgetsToSayWhatItLacks(Reference):
    def __getattribute__(self, name: str) -> Any:
        if name == "watch":
            raise AttributeError(name)
        return super().__getattribute__(name)


def catches(case: Callable[..., object], make: Factory, folder: Path) -> bool:
    """Whether a case fails with a bus, for one of the values that it is given; without pytest, which takes a hundred times as long."""
    wanted = inspect.signature(case).parameters
    for given in _given(case):
        fixtures = {"bus": make(folder), "new_bus": lambda: make(folder)}
        try:
            case(**given, **{name: value for name, value in fixtures.items() if name in wanted})
        except (AssertionError, Refused, pytest.fail.Exception):
            return True
        except ValueError as error:  # `(got,) = bus.inbox(b)`
            assert "values to unpack" in str(error), error
            return True
        except Exception as error:  # no answer of a bus: the mutant itself is wrong
            error.add_note(f"The mutant is {make}")
            raise
    return False


def _given(case: Callable[..., object]) -> Iterator[dict[str, object]]:
    """The values that a case is given."""
    marks = [each for each in vars(case).get("pytestmark", ()) if each.name == "parametrize"]
    rows = []
    for mark in marks:
        names = mark.args[0].replace(" ", "").split(",") if isinstance(mark.args[0], str) else mark.args[0]
        values = [
            pytest.param(each) if len(names) == 1 and not hasattr(each, "marks") else each
            for each in mark.args[1]
        ]
        rows.append([dict(zip(names, getattr(each, "values", each), strict=True)) for each in values])
    for some in itertools.product(*rows):
        yield {name: value for each in some for name, value in each.items()}
