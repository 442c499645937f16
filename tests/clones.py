"""Clones of one remote, each with its own log, for tests of sync."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer, lines, ref
from gitmem.log.lines import CommitMessage, LogEntry, is_attestation
from gitmem.log.local_log import LocalLog
from gitmem.open_store import DOMAIN
from gitmem.repo import Repo, find
from gitmem.store import Store
from gitmem.sync import consent, exchange
from gitmem.sync.remote import Remote

from . import templates
from .sandbox import committed
from .signing import own_key

BEGINNING = 1_795_000_000_000_000  # microseconds: in November 2026


def git(*args: str, cwd: Path, check: bool = True) -> str:
    """Git by hand, as a person would run it."""
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 or not check, (
        f"git {' '.join(args)}: {done.returncode} {done.stdout}{done.stderr}"
    )
    return done.stdout


def agreed(remote: Remote) -> bool:
    """The answer of a user who has agreed to publish everywhere: the log itself does not know about consent."""
    return True


def agree(place: Repo, remote: str = "origin") -> None:
    """Agree to publish to a remote, as `gitmem setup --publish yes` does."""
    consent.give_consent(
        place, consent.destination(place, remote), consent.BY_SETUP, lines.format_at(BEGINNING)
    )


class Ticks:
    """A clock that all clones of a test share: a second later each time that it is asked."""

    def __init__(self) -> None:
        self.micros = BEGINNING

    def __call__(self) -> int:
        self.micros += 1_000_000
        return self.micros


class Clone:
    """One clone and its log."""

    def __init__(
        self, path: Path, now: Ticks, seed: int, port: Callable[[str], DulwichGit | PlumbingGit]
    ) -> None:
        self.path = path
        place = find(str(path))
        self.git = port(place.common)
        own_key(path)
        draw = random.Random(seed).randbytes
        self.store = Store(place, self.git, DOMAIN, machine="test", now=now, random=draw)
        self.log: LocalLog = self.store.log
        self.log.committer = (path.name, f"{path.name}@example.org")

    def add(self, text: str, *, deferred: bool = False, stream: str = "notes") -> str | None:
        """Append a line and commit it: the commit."""
        self.record(text, deferred=deferred, stream=stream)
        return None if deferred else committer.commit_within(self.log, 5.0)

    def record(self, text: str, *, deferred: bool = False, stream: str = "notes") -> None:
        """Append a line, which waits for its commit then."""
        at = lines.format_at(self.log.clock.tick())
        line = json.dumps({"at": at, "kind": "note", "text": text}, separators=(",", ":")).encode()
        story = CommitMessage(f"{self.path.name} <{self.path.name}@agents>", text, "", [("Note", text)])
        self.log.append(LogEntry([(stream, line)], story, deferred=deferred))

    def exchange(self, *names: str, **options: object) -> Remote:
        """Sync with one remote."""
        (remote,) = self.exchange_all(*(names or ("origin",)), **options)
        return remote

    def exchange_all(self, *names: str, **options: object) -> Sequence[Remote]:
        given: dict[str, object] = {
            "timeout": 20.0,
            "may_send": agreed,
            "pause": lambda seconds: None,
            **options,
        }
        return exchange.exchange(self.log, names, **given)  # type: ignore[arg-type]

    @property
    def tip(self) -> str:
        found = self.git.tip(ref.LOG_REF)
        assert found is not None
        return found

    @property
    def tree(self) -> str:
        return self.git.commit(self.tip).tree

    def texts(self) -> list[str]:
        """What the lines of the log say, in order; lines that are no records as they are, and none that attest others."""
        return texts(self.path, self.tip)

    def subjects(self) -> list[str]:
        """Subjects of the log's commits, newest first."""
        return git("log", "--format=%s", self.tip, "--", cwd=self.path).splitlines()

    def merges(self) -> int:
        return len(git("rev-list", "--merges", self.tip, "--", cwd=self.path).split())


def texts(path: Path, tip: str) -> list[str]:
    """What the lines of a commit say, in order; what attests them says nothing."""
    return [_text(line) for line in sorted({*committed(path, tip)}) if not is_attestation(line)]


def _text(line: bytes) -> str:
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError):
        return line.decode("utf-8", "replace")


class Hub:
    """A bare remote with one user's commit, and clones of it, which commit what they record at once."""

    commit_after = 0.0

    def __init__(self, root: Path, port: Callable[[str], DulwichGit | PlumbingGit] = DulwichGit) -> None:
        self.root = root
        self.path = root / "hub.git"
        self.port = port
        self.now = Ticks()
        self.clones: list[Clone] = []
        templates.copy("hub", root, hub_and_first_clone)

    def clone(self, name: str, *, of: Path | None = None) -> Clone:
        path = self.root / name
        git("clone", "--quiet", str(of or self.path), str(path), cwd=self.root)
        clone = self.open(path)
        clone.store.commit_after = self.commit_after
        agree(clone.store.repo)
        return clone

    def open(self, path: Path, *, seed: int | None = None) -> Clone:
        """Open a clone; one that has made ids before needs another seed than then."""
        clone = Clone(path, self.now, len(self.clones) if seed is None else seed, self.port)
        self.clones.append(clone)
        return clone

    def tip(self, name: str = ref.BRANCH) -> str | None:
        return git("rev-parse", "--verify", "--quiet", name, cwd=self.path, check=False).strip() or None

    def texts(self, name: str = ref.BRANCH) -> list[str]:
        tip = self.tip(name)
        return texts(self.path, tip) if tip else []

    def close(self) -> None:
        for clone in self.clones:
            clone.store.close()


def hub_and_first_clone(root: Path) -> None:
    """Make a bare hub and a clone of it with the user's first commit."""
    git("init", "--quiet", "--bare", "--initial-branch=main", "hub.git", cwd=root)
    first = root / "first"
    git("clone", "--quiet", str(root / "hub.git"), str(first), cwd=root)
    git("checkout", "--quiet", "-b", "main", cwd=first)
    (first / "README").write_text("A project.\n")
    git("add", "README", cwd=first)
    git("commit", "--quiet", "-m", "First", cwd=first)
    git("push", "--quiet", "origin", "main", cwd=first)


def hub_at(root: Path, port: Callable[[str], DulwichGit | PlumbingGit] = DulwichGit) -> Iterator[Hub]:
    hub = Hub(root, port)
    yield hub
    hub.close()
