"""What is only in the write-ahead log counts: sessions that started, were renamed or ended there, mail, names and flags."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.log import ref
from gitmem.log.lock import Lock
from gitmem.repo import find
from tests.conftest import Git

from .conftest import Desk, waiting
from .faults import open_store


@pytest.fixture
def tail(desk: Desk, git: Git, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk at which nothing is committed: a committer is alive, and waits for another one."""
    desk.start("Planck")
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "3600")
    state = Path(find(str(desk.repo)).state)
    alive, busy = Lock(str(state / commit_process.LOCK)), Lock(str(state / "lock"))
    assert alive.take() and busy.take()
    before = git("rev-parse", ref.LOG_REF, cwd=desk.repo)
    with alive, busy:
        yield desk
        assert git("rev-parse", ref.LOG_REF, cwd=desk.repo) == before
        assert waiting(desk.repo)


def lose_index(desk: Desk) -> None:
    for path in Path(find(str(desk.repo)).state).glob("index-*"):
        path.unlink()


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_session_that_started_in_the_tail_is_addressed(tail: Desk, index: str) -> None:
    """By its name, its id and its identity; it reads what it got, and answers."""
    curie = tail.start("Curie")
    if index == "lost":
        lose_index(tail)
    for to in ("Curie", curie, "test:worker:curie"):
        sent = tail.send(curie, f"to {to}", "--to", "Planck")
        assert sent["recorded"] is True and sent["commit"] is None
        tail.send(sent["signal"]["sender_session"], "nobody's")
    planck = tail("whoami", "--json", session=curie).json
    assert planck["session_id"] == curie
    found = tail("signal", "hello", "--to", "Curie", "--as", "Planck", "--json")
    assert found.json["signal"]["recipients"] == ["test:worker:curie"], found
    shown = tail("inbox", "--json", session=curie).json["signals"]
    assert [each["message"] for each in shown if each["recipients"]] == ["hello"]
    assert tail("inbox", "--count", session=curie).out == "0\n", "the receipt counts, too"


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_session_that_was_renamed_in_the_tail_has_its_new_name(tail: Desk, index: str) -> None:
    """Mail to the new name is its own, and the old name is nobody's."""
    curie = tail.start("Curie")
    assert tail("session", "set", "--name", "Noether", session=curie).status == 0
    if index == "lost":
        lose_index(tail)

    sent = tail("signal", "hello", "--to", "Noether", "--as", "Planck", "--json")
    assert sent.json["signal"]["recipients"] == ["test:worker:curie"], sent
    assert tail("signal", "hello", "--to", "Nobody", "--as", "Planck").status == 2
    assert "hello" in tail("inbox", session=curie).out
    names = {each["session_id"]: each["display_name"] for each in tail("roster", "--json").json["sessions"]}
    assert names[curie] == "Noether"


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_name_that_was_given_up_and_taken_again_in_the_tail_is_the_new_holders(
    tail: Desk, index: str
) -> None:
    """No misdelivery: who ended gets nothing that is for the one who has the name now."""
    first = tail.start("Curie")
    assert tail("session", "end", session=first).status == 0
    second = tail.start("Curie", "--agent-identity", "test:worker:other")
    if index == "lost":
        lose_index(tail)

    sent = tail("signal", "for the second", "--to", "Curie", "--as", "Planck", "--json")
    assert sent.json["signal"]["recipients"] == ["test:worker:other"], sent
    assert "for the second" in tail("inbox", session=second).out
    rows = [each["session_id"] for each in tail("roster", "--json").json["sessions"]]
    assert second in rows and first not in rows


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_threads_and_agreement_are_read_from_the_tail(tail: Desk, index: str) -> None:
    """A proposal, its answer, and what became of it."""
    curie = tail.start("Curie")
    planck = next(
        each["session_id"]
        for each in tail("roster", "--json").json["sessions"]
        if each["display_name"] == "Planck"
    )
    sent = tail.send(planck, "Shall we?", "--to", "Curie", "--intent", "PROPOSE")
    thread = sent["signal"]["thread_id"]
    signal_id = sent["signal"]["signal_id"]
    if index == "lost":
        lose_index(tail)
    assert tail("converged", thread, session=planck).status == 1
    assert tail("reply", signal_id, "Yes.", "--agree", session=curie).status == 0
    assert tail("converged", thread, session=planck).status == 0
    assert len(tail("thread", thread, "--json", session=planck).json["signals"]) == 2
    assert tail("show", signal_id, "--json", session=planck).json["commit"] is None


@pytest.mark.parametrize("gone", ["flags", "queue", "flags and queue"])
def test_mail_in_the_tail_is_read_where_the_flags_are_gone(tail: Desk, gone: str) -> None:
    """They are derived: whoever looks next finds the mail all the same, once."""
    curie = tail.start("Curie")
    tail("signal", "first", "--to", "Curie", "--as", "Planck")
    assert "first" in tail("inbox", session=curie).out  # fills the queues
    tail("signal", "hello", "--to", "Curie", "--as", "Planck")
    state = Path(find(str(tail.repo)).state)
    for name in gone.split(" and "):
        shutil.rmtree(state / name)

    assert tail("inbox", "--count", session=curie).out == "1\n"
    assert "hello" in tail("inbox", session=curie).out
    assert tail("inbox", "--count", session=curie).out == "0\n"
    tail("signal", "again", "--to", "Curie", "--as", "Planck")
    assert "again" in tail("inbox", session=curie).out


def test_the_same_answers_before_and_after_the_commit(tail: Desk) -> None:
    """Everything that commands say, but for the commits that are named then."""
    curie = tail.start("Curie")
    sent = tail.send(curie, "Shall we?", "--to", "Planck", "--intent", "PROPOSE")
    tail("reply", sent["signal"]["signal_id"], "Yes.", "--agree", "--as", "Planck")
    tail("mem", "create", "a note", session=curie)
    tail("session", "set", "--name", "Noether", session=curie)

    def answers(desk: Desk = tail) -> list[object]:
        asked = (
            ["roster", "--json"], ["whoami", "--json"], ["inbox", "--no-mark", "--json"], ["mem", "list", "--json"],
            ["thread", sent["signal"]["thread_id"], "--json"], ["gate", "--json"],
        )  # fmt: skip
        return [plain(desk(*args, session=curie).json) for args in asked]

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: plain(each)
                for key, each in value.items()
                if key
                not in ("commit", "age", "age_seconds", "seconds", "heard", "last_seen", "quiet_seconds")
            }
        return [plain(each) for each in value] if isinstance(value, list) else value

    before = answers()
    with tempfile.TemporaryDirectory() as folder:
        copy = Desk(Path(shutil.copytree(tail.repo, Path(folder, "copy"), symlinks=True)))
        store = open_store(copy.repo)
        assert commit_process.commit(store, 5.0, deferred=True)
        store.close()
        assert answers(copy) == before
