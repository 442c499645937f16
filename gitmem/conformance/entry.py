"""The pytest plugin that every pytest beside gitmem loads; it imports almost nothing unless the suite is named."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

PACKAGE = "gitmem.conformance"


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the options only if the suite is named: another plugin may have an option `--adapter`."""
    if any(arg.partition("::")[0] == PACKAGE or arg.startswith(f"{PACKAGE}.test_") for arg in args):
        early_config.pluginmanager.import_plugin(f"{PACKAGE}.plugin")
