"""What every pytest of an environment with gitmem in it loads: next to nothing, until the suite is asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

PACKAGE = "gitmem.conformance"


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """The options are there only where the suite is named: `--adapter` may be another plugin's elsewhere."""
    if any(arg.partition("::")[0] == PACKAGE or arg.startswith(f"{PACKAGE}.test_") for arg in args):
        early_config.pluginmanager.import_plugin(f"{PACKAGE}.plugin")
