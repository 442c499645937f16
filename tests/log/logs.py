"""Logs to try things on, with a clock that the test moves."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
from pathlib import Path

import pytest

from gitmem import repo as place
from gitmem.git.port import DulwichGit, Git
from gitmem.log import committer, lines, ref
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.log.local_log import Appended, LocalLog

START = 1_793_000_000_000_000  # microseconds: 2026-10-26


class FakeClock:
    """Microseconds that only move when told to."""

    def __init__(self, now: int = START) -> None:
        self.value = now

    def __call__(self) -> int:
        return self.value

    def forward(self, seconds: float) -> None:
        self.value += int(seconds * 1_000_000)


def open_log(
    repo: Path, *, clock: FakeClock | None = None, git: Git | None = None, seed: int | None = None
) -> LocalLog:
    """A log on a real repository; `seed` makes its tokens repeatable."""
    found = place.find(str(repo))
    source = random.Random(seed).randbytes if seed is not None else os.urandom
    return LocalLog(
        found,
        git or DulwichGit(found.common),
        now=clock or FakeClock(),
        random=source,
        committer=("Test Person", "person@example.org"),
    )


def entry(log: LocalLog, text: str, *, stream: str = "signals", deferred: bool = False) -> LogEntry:
    """One line that says `text`."""
    at = lines.format_at(log.clock.tick())
    line = f'{{"at":"{at}","kind":"note","text":"{text}"}}'.encode()
    return LogEntry(
        [(stream, line)], CommitMessage("Planck <a:b:c@gitmem>", f"Planck → all: {text}"), deferred=deferred
    )


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without file locks."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def limit_unions(monkeypatch: pytest.MonkeyPatch, most: int = 64 * 1024) -> None:
    """Make the limit of a segment that a union makes so many bytes: the real one takes seconds to fill."""
    monkeypatch.setattr(ref, "UNION_BYTES_MAX", most)


def record(log: LocalLog, one: LogEntry) -> Appended:
    """Append an entry and commit it, with all that waits; a deferred one goes on waiting."""
    appended = log.append(one)
    if not one.deferred and appended.where is None:
        appended.commit = committer.commit_within(log, 5.0)
    return appended


def waiting(log: LocalLog) -> list[str]:
    """The texts of all lines that wait for a commit, oldest first."""
    return [str(json.loads(line)["text"]) for _, line in committer.waiting_rows(log, deferred=True)]


def all_lines(log: LocalLog) -> list[bytes]:
    """Every line in every segment of the tip, repeats and all."""
    tip = log.git.tip(ref.LOG_REF)
    return sorted(_below(log.git, log.git.commit(tip).tree)) if tip else []


def _below(git: Git, tree: str) -> list[bytes]:
    found = []
    for name, item in git.tree(tree).items():
        if item.is_tree:
            found += _below(git, item.oid)
        elif name.endswith(".jsonl"):
            found += git.blob(item.oid).splitlines()
    return found
