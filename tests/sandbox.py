"""Stores on real repositories, with a clock that the test moves and a wire between clones that it controls."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gitmem import records
from gitmem import repo as place
from gitmem.agents import caller, delivery, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.agents.lifecycle import SessionResult
from gitmem.git.port import DulwichGit
from gitmem.git.repository import root_commits
from gitmem.log.lines import CommitMessage, is_attestation
from gitmem.open_store import DOMAIN
from gitmem.records.record_types import SignalFields
from gitmem.store import Store
from gitmem.text.addresses import of_writer
from gitmem.trust.keys import SigningKey

from . import templates
from .signing import ANNA, history, put_key

ROOT = Path(__file__).parents[1]

START = 1_793_000_000_000_000  # microseconds: 2026-10-26
SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
DAY = 24 * HOUR

# Seconds. What is recorded waits for a committer, which does not come, unless a test uses the fixture `commits`.
commit_window = 3600.0


class Clock:
    """Microseconds that only move when told to."""

    def __init__(self) -> None:
        self.value = START

    def __call__(self) -> int:
        return self.value

    def forward(self, micros: int) -> None:
        self.value += micros


def no_role(implied: str | None = None, branch: str | None = "main") -> dict[str, object]:
    """The role fields in answers about a session that states none."""
    return {
        "role": None, "implied_role": implied, "actual_role": None, "lifecycle_role": None, "specialty_profile": None, "role_alias": None,
        "role_pack": None, "capabilities": [], "actual_ownership_scope": None, "model": None, "branch": branch,
        "task_id": None,
    }  # fmt: skip


def annas(words: str, writer: SigningKey = ANNA) -> str:
    """The address of an agent or a person of the writer of these stores."""
    return of_writer(words, writer.writer)


def open_store(
    where: Path,
    clock: Clock,
    *,
    mail: str | None = "person@example.org",
    commit_after: float | None = None,
    writer: SigningKey = ANNA,
) -> Store:
    """A store as one process of a writer in that folder has it: the clones of a test are one user's, unless it says otherwise."""
    assert not where.resolve().is_relative_to(ROOT), f"{where} is the user's checkout"
    found = place.find(str(where))
    if mail is not None:
        config = Path(found.common, "config")
        person = f"[user]\n\temail = {mail}\n\tname = Test Person\n"
        if not config.read_text().endswith(person):
            with config.open("a") as file:
                file.write(person)
    window = commit_window if commit_after is None else commit_after
    keys = where.parent / f"keys-{writer.writer}"
    put_key(keys / min(root_commits(found), default="none"), writer)
    return Store(
        found,
        DulwichGit(found.common),
        DOMAIN,
        machine="test",
        now=clock,
        commit_after=window,
        keys_folder=str(keys),
    )


def new_repo(where: Path) -> Path:
    """Another clone, as far as lines are concerned."""

    def make(path: Path) -> None:
        subprocess.run(["git", "init", "--quiet", "-b", "main"], cwd=path, check=True)
        subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "First"], cwd=path, check=True)

    templates.copy("empty-commit", where, make)
    return where


def worktree(repo: Path, where: Path) -> Path:
    """A linked worktree."""
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(where)], cwd=repo, check=True)
    return where


def bodies(store: Store) -> list[bytes]:
    """Every record of the log."""
    return [line for line in every_line(store) if not is_attestation(line)]


def every_line(store: Store) -> list[bytes]:
    """Every line of the log, with the attestations."""
    return sorted(body.encode() for (body,) in store.db().execute("SELECT body FROM line"))


def arrive(store: Store, lines: Iterable[bytes]) -> None:
    """Put lines of other clones into a log, as they are; those without a writer were imported there."""
    lines = list(lines)
    found = [(stream_of(line), line) for line in (*lines, *history(lines))]
    if found:
        sealer, store.log.sealer = store.log.sealer, None
        try:
            store.record(found, CommitMessage("gitmem <gitmem@localhost>", "sync"))
            store.commit(0.0, deferred=True)
        finally:
            store.log.sealer = sealer


def stream_of(line: bytes) -> str:
    """The folder of the log for a line."""
    kind: str = json.loads(line)["kind"]
    return records.STREAMS[kind]


def carry(one: Store, other: Store) -> None:
    """What a sync does to two clones: afterwards both have every line."""
    for store in (one, other):
        store.commit(0.0, deferred=True)
    ours, theirs = every_line(one), every_line(other)
    for store, missing in ((one, set(theirs) - set(ours)), (other, set(ours) - set(theirs))):
        arrive(store, sorted(missing))


def acting(store: Store, session: SessionResult | str, **who: object) -> Caller:
    """The caller with GITMEM_SESSION set."""
    session_id = session if isinstance(session, str) else session.session_id
    found = caller.find(store, CallerClaims(session=session_id))
    assert found
    return found


def person(store: Store) -> Caller:
    """The caller at a terminal."""
    found = caller.find(store, CallerClaims(terminal=True))
    assert found
    return found


class Agent:
    """Somebody at work in a clone."""

    def __init__(self, store: Store, identity: str, **session: Any) -> None:
        self.store = store
        self.session = lifecycle.start(store, CallerClaims(), agent_identity=identity, **session)
        self.caller = acting(store, self.session)


def say(store: Store, sender: Caller, number: int = 1) -> None:
    """A signal of no further interest: a sign of life."""
    fields: SignalFields = {
        "signal_id": f"sig-{number:04}", "sender_identity": sender.reader,
        "sender_session": sender.session_id, "recipients": [], "message": "hello",
    }  # fmt: skip
    store.record([store.line("signal", fields)], CommitMessage(sender.author, "hello"))


def told(agent: Agent) -> list[str]:
    """What a session is told at its next command."""
    agent.store.db()
    return delivery.take_notices(agent.store.repo.state, agent.caller.session_id or "")


def committed(repo: Path, ref: str = "refs/gitmem/log") -> list[bytes]:
    """Every line of a log, by git alone."""
    command = ["git", "grep", "--text", "-h", "-e", "", ref, "--", "*.jsonl"]
    done = subprocess.run(command, cwd=repo, capture_output=True, check=False)
    assert done.returncode in (0, 1), done  # 1: there is none
    return done.stdout.splitlines()
