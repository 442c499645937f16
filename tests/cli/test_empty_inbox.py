"""An inbox with nothing new is answered from the index alone, with the same bytes, and only where that is certain."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli import background, environment
from cli.commands import signals
from gitmem.signals import empty_inbox

from ..file_faults import at, denied
from ..in_process import living_committer
from .conftest import Run

pytestmark = pytest.mark.usefixtures("commits")


@pytest.fixture
def scene(run: Run, start: Callable[..., str]) -> tuple[str, str]:
    """Planck and Curie at work, and a proposal of Curie's that Planck has not read."""
    planck, curie = start("Planck"), start("Curie")
    sent = run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--json", session=curie).json
    return planck, str(sent["signal"]["signal_id"])


@pytest.mark.parametrize(
    "args", [["inbox"], ["inbox", "--json"], ["inbox", "--count"], ["inbox", "--count", "--json"]]
)
def test_nothing_new_is_answered_from_the_index_alone(
    args: list[str], run: Run, scene: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a store, and with the bytes that the usual way gives."""
    planck, _ = scene
    assert run("inbox", session=planck).status == 0
    run("roster")  # what was marked is in the index now

    with monkeypatch.context() as patch:
        patch.setattr(environment.Environment, "store", None)
        quickly = run(*args, session=planck)
    monkeypatch.setattr(signals, "_is_empty", lambda at, count: False)
    wholly = run(*args, session=planck)

    assert quickly.status == 0
    assert (quickly.out, quickly.err) == (wholly.out, wholly.err)


def test_nothing_new_is_not_said_while_the_index_is_behind(
    run: Run, scene: tuple[str, str], git: Callable[..., str], repo: Path
) -> None:
    """Mail that git alone brought is seen at once."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "set", "--wu", "WU-7", session=planck)  # commits the receipts, too
    before = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    run("signal", "One more", "--broadcast", "--as", "Curie")
    after = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    git("update-ref", "refs/gitmem/log", before, cwd=repo)
    assert run("inbox", "--count", session=planck).out == "0\n"
    git("update-ref", "refs/gitmem/log", after, cwd=repo)

    assert run("inbox", "--count", session=planck).out == "1\n"


def test_an_ended_session_is_refused_though_nothing_is_unread(run: Run, scene: tuple[str, str]) -> None:
    """The index alone does not answer for sessions that are over."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "end", session=planck)

    assert run("inbox", session=planck).status == 2


def test_looking_is_a_sign_of_life(run: Run, scene: tuple[str, str], repo: Path) -> None:
    """An agent that only looks is live all the same."""
    planck, _ = scene
    run("inbox", session=planck)
    beat = repo / ".git" / "gitmem" / "sessions" / planck
    os.utime(beat, (1, 1))

    run("inbox", session=planck)

    assert beat.stat().st_mtime > 1


def test_a_session_that_only_asks_for_mail_keeps_its_name(
    run: Run, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day after its last record the index alone does not answer, and the usual way writes another."""
    planck = start("Planck")
    run("inbox", session=planck)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 25 * 3600 * 1_000_000_000)
    run("inbox", session=planck)

    kinds = [entry["kind"] for entry in run("log", "--json", session=planck).json["entries"]]
    assert kinds == ["session", "session"]


def test_an_inbox_with_nothing_new_needs_no_key_and_checks_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no stamp: the session is found by the id of its client in a local file."""
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True, timeout=60)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "4f1d9f0e-1111-4222-8333-944445555666")
    commands = ["session", "start"], ["inbox"]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "cli", *command, "-C", str(repo)],
            cwd=Path(background.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert "Nothing new" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gitmem.agents.mailbox" in loaded
    assert loaded.isdisjoint({"gitmem.trust.keys", "gitmem.log.local_log"})


class Stamped:
    """Planck, with an empty inbox and a stamp that says so."""

    def __init__(self, run: Run, planck: str, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run = run
        self.planck = planck
        self.state = repo / ".git" / "gitmem"
        self._patch = monkeypatch

    @property
    def stamp(self) -> Path:
        return self.state / "empty" / f"s-{self.planck}"

    def answers(self) -> bool:
        """Whether the stamp answers. Whatever answers, the usual way must say the same."""
        looked: list[str] = []
        look = empty_inbox._query_index
        with self._patch.context() as patch:
            patch.setattr(empty_inbox, "_query_index", lambda *args: looked.append("index") or look(*args))
            patch.setattr(environment.Environment, "caller", self._noting(looked))
            found = self.run("inbox", "--count", session=self.planck)
        with self._patch.context() as patch:
            patch.setattr(signals, "_is_empty", lambda at, count: False)
            usual = self.run("inbox", "--count", session=self.planck)
        assert (found.status, found.out) == (usual.status, usual.out)
        return not looked

    @staticmethod
    def _noting(looked: list[str]) -> Callable[[environment.Environment], object]:
        real = environment.Environment.caller

        def caller(at: environment.Environment) -> object:
            looked.append("log")
            return real(at)

        return caller


@pytest.fixture
def stamped(
    run: Run, start: Callable[..., str], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stamped]:
    found = Stamped(run, start("Planck"), repo, monkeypatch)
    start("Curie")
    run("inbox", session=found.planck)
    run("inbox", session=found.planck)
    assert found.stamp.exists()
    assert found.answers()
    with living_committer(repo):
        yield found


@pytest.mark.parametrize("after", ["0", "60"])
@pytest.mark.parametrize("to", [["--to", "Planck"], ["--broadcast"]])
def test_a_signal_ends_a_stamp(stamped: Stamped, after: str, to: list[str]) -> None:
    """Committed, or in the write-ahead log alone; read, the inbox is empty again and gets a new stamp."""
    stamped.run("signal", "hello", *to, "--as", "Curie", GITMEM_COMMIT_AFTER=after)

    assert not stamped.answers()
    assert stamped.run("inbox", "--count", session=stamped.planck).out == "1\n"
    assert stamped.run("inbox", session=stamped.planck).status == 0
    stamped.run("inbox", session=stamped.planck)
    assert stamped.run("inbox", "--count", session=stamped.planck).out == "0\n"
    assert stamped.answers()


def test_a_signal_from_another_worktree_ends_a_stamp(
    stamped: Stamped, git: Callable[..., str], repo: Path, tmp_path: Path
) -> None:
    """All worktrees of a clone share the state folder."""
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"), cwd=repo)
    stamped.run("signal", "hello", "--to", "Planck", "--as", "Curie", cwd=tmp_path / "other")

    assert not stamped.answers()


def test_a_ref_that_git_moves_ends_a_stamp(stamped: Stamped, git: Callable[..., str], repo: Path) -> None:
    """On, as a fetch does, and back: the ledger tells a ref that was moved back to where the stamp was made."""
    ref = "refs/gitmem/log"
    before = git("rev-parse", ref, cwd=repo).strip()
    stamped.run("signal", "hello", "--to", "Planck", "--as", "Curie")
    after = git("rev-parse", ref, cwd=repo).strip()
    git("update-ref", ref, before, cwd=repo)

    assert not stamped.answers()
    assert "missing from the log" in stamped.run("inbox", session=stamped.planck).out

    git("update-ref", ref, after, cwd=repo)
    assert not stamped.answers()


def test_a_ref_that_git_moved_on_and_back_ends_a_stamp(
    stamped: Stamped, git: Callable[..., str], repo: Path
) -> None:
    """The ledger has no word of a commit that git alone brought; the ref's reflog has."""
    ref = "refs/gitmem/log"
    before = git("rev-parse", ref, cwd=repo).strip()
    after = git("commit-tree", f"{ref}^{{tree}}", "-p", ref, "-m", "more", cwd=repo).strip()
    git("update-ref", ref, after, cwd=repo)
    git("update-ref", ref, before, cwd=repo)

    assert not stamped.answers()


def test_what_no_committer_has_come_for_is_left_to_a_command_that_commits(stamped: Stamped) -> None:
    """An agent that only asks for mail is the next command of somebody, too."""
    stamped.run("signal", "hello", "--to", "Curie", "--as", "Curie", GITMEM_COMMIT_AFTER="3600")
    (waits,) = (stamped.state / "wal").glob("*.wal1")
    stamped.run("inbox", session=stamped.planck, GITMEM_COMMIT_AFTER="3600")
    assert waits.stat().st_size
    os.utime(waits, (time.time() - 3_700, time.time() - 3_700))

    assert stamped.run("inbox", session=stamped.planck).status == 0
    assert not waits.exists()


@pytest.mark.parametrize(
    "change", [["end"], ["set", "--agent-identity", "test:worker:new"], ["set", "--wu", "WU-9"]]
)
def test_a_session_that_changes_ends_a_stamp(stamped: Stamped, change: list[str]) -> None:
    """It may be over, or have another reader identity."""
    stamped.run("session", *change, session=stamped.planck, GITMEM_COMMIT_AFTER="60")

    assert not stamped.answers()


def test_a_stamp_lasts_no_longer_than_the_name(stamped: Stamped, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day after the last record the usual way writes another."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 25 * 3600 * 1_000_000_000)

    assert not stamped.answers()


@pytest.mark.parametrize("damage", ["key", "version", "torn", "bytes", "folder"])
def test_a_stamp_that_does_not_plainly_hold_is_none(stamped: Stamped, damage: str) -> None:
    """Another key, another gitmem, a torn file, and what a hostile one may have."""
    text = stamped.stamp.read_text()
    if damage == "key":
        (note,) = stamped.state.glob("writer-*-*")
        content = note.read_bytes()
        note.unlink()
        note.write_bytes(content)
    elif damage == "version":
        stamped.stamp.write_text("0" + text)
    elif damage == "torn":
        stamped.stamp.write_text(text[:-1])
    elif damage == "bytes":
        stamped.stamp.write_bytes(b"\xff\n" * 200_000)
    else:
        stamped.stamp.unlink()
        stamped.stamp.mkdir()

    assert not stamped.answers()


def test_what_waits_outside_the_repository_is_looked_for(
    stamped: Stamped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for agents in sandboxes that appears ends the stamp."""
    (tmp_path / "state" / "gitmem").mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stamped.answers()
    from cli.environment import wal_folders
    from gitmem.repo import find

    folder = Path(wal_folders(find(str(stamped.state.parents[1])))[0])
    folder.mkdir(mode=0o700)

    assert not stamped.answers()


def test_a_client_id_that_is_no_file_name_gets_no_stamp(stamped: Stamped) -> None:
    """It may be any text."""
    name = "x/../../made"
    (stamped.stamp.parent / "h-x").mkdir()
    stamped.run("session", "start", CLAUDE_CODE_SESSION_ID=name)
    for _ in range(3):
        assert stamped.run("inbox", CLAUDE_CODE_SESSION_ID=name).status == 0

    assert not (stamped.state / "made").exists()


def test_a_line_that_the_ledger_could_not_note_ends_a_stamp(
    stamped: Stamped, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is a witness, and no more; the write-ahead log has a file already."""
    stamped.run("signal", "hello", "--to", "Curie", "--as", "Curie", GITMEM_COMMIT_AFTER="60")
    monkeypatch.setenv("GITMEM_COMMIT_AFTER", "60")
    for _ in range(2):
        stamped.run("inbox", session=stamped.planck)
    assert stamped.answers()
    with monkeypatch.context() as patch:
        at(patch, "open", "*/gitmem/ledger", denied)
        stamped.run("signal", "hello", "--to", "Planck", "--as", "Curie", GITMEM_COMMIT_AFTER="60")

    assert not stamped.answers()


def test_a_stamp_loads_neither_the_index_nor_sqlite(stamped: Stamped, repo: Path) -> None:
    """It is the answer of most calls."""
    command = [sys.executable, "-X", "importtime", "-m", "cli", "inbox", "-C", str(repo)]
    done = subprocess.run(
        command, cwd=Path(background.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "GITMEM_SESSION": stamped.planck},
    )  # fmt: skip
    assert "Nothing new" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    own = {name for name in loaded if name.partition(".")[0] in ("gitmem", "cli")}
    assert "_sqlite3" not in loaded
    assert len(own) <= 25, sorted(own)  # one of them opens the stamp, whatever is planted there
