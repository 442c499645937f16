"""The pytest plugin: the option `--adapter`, a new bus for each case, and the result “not applicable”."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.config import create_terminal_writer

from . import case_setup
from .adapter import OPTIONAL, Factory, FullBus

ADAPTER_USAGE = "--adapter MODULE:FACTORY names a function that takes an empty folder and returns the bus to test; see docs/conformance.md"
NOT_APPLICABLE = "not applicable"
_FACTORY = pytest.StashKey[Factory]()
_WHY = f"{NOT_APPLICABLE}: "


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--adapter` and `--contract`."""
    group = parser.getgroup("gitmem.conformance")
    group.addoption(
        "--adapter",
        metavar="MODULE:FACTORY",
        help="A function that takes an empty folder and returns the bus to test.",
    )
    group.addoption(
        "--contract", action="store_true", help="Print the sentences that the cases check, and exit."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and import the factory unless only the contract is printed."""
    config.addinivalue_line("markers", "decided: checks a rule that gitmem adds to A2A.V1.")
    config.addinivalue_line("markers", "core: checks a rule of the core, docs/spec-core.md.")
    if not config.option.contract:
        config.stash[_FACTORY] = _factory(config.option.adapter)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Print the contract and end with 0 if `--contract` is given; None continues with the cases."""
    if not config.option.contract:
        return None
    create_terminal_writer(config).line("\n".join(case_setup.lines()))
    return 0


def _factory(named: str | None) -> Factory:
    module, _, name = (named or "").partition(":")
    if not (module and name):
        raise pytest.UsageError(f"{ADAPTER_USAGE}.")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"Cannot import --adapter {named}: {error}. {ADAPTER_USAGE}.") from error
    if not callable(found):
        raise pytest.UsageError(f"--adapter {named} is not a function. {ADAPTER_USAGE}.")
    return found  # type: ignore[no-any-return]  # each case checks what it returns


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of the core and of gitmem's own decisions, before `-m` selects."""
    core = [case_setup.GROUPS[group][1] for group in case_setup.CORE]
    for item in items:
        if not (isinstance(item, pytest.Function) and item.module.__name__.startswith(__package__ or "")):
            continue
        if case_setup.Case("", item.name, item.function).source != "A2A.V1":
            item.add_marker("decided")
        if item.module.__name__ in core:
            item.add_marker("core")


@pytest.fixture
def new_bus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], FullBus]]:
    """Return a function that makes an empty bus."""
    made: list[FullBus] = []

    def make() -> FullBus:
        folder = tmp_path / f"bus-{len(made)}"
        folder.mkdir()
        bus = request.config.stash[_FACTORY](folder)
        made.append(bus)  # type: ignore[arg-type]  # `bus` checks that it has what the case needs
        return made[-1]

    yield make
    for bus in made:
        bus.close()


@pytest.fixture
def bus(request: pytest.FixtureRequest, new_bus: Callable[[], FullBus]) -> FullBus:
    """Return the bus under test. The case is not applicable if the bus declares that it lacks a needed method."""
    found = new_bus()
    for name in case_setup.needed(request.function):
        why = found.lacks.get(name)
        if why:
            pytest.skip(f"{_WHY}the adapter has no {name} ({OPTIONAL[name]}): {why}")
        if not hasattr(found, name):
            pytest.fail(f"The adapter has neither the method {name} nor an entry for it in its `lacks`.")
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Report “not applicable” as a result of its own, neither passed nor skipped."""
    if report.skipped and _reason(report).startswith(_WHY):
        return NOT_APPLICABLE, "n", NOT_APPLICABLE.upper()
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the cases that were not applicable, with the reasons."""
    reports = terminalreporter.stats.get(NOT_APPLICABLE, [])
    if reports:
        terminalreporter.section(NOT_APPLICABLE)
    for report in sorted(reports, key=lambda each: str(each.nodeid)):
        name = str(report.nodeid).rpartition("test_")[2]
        terminalreporter.line(f"{name}: {_reason(report).removeprefix(_WHY)}")


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else ""
