"""The A2A SDK takes over a second to import: only the gateway and calls to other servers do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.test_house import modules

ROOT = Path(__file__).parents[2]
MAY = (
    "gitmem.calls.a2a_remote", "gitmem.calls.a2a_server", "gitmem.calls.a2a_tasks", "gitmem.calls.http_guard",
    "gitmem.calls.push", "gitmem.calls.served_log", "gitmem.page.live_page",
)  # fmt: skip
THEIRS = ("a2a", "uvicorn", "starlette", "sse_starlette", "httpx", "google")


def is_theirs(name: str) -> bool:
    """Return whether a module belongs to the SDK or to what comes with it."""
    return name.partition(".")[0] in THEIRS


def test_i30_only_the_gateways_packages_import_the_sdk() -> None:
    """Reading the sources, also imports inside functions."""
    found = {name for name, module in modules().items() if any(map(is_theirs, module.imports()))}

    assert found
    assert {name for name in found if not name.startswith(MAY)} == set()


def test_i30_no_command_but_serve_loads_the_sdk() -> None:
    """Nor does the library: importing every module of commands, and the one with the tokens."""
    code = (
        "import sys, pathlib, importlib\n"
        "for path in pathlib.Path('cli/commands').rglob('*.py'):\n"
        "    importlib.import_module('.'.join(path.with_suffix('').parts))\n"
        "import gitmem.api.log, gitmem.calls.a2a_files\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "gitmem.calls.a2a_files" in done.stdout.split()
    assert [name for name in done.stdout.split() if is_theirs(name)] == []
