"""Users on machines of their own, and a hub that they share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..hazards.conftest import Desk, Said


def git(cwd: Path, *args: str, given: bytes | None = None) -> str:
    done = subprocess.run(["git", *args], cwd=cwd, input=given, capture_output=True, check=True)
    return done.stdout.decode().strip()


class Machine:
    """A user's home on one machine."""

    def __init__(self, top: Path, **env: str) -> None:
        self.top = top
        top.mkdir(exist_ok=True)
        self.config = top / ".gitconfig"
        self.config.write_text(f"[user]\n\tname = {top.name}\n\temail = {top.name}@b.c\n")
        self.env = {
            "HOME": str(top),
            "XDG_STATE_HOME": str(top / "state"),
            "GIT_CONFIG_GLOBAL": str(self.config),
            **env,
        }

    def clone(self, hub: Path, name: str = "clone") -> Path:
        git(self.top, "clone", "--quiet", str(hub), name)
        return self.top / name

    def __call__(self, repo: Path, *args: str) -> Said:
        return Desk(repo)(*args, env=self.env)

    def say(self, repo: Path, text: str) -> Any:
        said = self(repo, "signal", text, "--broadcast", "--commit", "--json")
        assert said.status == 0, said
        return said.json

    def sync(self, repo: Path) -> Said:
        return self(repo, "sync", "--publish")

    def hears(self, repo: Path) -> str:
        """What the log of a clone shows, its own records too."""
        return self(repo, "log", "--json").out


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    seed, bare = tmp_path / "seed", tmp_path / "hub.git"
    git(tmp_path, "init", "--quiet", str(seed))
    git(seed, "commit", "--quiet", "--allow-empty", "-m", "begin")
    git(tmp_path, "clone", "--quiet", "--bare", str(seed), str(bare))
    return bare


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    return lambda name, **env: Machine(tmp_path / name, **env)
