"""Clones that use the installed program, and a peer who has push access and git's plumbing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests import templates
from tests.clones import hub_and_first_clone
from tests.in_process import gitmem

T = TypeVar("T")

GITMEM = Path(sys.executable).parent / "gitmem"
BRANCH = "refs/heads/gitmem"
WHO: dict[str, Any] = {
    **{f"GIT_{role}_NAME": "Mallory" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "mallory@example.org" for role in ("AUTHOR", "COMMITTER")},
}


def git(*args: str, cwd: Path, input: bytes = b"", check: bool = True, **env: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=cwd, input=input, capture_output=True, timeout=60, env={**os.environ, **env}
    )
    assert done.returncode == 0 or not check, f"git {' '.join(args)}: {done.stderr.decode()}"
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


class Answer:
    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        out = done.stdout.decode()
        self.text = out + done.stderr.decode()
        assert "Traceback" not in self.text, self.text
        self.json: dict[str, Any] = json.loads(out) if out.startswith("{") else {}

    @property
    def remote(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["remotes"][0]
        return found


class Peer:
    """A clone whose owner runs the program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *args: str, timeout: float | None = None, input: str | None = None) -> Answer:
        """Run a command; with a limit of seconds, in a process of its own that can be stopped."""
        given = (input or "").encode()
        if timeout is None:
            return Answer(gitmem(*args, cwd=self.path, given=given))
        done = subprocess.run(
            [str(GITMEM), *args], cwd=self.path, input=given, capture_output=True, timeout=timeout
        )
        return Answer(done)

    def say(self, text: str) -> None:
        answer = self.run("signal", text)
        assert answer.code == 0, answer.text

    def sync(self, *args: str) -> Answer:
        return self.run("sync", "--publish", "--json", *args)

    def messages(self, ref: str = "refs/gitmem/log") -> set[str]:
        return messages(self.path, ref)

    def tip(self, ref: str = "refs/gitmem/log") -> str:
        return git("rev-parse", "--verify", "--quiet", ref, cwd=self.path, check=False)


def messages(repo: Path, ref: str) -> set[str]:
    """What the signals in a log say."""
    found = set()
    for row in git("ls-tree", "-r", "-z", ref, cwd=repo).split("\0"):
        head, _, name = row.partition("\t")
        if name.endswith(".jsonl"):
            for line in git("cat-file", "blob", head.split()[2], cwd=repo).splitlines():
                try:
                    found.add(json.loads(line).get("message"))
                except ValueError:
                    found.add(line)
    return {each for each in found if each is not None}


class Town:
    """A bare hub with a branch of the user's, and clones of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hub = root / "hub.git"
        templates.copy("hub", root, hub_and_first_clone)

    def after(self, name: str, day: Callable[[Town], T]) -> T:
        """Let this town have what happened on a day that all tests of that name share."""
        return templates.copy(name, self.root, lambda root: day(Town(root)))

    def peer(self, name: str) -> Peer:
        return Peer(self.root / name)

    def clone(self, name: str, *, init: bool = True) -> Peer:
        path = self.root / name
        git("clone", "--quiet", str(self.hub), str(path), cwd=self.root)
        with (path / ".git" / "config").open("a") as config:
            config.write(f"[user]\n\tname = {name}\n\temail = {name}@example.org\n")
        peer = Peer(path)
        if init:
            answer = peer.run("setup")
            assert answer.code == 0, answer.text
        return peer

    # What a peer with push access can do, in the hub itself.

    def blob(self, content: bytes) -> str:
        return git("hash-object", "-w", "-t", "blob", "--stdin", cwd=self.hub, input=content)

    def object(self, kind: str, content: bytes) -> str:
        return git("hash-object", "-w", "-t", kind, "--literally", "--stdin", cwd=self.hub, input=content)

    def tree(self, base: str, changes: dict[str, bytes | None]) -> str:
        """The tree of a commit with top-level or nested files changed, made with an index of its own."""
        index = str(self.root / "attack-index")
        Path(index).unlink(missing_ok=True)
        git("read-tree", base, cwd=self.hub, GIT_INDEX_FILE=index)
        for path, content in changes.items():
            if content is None:
                for name in git("ls-files", path, cwd=self.hub, GIT_INDEX_FILE=index).splitlines():
                    row = f"0 {'0' * 40}\t{name}\n".encode()
                    git("update-index", "--index-info", cwd=self.hub, input=row, GIT_INDEX_FILE=index)
            else:
                row = f"100644 {self.blob(content)}\t{path}\n".encode()
                git("update-index", "--index-info", cwd=self.hub, input=row, GIT_INDEX_FILE=index)
        return git("write-tree", cwd=self.hub, GIT_INDEX_FILE=index)

    def commit(self, tree: str, *parents: str, message: str = "By hand") -> str:
        args = [part for parent in parents for part in ("-p", parent)]
        return git("commit-tree", tree, *args, "-m", message, cwd=self.hub, **WHO)

    def point(self, ref: str, oid: str) -> None:
        git("update-ref", ref, oid, cwd=self.hub)

    def break_with(self, changes: dict[str, bytes | None], *, box: bool = False) -> tuple[str, str]:
        """A commit on the branch, or an outbox on it: the ref and the commit."""
        oid = self.commit(self.tree(BRANCH, changes), git("rev-parse", BRANCH, cwd=self.hub))
        ref = f"refs/gitmem/outbox/{oid}" if box else BRANCH
        self.point(ref, oid)
        return ref, oid

    def tip(self, ref: str = BRANCH) -> str:
        return git("rev-parse", "--verify", "--quiet", ref, cwd=self.hub, check=False)

    def messages(self, ref: str = BRANCH) -> set[str]:
        return messages(self.hub, ref)

    def outboxes(self) -> dict[str, str]:
        rows = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=self.hub).splitlines()
        found = (row.split(" ") for row in rows)
        return {name: oid for name, oid in found if "outbox" in name}
