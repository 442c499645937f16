"""Many processes at once in one clone: every acknowledged line is there once, and every signal is read by whom it is for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cli.environment import Environment
from gitmem import commit_process
from gitmem.agents.caller import Caller, CallerClaims, find
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer, ref
from gitmem.log.local_log import LocalLog
from gitmem.signals import inbox, send, threads
from gitmem.store import Store
from gitmem.sync import exchange
from gitmem.text.addresses import words_of

from .. import templates
from ..clones import BEGINNING, agreed, git
from ..profiles import PROFILE_EXAMPLES
from .conftest import ROOT, Desk, persons_desk
from .faults import (
    ALL_STEPS,
    STEPS_MAX,
    WRITES,
    Port,
    SystemCall,
    check,
    check_index,
    child,
    command,
    fsck,
    open_store,
    record,
    settled,
    speak,
    texts,
)

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
        found.setdefault(words_of(name), set()).add(json.loads(body)["message"])
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


# Threads of one process that share an open log: nothing is lost, and the interpreter survives.

SEND = """
import sys, threading, gitmem

folder = sys.argv[1]
with gitmem.open(folder, machine="test", commit_after=0) as log:
    curie = log.sessions.start(name="Curie", agent_identity="test:worker:curie").session_id
    planck = log.sessions.start(name="Planck", agent_identity="test:worker:planck").session_id
with gitmem.open(folder, session=planck, machine="test", commit_after=0.2) as log:
    def work(thread):
        for number in range(25):
            log.signals.send(f"{thread}-{number}", to=["Curie"])
            log.memory.append(f"note {thread}-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
with gitmem.open(folder, session=curie, machine="test", commit_after=0) as log:
    print(len(log.inbox(limit=1000, max_bytes=10_000_000).signals), len(log.memory.load()))
"""
WATCH = """
import sys, threading, gitmem

folder = sys.argv[1]
with gitmem.open(folder, machine="test", commit_after=0) as log:
    curie = log.sessions.start(name="Curie", agent_identity="test:worker:curie").session_id
    planck = log.sessions.start(name="Planck", agent_identity="test:worker:planck").session_id
done, seen = threading.Event(), []
with gitmem.open(folder, session=curie, machine="test", commit_after=0.2) as log:
    def watch():
        for batch in log.watch(stop=done):
            seen.extend(each["message"] for each in batch.signals)
            if len(seen) >= 25:
                done.set()

    thread = threading.Thread(target=watch)
    thread.start()
    with gitmem.open(folder, session=planck, machine="test", commit_after=0.2) as other:
        for number in range(25):
            other.signals.send(f"to curie {number}", to=["Curie"])
            log.signals.send(f"to planck {number}", to=["Planck"])
    thread.join(30)
    done.set()
print(len(seen), len(set(seen)))
"""
OWNED = """
import functools, sys, threading, gitmem
from gitmem.store import Store

def owned(name, method):
    @functools.wraps(method)
    def call(self, *args, **options):
        if not self.lock._is_owned():
            found.add(sys._getframe(1).f_code.co_name)
        return method(self, *args, **options)
    return call

for name in ("db", "record", "caught_up", "with_one_snapshot"):
    setattr(Store, name, owned(name, getattr(Store, name)))
folder, found = sys.argv[1], set()
with gitmem.open(folder, machine="test", commit_after=0) as log:
    curie = log.sessions.start(name="Curie", agent_identity="test:worker:curie").session_id
    log.sessions.start(name="Planck", agent_identity="test:worker:planck")
    log.signals.send("to curie", to=["Curie"])
with gitmem.open(folder, session=curie, machine="test", commit_after=0) as log:
    found.clear()
    done = threading.Event()
    for batch in log.watch(stop=done):
        log.signals.send("to planck", to=["Planck"])
        done.set()
print(*sorted(found), "end")
"""


def run(code: str, repo: Path) -> list[str]:
    """Run a program in a process of its own, as a fault of the interpreter ends it."""
    git("init", "-q", str(repo), cwd=repo.parent)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=repo)
    done = subprocess.run(
        [sys.executable, "-c", code, str(repo)], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.split()


def test_threads_that_write_by_one_log_lose_nothing(tmp_path: Path) -> None:
    """Three threads send and remember at once; each record is in the log once."""
    assert run(SEND, tmp_path / "repo") == ["75", "75"]


def test_a_thread_watches_while_another_sends_by_the_same_log(tmp_path: Path) -> None:
    """Both wait for each other at most for one call."""
    assert run(WATCH, tmp_path / "repo") == ["25", "25"]


def test_a_watch_uses_the_store_only_while_no_other_thread_does(tmp_path: Path) -> None:
    """Threads share the store's SQLite connections: one that is closed while another thread reads ends the process."""
    assert run(OWNED, tmp_path / "repo") == ["end"]


def test_a_server_shortens_addresses_only_while_no_other_thread_uses_the_store(repo: Path) -> None:
    """`serve` prints in one thread while others carry out tasks."""
    with Environment(str(repo)) as at:
        shown: list[str] = []
        store = at.store()
        with store.lock:
            asked = threading.Thread(
                target=lambda: shown.append(at.short_address(f"test:worker:curie@{16 * 'a'}"))
            )
            asked.start()
            asked.join(0.3)
            assert asked.is_alive() and not shown
        asked.join()
    assert shown


# A full disk and a kill at each step of the commands on tasks, claims and handoffs: all of their lines are there, or none.

# The lines of each command, by kind and event.
WORK_COMMANDS = {
    "delegate": ({"task": 1, "signal": 1}, "planck", "delegate", "Write more", "--to", "Bohr", "--role", "implementer/test", "--wu", "WU-8"),
    "take": ({"task_event take": 1}, "bohr", "task", "take", "{open}"),
    "ask": ({"task_event status": 1, "signal": 1}, "bohr", "task", "message", "--ask", "{task}", "Which?"),
    "cancel": ({"task_event cancel": 1, "task_event seal": 1}, "planck", "task", "cancel", "{open}"),
    "call": ({"task": 1, "signal": 1}, "planck", "call", "Bohr", "Is it right?", "--no-wait"),
    "done": ({"task_event status": 1, "signal": 1}, "bohr", "task", "done", "{task}", "12 cases"),
    "handoff": ({"task": 1, "signal": 1}, "bohr", "handoff", "--to", "Curie", "go on"),
    "accept": ({"task_event take": 1, "task_event status": 1, "claim claim": 1, "claim release": 1, "signal": 1}, "curie", "task", "take", "{handoff}"),
    "claim": ({"claim claim": 1}, "planck", "claim", "docs"),
    "claim --anyway": ({"claim claim": 1, "audit": 1}, "planck", "claim", "src", "--anyway", "Bohr is away"),
    "release --reason": ({"claim release": 1, "audit": 1}, "planck", "claim", "release", "{claim}", "--reason", "Bohr is away"),
}  # fmt: skip


def lines_of(store: Store) -> Counter[str]:
    """The lines of a log by kind and event, without those about sessions and receipts, and attestations."""
    found: Counter[str] = Counter()
    for (body,) in store.db().execute("SELECT body FROM line"):
        record = json.loads(body)
        if record["kind"] not in ("session", "receipt", "attestation"):
            found[f"{record['kind']} {record.get('event', '')}".strip()] += 1
    return found


@pytest.fixture
def work(desk: Desk) -> dict[str, str]:
    """Planck asked Bohr for two things, of which Bohr took one and claims a folder; another agent of Bohr's kind offers work to Curie."""
    return templates.copy("work", desk.repo.parent, _at_work)


def _at_work(root: Path) -> dict[str, str]:
    desk = persons_desk(root / "repo")
    (desk.repo / "src").mkdir()
    (desk.repo / "src" / "a.py").touch()
    planck, bohr, curie, ada = (desk.start(name) for name in ("Planck", "Bohr", "Curie", "Ada"))
    ask = ("--role", "implementer/test", "--wu", "WU-7", "--json")
    task, given, left = (
        desk("delegate", text, "--to", to, *ask, session=planck).json["task"]["task_id"]
        for text, to in (("Write", "Bohr"), ("Check", "Ada"), ("Read", "Bohr"))
    )
    assert (
        desk("task", "take", task, session=bohr).status
        == desk("task", "take", given, session=ada).status
        == 0
    )
    claim = desk("claim", "src", "--json", session=bohr).json["claim_id"]
    assert desk("claim", "lib", session=ada).status == 0
    handoff = desk("handoff", "--to", "Curie", "go on", "--json", session=ada).json["task"]["task_id"]
    return {
        "task": task,
        "open": left,
        "claim": claim,
        "handoff": handoff,
        "planck": planck,
        "bohr": bohr,
        "curie": curie,
    }


@pytest.mark.deep
@pytest.mark.parametrize("kills", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize("name", WORK_COMMANDS)
def test_a_command_on_work_is_whole_or_absent(
    desk: Desk, work: dict[str, str], tmp_path: Path, name: str, kills: bool
) -> None:
    """Acknowledged, it is there; failed, it never appears; the sentence says which.

    A kill comes at every fourth step, a full disk at every other write: of each command at those after the ones of the last.
    """
    expected, who, *args = WORK_COMMANDS[name]
    store = open_store(desk.repo)
    before = lines_of(store)
    store.close()
    acknowledged = 0
    every = 4 if kills else 2
    for step in range(1 + list(WORK_COMMANDS).index(name) % every, STEPS_MAX, every):
        copy = tmp_path / "copy"
        shutil.copytree(desk.repo, copy, symlinks=True)
        fault = SystemCall(step, ALL_STEPS if kills else WRITES, kills=kills)
        end = child(
            command(copy, *(each.format(**work) for each in args), "--json", session=work[who]), fault
        )
        after = open_store(copy)
        added = +(lines_of(after) - before)
        after.close()
        shutil.rmtree(copy)
        about = f"{name}, step {step}: {end.answer}, {dict(added)}"
        assert "Traceback" not in str(end.answer), about
        assert added in (Counter(expected), Counter()), about
        if end.died:
            continue
        assert end.answer["status"] in (0, 4), about
        if end.answer["status"] == 0:
            assert added == Counter(expected), about
            acknowledged += 1
        else:
            assert not added or "unknown" in end.answer["out"], about
            assert "Nothing was" in end.answer["err"] or "unknown" in end.answer["out"], about
        if end.steps < step:
            break
    else:
        pytest.fail("the command never ended")
    assert acknowledged and step > 4


# Three clones and a remote: whatever they do in whatever order, they end with the same log and the same answers.

NAMES = "abc"
OF_THE_CLONE = ("warnings", "next")  # those name what this clone knows of others
EXAMPLES = max(3, PROFILE_EXAMPLES // 25)
CLONE_READERS = [f"test:worker:{name}" for name in NAMES]
ACTS = ["say", "say", "propose", "agree", "reject", "read", "sync", "sync", "fetch", "wait", "roll", "commit", "plumb",
        "lose the index", "rewind the remote"]  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTS), st.integers(0, 2), st.integers(0, 5)), min_size=4, max_size=16
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare remote with three clones that have no log yet."""
    root = tmp_path_factory.mktemp("three")
    git("init", "--quiet", "--bare", "--initial-branch=main", "hub.git", cwd=root)
    git("clone", "--quiet", "hub.git", "first", cwd=root)
    git("checkout", "--quiet", "-b", "main", cwd=root / "first")
    git("-c", "user.name=P", "-c", "user.email=p@x", "commit", "--quiet", "--allow-empty", "-m", "First",
        cwd=root / "first")  # fmt: skip
    git("push", "--quiet", "origin", "main", cwd=root / "first")
    for name in NAMES:
        git("clone", "--quiet", "hub.git", name, cwd=root)
        git("remote", "set-url", "origin", "../hub.git", cwd=root / name)
    shutil.rmtree(root / "first")
    return root


def caller(identity: str) -> Caller:
    """An agent without a session, also where the log has not seen it."""
    found = Caller(identity, f"{identity} <{identity}@gitmem>", "as")
    found.identity = identity
    return found


class World:
    """The clones of one example, and what was acknowledged in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.micros = BEGINNING
        self.stores = [self.open(number) for number in range(3)]
        self.said: list[str] = []
        self.signals: list[tuple[str, str]] = []  # thread, signal

    def now(self) -> int:
        self.micros += 1_000_000
        return self.micros

    def open(self, number: int) -> Store:
        return open_store(self.root / NAMES[number], now=self.now)

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def do(self, step: str, who: int, pick: int) -> None:  # noqa: C901  (one branch for each step)
        store = self.stores[who]
        if step == "say":
            self._send(who, to=[CLONE_READERS[(who + 1 + pick % 2) % 3]] if pick else ())
        elif step == "propose":
            self._send(
                who, to=[each for number, each in enumerate(CLONE_READERS) if number != who], intent="PROPOSE"
            )
        elif step in ("agree", "reject"):
            self._answer(who, step.upper(), pick)
        elif step == "read":
            found = inbox.read(store, caller(CLONE_READERS[who]))
            inbox.mark(store, found)
        elif step == "sync":
            self.sync(who)
        elif step == "fetch":
            git("fetch", "--quiet", "origin", cwd=self.root / NAMES[who])
        elif step == "wait":
            self._wait(who)
        elif step == "roll":
            store.log.new_token()
        elif step == "commit":
            committer.commit_waiting(store.log, deferred=bool(pick % 2))
        elif step == "plumb":  # the next steps here go through the other port
            store.close()
            self.stores[who] = open_store(self.root / NAMES[who], PlumbingGit, now=self.now)
        elif step == "lose the index":
            store.close()
            for path in Path(store.repo.state).glob("index-*"):
                path.unlink()
            self.stores[who] = self.open(who)
        else:
            self._rewind(pick)

    def _send(self, who: int, **options: object) -> None:
        store = self.stores[who]
        text = f"{len(self.said):03d}"
        sent = send.send(store, caller(CLONE_READERS[who]), text, allow_unseen=True, **options)  # type: ignore[arg-type]
        self.said.append(text)
        if sent.signal.get("thread_id") and options.get("intent") == "PROPOSE":
            self.signals.append((str(sent.signal["thread_id"]), str(sent.signal["signal_id"])))

    def _answer(self, who: int, intent: str, pick: int) -> None:
        store = self.stores[who]
        known = [each for _, each in self.signals
                 if store.db().execute("SELECT 1 FROM signal WHERE signal_id = ?", (each,)).fetchone()]  # fmt: skip
        if known:
            self._send(who, reply_to=known[pick % len(known)], intent=intent)

    def _wait(self, who: int) -> None:
        """A signal that waits for its commit: no committer has come yet."""
        store = self.stores[who]
        store.commit_after = 3600.0
        self._send(who)
        store.commit_after = 0.0
        assert store.waits()

    def _rewind(self, pick: int) -> None:
        """Somebody forces the remote's branch back, or deletes it."""
        hub = self.root / "hub.git"
        older = git(
            "rev-parse", "--verify", "--quiet", f"{ref.BRANCH}~{1 + pick}", cwd=hub, check=False
        ).strip()
        if older:
            git("update-ref", ref.BRANCH, older, cwd=hub)
        elif pick == 5:
            git("update-ref", "-d", ref.BRANCH, cwd=hub)

    def sync(self, who: int) -> None:
        log = self.stores[who].log
        (found,) = exchange.exchange(
            log, ["origin"], may_send=agreed, timeout=30.0, pause=lambda seconds: None
        )
        assert found.state in ("synced", "up-to-date"), (found.state, found.message)
        self.stores[who].refresh()

    def answers(self, store: Store) -> list[object]:
        """What a clone says: who has not read what, and all that each thread says, but for where its signals are."""
        found: list[object] = []
        for reader in CLONE_READERS:
            unread = inbox.read(store, caller(reader), limit=1000, max_bytes=10_000_000)
            found.append([(signal["signal_id"], signal["delivery_state"]) for signal in unread.signals])
        for thread, _ in self.signals:
            for answer in (threads.converged(store, thread), threads.thread(store, thread)):
                fields = answer.as_json().items()
                found.append({name: value for name, value in fields if name not in OF_THE_CLONE})
        return found


@pytest.fixture
def root(template: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=template.parent) as folder:
        yield Path(folder)


@pytest.mark.deep
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(
    [
        ("say", 0, 0),
        ("say", 1, 1),
        ("sync", 0, 0),
        ("fetch", 2, 0),
        ("say", 2, 0),
        ("rewind the remote", 0, 5),
    ]
)
@example([("wait", 0, 0), ("sync", 1, 0), ("propose", 1, 0), ("sync", 1, 0), ("sync", 0, 0), ("agree", 0, 0)])
@example([("propose", 0, 0), ("sync", 0, 0), ("sync", 1, 0), ("read", 1, 0), ("lose the index", 1, 0), ("reject", 1, 0),
          ("fetch", 0, 0), ("wait", 2, 0), ("plumb", 2, 0), ("sync", 2, 0), ("agree", 2, 0)])  # fmt: skip
def test_any_interleaving_ends_with_one_log(
    template: Path, root: Path, steps: list[tuple[str, int, int]]
) -> None:
    """The same bytes, the same unread mail and decisions on all clones, and every acknowledged line exactly once."""
    here = Path(tempfile.mkdtemp(dir=root))
    shutil.copytree(template, here, dirs_exist_ok=True, symlinks=True)
    world = World(here)
    try:
        for step, who, pick in steps:
            world.do(step, who, pick)
        for who in (0, 1, 2, 0, 1):
            world.sync(who)
        trees = {store.git.commit(store.git.tip(ref.LOG_REF) or "").tree for store in world.stores}
        assert len(trees) == 1
        for store in world.stores:
            found = texts(store)
            assert sorted(found) == world.said and set(found.values()) <= {1}
            assert not store.log.waiting(deferred=True)
            check_index(store)
        assert all(world.answers(store) == world.answers(world.stores[0]) for store in world.stores[1:])
        tip = git("rev-parse", ref.LOG_REF, cwd=here / "a").strip()
        assert not git("rev-list", "--merges", tip, cwd=here / "a")
        assert git("rev-parse", ref.BRANCH, cwd=here / "hub.git").strip() == tip
        fsck(here / "a")
    finally:
        world.close()
        shutil.rmtree(here)
