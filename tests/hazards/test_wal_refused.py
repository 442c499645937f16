"""What refuses before anything is recorded, and what does not: a commit that fails costs no line."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.log import ref, wal_files
from tests.conftest import Git

from .conftest import Desk, nothing_written, waiting
from .faults import age_locks, check, child, command, open_store, record, speak
from .test_faults_disk import SizeLimit
from .test_segments import rewrite


def foreign(desk: Desk, git: Git) -> None:
    """Somebody has put the user's own branch where the log's ref is."""
    git("update-ref", ref.LOG_REF, "main", cwd=desk.repo)


def newer(desk: Desk, git: Git) -> None:
    store = open_store(desk.repo)
    rewrite(store, "format", b'{"format":2,"epoch":0,"turn":0,"publish":"refs/heads/gitmem","new":[]}\n')
    store.close()


def newer_generation(desk: Desk, git: Git) -> None:
    """A newer gitmem has recorded something, which this one can't read."""
    folder = Path(desk.repo, ".git", "gitmem", "wal")
    (folder / f"{time.time_ns() // 1000 + 10**9:017d}.wal2").write_bytes(b"\0wal2 what is not known here")


def newer_deferred(desk: Desk, git: Git) -> None:
    folder = Path(desk.repo, ".git", "gitmem", "wal")
    (folder / f"{time.time_ns() // 1000 + 10**9:017d}.deferred12").write_bytes(b"\0wal12")


REFUSED: dict[str, tuple[Callable[[Desk, Git], None], str]] = {
    "a foreign tip": (foreign, "not-a-log"),
    "a newer format": (newer, "newer-format"),
    "a newer generation": (newer_generation, "newer-format"),
    "a newer deferred one": (newer_deferred, "newer-format"),
}
WRITES = [
    ["signal", "refused", "--broadcast"],
    ["mem", "create", "refused"],
    ["session", "start", "--name", "Noether"],
]


@pytest.mark.parametrize("window", ["0", "60"], ids=["commits at once", "commits later"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_could_never_be_committed_is_refused_before_it_is_recorded(
    desk: Desk, git: Git, what: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 4, the reason, and nothing anywhere; also where the commit would come later."""
    desk.start("Planck")
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", window)
    monkeypatch.setenv("GITMEM_AGENT_IDENTITY", "test:worker:planck")
    act, code = REFUSED[what]
    act(desk, git)

    for args in WRITES:
        with nothing_written(desk.repo):
            said = desk(*args, "--json")
        assert (said.status, said.error["code"]) == (4, code), said
        assert "othing was recorded" in said.error["message"] or code == "newer-format", said
        assert said.json["next"]
    assert "refused" not in desk("log", "--json").out


def test_what_was_recorded_before_a_newer_generation_came_stays(desk: Desk, git: Git) -> None:
    """It is answered, and committed by whoever can read it; the newer one is left as it is."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    record(desk.repo, "waits")
    newer_generation(desk, git)
    (file,) = Path(desk.repo, ".git", "gitmem", "wal").glob("*.wal2")

    assert desk("signal", "refused", "--to", "Planck", session=curie).status == 4
    assert [each["code"] for each in desk("doctor", "--json").json["findings"]].count("wal-newer") == 1

    assert file.read_bytes().startswith(b"\0wal2")
    check(desk.repo, {"waits"}, set())
    assert planck


def test_a_tip_that_turned_foreign_after_the_look_costs_no_line(desk: Desk, git: Git) -> None:
    """It is recorded; the commit says why it can't be made; when the ref is back the line is committed once."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    store = open_store(desk.repo, commit_after=60.0)
    store.db()
    tip = git("rev-parse", ref.LOG_REF, cwd=desk.repo).strip()
    speak(store, "before it turned")
    foreign(desk, git)
    with pytest.raises(Exception, match="not a gitmem log; the records are kept"):
        commit_process.commit_waiting(store)
    assert "not a gitmem log" in commit_process.last_failure(store.repo)
    store.close()
    (file,) = waiting(desk.repo)
    os.utime(file, (time.time() - 100, time.time() - 100))
    found = {each["code"]: each for each in desk("doctor", "--json").json["findings"]}
    assert "not a gitmem log" in found["wal-waits"]["what"]

    git("update-ref", ref.LOG_REF, tip, cwd=desk.repo)
    assert desk("inbox", session=planck).status == 0
    check(desk.repo, {"before it turned"}, set())
    assert waiting(desk.repo) == []


def test_a_disk_that_is_full_for_the_committer_stops_no_writer(desk: Desk) -> None:
    """Writers keep answering, doctor says why nothing is committed, and a later commit has all."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    said = set()

    def commit() -> None:
        commit_process.run(open_store(desk.repo, commit_after=0.01), pause=lambda seconds: None)

    for turn in range(3):
        record(desk.repo, f"line {turn}")
        said.add(f"line {turn}")
        child(commit, SizeLimit(120))  # no object is as small as that; the reason is
        age_locks(desk.repo)
    store = open_store(desk.repo, commit_after=60.0)
    assert store.log.waiting()
    store.close()
    sent = child(command(desk.repo, "inbox", "--json", "--no-mark", session=curie)).answer
    assert sent["status"] == 0
    for file in waiting(desk.repo):
        os.utime(file, (time.time() - 100, time.time() - 100))

    assert planck
    check(desk.repo, said, set())
    assert not commit_process.is_off(open_store(desk.repo).repo)


def test_a_full_disk_is_why_lines_wait(repo: Path) -> None:
    """What doctor tells, until a commit comes about."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    record(repo, "waits")

    def commit() -> None:
        commit_process.commit_waiting(open_store(repo, commit_after=60.0))

    end = child(commit, SizeLimit(120))
    assert end.failed and "nothing was recorded" not in end.failed, end.failed
    place = open_store(repo).repo
    assert commit_process.last_failure(place)
    commit_process.commit_waiting(open_store(repo, commit_after=60.0))
    assert commit_process.last_failure(place) == ""
    check(repo, {"before", "waits"}, set())


def test_a_number_of_a_generation_is_no_number_of_a_format() -> None:
    """Names that only look like those of a later version refuse nothing."""
    for name in (f"{1:017d}.wal", f"{1:017d}.wal1.damaged", f"{1:017d}.wal1x", "1.wal2", f"{1:017d}.txt"):
        assert not wal_files._has_other_format(name) or not wal_files._is_numbered(name), name
    assert wal_files._has_other_format(f"{1:017d}.wal2") and wal_files._has_other_format(
        f"{1:017d}.deferred10"
    )
