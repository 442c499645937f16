"""A power loss: what was not synced may be gone, and what was acknowledged is not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gitmem.doctor import doctor
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer, lines, write_ahead
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.log.local_log import LocalLog
from gitmem.repo import find

from ..clones import Clone, Hub, git
from ..log.logs import all_lines, entry, open_log, record
from .conftest import Desk
from .faults import Port, age_locks, check, check_index, fsck, open_store, speak
from .test_concurrency import Crowd


class Disk:
    """What would survive a power loss below a folder: names that a sync of their folder found, synced bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[Path, set[str]] = {}
        self.content: dict[int, bytes] = {}  # by inode
        for path in [folder, *folder.rglob("*")]:
            self._sync(path)

    def _sync(self, path: Path) -> None:
        if path.is_dir():
            self.names[path] = set(os.listdir(path))
        elif path.is_file():
            self.content[path.stat().st_ino] = path.read_bytes()

    def synced(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(handle: int) -> None:
            real(handle)
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            if path.is_relative_to(self.folder):
                self._sync(path)

        return sync

    def lose(self) -> None:
        """Cut the power: the folder is as the disk has it."""
        for path in sorted(self.folder.rglob("*"), key=lambda each: len(each.parts), reverse=True):
            if path.name not in self.names.get(path.parent, set()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif path.is_file():
                path.write_bytes(self.content.get(path.stat().st_ino, b""))


@pytest.fixture
def log(repo: Path) -> LocalLog:
    """A log that has its first line, and a state folder."""
    made = open_log(repo)
    record(made, entry(made, "first"))
    return made


@pytest.fixture
def disk(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(Path(log.repo.state))
    monkeypatch.setattr(os, "fsync", disk.synced(os.fsync))
    monkeypatch.setattr(os, "fdatasync", disk.synced(os.fdatasync))
    return disk


def texts(log: LocalLog) -> list[str]:
    committer.commit_waiting(log, deferred=True)
    return sorted(line.decode().split('"text":"')[1][:-2] for line in all_lines(log))


def interrupted(log: LocalLog, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something in a process that is killed at its first sync of a folder."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            act()


@pytest.mark.parametrize("deferred", [False, True])
def test_a_line_survives_in_a_generation_that_somebody_else_was_making(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch, deferred: bool
) -> None:
    """Its maker was killed before the folder was synced: whoever writes to it first syncs the folder."""
    shutil.rmtree(log.wal.folder)
    disk.names[disk.folder].discard("wal")
    interrupted(log, monkeypatch, lambda: log.append(entry(log, "never", deferred=deferred)))
    assert write_ahead.newest(log.wal.folder, deferred=deferred)

    log.append(entry(log, "acknowledged", deferred=deferred))
    disk.lose()

    assert texts(log) == ["acknowledged", "first"]


def test_a_line_survives_in_a_generation_that_a_committer_was_making(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where the committer was killed: the older generation has its lines, and the new one, too."""
    log.append(entry(log, "older"))
    log.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
    interrupted(log, monkeypatch, log.wal.rotate)

    log.append(entry(log, "newer"))
    disk.lose()

    assert texts(log) == ["first", "newer", "older"]


def test_a_line_survives_in_the_first_generation_of_a_new_clone(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder, folder's folder and file: all names that lead to it are on the disk before the answer."""
    common = Path(repo, ".git")
    disk = Disk(common)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk.synced(os.fsync))
        patch.setattr(os, "fdatasync", disk.synced(os.fdatasync))
        log = open_log(repo)
        log.append(entry(log, "the very first"))
    disk.lose()

    assert texts(open_log(repo)) == ["the very first"]


def test_an_empty_generation_is_synced_once(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever made it: later answers cost one sync of the file."""
    log.append(entry(log, "one"))
    committer.commit_waiting(log)
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)

    log.append(entry(log, "two"))
    log.append(entry(log, "three"))

    assert calls == []


@pytest.mark.parametrize("keeps", ["nothing", "zeros", "half", "all"])
def test_a_record_that_was_not_synced_takes_none_with_it(
    log: LocalLog, disk: Disk, monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    """Its writer was killed before the sync: whatever the disk makes of its blocks, those before and after are there."""
    log.append(entry(log, "before"))
    (file,) = log.waiting()
    size = os.path.getsize(file.path)

    def killed(handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", killed)
        with pytest.raises(KeyboardInterrupt):
            log.append(entry(log, "unsynced"))
    path = Path(file.path)
    written = path.read_bytes()[size:]
    left = {
        "nothing": b"",
        "zeros": bytes(len(written)),
        "half": written[: len(written) // 2],
        "all": written,
    }
    disk.lose()
    path.write_bytes(path.read_bytes()[:size] + left[keeps])

    log.append(entry(log, "after"))

    assert texts(log) == sorted(["after", "before", "first", *(["unsynced"] if keeps == "all" else [])])


def test_a_removed_generation_that_comes_back_changes_nothing(log: LocalLog, disk: Disk) -> None:
    """Nobody syncs a removal: after the power loss the file is committed once more, to no effect."""
    log.append(entry(log, "one"))
    (file,) = log.waiting()
    content = Path(file.path).read_bytes()
    committer.commit_waiting(log)
    assert not os.path.exists(file.path)
    log.new_token()
    Path(file.path).write_bytes(content)
    tip = log.git.tip("refs/gitmem/log")

    assert texts(log) == ["first", "one"]
    assert log.git.tip("refs/gitmem/log") == tip and not log.waiting()


def test_an_index_whose_own_log_is_lost_answers_the_same(repo: Path) -> None:
    """SQLite's log is not synced by an answer: the index is behind then, and catches up with log and generations."""
    store = open_store(repo)
    speak(store, "one")
    store.index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    speak(store, "two")
    store.commit_after = 60.0
    speak(store, "three")
    kept = {path: path.read_bytes() for path in Path(store.repo.state).glob("index-*")}
    store.close()
    for path in Path(store.repo.state).glob("index-*"):
        path.unlink()
    for path, content in kept.items():
        if path.suffix == ".sqlite3":
            path.write_bytes(content)

    later = open_store(repo, commit_after=60.0)
    assert later.db().execute("SELECT count(*) FROM signal").fetchone() == (3,)
    check_index(later)
    later.close()
    check(repo, {"one", "two", "three"}, set())


# Generations of the write-ahead log that are torn or damaged: whole records are committed, the rest is kept and reported.


def encoded(log: LocalLog, text: str) -> bytes:
    """The record of an entry that nobody has written yet."""
    made = entry(log, text)
    made.token = log.token()
    return write_ahead.encode_record(made.encode())


def waiting_texts(log: LocalLog) -> list[str]:
    return sorted(line.decode().split('"text":"')[1][:-2] for line in all_lines(log))


def damaged(log: LocalLog) -> list[str]:
    return write_ahead.damaged(log.wal.folder)


def put(log: LocalLog, content: bytes) -> str:
    """Make a generation with this content: its name."""
    log.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
    name = write_ahead.name_of(log.now(), deferred=False)
    Path(log.wal.folder, name).write_bytes(content)
    return name


def test_a_record_that_is_cut_at_any_byte_costs_itself_alone(repo: Path) -> None:
    """The record before it, and the one that the next writer appends, are committed once; each torn file is kept."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    length = len(encoded(log, "torn 000"))
    torn = set()
    for cut in range(length):
        content = encoded(log, f"before {cut:03}") + encoded(log, f"torn {cut:03}")[:cut]
        name = put(log, content + encoded(log, f"after {cut:03}"))
        torn |= {name} if cut else set()

    while log.waiting():
        committer.commit_waiting(log)
    record(log, entry(log, "last"))

    expected = [f"{word} {cut:03}" for word in ("before", "after") for cut in range(length)]
    assert waiting_texts(log) == sorted([*expected, "first", "last"])
    assert set(damaged(log)) == {name + write_ahead.DAMAGED for name in torn}
    assert not log.waiting(deferred=True)


@pytest.mark.parametrize("seed", range(20))
def test_garbage_between_records_costs_nothing_beside_it(repo: Path, seed: int) -> None:
    """Zeros, noise, markers without a record, records with a wrong checksum or a length that reaches behind the end."""
    random = Random(seed)
    log = open_log(repo)
    record(log, entry(log, "first"))
    head = b"%s%s %010d %s\n"

    def garbage() -> bytes:
        return random.choice(
            [
                bytes(random.randrange(1, 5_000)),
                random.randbytes(random.randrange(1, 500)),
                write_ahead.MARK * random.randrange(1, 4),
                head % (write_ahead.MARK, b"e", 9_999, b"0" * 64),
                head % (write_ahead.MARK, b"e", 9_999_999_999, b"0" * 64),
                head % (write_ahead.MARK, b"x", 0, b"0" * 64),
                encoded(log, "wrong")[:-3] + b"no\n",
                write_ahead.encode_record(b"no entry\n"),
                write_ahead.encode_record(b'["token", "a <a@b>", "s", "", []]\nsignals\tno line\n'),
            ]
        )

    parts, kept = [], []
    for number in range(12):
        parts.append(garbage() if random.random() < 0.6 else b"")
        parts.append(encoded(log, f"kept {number:02}"))
        kept.append(f"kept {number:02}")
    parts.append(garbage())
    name = put(log, b"".join(parts))

    record(log, entry(log, "last"))

    assert waiting_texts(log) == sorted([*kept, "first", "last"])
    assert damaged(log) == [name + write_ahead.DAMAGED]


def test_a_damaged_generation_is_reported_by_doctor_and_answers_stay_whole(desk: Desk) -> None:
    """Readers see whole records before any commit; doctor names the file and puts it aside."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    store = open_store(desk.repo, commit_after=60.0)
    store.log.append(entry(store.log, "one"))
    (file,) = store.log.waiting()
    with open(file.path, "ab") as opened:
        opened.write(encoded(store.log, "torn")[:50])
    store.close()

    desk.send(planck, "behind the torn one", "--to", "Curie")
    assert "behind the torn one" in desk("inbox", session=curie).out

    (found,) = [each for each in desk("doctor", "--json").json["findings"] if each["code"] == "wal-file"]
    assert found["where"].endswith(write_ahead.DAMAGED) and os.path.exists(found["where"])
    report = doctor.fix(open_store(desk.repo))
    assert report.status == 0 and not os.path.exists(found["where"])
    kept = list((Path(find(str(desk.repo)).state) / "aside").iterdir())
    assert any(write_ahead.DAMAGED in each.name for each in kept)


def test_a_torn_end_of_the_newest_generation_is_no_problem_while_it_is_written(repo: Path) -> None:
    """A record that is being written looks torn to a reader: it reads on when the rest is there."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    log.append(entry(log, "second"))
    store = open_store(repo, commit_after=60.0)
    content = encoded(log, "slow")
    (file,) = log.waiting()

    def shown() -> int:
        return int(store.db().execute("SELECT count(*) FROM line").fetchone()[0])

    with open(file.path, "ab", buffering=0) as opened:
        for byte in range(0, len(content), 40):
            opened.write(content[byte : byte + 40])
            assert shown() == (2 if byte + 40 < len(content) else 3)
    store.close()
    committer.commit_waiting(log)

    assert waiting_texts(log) == ["first", "second", "slow"] and damaged(log) == []


# Lines that wait while a clone is copied, restored or moved: each is there exactly once.


def wait(clone: Clone, text: str, *, deferred: bool = False) -> None:
    """Record a line that waits for its commit."""
    fields = {"at": lines.format_at(clone.log.clock.tick()), "kind": "note", "text": text}
    line = json.dumps(fields, separators=(",", ":")).encode()
    clone.log.append(LogEntry([("notes", line)], CommitMessage("a <a@agents>", text), deferred=deferred))


def counted(path: Path, tip: str) -> Counter[str]:
    """How often each line of a log that says something is in its tree."""
    found: Counter[str] = Counter()
    for name in git("ls-tree", "-r", "--name-only", tip, cwd=path).split():
        if name.endswith(".jsonl"):
            for line in git("cat-file", "blob", f"{tip}:{name}", cwd=path).splitlines():
                if not lines.is_attestation(line.encode()):
                    found[json.loads(line)["text"]] += 1
    return found


def check_all(hub: Hub, expected: set[str], *clones: Clone) -> None:
    """Sync all until nothing is left: the same log everywhere, and each line in it once."""
    for clone in (*clones, *clones):
        assert clone.exchange().state in ("synced", "up-to-date")
    tip = hub.tip()
    assert tip is not None
    assert counted(hub.path, tip) == Counter(dict.fromkeys(expected, 1))
    for clone in clones:
        assert clone.tip == tip and not clone.log.waiting(deferred=True)
        clone.store.db()
        check_index(clone.store)


def reopen(hub: Hub, clone: Clone, path: Path | None = None) -> Clone:
    """The same clone, in another process, perhaps at another place."""
    clone.store.close()
    return hub.open(path or clone.path)


@pytest.mark.parametrize("first", ["original", "copy", "both at once"])
def test_a_copied_clone_with_waiting_lines(hub: Hub, first: str) -> None:
    """`cp -r`: both commit what waited, each adds its own, and after syncing both each line is there once."""
    original = hub.clone("a")
    original.add("committed")
    original.exchange()
    for number in range(3):
        wait(original, f"waits {number}")
    wait(original, "deferred", deferred=True)
    shutil.copytree(original.path, hub.root / "copy", symlinks=True)
    copy = hub.open(hub.root / "copy")
    order = {"original": (original, copy), "copy": (copy, original), "both at once": ()}[first]
    for clone in order:
        clone.add(f"{clone.path.name} says more")
        clone.exchange()
    if not order:
        for clone in (original, copy):
            wait(clone, f"{clone.path.name} says more")
        committer.commit_waiting(original.log)
        original.log.new_token()
        committer.commit_waiting(copy.log)

    expected = {"committed", "waits 0", "waits 1", "waits 2", "deferred", "a says more", "copy says more"}
    check_all(hub, expected, original, copy)


@pytest.mark.parametrize("what", ["git folder", "write-ahead log", "generations that were committed"])
def test_a_restored_backup_brings_back_lines_that_are_committed_by_now(hub: Hub, what: str) -> None:
    """They waited when the backup was made, and were committed and sent since."""
    clone = hub.clone("a")
    clone.add("committed")
    for number in range(3):
        wait(clone, f"waits {number}")
    wait(clone, "deferred", deferred=True)
    clone.store.db()
    shutil.copytree(clone.path / ".git", hub.root / "backup", symlinks=True)
    clone.add("after the backup")
    clone.log.new_token()
    clone.add("in another segment")
    clone.exchange()
    clone = reopen(hub, clone)
    if what == "git folder":
        shutil.rmtree(clone.path / ".git")
        shutil.copytree(hub.root / "backup", clone.path / ".git", symlinks=True)
    else:
        wal = Path(clone.store.repo.state, "wal")
        kept = {each.name for each in wal.iterdir()}
        if what == "write-ahead log":
            shutil.rmtree(wal)
            wal.mkdir()
        for path in (hub.root / "backup" / "gitmem" / "wal").iterdir():
            if path.name not in kept:
                shutil.copy2(path, wal)
    clone = reopen(hub, clone)
    wait(clone, "after the restoration")

    expected = {"committed", "waits 0", "waits 1", "waits 2", "deferred", "after the backup", "in another segment",
                "after the restoration"}  # fmt: skip
    check_all(hub, expected, clone, hub.clone("b"))


def test_a_repository_that_is_moved_takes_its_waiting_lines_along(hub: Hub) -> None:
    """Also into another folder of another name, with an index that knows them by their old place."""
    clone = hub.clone("a")
    clone.add("committed")
    wait(clone, "waits")
    wait(clone, "deferred", deferred=True)
    clone.store.db()
    clone.store.close()
    (hub.root / "elsewhere").mkdir()
    clone.path.rename(hub.root / "elsewhere" / "b")
    clone = hub.open(hub.root / "elsewhere" / "b")
    clone.store.commit_after = 60.0
    rows = clone.store.db().execute("SELECT body FROM line WHERE kind <> 'attestation' ORDER BY at")
    shown = [json.loads(body)["text"] for (body,) in rows]
    assert shown == ["committed", "waits", "deferred"]
    assert doctor.fix(clone.store).status == 0
    wait(clone, "after the move")

    check_all(hub, {"committed", "waits", "deferred", "after the move"}, clone)


# SIGKILL and SIGSTOP of writers and committers at any time: every acknowledged line is there once, and git finds nothing.

PAUSE_SECONDS = 0.03  # between two faults, at most
WINDOW_SECONDS = 0.02


class Mayhem:
    """Writers that write without end, a committer, and somebody who kills them.

    Attributes:
        kills: How many writers and how many committers were killed.
    """

    def __init__(self, repo: Path, folder: Path, seed: int, writers: int) -> None:
        self.repo = repo
        self.folder = folder
        self.random = Random(seed)
        self.size = writers
        self.writers: list[int] = []
        self.committer = 0
        self.started = 0
        self.kills = {"writer": 0, "committer": 0}
        folder.mkdir()

    def until(self, wanted: int, kills: int) -> None:
        """Go on until so many lines were acknowledged, and so many of each kind were killed; then everybody is killed."""
        with self._ended():
            while len(self.said("a")) < wanted or min(self.kills.values()) < kills:
                while len(self.writers) < self.size:
                    self.writers.append(self._fork(self._write))
                if not self.committer:
                    age_locks(self.repo)  # its locks are of the dead: the next one need not wait
                    self.committer = self._fork(self._commit)
                time.sleep(self.random.random() * PAUSE_SECONDS)
                self._fault()

    def said(self, what: str) -> set[str]:
        """The lines that writers began to write (b), or that were acknowledged (a)."""
        return {
            row[2:]
            for path in self.folder.iterdir()
            for row in path.read_text().splitlines()
            if row.startswith(what)
        }

    def _fork(self, act: Callable[[int], None]) -> int:
        self.started += 1
        pid = os.fork()
        if pid == 0:
            try:
                act(self.started)
            finally:
                os._exit(1)
        os.setpgid(
            pid, pid
        )  # it is killed together with the git that it runs: what a git leaves has tests of its own
        return pid

    def _write(self, number: int) -> None:
        store = open_store(self.repo, commit_after=60.0)
        note = os.open(self.folder / f"writer-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for turn in range(10_000_000):
            text = f"w{number}-{turn}"
            os.write(note, f"b {text}\n".encode())
            speak(store, text)
            os.write(note, f"a {text}\n".encode())
            time.sleep(0.001)

    def _commit(self, number: int) -> None:
        port = PlumbingGit if number % 8 == 0 else DulwichGit
        while True:
            open_store(self.repo, port, commit_after=WINDOW_SECONDS).run_committer()
            time.sleep(0.005)

    def _fault(self) -> None:
        draw = self.random.random()
        if draw < 0.3:
            pid = self.random.choice(self.writers)
            self.writers.remove(pid)
            self._kill(pid, "writer")
        elif draw < 0.6 and self.committer:
            self._kill(self.committer, "committer")
            self.committer = 0
        else:
            pid = self.random.choice([*self.writers, self.committer])
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.random.random() * PAUSE_SECONDS)
            os.kill(pid, signal.SIGCONT)

    def _kill(self, pid: int, kind: str) -> None:
        os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"a {kind} failed; its traceback is on standard error"
        self.kills[kind] += 1

    @contextmanager
    def _ended(self) -> Iterator[None]:
        try:
            yield
        finally:
            for pid in [*self.writers, *filter(None, [self.committer])]:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(
    ("writers", "wanted", "kills", "seed"),
    [
        (4, 100, 3, 1),
        pytest.param(20, 1_000, 20, 2, marks=pytest.mark.deep),
        *(pytest.param(20, 3_500, 100, seed, marks=pytest.mark.soak) for seed in (3, 4, 5)),
    ],
)
def test_whoever_is_killed_each_acknowledged_line_is_there_once(
    repo: Path, tmp_path: Path, writers: int, wanted: int, kills: int, seed: int
) -> None:
    """Also what was begun and not acknowledged is there once at most, and the objects are whole."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    mayhem = Mayhem(repo, tmp_path / "said", seed, writers)

    mayhem.until(wanted, kills)
    age_locks(repo)

    check(repo, {"before", *mayhem.said("a")}, mayhem.said("b"))
    fsck(repo)


# `git gc --prune=now` and `git repack -ad` without end beside committers: the log and the repository stay whole.

UPKEEP = [["gc", "--quiet", "--prune=now"], ["repack", "-a", "-d", "--quiet"]]

# What one of these does to the other: a gc begins once, and prunes what a repack is writing.
THEIR_OWN = ("gc is already running", "/.tmp-", "renaming pack to")
WRITERS, EACH = 3, 6


def packs(repo: Path, args: list[str], stop: Path) -> Callable[[], object]:
    def act() -> int:
        runs = 0
        while not stop.exists():
            done = subprocess.run(["git", *args], cwd=repo, capture_output=True, text=True)
            assert done.returncode == 0 or any(words in done.stderr for words in THEIR_OWN), done.stderr
            runs += 1
        return runs

    return act


def writes(repo: Path, number: int, each: int) -> Callable[[], object]:
    def act() -> list[str]:
        store = open_store(repo, commit_after=60.0)
        said = []
        for turn in range(each):
            speak(store, f"w{number}-{turn}")
            said.append(f"w{number}-{turn}")
            time.sleep(0.02)
        store.close()
        return said

    return act


def commits(repo: Path, port: Port, stop: Path) -> Callable[[], object]:
    def act() -> int:
        made = 0
        while not stop.exists():
            store = open_store(repo, port)
            made += store.commit(0.0) is not None
            store.close()
        return made

    return act


def unites(repo: Path, stop: Path) -> Callable[[], object]:
    def act() -> int:
        united = 0
        while not stop.exists():
            store = open_store(repo)
            united += committer.combine_packs(store.log)
            store.close()
            time.sleep(0.05)
        return united

    return act


@pytest.mark.parametrize("each", [EACH, pytest.param(60, marks=pytest.mark.deep)])
def test_objects_that_are_about_to_be_committed_are_not_pruned(repo: Path, tmp_path: Path, each: int) -> None:
    """Every acknowledged line once, and git finds nothing missing; packs of ours are united meanwhile."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    stop = tmp_path / "stop"
    writers, rest = Crowd(tmp_path), Crowd(tmp_path / "rest")
    rest.folder.mkdir()
    for number in range(WRITERS):
        writers.add(writes(repo, number, each))
    rest.add(unites(repo, stop))
    for port in (DulwichGit, PlumbingGit):
        rest.add(commits(repo, port, stop))
    for args in UPKEEP:
        rest.add(packs(repo, args, stop))
    rest.go()
    writers.go()
    said = {text for found in writers.end() for text in found}  # type: ignore[attr-defined]
    stop.touch()
    _, made, by_plumbing, *runs = rest.end()

    assert len(said) == WRITERS * each
    assert made + by_plumbing > 0 and all(runs)  # type: ignore[operator]
    check(repo, {"before", *said}, set())
    fsck(repo)
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=repo, check=True, env=os.environ)
    check(repo, {"before", *said}, set())
    fsck(repo)
