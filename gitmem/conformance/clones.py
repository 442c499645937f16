"""Repositories for gitmem's adapters, created by git as a user would create them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Variables that select another repository, or another caller than the case's session.
FOREIGN = (
    "GITMEM_",
    "LUMENFLOW_",
    "GIT_",
    "CLAUDE_",
    "CODEX_",
    "COPILOT_",
    "CURSOR_",
    "GEMINI_",
    "OPENCODE_",
)


def sources() -> dict[str, str]:
    """Return the environment for the programs that an adapter starts."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def new_repository(folder: Path) -> Path:
    """Create an empty repository below a folder."""
    first = folder / "clone-1"
    git(folder, "init", "--quiet", str(first))
    return first


def connect(folder: Path) -> Path:
    """Return the bare repository beside a clone that all clones of a bus share; create it if it does not exist."""
    hub = folder.parent / "hub.git"
    if not hub.is_dir():  # with one commit: gitmem pushes nothing to a remote without branches
        person = ["-c", "user.name=Somebody", "-c", "user.email=somebody@gitmem.invalid"]
        tree = git(folder, "write-tree")
        git(folder, "update-ref", "HEAD", git(folder, *person, "commit-tree", "-m", "First", tree))
        git(folder, "clone", "--quiet", "--bare", str(folder), str(hub))
        git(folder, "remote", "add", "origin", str(hub))
    return hub


def another(folder: Path) -> Path:
    """Return another clone, beside this one."""
    hub = connect(folder)
    clone = folder.parent / f"clone-{len(os.listdir(folder.parent))}"
    git(folder, "clone", "--quiet", str(hub), str(clone))
    return clone


def git(folder: Path, *args: str) -> str:
    """Run git in a folder and return its output, stripped; fail the case if git fails."""
    done = subprocess.run(
        ["git", *args], cwd=folder, env=sources(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()
