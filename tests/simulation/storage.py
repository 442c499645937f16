"""Where a run takes place: repositories in memory, or real ones on the disk. Nobody in the run can tell which."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from gitmem.git import config, network, repository
from gitmem.git.network import GitNetwork
from gitmem.git.objects import EMPTY_TREE, Signature, format_commit
from gitmem.git.port import DulwichGit, Git

from .memory import MemoryGit, Repository
from .network import MemoryNetwork

URL = "../hub.git"
CONFIG = f"""[core]
\trepositoryformatversion = 0
\tbare = false
[remote "origin"]
\turl = {URL}
\tfetch = +refs/heads/*:refs/remotes/origin/*
"""
FIRST = Signature("Test Person", "person@example.org", 1_700_000_000)
MAIN = "refs/heads/main"
TRACKING = "refs/remotes/origin/"


class Storage(ABC):
    """The remote and the clones of a run, and what people do to them by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def hub(self) -> Git: ...

    @abstractmethod
    def clone(self, name: str) -> Path:
        """A new clone: the folder of its worktree."""

    @abstractmethod
    def copied(self, source: str, name: str) -> None:
        """The folder of a clone was copied with everything in it."""

    @abstractmethod
    def port(self, name: str) -> Git: ...

    @abstractmethod
    def network(self, name: str) -> GitNetwork: ...

    @abstractmethod
    def delete_on_hub(self, ref: str) -> None: ...

    @abstractmethod
    def put_on_hub(self, kind: str, content: bytes) -> str:
        """Write an object to the remote whatever is in it, as an attacker's own git can: its id."""

    @abstractmethod
    def set_on_hub(self, ref: str, oid: str) -> None:
        """Point a ref of the remote at a commit, by force."""

    @abstractmethod
    def fetch_by_hand(self, name: str) -> None:
        """`git fetch` of a person."""

    def lock(self, name: str, ref: str, at_seconds: float) -> None:
        """A lock on a ref that its dead owner left at that time."""
        path = self.root / name / ".git" / (ref + ".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (at_seconds, at_seconds))

    @contextmanager
    def entered(self) -> Iterator[None]:
        yield

    @abstractmethod
    def close(self) -> None:
        """Let go of files."""


class InMemory(Storage):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.remote = Repository(str(root))
        self.first = self.remote.put(b"commit", format_commit(EMPTY_TREE, [], FIRST, FIRST, "First\n"))
        self.remote.refs[MAIN] = self.first
        self.repositories: dict[str, Repository] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What would be asked of the git program has a plain answer here."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(config, "push_urls", lambda *_: (URL, URL)))
            stack.enter_context(mock.patch.object(config, "upstream_remote", lambda place: "origin"))
            stack.enter_context(mock.patch.object(network, "ssh_without_prompts", lambda common: {}))
            stack.enter_context(mock.patch.object(repository, "root_commits", lambda place: {self.first}))
            yield

    def hub(self) -> Any:
        return MemoryGit(self.remote)

    def clone(self, name: str) -> Path:
        inside = self.root / name / ".git"
        for folder in ("objects", "refs"):
            os.makedirs(inside / folder)
        (inside / "HEAD").write_text("ref: refs/heads/main\n")
        (inside / "config").write_text(CONFIG)
        here = self.repositories[name] = Repository(str(inside))
        here.take(self.remote, self.first)
        here.refs[MAIN] = here.refs[TRACKING + "main"] = self.first
        return self.root / name

    def copied(self, source: str, name: str) -> None:
        self.repositories[name] = self.repositories[source].copy(str(self.root / name / ".git"))

    def port(self, name: str) -> Any:
        return MemoryGit(self.repositories[name])

    def network(self, name: str) -> Any:
        return MemoryNetwork(self.repositories[name], {URL: self.remote})

    def delete_on_hub(self, ref: str) -> None:
        del self.remote.refs[ref]

    def put_on_hub(self, kind: str, content: bytes) -> str:
        return self.remote.put(kind.encode(), content)

    def set_on_hub(self, ref: str, oid: str) -> None:
        self.remote.refs[ref] = oid

    def close(self) -> None:
        self.repositories.clear()

    def fetch_by_hand(self, name: str) -> None:
        here = self.repositories[name]
        for ref, oid in self.remote.refs.items():
            if ref.startswith("refs/heads/"):
                here.take(self.remote, oid)
                here.refs[TRACKING + ref.removeprefix("refs/heads/")] = oid


class OnDisk(Storage):
    """Real repositories, the port of a long-lived process, and the git program as the network."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._ports: list[Git] = []
        self._hub = str(root / "hub.git")
        self._git("init", "--quiet", "--bare", "--initial-branch=main", "hub.git")
        data = format_commit(EMPTY_TREE, [], FIRST, FIRST, "First\n")
        self._git("hash-object", "-w", "-t", "tree", "--stdin", cwd=self._hub)
        first = self._git("hash-object", "-w", "-t", "commit", "--stdin", cwd=self._hub, input=data)
        self._git("update-ref", MAIN, first, cwd=self._hub)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """No cache of git's settings is kept: whether one may be depends on how old the real files are."""
        with mock.patch.object(config, "_write_cache", lambda *_: None):
            yield

    def _git(self, *args: str, cwd: str | None = None, input: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.root, input=input, capture_output=True, check=True, timeout=60
        )
        return done.stdout.decode().strip()

    def hub(self) -> Any:
        return self._opened(self._hub)

    def clone(self, name: str) -> Path:
        template = self.root / "template"
        if not template.exists():
            self._git("init", "--quiet", "--initial-branch=main", "--template=", "template")
            (template / ".git" / "config").write_text(CONFIG)
            self._git("fetch", "--quiet", cwd=str(template))
            self._git("update-ref", MAIN, TRACKING + "main", cwd=str(template))
        shutil.copytree(template, self.root / name)
        return self.root / name

    def copied(self, source: str, name: str) -> None:
        """The folder is all there is."""

    def port(self, name: str) -> Any:
        return self._opened(str(self.root / name / ".git"))

    def network(self, name: str) -> Any:
        return GitNetwork(str(self.root / name / ".git"))

    def delete_on_hub(self, ref: str) -> None:
        self._git("update-ref", "-d", ref, cwd=self._hub)

    def put_on_hub(self, kind: str, content: bytes) -> str:
        args = ("hash-object", "--literally", "-w", "-t", kind, "--stdin")
        return self._git(*args, cwd=self._hub, input=content)

    def set_on_hub(self, ref: str, oid: str) -> None:
        self._git("update-ref", ref, oid, cwd=self._hub)

    def fetch_by_hand(self, name: str) -> None:
        self._git("fetch", "--quiet", "origin", cwd=str(self.root / name))

    def close(self) -> None:
        for port in self._ports:
            port.close()

    def _opened(self, common: str) -> Any:
        port = DulwichGit(common)
        self._ports.append(port)
        return port
