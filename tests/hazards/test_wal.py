"""Writers and committers that are stopped or killed at any step: nothing that was acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem import commit_process
from gitmem.log import committer, lock, ref, write_ahead
from gitmem.log.lock import Lock
from gitmem.repo import find

from ..conftest import Git
from ..log.logs import without_locks
from .conftest import Desk, nothing_written, waiting
from .faults import (
    ALL_STEPS,
    EACH_STEP,
    STEPS_MAX,
    SystemCall,
    age_locks,
    check,
    child,
    command,
    fsck,
    open_store,
    record,
    speak,
)
from .test_faults import SizeLimit
from .test_segments import rewrite

STOPS = ["listed", "opened", "locked", "looked", "written", "synced"]


class Stopped:
    """A writer in a process of its own that stops itself (SIGSTOP) at a step of its append.

    Args:
        repo: The repository.
        stop: The step, one of `STOPS`.
        times: How often it stops there: each append that it repeats comes by again.
        locks: Whether files can be locked.
    """

    def __init__(self, repo: Path, stop: str, *, locks: bool, times: int = 1) -> None:
        self.times = times
        read, self._write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if not locks:
                    lock.lock_file = lambda handle, exclusive: True  # type: ignore[assignment]
                store = open_store(repo, commit_after=60.0)
                store.db()
                self._bend(stop)
                speak(store, "stopped")
                os.write(self._write, b"y")
            finally:
                os._exit(0)
        os.close(self._write)
        self._read = read

    def _bend(self, stop: str) -> None:  # noqa: C901  (one branch for each damage)
        def stops() -> None:
            if self.times:
                self.times -= 1
                os.kill(os.getpid(), signal.SIGSTOP)

        def after(module: Any, name: str, wanted: Callable[..., bool] = lambda *args: True) -> None:
            real = getattr(module, name)

            def call(*args: Any, **options: Any) -> Any:
                done = real(*args, **options)
                if wanted(*args):
                    stops()
                return done

            setattr(module, name, call)

        def is_generation(path: object, *rest: object) -> bool:
            return str(path).endswith(write_ahead.WAL)

        if stop == "listed":
            after(write_ahead, "newest")
        elif stop == "opened":
            after(os, "open", is_generation)
        elif stop == "locked":
            after(lock, "lock_file")
        elif stop == "looked":
            after(os.path, "samestat")
        elif stop == "written":
            after(os, "write", lambda handle, data: b"stopped" in bytes(data))
        else:
            after(write_ahead, "sync_data")

    def wait(self) -> bool:
        """Wait until it stops (True) or ends."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def go(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> bool:
        """Let it run to its end; whether its line was acknowledged."""
        self.go()
        while self.wait():
            self.go()
        said = os.read(self._read, 1)
        os.close(self._read)
        return said == b"y"


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_writer_that_is_stopped_over_two_commits_records_once(
    repo: Path, stop: str, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look and its write the generation is committed and removed, and so is the one after it."""
    if not locks:
        without_locks(monkeypatch)
    monkeypatch.setattr(committer, "WRITER_SECONDS", 0.01)
    store = open_store(repo)
    speak(store, "before")
    store.close()
    record(repo, "in its generation")
    writer = Stopped(repo, stop, locks=locks, times=2)
    assert writer.wait()
    said = {"before", "in its generation"}
    for turn in range(2):
        for number in range(2):
            store = open_store(repo)
            speak(store, f"meanwhile {turn} {number}")
            said.add(f"meanwhile {turn} {number}")
            store.close()
        if turn == 0:
            writer.go()
            if not writer.wait():
                break  # it comes by once
    assert writer.end() if turn else os.read(writer._read, 1) == b"y"

    check(repo, {*said, "stopped"}, set())
    assert not write_ahead.damaged(open_store(repo).log.wal.folder)


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_writer_that_is_killed_while_it_is_stopped_stops_nobody(repo: Path, stop: str, locks: bool) -> None:
    """Its line is there once or not at all, and its lock is free."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    writer = Stopped(repo, stop, locks=locks)
    assert writer.wait()
    os.kill(writer.pid, signal.SIGKILL)
    assert not writer.wait()
    store = open_store(repo)
    speak(store, "after")
    store.close()

    check(repo, {"before", "after"}, {"stopped"})


def commit(repo: Path) -> Callable[[], object]:
    """For `child`: be the committer, which commands start."""

    def act() -> None:
        open_store(repo, commit_after=0.01).run_committer()

    return act


@EACH_STEP
def test_a_committer_that_is_killed_at_any_step_loses_and_doubles_nothing(repo: Path, stride: int) -> None:
    """Writers go on, and the next committer takes over what it left."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    said = {"before"}
    for step in range(1, STEPS_MAX, stride):
        record(repo, f"waits-{step}")
        record(repo, f"deferred-{step}", deferred=True)
        said |= {f"waits-{step}", f"deferred-{step}"}
        end = child(commit(repo), SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        if step % 8 == 0 or not end.died:
            check(repo, said, set())
        if not end.died:
            break
    assert step > 20
    fsck(repo)


FAILS: dict[str, tuple[object, str]] = {
    "the new generation": (write_ahead, "sync_names"),
    "the look at the ref": (ref, "read_format"),
    "the first commit of a log": (committer, "start_log"),
    "the index": (committer, "notify_moved"),
    "the removal": (committer, "_remove"),
}


@pytest.mark.parametrize("what", FAILS)
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError("1234"), MemoryError()])
def test_a_committer_that_fails_at_a_step_keeps_what_waits(
    repo: Path, what: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever kind of error it is."""
    if what != "the first commit of a log":
        store = open_store(repo)
        speak(store, "before")
        store.close()
    record(repo, "waits")

    def fails(*args: object, **options: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*FAILS[what], fails)
        try:
            committer.commit_waiting(open_store(repo).log)
        except Exception as raised:
            assert isinstance(raised, MemoryError) or "1234" in str(raised) or "nput/output" in str(raised), (
                raised
            )
    record(repo, "later")

    check(repo, {"waits", "later"} | ({"before"} if what != "the first commit of a log" else set()), set())


# What is only in the write-ahead log counts: sessions that started, were renamed or ended there, mail, names and flags.


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


def test_mail_in_the_tail_is_read_where_the_flags_are_gone(tail: Desk) -> None:
    """They are derived: whoever looks next finds the mail all the same, once."""
    curie = tail.start("Curie")
    tail("signal", "first", "--to", "Curie", "--as", "Planck")
    assert "first" in tail("inbox", session=curie).out  # raises flags for all that is there
    tail("signal", "hello", "--to", "Curie", "--as", "Planck")
    state = Path(find(str(tail.repo)).state)
    shutil.rmtree(state / "flags")

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
        assert store.commit(5.0, deferred=True)
        store.close()
        assert answers(copy) == before


# What refuses before anything is recorded, and what does not: a commit that fails costs no line.


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
        store.commit_waiting()
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
        open_store(desk.repo, commit_after=0.01).run_committer(pause=lambda seconds: None)

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
        open_store(repo, commit_after=60.0).commit_waiting()

    end = child(commit, SizeLimit(120))
    assert end.failed and "nothing was recorded" not in end.failed, end.failed
    place = open_store(repo).repo
    assert commit_process.last_failure(place)
    open_store(repo, commit_after=60.0).commit_waiting()
    assert commit_process.last_failure(place) == ""
    check(repo, {"before", "waits"}, set())


def test_a_number_of_a_generation_is_no_number_of_a_format() -> None:
    """Names that only look like those of a later version refuse nothing."""
    for name in (f"{1:017d}.wal", f"{1:017d}.wal1.damaged", f"{1:017d}.wal1x", "1.wal2", f"{1:017d}.txt"):
        assert not write_ahead._has_other_format(name) or not write_ahead._is_numbered(name), name
    assert write_ahead._has_other_format(f"{1:017d}.wal2") and write_ahead._has_other_format(
        f"{1:017d}.deferred10"
    )
