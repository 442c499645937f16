"""Repositories for the adapters of gitmem: made by git as its user would make them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# What would send git to another repository, or make somebody else of whoever a case lets speak.
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
    """The environment for the programs that an adapter starts."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def new_repository(folder: Path) -> Path:
    """A repository with nothing in it, in a folder of this one."""
    first = folder / "clone-1"
    git(folder, "init", "--quiet", str(first))
    return first


def connect(folder: Path) -> Path:
    """The bare repository beside a clone that the clones of a bus share; made, where it is not there yet."""
    hub = folder.parent / "hub.git"
    if not hub.is_dir():  # with one commit: to a remote without a branch of its own nothing is pushed
        person = ["-c", "user.name=Somebody", "-c", "user.email=somebody@gitmem.invalid"]
        tree = git(folder, "write-tree")
        git(folder, "update-ref", "HEAD", git(folder, *person, "commit-tree", "-m", "First", tree))
        git(folder, "clone", "--quiet", "--bare", str(folder), str(hub))
        git(folder, "remote", "add", "origin", str(hub))
    return hub


def another(folder: Path) -> Path:
    """Another clone, beside this one."""
    clone = folder.parent / f"clone-{len(os.listdir(folder.parent))}"
    git(folder, "clone", "--quiet", str(connect(folder)), str(clone))
    return clone


def git(folder: Path, *args: str) -> str:
    """Run git in a folder and return its output, stripped; fail the case if git fails."""
    done = subprocess.run(
        ["git", *args], cwd=folder, env=sources(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()
