"""Many processes at once in one clone: every acknowledged line is there once, and every signal is read by whom it is for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.agents.caller import CallerClaims, find
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from gitmem.log.local_log import LocalLog
from gitmem.signals import inbox
from tests.clones import git

from .conftest import ROOT, Desk
from .faults import Port, check, child, command, fsck, open_store, record, settled, speak, texts

WRITERS, COMMANDS, READERS, EACH = 28, 4, 8, 3


class Crowd:
    """Forked processes that start together and each report one JSON value."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = folder / "go"
        self.pids: list[tuple[int, Path]] = []

    def add(self, act: Callable[[], object]) -> None:
        path = self.folder / f"said-{len(self.pids)}"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                while not self.gate.exists():
                    time.sleep(0.002)
                path.write_text(json.dumps(act()))
                status = 0
            finally:
                os._exit(status)
        self.pids.append((pid, path))

    def go(self) -> None:
        self.gate.touch()

    def end(self) -> list[object]:
        found = []
        for pid, path in self.pids:
            _, status = os.waitpid(pid, 0)
            assert status == 0, "a process failed; its traceback is on standard error"
            found.append(json.loads(path.read_text()))
        return found


def writer(repo: Path, port: Port, number: int) -> Callable[[], object]:
    def act() -> object:
        store = open_store(repo, port)
        kept = []
        for turn in range(EACH):
            done = speak(store, f"w{number}-{turn}")
            kept.append((f"w{number}-{turn}", done.commit))
        store.close()
        return kept

    return act


def reader(repo: Path, name: str, stop: Path) -> Callable[[], object]:
    """Reads and marks until the writers are done, then once more; what it was shown, each time that it was."""

    def act() -> object:
        shown: list[str] = []
        ended = False
        while not ended:
            ended = stop.exists()
            store = open_store(repo)
            caller = find(store, CallerClaims(as_=name))
            reading = inbox.read(store, caller, limit=1000, max_bytes=10_000_000)
            shown += [str(signal["message"]) for signal in reading.signals]
            inbox.mark(store, reading)
            store.close()
            time.sleep(0.02)
        return shown

    return act


def test_32_processes_that_append_at_once(repo: Path, tmp_path: Path) -> None:
    """Library and commands, both ports: every line once, no commit for nothing, and an index like a rebuilt one."""
    crowd = Crowd(tmp_path)
    for number in range(WRITERS):
        crowd.add(writer(repo, PlumbingGit if number % 7 == 0 else DulwichGit, number))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    environment["GITMEM_AGENT_IDENTITY"] = "test:worker:planck"
    args = ["signal", "--as", "test:worker:planck", "--broadcast", "--json"]
    child(command(repo, "session", "start", "--agent-identity", "test:worker:planck"))
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "cli", *args, f"c{number}"],
            cwd=repo, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(COMMANDS)
    ]  # fmt: skip
    before = int(git("rev-list", "--count", ref.LOG_REF, "--", cwd=repo))
    crowd.go()
    acknowledged = {text: commit for kept in crowd.end() for text, commit in kept}  # type: ignore[attr-defined]
    for number, process in enumerate(commands):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        acknowledged[f"c{number}"] = json.loads(out)["commit"]
    assert len(acknowledged) == WRITERS * EACH + COMMANDS
    check(repo, set(acknowledged), set())
    after = int(git("rev-list", "--count", ref.LOG_REF, "--", cwd=repo))
    assert after - before <= len(acknowledged) + 1
    store = open_store(repo)
    for text, commit in list(acknowledged.items())[::9]:
        if commit is not None:
            assert text in git("grep", "--text", "-h", f'"{text}"', commit, "--", cwd=repo)
            assert store.git.contains(store.git.tip(ref.LOG_REF) or "", commit)
    store.close()
    fsck(repo)


@pytest.mark.deep
def test_readers_that_mark_while_others_write(desk: Desk, tmp_path: Path) -> None:  # noqa: C901  (the steps of one story)
    """Each of eight readers is shown each signal that is for it, and nobody else's; receipts are its own alone."""
    names = [f"test:reader:r{letter}" for letter in "abcdefgh"]
    assert len(names) == READERS
    for name in names:
        desk("session", "start", "--agent-identity", name)
    repo = desk.repo
    crowd = Crowd(tmp_path)
    stop = tmp_path / "stop"
    for name in names:
        crowd.add(reader(repo, name, stop))

    def writes(number: int) -> Callable[[], object]:
        def act() -> object:
            store = open_store(repo, PlumbingGit if number == 3 else DulwichGit)
            said = []
            for turn, name in enumerate(names):
                speak(store, f"w{number}-{turn}", to=name)
                said.append((f"w{number}-{turn}", name))
            store.close()
            return said

        return act

    writers = Crowd(tmp_path / "writers")
    writers.folder.mkdir()
    for number in range(8):
        writers.add(writes(number))
    crowd.go()
    writers.go()
    meant: dict[str, list[str]] = {name: [] for name in names}
    for said in writers.end():
        for text, name in said:  # type: ignore[attr-defined]
            meant[name].append(text)
    stop.touch()
    for name, shown in zip(names, crowd.end(), strict=True):
        assert sorted(shown) == sorted(meant[name])  # type: ignore[arg-type]  # each once, for one process a reader
    settled(repo)
    store = open_store(repo)
    rows = store.db().execute(
        "SELECT r.reader, l.body FROM receipt r JOIN signal s ON s.signal_id = r.signal_id JOIN line l ON l.id = s.line"
    )
    found: dict[str, set[str]] = {}
    for name, body in rows:
        found.setdefault(name, set()).add(json.loads(body)["message"])
    assert found == {name: set(said) for name, said in meant.items()}
    assert not store.db().execute("SELECT * FROM mail").fetchall()
    store.close()


@pytest.mark.parametrize("port", [DulwichGit, PlumbingGit])
def test_nobody_waits_behind_a_committer_that_hangs(repo: Path, port: Port) -> None:
    """Recording needs no lock. A committer that is stopped costs the waiting time of who wants the commit, and no line."""
    store = open_store(repo, port)
    store.commit_seconds = 0.3
    speak(store, "before")
    holder = _holder(store.log)
    try:
        record(repo, "not waiting", port=port)
        began = time.monotonic()
        assert speak(store, "waits").commit is None
        assert time.monotonic() - began >= 0.3
        assert store.commit_failed is None and not {"waits", "not waiting"} & set(texts(store))
    finally:
        os.kill(holder, 9)
        os.waitpid(holder, 0)
    reader = open_store(repo)
    reader.db()
    assert texts(reader)["waits"] == 1, "the next command commits it, also one that only reads"
    assert not reader.waits()
    speak(reader, "after")
    check(repo, {"before", "not waiting", "waits", "after"}, set())


@pytest.mark.deep
def test_a_command_behind_a_committer_that_hangs_is_recorded(desk: Desk) -> None:
    """`"recorded": true` and no commit, within the five seconds that --commit waits; the lock of a dead process is free."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    store = open_store(desk.repo)
    holder = _holder(store.log)
    try:
        began = time.monotonic()
        said = child(command(desk.repo, "signal", "--to", "Curie", "--json", "Hello", session=planck)).answer
        assert time.monotonic() - began < commit_process.COMMIT_SECONDS + 5
        assert said["status"] == 0, said
        assert json.loads(said["out"])["commit"] is None and json.loads(said["out"])["recorded"] is True
        counted = child(command(desk.repo, "inbox", "--for", "Curie", "--count", "--json")).answer
        assert json.loads(counted["out"])["unread"] == 1, "what is recorded counts at once"
    finally:
        os.kill(holder, 9)
        os.waitpid(holder, 0)
    began = time.monotonic()
    said = child(command(desk.repo, "signal", "--to", "Curie", "--json", "Again", session=planck)).answer
    assert json.loads(said["out"])["commit"] and time.monotonic() - began < commit_process.COMMIT_SECONDS
    check(desk.repo, {"Hello", "Again"}, set())
    store.close()


def _holder(log: LocalLog) -> int:
    """A process that holds the lock and does nothing: its id."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lock = log.lock()
            os.write(write, b"y" if lock.take() else b"n")
            time.sleep(60)
        finally:
            os._exit(0)
    assert os.read(read, 1) == b"y"
    os.close(read)
    os.close(write)
    return pid
