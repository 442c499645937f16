"""The index is derived: whatever is done to it, commands answer the same, byte for byte."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.index import index_file
from gitmem.log import lines
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.store import Store

from .conftest import ROOT, Desk, powerless, process
from .faults import check_index, child, command, indexed, open_store, settled, speak


class Office:
    """A log with a proposal, an answer, a broadcast and something unread, and the questions that one asks it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.repo = desk.repo
        self.planck, self.curie = desk.start("Planck"), desk.start("Curie")
        root = desk.send(self.planck, "Approve?", "--to", "Curie", "--intent", "propose")["signal"]
        self.thread = root["thread_id"]
        assert desk("reply", root["signal_id"], "yes", "--agree", session=self.curie).status == 0
        desk.send(self.planck, "Hear, hear.", "--broadcast")
        desk.send(self.planck, "One more thing.", "--to", "Curie")
        assert desk("inbox", session=self.planck).status == 0  # a receipt that rides in the spool
        self.expected = self.ask()
        assert self.expected[0][0] == 0 and "One more thing." in self.expected[0][1]
        assert self.expected[1][0] == 0 and json.loads(self.expected[1][1])["converged"] is True

    @property
    def index(self) -> Path:
        (path,) = (self.repo / ".git" / "gitmem").glob("index-*.sqlite3")
        return path

    @property
    def questions(self) -> list[tuple[tuple[str, ...], str | None]]:
        return [
            (("inbox", "--no-mark", "--json"), self.curie),
            (("converged", self.thread, "--json"), None),
            (("inbox", "--count", "--json"), self.curie),
            (("inbox", "--json"), self.planck),
            (("thread", self.thread, "--json"), None),
        ]

    def ask(self) -> list[tuple[int, str]]:
        """Status and output of each question, in this process."""
        found = []
        for args, session in self.questions:
            said = self.desk(*args, session=session)
            found.append((said.status, said.out))
        return found

    def ask_powerless(self) -> list[tuple[int, str]]:
        """The same, each in a process that permissions bind."""
        found = []
        for args, session in self.questions:
            env = {"GITMEM_SESSION": session} if session else {}
            said = process(*args, cwd=self.repo, env=env, before=powerless)
            found.append((said.status, said.out))
        return found

    def check(self) -> None:
        store = open_store(self.repo)
        check_index(store)
        store.close()


@pytest.fixture
def office(desk: Desk) -> Office:
    return Office(desk)


def _sidecars(index: Path) -> list[Path]:
    return [Path(f"{index}{suffix}") for suffix in ("", "-wal", "-shm")]


def deleted(index: Path) -> None:
    for path in _sidecars(index):
        path.unlink(missing_ok=True)


def deleted_but_for_its_wal(index: Path) -> None:
    index.unlink()
    Path(f"{index}-wal").write_bytes(os.urandom(8_000))


def truncated(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:5_000])


def empty(index: Path) -> None:
    index.write_bytes(b"")


def noise(index: Path) -> None:
    index.write_bytes(b"no database at all" * 400)


def noise_in_the_middle(index: Path) -> None:
    data = bytearray(index.read_bytes())
    for at in range(4096, len(data), 512):
        data[at : at + 64] = os.urandom(64)
    index.write_bytes(data)


def of_another_version(index: Path) -> None:
    with sqlite3.connect(index) as db:
        db.execute("PRAGMA user_version = 7")
        db.execute("DROP TABLE mail")
        db.execute("CREATE TABLE from_the_future (x)")
    db.close()


def of_another_program(index: Path) -> None:
    deleted(index)
    with sqlite3.connect(index) as db:
        db.execute("CREATE TABLE line (colour TEXT)")
    db.close()


def a_folder(index: Path) -> None:
    deleted(index)
    index.mkdir()


DAMAGES = [deleted, deleted_but_for_its_wal, truncated, empty, noise, noise_in_the_middle, of_another_version,
           of_another_program, a_folder]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.replace("_", " "))
def test_a_damaged_index_answers_the_same(office: Office, damage: Callable[[Path], None]) -> None:
    """Built again, or where even that is not possible, made anew for the one command."""
    damage(office.index)
    assert office.ask() == office.expected
    assert office.ask() == office.expected
    said = office.desk("signal", "--to", "Curie", "--json", "after", session=office.planck)
    assert said.status == 0 and said.json["commit"]


@pytest.mark.parametrize("missing", [False, True], ids=["with an index", "without one"])
def test_a_folder_that_cannot_be_written_answers_the_same(office: Office, missing: bool) -> None:
    """An agent's sandbox: the index is read as it is, or built in memory."""
    if missing:
        deleted(office.index)
    state = office.repo / ".git" / "gitmem"
    bent = [path for path in (office.repo / ".git").rglob("*") if path.is_dir() or path.parent == state]
    modes = {path: path.stat().st_mode for path in [*bent, office.repo / ".git"]}
    try:
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert office.ask_powerless() == office.expected
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert office.ask() == office.expected


@pytest.fixture
def holder(office: Office) -> Iterator[Callable[[str], None]]:
    """Lets another connection hold the index's lock."""
    connections = []

    def hold(how: str) -> None:
        db = sqlite3.connect(office.index, isolation_level=None)
        connections.append(db)
        if how == "whole file":
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT OR REPLACE INTO meta VALUES ('held', '1')")

    yield hold
    for db in connections:
        db.close()


def behind(repo: Path, text: str) -> None:
    """A line that the index has not read yet."""
    store = open_store(repo)
    store.log.committed = lambda: None
    assert speak(store, text, to="test:worker:nobody").commit
    store.close()


@pytest.mark.parametrize("is_behind", [False, True], ids=["caught up", "behind"])
def test_an_index_that_somebody_holds_does_not_stop_anybody(
    office: Office, holder: Callable[[str], None], is_behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is caught up is read beside its writer; else it is waited for, and then done without."""
    monkeypatch.setattr(index_file, "BUSY_MILLISECONDS", 200)
    if is_behind:
        behind(office.repo, "unrelated")
    holder("for writing")
    assert [status for status, _ in office.ask()] == [status for status, _ in office.expected]
    answers = office.ask()
    assert [answers[0], answers[2], answers[4]] == [
        office.expected[0],
        office.expected[2],
        office.expected[4],
    ]
    said = office.desk("signal", "--to", "Curie", "--json", "meanwhile", session=office.planck)
    assert said.status == 0 and said.json["commit"]
    assert "meanwhile" in office.ask()[0][1]


def test_an_index_that_is_deleted_while_it_is_open(office: Office) -> None:
    """Who has it open goes on, the others build another, and both know everything."""
    store = open_store(office.repo)
    before = indexed(store)
    for path in _sidecars(office.index):
        path.unlink(missing_ok=True)
    speak(store, "by who has it open")
    other = open_store(office.repo)
    speak(other, "by who builds another")
    assert indexed(store) == indexed(other) == before | {"by who has it open", "by who builds another"}
    check_index(store)
    check_index(other)
    store.close()
    other.close()
    office.check()


@pytest.mark.deep
def test_many_that_build_it_at_once_answer_the_same(office: Office) -> None:
    """Eight processes that find no index, or one of noise."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
        "GITMEM_SESSION": office.curie,
    }
    for damage in (deleted, noise):
        damage(office.index)
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "cli", "inbox", "--no-mark", "--json"],
                cwd=office.repo, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for _ in range(8)
        ]  # fmt: skip
        for one in started:
            out, err = one.communicate(timeout=60)
            assert (one.returncode, out) == office.expected[0], err
        office.check()


def fill(store: Store, count: int) -> None:
    """Many lines in one commit, which the index has not read."""
    found = []
    for number in range(count):
        at = lines.format_at(store.log.clock.tick())
        found.append(("signals", b'{"at":"%s","kind":"note","n":%d}' % (at.encode(), number)))
    store.log.committed = lambda: None
    store.log.recorded = lambda entries: None
    store.log.append(LogEntry(found, CommitMessage("Planck <a@b>", "many")))


@pytest.mark.parametrize("rebuilds", [False, True], ids=["catching up", "building"])
def test_killed_in_the_middle_of_catching_up(office: Office, rebuilds: bool) -> None:
    """A journal that a kill left behind is nobody's trouble: all of it was read, or nothing."""
    store = open_store(office.repo)
    for _ in range(3):
        fill(store, 200)
    store.close()
    if rebuilds:
        deleted(office.index)
    died = 0
    for limit in (1, 50, 200, 401, 600):

        def act(limit: int = limit) -> None:
            mine = open_store(office.repo)
            mine.index.db.execute("PRAGMA cache_size = 2")  # what was read spills into the journal

            def progress(step: str, done: int, total: int) -> None:
                if done >= limit:
                    os.kill(os.getpid(), signal.SIGKILL)

            mine.progress = progress
            mine.db()

        died += child(act).died
        store = open_store(office.repo)
        fill(store, 20)
        store.close()
    assert died >= 3
    assert office.ask()[0] == office.expected[0]
    office.check()
    settled(office.repo)


def test_answers_do_not_depend_on_who_caught_up(office: Office) -> None:
    """The one that caught up step by step and the one of a fresh process say the same."""
    deleted(office.index)
    fresh = child(command(office.repo, *office.questions[0][0], session=office.curie)).answer
    assert (fresh["status"], fresh["out"]) == office.expected[0]
