"""An earlier version of gitmem, run from its sources by the same interpreter."""

from __future__ import annotations

import compileall
import json
import os
import stat
import subprocess
import sys

from . import workbench as workbenches
from .workbench import Workbench

COMMIT = "52eaac1"  # the last version that made a commit before each answer
UNSIGNED = "f7268cfc"  # the last version whose lines nobody signed
PARTS = ("gitmem", "cli", "merge_driver")


def program(workbench: Workbench, commit: str = COMMIT) -> str | None:
    """Return a console script of a version; None if the sources' history does not contain it."""
    folder = os.path.join(workbench.folder, f"gitmem-{commit}")
    script = os.path.join(folder, "gitmem-earlier")
    if os.path.exists(script):
        return script
    asked = ["git", "-C", workbench.sources, "archive", "--format=tar", commit, *PARTS]
    archive = subprocess.run(asked, capture_output=True, check=False)
    if archive.returncode:
        return None
    os.makedirs(folder)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    compileall.compile_dir(folder, quiet=1)
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {folder!r})\n"
                   "from cli.main import main\nsys.exit(main())\n")  # fmt: skip
        os.fchmod(file.fileno(), stat.S_IRWXU)
    return script


def with_history(workbench: Workbench, program: str, name: str) -> tuple[str, str]:
    """Return what `startup.with_history` returns, for a log that the earlier version started."""
    where = workbench.repository(name)
    session = start(workbench, program, where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START, workbenches.unsigned), attests=False)
    workbenches.publish(
        where, workbenches.history(workbench.size.few, make=workbenches.unsigned), attests=False
    )
    start(workbench, program, where, "Reader")
    return where, session


def start(workbench: Workbench, program: str, where: str, name: str) -> str:
    """Start a session by that version, and return its id."""
    command = [
        program,
        "session",
        "start",
        "--name",
        name,
        "--agent-identity",
        workbenches.identity(name),
        "--json",
    ]
    done = subprocess.run(
        command, cwd=where, env=workbench.environment, capture_output=True, text=True, check=True
    )
    return str(json.loads(done.stdout)["session_id"])
