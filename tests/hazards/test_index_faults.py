"""The index is derived: whatever is done to it, commands answer the same, byte for byte."""

from __future__ import annotations

import _sqlite3
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem import views
from gitmem.index import index_file
from gitmem.log import committer, lines
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.repo import find
from gitmem.store import Store

from .. import templates
from ..file_faults import at, denied
from ..hook_agents import said as given
from .conftest import ROOT, Desk, persons_desk, powerless, process
from .faults import check_index, child, command, dump, indexed, open_store, settled, speak


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
    found = templates.copy("office", desk.repo.parent, lambda root: Office(persons_desk(root / "repo")))
    found.desk, found.repo = desk, desk.repo
    return found


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
    index.write_bytes(b"no database place all" * 400)


def noise_in_the_middle(index: Path) -> None:
    data = bytearray(index.read_bytes())
    for place in range(4096, len(data), 512):
        data[place : place + 64] = os.urandom(64)
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
    monkeypatch.setattr(index_file, "READER_MILLISECONDS", 200)
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


# Bytes of the index file are overwritten with noise: every command answers, and what is said is recorded.

PROGRAM = str(Path(sys.executable).with_name("gitmem"))
SIGNALS = 12


class DamagedOffice:
    """A log of some size, its index, and who asks."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.repo = desk.repo
        self.planck, self.curie = desk.start("Planck"), desk.start("Curie")
        for number in range(SIGNALS):
            desk.send(self.planck, f"Result {number}: {'the parser takes tabs now; ' * 60}", "--to", "Curie")
        (self.index,) = (self.repo / ".git" / "gitmem").glob("index-*.sqlite3")
        self.kept = self.index.read_bytes()
        assert len(self.kept) > 60_000

    def run(self, *args: str, session: str | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PROGRAM, *args], cwd=self.repo, env={**os.environ, "GITMEM_SESSION": session or self.planck},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr and "malformed" not in done.stderr, (args, done.stderr)
        return done

    def corrupt(self, at: int, length: int, seed: int) -> None:
        for suffix in ("-wal", "-shm"):
            Path(f"{self.index}{suffix}").unlink(missing_ok=True)
        data = bytearray(self.kept)
        length = min(length, len(data) - at)
        data[at : at + length] = random.Random(seed).randbytes(length)
        self.index.write_bytes(data)


@pytest.fixture
def damaged_office(desk: Desk) -> DamagedOffice:
    found = templates.copy(
        "large-office", desk.repo.parent, lambda root: DamagedOffice(persons_desk(root / "repo"))
    )
    found.desk, found.repo = desk, desk.repo
    found.index = desk.repo / ".git" / "gitmem" / found.index.name
    return found


COMMANDS = [
    ("signal", "Said in spite of it.", "--to", "Curie"),
    ("signal", "To everybody.", "--broadcast"),
    ("inbox", "--no-mark"),
    ("roster",),
    ("log",),
    ("mem", "create", "A note in spite of it.", "--type", "note"),
]


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_noise_in_the_middle_of_the_file_costs_no_answer(
    damaged_office: DamagedOffice, args: tuple[str, ...]
) -> None:
    """Some pages in the middle, which only some questions read: the file itself opens."""
    damaged_office.corrupt(20_000, 9_000, 1)

    done = damaged_office.run(*args, session=damaged_office.curie if args[0] == "inbox" else None)

    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "spite" not in " ".join(args) or "spite" in damaged_office.run("log", "-n", "3").stdout


@pytest.mark.deep
def test_a_signal_is_recorded_once_however_the_index_is_damaged(damaged_office: DamagedOffice) -> None:
    """The command runs again after the index was put away, and says the same thing once."""
    for seed, place in enumerate(range(8_192, len(damaged_office.kept), len(damaged_office.kept) // 6)):
        damaged_office.corrupt(place, 9_000, seed)
        done = damaged_office.run("signal", f"Unique {seed}", "--to", "Curie", "--json")
        assert done.returncode == 0, done.stderr
        said = damaged_office.run(
            "inbox", "--no-mark", "--all", "--limit", "1000", "--json", session=damaged_office.curie
        )
        messages = [each["message"] for each in json.loads(said.stdout)["signals"]]
        assert messages.count(f"Unique {seed}") == 1


def test_a_message_from_standard_input_is_there_for_the_second_try(damaged_office: DamagedOffice) -> None:
    damaged_office.corrupt(20_000, 9_000, 1)
    done = subprocess.run(
        [PROGRAM, "signal", "-", "--to", "Curie", "--json"], cwd=damaged_office.repo, input="Piped.", text=True,
        env={**os.environ, "GITMEM_SESSION": damaged_office.planck}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signal"]["message"] == "Piped."


def test_a_damaged_index_in_a_folder_that_cannot_be_written(damaged_office: DamagedOffice) -> None:
    """It can't be put away: the process goes on with an index in memory."""
    expected = damaged_office.run("inbox", "--no-mark", "--json", session=damaged_office.curie).stdout
    damaged_office.corrupt(20_000, 9_000, 1)
    state = damaged_office.repo / ".git" / "gitmem"
    bent = [
        path for path in (damaged_office.repo / ".git").rglob("*") if path.is_dir() or path.parent == state
    ]
    modes = {path: path.stat().st_mode for path in [*bent, damaged_office.repo / ".git"]}
    try:
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        env = {"GITMEM_SESSION": damaged_office.curie}
        said = process("inbox", "--no-mark", "--json", cwd=damaged_office.repo, env=env, before=powerless)
        counted = process("inbox", "--count", cwd=damaged_office.repo, env=env, before=powerless)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert (said.status, said.out) == (0, expected), said
    assert (counted.status, counted.out.strip()) == (0, str(SIGNALS))


@pytest.mark.deep
def test_any_part_of_the_file_may_be_noise(damaged_office: DamagedOffice) -> None:
    """Wherever it is and however long: no command fails, and everything that was said is there once."""
    for seed in range(50):
        dice = random.Random(seed)
        at = dice.randrange(len(damaged_office.kept))
        damaged_office.corrupt(at, dice.choice([1, 40, 700, 4_096, 9_000, 40_000]), seed)
        for args in dice.sample(COMMANDS, 1):
            done = damaged_office.run(*args, session=damaged_office.curie if args[0] == "inbox" else None)
            assert done.returncode == 0, (seed, at, args, done.stdout, done.stderr)
        done = damaged_office.run("signal", f"Unique {seed}", "--broadcast")
        assert done.returncode == 0, (seed, at, done.stdout, done.stderr)
    damaged_office.index.unlink()
    said = damaged_office.run("log", "-n", "1000").stdout
    for seed in range(50):
        assert said.count(f"Unique {seed}\n") == 1, seed


def hook(damaged_office: DamagedOffice, event: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "hook", "codex", event], cwd=damaged_office.repo, input=json.dumps(given("codex", event, "c-1", damaged_office.repo)),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_hook_hands_over_what_waits_in_spite_of_a_damaged_index(damaged_office: DamagedOffice) -> None:
    """It puts the index away and runs again by itself, and hands the signal over once."""
    sessions = damaged_office.repo / ".git" / "gitmem" / "sessions"
    before = {path.name for path in sessions.iterdir()}
    assert hook(damaged_office, "SessionStart").returncode == 0
    (own,) = {path.name for path in sessions.iterdir()} - before
    for seed in range(4):
        damaged_office.desk.send(damaged_office.planck, f"Unique {seed}.", "--to", own)
        if damaged_office.index.exists():  # else the signal has met what is left of the damage
            damaged_office.kept = damaged_office.index.read_bytes()
        damaged_office.corrupt(8_192 + seed * (len(damaged_office.kept) // 5), 9_000, seed)

        done = hook(damaged_office, "PostToolUse")

        assert (done.returncode, done.stdout.count(f"Unique {seed}.")) == (0, 1), (seed, done)
        json.loads(done.stdout)
        assert hook(damaged_office, "PostToolUse").stdout == ""
    assert not (damaged_office.repo / ".git" / "gitmem" / "hook-error").exists()


# An index that can't be written, as in an agent's sandbox: it is read as it lies, never built again for each answer.

# Prints how many segments were read to answer, and the messages that the index then has.
LOOK = """
import json
from pathlib import Path
from gitmem.index import catch_up
from tests.hazards.faults import indexed, open_store
read = []
real = catch_up._Reader._segment
def spy(self, *args, **kwargs):
    read.append(args)
    real(self, *args, **kwargs)
catch_up._Reader._segment = spy
store = open_store(Path.cwd())
texts = sorted(indexed(store))
print(json.dumps([len(read), texts]))
"""


@pytest.fixture
def sealed(desk: Desk) -> Iterator[Path]:
    """A repository with three signals in as many segments, whose index file can't be written nor its folder."""
    store = open_store(desk.repo)
    for text in "abc":
        speak(store, text)
        store.log.new_token()
    store.close()
    state = desk.repo / ".git" / "gitmem"
    seal(state, 0o555)
    yield desk.repo
    seal(state, 0o755)


def seal(state: Path, mode: int) -> None:
    for folder, _, names in os.walk(state):
        for name in names:
            os.chmod(os.path.join(folder, name), mode & 0o666)
        os.chmod(folder, mode)


def look(repo: Path) -> tuple[int, list[str]]:
    """How many segments a process that permissions bind had to read, and what it answers."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=powerless,
    )
    assert done.returncode == 0, done.stderr
    read, texts = json.loads(done.stdout)
    return read, texts


needs_bounds = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


@needs_bounds
def test_an_index_that_cannot_be_written_is_read(sealed: Path) -> None:
    """Nothing is built again."""
    assert look(sealed) == (0, ["a", "b", "c"])


@needs_bounds
def test_what_it_lacks_is_added_in_memory(sealed: Path) -> None:
    """Only the segment that differs is read, and lines that wait for a commit are answered too."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    store.log.committed = lambda: None
    store.log.recorded = lambda entries: None
    speak(store, "d")
    speak(store, "rides", deferred=True)
    store.close()
    seal(state, 0o555)

    assert look(sealed) == (1, ["a", "b", "c", "d", "rides"])


@needs_bounds
def test_an_index_that_somebody_else_has_open_is_read(sealed: Path) -> None:
    """What is still in the `-wal` of a writer at work counts."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    speak(store, "d")
    assert Path(f"{index_file.path(store.repo, store.machine)}-wal").stat().st_size
    seal(state, 0o555)

    assert look(sealed) == (0, ["a", "b", "c", "d"])
    seal(state, 0o755)
    store.close()


@needs_bounds
def test_an_index_whose_wal_cannot_be_read_is_done_without(sealed: Path) -> None:
    """A `-wal` without its `-shm` may hold the half of a page: the log is read instead."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    speak(store, "d")
    where = index_file.path(store.repo, store.machine)
    kept = state / "kept"
    shutil.copy(f"{where}-wal", kept)
    store.close()
    os.rename(kept, f"{where}-wal")
    seal(state, 0o555)

    assert look(sealed) == (4, ["a", "b", "c", "d"])


def test_a_copy_is_the_index(desk: Desk) -> None:
    """Table for table, also where the path has characters that mean something in a URI."""
    odd = desk.repo.parent / "100% odd? #1"
    desk.repo.rename(odd)
    store = open_store(odd)
    speak(store, "a")
    store.db()
    copy = index_file.open_copy(store.repo, store.machine, views.VIEWS, store.index.read)

    assert dump(copy) == dump(store.index)
    assert index_file.is_current(copy, store.log)
    store.close()


def test_a_file_that_changes_while_it_is_copied_is_not_trusted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks SQLite can't say that a writer came between."""
    store = open_store(desk.repo)
    speak(store, "a")
    where = index_file.path(store.repo, store.machine)
    store.close()
    for changes in (False, True):

        def connect(place: str, changes: bool = changes, **options: object) -> sqlite3.Connection:
            if "mode=ro" in place and "immutable" not in place:
                raise sqlite3.OperationalError("unable to open database file")
            if "immutable" in place and changes:
                os.utime(where, ns=(1, 1))
            return sqlite3.connect(place, **options)  # type: ignore[call-overload,no-any-return]

        with monkeypatch.context() as patch:
            patch.setattr(_sqlite3, "connect", connect)
            assert (index_file.copy_of(where) is None) is changes


@needs_bounds
def test_a_quick_read_answers_from_it(sealed: Path) -> None:
    """The question that hooks ask all the time costs no catch-up in a sandbox either."""
    script = (
        "from pathlib import Path\n"
        "from gitmem.index import index_file\n"
        "from tests.hazards.faults import find, machine\n"
        "found = index_file.Snapshots(find(str(Path.cwd())), machine(), index_file.SHAPE).take()\n"
        "print(found and found.is_complete and found.db.execute('SELECT count(*) FROM signal').fetchone()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=sealed,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=powerless,
    )
    assert done.stdout == "3\n", done.stderr
    place = find(str(sealed))
    assert index_file.Snapshots(place, "another machine", index_file.SHAPE).take() is None


def test_a_copy_that_is_damaged_is_done_without(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file that can't be put away costs a reading of the log, not the answer."""
    store = open_store(desk.repo)
    speak(store, "a")
    committer.commit_within(store.log, 5.0, deferred=True)
    store.close()
    where = Path(index_file.path(store.repo, store.machine))
    data = bytearray(where.read_bytes())
    for start in range(4096, len(data), 256):
        data[start : start + 64] = os.urandom(64)
    where.write_bytes(data)
    at(monkeypatch, "unlink", "*/index-*", denied)
    store = open_store(desk.repo)
    assert [row[0] for row in store.db().execute("SELECT count(*) FROM signal")] == [1]
    store.close()
