"""A hook that crashes is nobody's business but ours: exit 0, not a word, and a note for whoever looks after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitmem.agents import delivery
from gitmem.clients import events, hook_state
from gitmem.signals import inbox, message_frame

from ..file_faults import at, full
from ..hook_agents import ROOT, Agent, note_program, program, said
from .conftest import Desk, Said


class Told:
    """A session of Codex in a desk's repository that somebody has signalled."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.state = desk.repo / ".git" / "gitmem"
        self.peer = desk.start("Planck")
        self.hook("SessionStart")
        (self.ours,) = {path.name for path in (self.state / "sessions").iterdir()} - {self.peer}
        desk.send(self.peer, "The parser drops tabs", "--to", self.ours)

    def hook(self, event: str, *, client: str = "codex", raw: bytes | None = None, **more: object) -> Said:
        data = json.dumps(said(client, event, "c-1", self.desk.repo, **more)).encode() if raw is None else raw
        return self.desk("hook", client, event, stdin=data)

    @property
    def error(self) -> str:
        path = self.state / "hook-error"
        return path.read_text() if path.exists() else ""

    def is_silent(self, said: Said) -> bool:
        return (said.status, said.raw, said.err) == (0, b"", "")


@pytest.fixture
def told(desk: Desk) -> Told:
    return Told(desk)


RAISED = [
    RuntimeError("what nobody thought of"), OSError(28, "No space left on device"), MemoryError(), RecursionError(),
    KeyError("id"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), AssertionError(),
]  # fmt: skip


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_exception_is_silence_and_a_note(
    told: Told, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Wherever it comes from: the signal stays unread, and the next hook hands it over."""

    def fail(*args: object, **values: object) -> None:
        raise error

    for owner, name in (
        (hook_state, "catch_up"),
        (delivery, "delivery_lock"),
        (inbox, "read"),
        (message_frame, "injection"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            assert told.is_silent(told.hook("PostToolUse"))
        at, _, sentence = told.error.partition(" codex PostToolUse: ")
        assert at.endswith("Z") and sentence.strip()
        (told.state / "hook-error").unlink()

    assert "| The parser drops tabs" in told.hook("PostToolUse").out


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_being_stopped_is_silence_too(
    told: Told, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    tried = at(monkeypatch, "open", "*/deliver/*", fail)

    assert told.is_silent(told.hook("PostToolUse")) and tried


@pytest.mark.parametrize("client", events.EVENTS)
def test_garbage_is_silence(told: Told, client: str) -> None:
    """Every event of every client: nothing is started, read or ended for it."""
    sessions = sorted(path.name for path in (told.state / "sessions").iterdir())

    for event, kind in events.EVENTS[client].items():
        for raw in (
            b"",
            b"{",
            b"\xff\xfe\xfd",
            b"null",
            b'{"session_id":{}}',
            b'{"session_id":"c-1","agent_id":"a"}',
        ):
            assert kind == events.WAKE or told.is_silent(told.hook(event, client=client, raw=raw))

    assert sorted(path.name for path in (told.state / "sessions").iterdir()) == sessions
    assert "| The parser drops tabs" in told.hook("PostToolUse").out


@pytest.mark.parametrize("words", [(), ("codex",), ("codex", ""), ("nobody", "PostToolUse"), ("codex", "NoSuchEvent"),
                                   ("codex", "Wake"), ("--help",), ("codex", "PostToolUse", "more"), ("\udcff", "x")])  # fmt: skip
def test_what_nobody_asks_for_is_silence(desk: Desk, words: tuple[str, ...]) -> None:
    """A script of another version, a hand-written line: exit 2 would stop the agent's tools."""
    answered = desk("hook", *words)

    assert (answered.status, answered.raw) == (0, b"")


@pytest.mark.parametrize("kind", ["garbage", "cut", "empty", "a folder", "gone"])
def test_a_damaged_index_costs_no_signal(told: Told, kind: str) -> None:
    """It is derived: the hook builds it anew, or does without, and hands over what waits."""
    (index,) = told.state.glob("index-*.sqlite3")
    for path in told.state.glob("index-*.sqlite3-*"):
        path.unlink()
    if kind == "garbage":
        index.write_bytes(b"not a database at all" * 500)
    elif kind == "cut":
        index.write_bytes(index.read_bytes()[:5000])
    elif kind == "empty":
        index.write_bytes(b"")
    else:
        index.unlink()
        if kind == "a folder":
            index.mkdir()

    assert "The parser drops tabs" in told.hook("PostToolUse").out
    assert told.is_silent(told.hook("PostToolUse"))


def test_a_log_that_cannot_be_read_is_silence(told: Told) -> None:
    """A ref that is at nothing, objects that are gone."""
    import shutil

    for path in told.state.glob("index-*"):
        path.unlink()
    shutil.rmtree(told.desk.repo / ".git" / "objects")
    (told.desk.repo / ".git" / "objects").mkdir()

    assert told.is_silent(told.hook("PostToolUse"))
    assert told.is_silent(told.hook("SessionStart"))
    assert told.error


@pytest.mark.parametrize("why", ["the client is gone", "its time is over"])
def test_an_answer_that_comes_too_late_is_not_given(
    told: Told, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The client reads no more: what it would not see stays unread."""
    parent = os.getppid()

    with monkeypatch.context() as patch:

        def slow() -> None:
            if why == "the client is gone":
                patch.setattr(os, "getppid", lambda: parent + 1)
            else:
                patch.setattr(time, "monotonic", lambda: time.perf_counter() + 1_000_000)

        taken = at(patch, "open", "*/deliver/*", slow)
        assert told.is_silent(told.hook("PostToolUse")) and taken

    assert "| The parser drops tabs" in told.hook("PostToolUse").out


def real(told: Told, tmp_path: Path) -> Agent:
    note_program(told.state, program(tmp_path))
    return Agent("codex", "c-1", told.desk.repo)


def test_an_answer_that_nobody_reads_leaves_the_signal_unread(told: Told, tmp_path: Path) -> None:
    """The client has gone: no receipt, no trace; the next hook hands it over."""
    agent = real(told, tmp_path)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [str(told.state / "program") and str(tmp_path / "gitmem"), "hook", "codex", "PostToolUse"],
        cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
        stdout=write, stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")

    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" hook codex PostToolUse >&-', str(tmp_path / "gitmem")],
        cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
        stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (0, b"")

    assert "| The parser drops tabs" in agent.reads("PostToolUse")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_an_answer_that_cannot_be_written_leaves_the_signal_unread(told: Told, tmp_path: Path) -> None:
    agent = real(told, tmp_path)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(tmp_path / "gitmem"), "hook", "codex", "PostToolUse"],
            cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
            stdout=full, stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")

    assert agent.call("PostToolUse").is_silent  # once a turn after a trouble
    assert "| The parser drops tabs" in agent.reads("Stop")


def test_a_full_disk_shows_it_once_and_records_it_later(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt can't be written: what was shown is not shown at every call from now on."""
    with monkeypatch.context() as patch:
        at(patch, "write", "*/wal/*", full)
        assert "| The parser drops tabs" in told.hook("PostToolUse").out
        assert "No space left" in told.error
        assert told.is_silent(told.hook("PostToolUse"))
        assert told.is_silent(told.hook("Stop"))
    assert told.is_silent(told.hook("PostToolUse"))
    assert told.desk("inbox", "--count", session=told.ours).out == "0\n"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGHUP]
)
def test_killed_before_it_speaks_it_has_said_nothing(
    told: Told, tmp_path: Path, number: signal.Signals
) -> None:
    """While it reads: the script ends with 0 and not a word, and the signal stays unread."""
    agent = real(told, tmp_path)
    dying = tmp_path / "dying"
    dying.write_text(
        f"#!{sys.executable}\nimport os, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from cli import main\nfrom gitmem.signals import inbox\n"
        f"inbox.read = lambda *a, **b: os.kill(os.getpid(), {int(number)})\n"
        "sys.exit(main.main())\n"
    )
    dying.chmod(0o755)
    note_program(told.state, dying)

    assert agent.call("PostToolUse").is_silent

    note_program(told.state, f"{tmp_path}/gitmem")
    (told.state / "hook-stuck").unlink(missing_ok=True)
    assert "| The parser drops tabs" in agent.reads("PostToolUse")


def test_no_home_no_temporary_folder_and_no_language_are_no_trouble(told: Told, tmp_path: Path) -> None:
    agent = real(told, tmp_path)

    text = agent.reads("PostToolUse", env={"HOME": "", "TMPDIR": "/no/such", "LANG": "C", "LC_ALL": "C"})

    assert "| The parser drops tabs" in text


def test_variables_that_are_no_text_are_no_trouble(told: Told, tmp_path: Path) -> None:
    """GITMEM_SESSION with bytes that are not UTF-8 is an error of a command, not of a hook."""
    agent = real(told, tmp_path)

    assert "| The parser drops tabs" in agent.reads(
        "PostToolUse", env={"GITMEM_SESSION": os.fsdecode(b"\xff\xfe")}
    )
