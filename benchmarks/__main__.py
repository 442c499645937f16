"""`python -m benchmarks [NAMES…] [--quick]`: build the wheel, install it in an empty environment, and measure it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import rows
from .measure import TABLE_HEAD, show_progress

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ("gitmem", "cli", "merge_driver", "docs/man", "pyproject.toml", "README.md", "LICENSE")
# A tokenizer for the row that counts tokens, and a package of 2024 with the vocabulary. No other row uses them.
TOKENIZER = ("tokenizers>=0.20", "anthropic==0.38.0")
INSIDE = "GITMEM_BENCHMARKS_INSIDE"  # the folder of the sources, for the run beside the installed wheel


def main() -> int:
    """Parse the command line and measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=rows.__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(rows.EVERY)}; by default all but {', '.join(rows.ON_DEMAND)}",
    )
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a first look")
    asked = parser.parse_args()
    # A background job of a script ignores SIGINT, and so would the watches that are ended by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unknown = [name for name in asked.names if name not in rows.EVERY]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="gitmem-benchmarks-") as folder:
        if INSIDE not in os.environ:
            return install_and_run(folder, __package__, sys.argv[1:])
        return _measure(folder, asked.names or list(rows.ROWS), quick=asked.quick)


def install_and_run(folder: str, module: str, args: list[str]) -> int:
    """Run a module in a new environment that contains only the wheel, and can't import the checkout.

    Args:
        folder: A temporary folder.
        module: The module.
        args: Its arguments.

    Returns:
        The exit status.
    """
    show_progress("building and installing the wheel")
    source, wheels, fresh, helper = (
        os.path.join(folder, name) for name in ("source", "wheels", "environment", "helper")
    )
    for name in SOURCES:
        path, copy = os.path.join(ROOT, name), os.path.join(source, name)
        os.makedirs(source, exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, copy)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # The speed of console scripts depends on the pip that writes them: use the newest, not the one bundled with Python.
    _run([sys.executable, "-m", "venv", helper], clean)
    pip = [os.path.join(helper, "bin", "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "install", "--upgrade", "pip"], clean)
    _run([*pip, "wheel", "--no-deps", "--wheel-dir", wheels, source], clean)
    _run([sys.executable, "-m", "venv", "--without-pip", fresh], clean)
    python = os.path.join(fresh, "bin", "python")
    (wheel,) = os.listdir(wheels)
    _run([*pip, "--python", python, "install", "--compile", f"{os.path.join(wheels, wheel)}[top]"], clean)
    if "hook-tokens" in (args or rows.ROWS) or (
        module == __package__ and all(each[0] == "-" for each in args)
    ):
        _run([*pip, "--python", python, "install", "--no-deps", *TOKENIZER], clean)
    inside = os.path.join(folder, "inside")
    shutil.copytree(os.path.dirname(os.path.abspath(__file__)), os.path.join(inside, "benchmarks"))
    done = subprocess.run([python, "-m", module, *args], cwd=inside, env={**clean, INSIDE: ROOT}, check=False)
    return done.returncode


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, stdout=sys.stderr)


def _measure(folder: str, names: list[str], *, quick: bool) -> int:
    from .background_processes import AdoptedProcesses
    from .workbench import FULL, QUICK, Workbench

    workbench = Workbench(
        folder, os.path.dirname(sys.executable), QUICK if quick else FULL, sources=os.environ[INSIDE]
    )
    os.environ.update(workbench.environment)  # the library starts git in this process's environment
    git = workbench.git(folder, "--version").strip().removeprefix("git version ")
    print(f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, git {git}\n")
    print(TABLE_HEAD, flush=True)
    with AdoptedProcesses() as adopted:
        for name in names:
            started = time.monotonic()
            for figure in rows.EVERY[name](workbench):
                print(figure.row(), flush=True)  # at once: a later failure must not lose it
            adopted.wait()  # background processes of one row must not slow down the next
            show_progress(f"{name}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
