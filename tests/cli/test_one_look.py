"""A sender reads one snapshot of the index as it is; what waits beside it counts wherever it decides who is meant."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli import background
from gitmem import records
from gitmem.errors import UsageError
from gitmem.index import index_file
from gitmem.log.lines import CommitMessage, LogEntry, line_hash
from gitmem.log.write_ahead import WriteAheadLog
from gitmem.repo import find
from gitmem.store import Store, wall_clock
from tests.in_process import living_committer
from tests.sandbox import Clock, open_store
from tests.signing import MALLORY

from .conftest import Run, Said

pytestmark = pytest.mark.usefixtures("commits")

OWN_MODULES_MAX = 73  # one opens all state files
HARNESS = "4f1d9f0e-1111-4222-8333-944445555666"


class Scene:
    """A clone where Planck and Curie are at work and nothing is committed by itself."""

    def __init__(self, run: Run, start: Callable[..., str], repo: Path) -> None:
        self.run = run
        self.start = start
        self.state = repo / ".git" / "gitmem"
        self.planck, self.curie = start("Planck"), start("Curie")
        self.end_committer: Callable[[], object] = lambda: None

    @property
    def index(self) -> Path:
        (path,) = self.state.glob("index-*.sqlite3")
        return path

    @property
    def indexed(self) -> int:
        """How many lines the index has."""
        db = sqlite3.connect(f"file:{self.index}?mode=ro", uri=True)
        (count,) = db.execute("SELECT count(*) FROM line").fetchone()
        db.close()
        return int(count)

    def behind(self, action: Callable[[], object]) -> object:
        """Do something, and then have the index as it was before: what was done is in the write-ahead log alone."""
        before = self.index.read_bytes()
        done = action()
        for path in self.state.glob("index-*.sqlite3*"):
            path.unlink()
        (self.state / self._name).write_bytes(before)
        return done

    def send(self, *args: str, session: str = "", **env: str) -> Said:
        return self.run("signal", *args, "--json", session=session or self.planck, **env)

    def recipients(self, *args: str) -> list[str]:
        said = self.send("hello", *args)
        assert said.status == 0, said
        return list(said.json["signal"]["recipients"])

    @property
    def _name(self) -> str:
        return f"index-{os.uname().nodename}.sqlite3"


@pytest.fixture
def scene(
    run: Run, start: Callable[..., str], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    found = Scene(run, start, repo)
    found.send("first", "--to", "Curie")
    assert run("inbox", session=found.curie).status == 0  # the folder of flags is there
    run("session", "set", "--wu", "WU-1", session=found.curie)  # with the receipts all is committed
    run("roster")
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "60")
    with ExitStack() as stack:
        stack.enter_context(living_committer(repo))
        found.end_committer = stack.close
        yield found


def test_a_directed_signal_writes_nothing_to_the_index(scene: Scene) -> None:
    """Neither before nor after; and its recipient has it all the same, with the flag at once."""
    before = scene.index.read_bytes(), scene.indexed
    assert scene.recipients("--to", "Curie") == ["test:worker:curie"]
    assert scene.recipients("--to", "Curie") == ["test:worker:curie"]  # on a tail of one signal

    assert (scene.index.read_bytes(), scene.indexed) == before
    assert (scene.state / "flags" / scene.curie).stat().st_size > 0
    assert scene.run("inbox", "--count", session=scene.curie).out == "2\n"


def test_a_sender_whose_index_is_behind_writes_nothing_to_it(scene: Scene) -> None:
    """What waits counts for it all the same, read or unread; it waits for the disk for its record alone."""
    scene.send("read before", "--to", "Planck", session=scene.curie)
    scene.run("inbox", session=scene.planck)
    asked = scene.send("Shall we?", "--to", "Planck", "--intent", "propose", session=scene.curie)
    scene.send("read later", "--to", "Planck", session=scene.curie)
    scene.behind(lambda: scene.start("Mach"))
    before = scene.index.read_bytes(), scene.indexed

    said = scene.send("hello", "--to", "Mach")
    assert said.json["signal"]["recipients"] == ["test:worker:mach"]
    assert (said.json["notice"]["unread"], said.json["notice"]["wants_answer"]) == (2, 1)
    id = asked.json["signal"]["signal_id"]
    answer = scene.run("reply", id, "--agree", "yes", "--json", session=scene.planck)
    assert (answer.json["notice"]["unread"], answer.json["notice"]["wants_answer"]) == (1, 0)

    assert (scene.index.read_bytes(), scene.indexed) == before
    assert not any(path.stat().st_size for path in scene.state.glob("index-*.sqlite3-wal"))


def test_an_advisory_signal_interrupts_nobody(scene: Scene) -> None:
    """Its flag is empty."""
    scene.send("hello", "--to", "Curie", "--interrupt", "advisory")

    assert (scene.state / "flags" / scene.curie).stat().st_size == 0


def test_a_name_that_changed_hands_in_the_tail_means_its_new_holder(scene: Scene) -> None:
    """Never misroute: the index still knows the old one."""

    def change() -> None:
        assert scene.run("session", "set", "--name", "Bohr", session=scene.curie).status == 0
        scene.start("Curie", "--agent-identity", "test:worker:other")

    scene.behind(change)

    assert scene.recipients("--to", "Curie") == ["test:worker:other"]
    assert scene.recipients("--to", "Bohr") == ["test:worker:curie"]


def test_a_session_that_ended_in_the_tail_may_not_speak(scene: Scene) -> None:
    """The index still has it as live."""
    scene.behind(lambda: scene.run("session", "end", session=scene.planck))

    assert scene.send("hello", "--to", "Curie").status == 2


def test_a_session_that_started_in_the_tail_is_found(scene: Scene) -> None:
    """By name, and as the sender."""
    mach = str(scene.behind(lambda: scene.start("Mach")))

    assert scene.recipients("--to", "Mach") == ["test:worker:mach"]
    assert scene.send("hello", "--to", "Curie", session=mach).status == 0


def test_who_has_only_spoken_in_the_tail_is_found_by_a_second_look(scene: Scene) -> None:
    """A client without a session is known by its signals alone."""
    said = scene.behind(
        lambda: scene.send("I am new", "--to", "Curie", CLAUDE_CODE_SESSION_ID=HARNESS, GITMEM_SESSION="")
    )
    assert isinstance(said, Said)
    raw = str(said.json["signal"]["sender_identity"])
    assert raw.startswith("h-")

    assert scene.recipients("--to", raw) == [raw]


def test_a_refusal_that_rests_on_everything_is_not_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown name is refused once, and nothing waits then."""
    tried = []
    real = Store.with_one_snapshot

    def look(self: Store, work: Callable[[], object], *, exact: bool) -> object:
        return real(self, lambda: tried.append(1) or work(), exact=exact)

    monkeypatch.setattr(Store, "with_one_snapshot", look)
    assert scene.send("hello", "--to", "Nobody").status == 2
    assert tried == [1]

    scene.send("hello", "--to", "Curie")
    assert scene.send("hello", "--to", "Nobody").status == 2
    assert tried == [1, 1, 1, 1]


def test_what_was_recorded_is_not_recorded_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with the answer."""
    scene.send("one", "--to", "Curie")
    monkeypatch.setattr("gitmem.signals.send.after", lambda *args, **more: unheard())

    assert scene.send("two", "--to", "Curie").status == 2
    assert sum(b'"message":"two"' in line for line in lines_waiting(scene)) == 1


def unheard() -> None:
    raise UsageError("nothing to say")


def test_a_signal_in_the_tail_can_be_answered(scene: Scene) -> None:
    """What answers is no signal on its own: it needs all that was said."""
    said = scene.behind(lambda: scene.send("Shall we?", "--to", "Curie", "--intent", "propose"))
    assert isinstance(said, Said)
    asked = said.json["signal"]

    reply = scene.run("reply", asked["signal_id"], "yes", "--agree", "--json", session=scene.curie).json[
        "signal"
    ]
    more = scene.send("and?", "--thread", asked["thread_id"]).json["signal"]

    assert (reply["thread_id"], more["thread_id"]) == (asked["thread_id"],) * 2
    assert more["recipients"] == ["test:worker:curie"]
    assert set(more["after"]) >= {asked["signal_id"]}


def test_a_key_of_a_signal_in_the_tail_is_not_used_twice(scene: Scene) -> None:
    """The same command again is the same signal."""
    args = ("hello", "--to", "Curie", "--idempotency-key", "k")
    first = scene.behind(lambda: scene.send(*args))
    assert isinstance(first, Said)

    again = scene.send(*args).json

    assert again["signal"]["signal_id"] == first.json["signal"]["signal_id"]
    assert "already recorded" in again["warnings"][0]


def test_a_broadcast_names_one_that_waits(scene: Scene) -> None:
    """What the next reader's first line reaches is never older than the broadcasts of this clone."""
    first = scene.behind(lambda: scene.send("one", "--broadcast"))
    assert isinstance(first, Said)
    scene.send("two", "--broadcast")

    one, two = (
        [line for line in lines_waiting(scene) if b'"message":"%b"' % message in line]
        for message in (b"one", b"two")
    )
    assert line_hash(one[0]).hex() in json.loads(two[0])["seen"]


def test_a_ref_that_another_process_moved_is_read_first(scene: Scene) -> None:
    """What was in the write-ahead log is in a commit that the index does not have."""

    def change() -> None:
        scene.run("session", "set", "--name", "Bohr", session=scene.curie, GITMEM_COMMIT_AFTER="0")
        scene.start("Curie", "--agent-identity", "test:worker:other")
        scene.run("log", GITMEM_COMMIT_AFTER="0")

    scene.behind(change)
    assert not any((scene.state / "wal").glob("*")) or not lines_waiting(scene)

    assert scene.recipients("--to", "Curie") == ["test:worker:other"]


@pytest.mark.parametrize("damage", ["missing", "empty", "bytes", "schema"])
def test_without_a_good_index_a_signal_is_sent_all_the_same(scene: Scene, damage: str) -> None:
    """The index is derived."""
    path = scene.index
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "bytes":
        path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40_000)
    else:
        subprocess.run(
            [
                sys.executable,
                "-c",
                "import sqlite3,sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version=7')",
                path,
            ],
            check=True,
        )

    assert scene.recipients("--to", "Curie") == ["test:worker:curie"]


def test_flags_that_somebody_deleted_are_raised_anew_for_all(scene: Scene) -> None:
    """One flag that is raised must not hide that those of others are gone."""
    mach = scene.start("Mach")
    scene.send("hello", "--to", "Mach")
    shutil.rmtree(scene.state / "flags")

    scene.send("hello", "--to", "Curie")

    assert {path.name for path in (scene.state / "flags").iterdir()} >= {mach, scene.curie}


def test_an_index_of_another_writer_is_not_asked(repo: Path) -> None:
    """Which sessions are our own hangs on who writes here."""
    store = open_store(repo, Clock(), commit_after=0)
    store.record(
        [
            store.line(
                "session",
                {"session_id": "sess-0000", "event": "start", "display_name": "Planck", "clone_id": "c"},
            )
        ],
        CommitMessage("a <a@b>", "s"),
    )
    store.db()
    assert store._take(exact=True) is not None

    Path(store.repo.state, f"given-{os.geteuid()}-here").write_text(f"{MALLORY.writer} /elsewhere\n")

    assert store._take(exact=True) is None


def test_lines_that_somebody_took_out_of_the_write_ahead_log_mean_nobody(scene: Scene) -> None:
    """The index has them, and the log has them no more."""
    scene.start("Mach")
    for path in (scene.state / "wal").glob("*.wal1"):
        path.unlink()

    assert scene.send("hello", "--to", "Mach").status == 2


def test_only_lines_that_plainly_name_nobody_leave_the_names_as_they_are(repo: Path) -> None:
    """A kind that is written in another way is a kind all the same."""
    store = open_store(repo, Clock(), commit_after=0)
    store.record(
        [
            store.line(
                "session",
                {"session_id": "sess-0000", "event": "start", "display_name": "Planck", "clone_id": "c"},
            )
        ],
        CommitMessage("a <a@b>", "s"),
    )
    store.db()
    wal = WriteAheadLog(os.path.join(store.repo.state, "wal"), wall_clock)
    at = b'{"at":"2026-11-21T20:00:00.123456Z","kind":"'

    def names_after(rest: bytes) -> tuple[bool, bool]:
        wal.append(LogEntry([("signals", at + rest)], CommitMessage("a <a@b>", "s"), token="abc"))
        found = index_file.Snapshots(
            find(str(repo)), "test", index_file.SHAPE, nameless=records.NAMELESS
        ).take()
        assert found is not None
        found.db.close()
        return found.is_complete, found.has_names

    assert names_after(b'signal","message":"\\"kind\\":\\"session\\""}') == (False, True)
    assert names_after(b'sess\\u0069on"}') == (False, False)

    store.caught_up()
    for path in Path(wal.folder).iterdir():  # as after a power loss
        os.truncate(path, path.stat().st_size // 2)
    assert (
        index_file.Snapshots(find(str(repo)), "test", index_file.SHAPE, nameless=records.NAMELESS).take()
        is None
    )


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each look at the log."""
    found: list[int] = []
    real = Store.caught_up
    monkeypatch.setattr(Store, "caught_up", lambda self: found.append(1) or real(self))
    return found


@pytest.mark.parametrize(
    "args", [["whoami"], ["gate", "--wu", "WU-1"], ["thread"], ["mem", "context", "--wu", "WU-1"]]
)
def test_a_command_that_only_asks_takes_one_look(scene: Scene, args: list[str], looks: list[int]) -> None:
    """One operation sees one snapshot, also while others write; the next command sees what they wrote."""
    thread = scene.send("Shall we?", "--to", "Curie", "--wu", "WU-1").json["signal"]["thread_id"]

    looks.clear()

    said = scene.run(*args, *([thread] if args == ["thread"] else []), session=scene.curie)

    assert said.status in (0, 1), said
    assert looks == [1]


def test_looks_do_not_grow_with_the_threads_that_wait(scene: Scene, looks: list[int]) -> None:
    """Peers can write any number of them, and each look reads folders and refs."""
    counts = []
    for _ in range(2):
        scene.send("Shall we?", "--to", "Curie", "--intent", "propose")
        looks.clear()
        assert scene.run("mem", "recover", session=scene.curie).status == 0
        counts.append(len(looks))

    assert counts[0] == counts[1]


def command(scene: Scene, repo: Path, *args: str, says: str = "recorded") -> str:
    """Run a command in a process of its own while a committer seems to be alive; what it imported, from -X importtime."""
    done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "cli", *args, "-C", str(repo)],
            cwd=Path(background.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "GITMEM_SESSION": scene.planck},
    )  # fmt: skip
    assert says in done.stdout
    return done.stderr


def loaded_by(scene: Scene, repo: Path, *args: str, says: str = "recorded") -> set[str]:
    """The modules that a command loads."""
    shown = command(scene, repo, *args, says=says)
    return {line.rpartition("|")[2].strip() for line in shown.splitlines()}


def test_whoami_loads_nothing_that_runs_git_or_reads_edited_paths(scene: Scene, repo: Path) -> None:
    """The roster, in the same module, needs both."""
    command(scene, repo, "signal", "hello", "--to", "Curie")
    loaded = loaded_by(scene, repo, "whoami", says="Planck")
    assert not loaded & {"gitmem.agents.edited_paths", "gitmem.git.processes", "json", "subprocess", "typing"}


def test_a_signal_loads_few_modules(scene: Scene, repo: Path) -> None:
    """Each costs a hundredth of an empty Python."""
    loaded = loaded_by(scene, repo, "signal", "hello", "--to", "Curie")
    own = {name for name in loaded if name.partition(".")[0] in ("gitmem", "cli", "gitmem_cli")}
    assert len(own) <= OWN_MODULES_MAX, sorted(own)


def test_a_list_of_tasks_loads_nothing_that_decides_tasks_or_sends_signals(scene: Scene, repo: Path) -> None:
    """That is a quarter of its time; only `--mine` gives up tasks."""
    delegate = ["delegate", "a task", "--to", "Curie", "--role", "implementer", "--wu", "WU-1"]
    said = scene.run(*delegate, session=scene.planck)
    assert said.status == 0, said
    loaded = loaded_by(scene, repo, "task", "list", says="a task")
    assert not loaded & {
        "gitmem.work.task_decisions",
        "gitmem.sync.fences",
        "gitmem.signals.send",
    }


def test_a_command_that_ends_leaves_the_log_of_sqlite_to_the_committer(scene: Scene, repo: Path) -> None:
    """To bring it to the file takes four syncs, and nobody needs that to read."""
    command(scene, repo, "mem", "create", "a note")
    (log,) = scene.state.glob("index-*-wal")
    assert log.stat().st_size > 0
    scene.end_committer()

    subprocess.run(
        [sys.executable, "-m", "cli", "background", "commit-waiting", "-C", str(repo)],
        cwd=Path(background.__file__).parents[1], env={**os.environ, "GITMEM_COMMIT_AFTER": "0.01"}, timeout=60, check=True,
    )  # fmt: skip
    assert not log.exists() or not log.stat().st_size


def lines_waiting(scene: Scene) -> list[bytes]:
    """The lines in the write-ahead log."""
    content = b"".join(path.read_bytes() for path in sorted((scene.state / "wal").glob("*.wal1")))
    return re.findall(rb"(?m)^\w+\t(\{.*\})$", content)
