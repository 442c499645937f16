"""Doors of clients: a line reaches this user's own client, or nobody, whatever lies in its place."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import doors
from gitmem.agents.doors import BUSY, ENDED, FOREIGN, OTHER, READY, WOKEN, Door

LINE = "A gitmem message waits for you: sig-3f9k2m7q1x0z."
SESSION = "01a072a7-6d07-76a1-828b-300553a73a70"
ID = "sess-3f9k2m7q1x0z"
# Another process of this user has the socket.
LISTEN = """
import socket, sys
one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen()
print("ready", flush=True)
while True:
    print(one.accept()[0].recv(4096), flush=True)
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path fits into the address of a socket."""
    with tempfile.TemporaryDirectory(prefix="gm-") as folder:
        yield Path(folder).resolve()


class Inbox:
    """A socket of this process, as a client has it, and what came in."""

    def __init__(self, path: Path, answer: bytes = b"", *, accepts: bool = True) -> None:
        self.path = path
        self.came: list[bytes] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(8 if accepts else 0)
        self._answer = answer
        if accepts:
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line = self._socket.accept()[0]
            except OSError:
                return
            with line:
                self.came.append(line.recv(65536))
                if self._answer:
                    with contextlib.suppress(OSError):
                        line.sendall(self._answer)

    def settled(self) -> list[bytes]:
        until = time.monotonic() + 5
        while not self.came and time.monotonic() < until:
            time.sleep(0.01)
        return self.came

    def close(self) -> None:
        self._socket.close()


class Claude:
    """The folder of Claude Code, whose process is this one."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket = home / "socks" / f"{os.getpid()}.sock"
        self.file = home / "sessions" / f"{os.getpid()}.json"
        for each in (self.socket, self.file):
            each.parent.mkdir()
        self.door = Door("claude-code", SESSION, os.getpid(), str(home), began=doors.started(os.getpid()))
        self.says()

    def says(self, **more: object) -> None:
        said = {
            "pid": os.getpid(),
            "sessionId": SESSION,
            "status": "idle",
            "messagingSocketPath": str(self.socket),
        }
        self.file.write_text(json.dumps({**said, **more}))

    def ask(self, line: str = LINE) -> str:
        return doors.ask(self.door, line)


@pytest.fixture
def claude(short: Path) -> Claude:
    return Claude(short)


@pytest.fixture
def inbox(claude: Claude) -> Iterator[Inbox]:
    found = Inbox(claude.socket)
    yield found
    found.close()


def test_claude_code_is_told_one_line(claude: Claude, inbox: Inbox) -> None:
    """A look sends nothing; each line has an id of its own."""
    assert claude.ask("") == READY and not inbox.came
    assert claude.ask() == WOKEN

    (came,) = inbox.settled()
    told = json.loads(came)
    assert came.count(b"\n") == 1 and len(told.pop("msg_id")) == 36
    assert told == {
        "type": "user",
        "msgV": 1,
        "priority": "next",
        "message": {"role": "user", "content": LINE},
    }


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("idle", WOKEN),
        ("shell", WOKEN),
        ("busy", BUSY),
        ("waiting", BUSY),
        ("another", BUSY),
        (None, WOKEN),
        (7, WOKEN),
    ],
)
def test_a_busy_claude_code_is_left_alone(
    claude: Claude, inbox: Inbox, status: object, expected: str
) -> None:
    """A message to one that asks its user something would answer for the user."""
    claude.says(status=status)

    assert claude.ask() == expected
    assert claude.ask("") == READY


@pytest.mark.parametrize(
    "says",
    [
        {"sessionId": "another"}, {"pid": 1}, {"pid": "x"}, {"messagingSocketPath": None}, {"messagingSocketPath": 7},
        {"messagingSocketPath": "socks/x.sock"}, {"messagingSocketPath": "/nowhere/x.sock"}, {"messagingSocketPath": "/tmp/a\0b"},
        {"messagingSocketPath": "/" + "x" * 10_000}, {"filler": "x" * 1_000_000},
    ],
    ids=lambda says: str(says)[:40],
)  # fmt: skip
def test_a_session_file_that_is_not_that_of_the_session_is_none(
    claude: Claude, inbox: Inbox, says: dict[str, object]
) -> None:
    """Another conversation after `/clear` or resuming, paths that are none, 1 MB."""
    claude.says(**says)

    answer = claude.ask()
    assert answer not in (WOKEN, BUSY, READY) and answer.isprintable() and not inbox.came


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", b"[]", b"7", b'{"pid":', b"\xff\xfe", b"[" * 60_000],
    ids=lambda content: repr(content[:9]),
)
def test_garbage_in_a_session_file_is_a_sentence(claude: Claude, inbox: Inbox, content: bytes) -> None:
    claude.file.write_bytes(content)

    assert claude.ask() not in (WOKEN, BUSY, READY) and not inbox.came


def _link(path: Path) -> None:
    real = path.with_name("elsewhere")
    path.rename(real)
    path.symlink_to(real)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _file(path: Path) -> None:
    path.unlink()
    path.write_text("no socket")


def _gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("what", "place"),
    [("socket", _link), ("socket", _fifo), ("socket", _file), ("socket", _gone), ("file", _link), ("file", _fifo), ("file", _gone)],
)  # fmt: skip
def test_what_is_no_door_is_none(
    claude: Claude, inbox: Inbox, place: Callable[[Path], None], what: str
) -> None:
    """A link, a pipe and a file in the place of the socket, or of the client's file, and nothing at all: at once, and nothing is sent."""
    place(getattr(claude, what))
    began = time.monotonic()

    assert claude.ask() not in (WOKEN, BUSY, READY)
    assert time.monotonic() - began < 0.5 and not inbox.came


def test_a_socket_in_a_folder_that_others_may_change_is_none(claude: Claude, inbox: Inbox) -> None:
    for mode in (0o777, 0o770):
        claude.socket.parent.chmod(mode)
        assert claude.ask() == "its socket is not this user's alone" and not inbox.came
    claude.socket.parent.chmod(0o700)
    claude.home.chmod(0o777)
    assert "folder of its client" in claude.ask()


def test_another_users_files_are_none(claude: Claude, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """As whoever runs the tests is somebody else's user then."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert claude.ask() == "the folder of its client is not this user's alone" and not inbox.came


def test_another_process_behind_the_socket_gets_nothing(claude: Claude) -> None:
    """Although it is of this user, and the client's file names its socket."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(claude.socket)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdout.readline() == "ready\n"
        assert claude.ask() == FOREIGN
        assert other.stdout.readline() == "b''\n"
        other.kill()


def test_the_system_tells_who_is_behind_a_socket() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert doors._peer(one) == (os.geteuid(), os.getpid())


def test_a_socket_that_hangs_costs_a_moment(claude: Claude) -> None:
    """Nobody takes the connection, and no more fit in its queue."""
    stuck = Inbox(claude.socket, accepts=False)
    waiting = []
    for _ in range(4):
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(str(claude.socket))
    began = time.monotonic()

    assert "can't be used" in doors.ask(claude.door, LINE, seconds=0.2) and time.monotonic() - began < 1
    for each in waiting:
        each.close()
    stuck.close()


class Program:
    """A `codex` that is a script, and what it was asked."""

    def __init__(self, folder: Path, script: str) -> None:
        self.path = folder / "codex"
        self.asked = folder / "asked"
        self.path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$CODEX_HOME" "$@" >"{self.asked}"\n{script}\n')
        self.path.chmod(0o755)

    def door(self, **more: Any) -> Door:
        own = {
            "client": "codex",
            "session": SESSION,
            "pid": os.getpid(),
            "folder": str(self.path.parent),
            "program": str(self.path),
        }
        return Door(**{**own, "began": doors.started(os.getpid()), **more})


def test_codex_queues_the_line_for_its_thread(tmp_path: Path) -> None:
    """In its own folder; a busy one is left alone, and a look runs nothing."""
    program = Program(tmp_path, "exit 0")

    assert doors.ask(program.door()) == READY
    assert doors.ask(program.door(), LINE, is_idle=False) == BUSY and not program.asked.exists()
    assert doors.ask(program.door(), LINE) == WOKEN
    assert program.asked.read_text().splitlines() == [
        str(tmp_path),
        "queue",
        "--thread",
        SESSION,
        "--message",
        LINE,
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo \"error: unrecognized subcommand 'queue'\" >&2; exit 2", "unrecognized subcommand 'queue'"),
        ("printf 'a\\033[31mb' >&2; exit 1", "a\\u001b[31mb"), ("exit 1", "failed: 1"), ("kill -9 $$", "failed: -9"),
        ("sleep 60", "did not end"), ("yes", "wrote more than"), ("(sleep 60) & exit 0", "did not end"),
    ],
)  # fmt: skip
def test_a_codex_that_is_old_slow_or_fails_is_a_sentence(tmp_path: Path, script: str, expected: str) -> None:
    """And nothing of it goes on."""
    program = Program(tmp_path, script)
    began = time.monotonic()

    answer = doors.ask(program.door(), LINE, seconds=0.1)
    assert expected in answer and answer.isprintable() and time.monotonic() - began < 3


@pytest.mark.parametrize(
    "more",
    [{"program": ""}, {"program": "/nowhere/codex"}, {"session": "--dangerous"}, {"session": "x"}, {"session": ""}, {"folder": "/nowhere"},
     {"pid": 1}, {"pid": 0}, {"pid": -1}, {"pid": 2**70}, {"began": ""}, {"began": "7"}],
    ids=str,
)  # fmt: skip
def test_what_is_missing_runs_nothing(tmp_path: Path, more: dict[str, object]) -> None:
    """No program, a thread that could be an option, a process that is another one."""
    program = Program(tmp_path, "exit 0")

    for line in ("", LINE):
        assert doors.ask(program.door(**more), line) not in (WOKEN, BUSY, READY)
    assert not program.asked.exists()


def test_a_client_that_has_ended_or_is_stopped_is_not_woken(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as client:
        door = Program(tmp_path, "exit 0").door(pid=client.pid, began=doors.started(client.pid))
        assert doors.ask(door) == READY
        client.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 5
        while doors.ask(door) == READY and time.monotonic() < until:
            time.sleep(0.01)
        assert doors.ask(door, LINE) == ENDED
        client.kill()
    assert doors.ask(door, LINE) == ENDED


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"woken\n", WOKEN),
        (b"unknown\n", OTHER),
        (b"failed\n", OTHER),
        (b"", OTHER),
        (b"\xff" * 100_000, OTHER),
    ],
    ids=lambda said: repr(said)[:12],
)
def test_the_plugin_of_opencode_says_whether_it_knows_the_session(
    short: Path, said: bytes, expected: str
) -> None:
    inbox = Inbox(short / f"opencode-{os.getpid()}.sock", said)
    door = Door("opencode", "ses_main", os.getpid(), str(short), began=doors.started(os.getpid()))

    assert doors.ask(door) == READY and not inbox.came
    assert doors.ask(door, LINE) == expected
    assert json.loads(inbox.settled()[0]) == {"session": "ses_main", "text": LINE}
    inbox.close()


def test_a_plugin_that_hangs_costs_a_moment(short: Path) -> None:
    inbox = Inbox(short / f"opencode-{os.getpid()}.sock", accepts=False)
    door = Door("opencode", "ses_main", os.getpid(), str(short), began=doors.started(os.getpid()))

    assert doors.ask(door, LINE, seconds=0.2).endswith(doors.LATE)
    inbox.close()


def test_a_door_is_noted_for_its_user_alone(tmp_path: Path) -> None:
    """The note of a new process replaces the old one; what cannot be noted removes it; others may not write it."""
    folder = tmp_path / "state" / "doors"
    one = Program(tmp_path, "exit 0").door()
    doors.note(str(folder), ID, one, time.time())

    found = doors.read(str(folder), ID)
    assert found is not None and (found.session, found.pid, found.program, found.began) == (
        SESSION,
        os.getpid(),
        one.program,
        one.began,
    )
    assert doors.sessions(str(folder)) == [ID] and doors.says(found) == "yes, by `codex queue`"
    assert (folder / ID).stat().st_mode & 0o077 == 0 and folder.stat().st_mode & 0o077 == 0
    (folder / ID).chmod(0o666)
    assert doors.read(str(folder), ID) is None
    (folder / ID).chmod(0o600)
    folder.chmod(0o777)
    assert doors.read(str(folder), ID) is None
    folder.chmod(0o700)
    for bad in ({"folder": "/a\nb"}, {"session": "a\0b"}, {"pid": 0}, {"client": "another"}):
        doors.note(str(folder), ID, one, time.time())
        doors.note(str(folder), ID, Program(tmp_path, "exit 0").door(**bad), time.time())
        assert doors.read(str(folder), ID) is None and doors.says(None).startswith("no, ")


@pytest.mark.parametrize(
    "content",
    [b"", b"x" * 100_000, b"\xff\n" * 6, b"codex\na\nb\nc\nd\ne", b"nobody\na\n7\nc\nd\ne"],
    ids=lambda content: repr(content[:9]),
)
def test_a_damaged_note_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ID).write_bytes(content)

    assert doors.read(str(tmp_path), ID) is None
    assert doors.read(str(tmp_path), "../etc/passwd") is None and doors.read("", ID) is None


def test_old_notes_are_removed(tmp_path: Path) -> None:
    old = tmp_path / "sess-0000000000aa"
    old.write_text("old")
    os.utime(old, (1, 1))
    doors.note(str(tmp_path), ID, Program(tmp_path.parent, "exit 0").door(), time.time())

    assert doors.sessions(str(tmp_path)) == [ID]
    doors.forget(str(tmp_path), ID)
    assert doors.sessions(str(tmp_path)) == []
