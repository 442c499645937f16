"""Which processes end with a run: its group, and what its processes have started in other groups, and no others."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.calls import process_guard
from gitmem.calls.client_run import ChildRun
from gitmem.calls.process_guard import ProcessTree, all_processes


def test_a_tree_keeps_what_it_has_seen_and_takes_no_others() -> None:
    """Children of an ended process, the rest of their group, and no process that has a number again."""
    every = {
        1: (0, 1, ""), 50: (1, 50, ""), 51: (50, 50, ""),  # somebody else's
        100: (50, 100, ""), 101: (50, 100, "a"),  # the guard, and the command in its group
        200: (101, 200, "b"), 201: (1, 200, "c"), 202: (200, 202, "d"),  # a tool, an orphan of its group, a session
    }  # fmt: skip
    tree = ProcessTree(100, excluded=(100, 50), processes=lambda: every)
    assert tree.look() == [101, 200, 201, 202]
    del every[101], every[200]
    every[202] = (1, 202, "d")
    every[203] = (202, 203, "e")
    every[201] = (1, 201, "f")  # the orphan has ended, and its number is that of another process
    assert tree.look() == [202, 203]
    sent: list[tuple[int, int]] = []

    def send(pid: int, number: int) -> None:
        sent.append((pid, number))
        every.pop(pid)
        raise ProcessLookupError

    process_guard.end_tree(tree, send)
    assert sent == [(202, signal.SIGTERM), (203, signal.SIGTERM)]


@pytest.mark.skipif(sys.platform != "linux", reason="of /proc")
def test_a_programs_name_cannot_hide_it(tmp_path: Path) -> None:
    """The kernel shows the name in brackets before the other fields."""
    program = tmp_path / "x) Z 1 (\n"
    program.symlink_to(str(shutil.which("sleep")))
    with subprocess.Popen([program, "60"], process_group=0) as child:
        try:
            end = time.monotonic() + 20
            while (found := all_processes()[child.pid])[:2] != (os.getpid(), child.pid):
                assert time.monotonic() < end
        finally:
            child.kill()
    assert found[2].isdecimal()


def test_without_proc_ps_lists_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; neither ended ones nor `ps` itself, which is in the group of the guard."""
    if shutil.which("ps") is None:
        pytest.skip("no ps on PATH")
    before = all_processes()
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    found = all_processes()
    assert found[os.getpid()][:2] == (os.getppid(), os.getpgrp())
    assert not [pid for pid, each in found.items() if each[0] == os.getpid() and pid not in before]


def wait_for(what: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[ChildRun, int]]:
    """A run that has started a daemon: in a session of its own, without its parent, as by a double fork; and its process id."""
    note = tmp_path / "pid"
    start = f"(setsid sh -c 'echo $$ > {note}.new; mv {note}.new {note}; exec sleep 300' </dev/null >/dev/null 2>&1 &)"
    tool = f"setsid sleep 300 & echo $! > {tmp_path}/tool"
    run = ChildRun(f"{tool}; {start}; cat; sleep 300", b"", os.environ, str(tmp_path))
    wait_for(note.exists)
    pid = int(note.read_text())
    wait_for(lambda: all_processes()[pid][1] == pid)
    yield run, pid
    run.end()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lets a process adopt orphans")
def test_a_daemon_that_a_run_has_started_ends_with_it(daemon: tuple[ChildRun, int]) -> None:
    """Nothing but the kernel knows then who has started it."""
    run, pid = daemon
    assert run.poll(0) is None
    run.end()
    assert pid not in all_processes()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lets a process adopt orphans")
def test_a_run_whose_guard_is_killed_ends_with_its_group(
    daemon: tuple[ChildRun, int], tmp_path: Path
) -> None:
    """Its worker ends what it finds; a daemon is not found any more, and docs/invocation.md says so."""
    run, pid = daemon
    guard, tool = run._guard.pid, int((tmp_path / "tool").read_text())
    wait_for(lambda: all_processes()[tool][1] == tool)
    os.kill(guard, signal.SIGKILL)
    wait_for(run._exited.is_set)
    run.end()
    assert not [each for each in all_processes().values() if each[1] == guard]
    assert pid in all_processes() and tool not in all_processes()


def test_a_run_cannot_draw_the_group_of_another_program_into_its_end(tmp_path: Path) -> None:
    """Such as the user's shell and what it runs beside the worker: a process may join each group of its session."""
    with subprocess.Popen(["sleep", "300"], process_group=0) as other:
        note = tmp_path / "joined"
        join = f"import os, sys\ntry: os.setpgid(0, {other.pid})\nexcept OSError: pass\nopen(sys.argv[1], 'w').close()\nos.execvp('sleep', ['sleep', '300'])"
        run = ChildRun(shlex.join([sys.executable, "-c", join, str(note)]), b"", os.environ, str(tmp_path))
        try:
            wait_for(note.exists)
            run.end()
            assert other.poll() is None
        finally:
            run.end()
            other.kill()


def test_what_a_program_that_ends_by_itself_has_left_in_another_session_goes_on(tmp_path: Path) -> None:
    """Such as a server, or the process that commits the log."""
    note = tmp_path / "pid"
    command = f"(setsid sh -c 'echo $$ > {note}; exec sleep 300' </dev/null >/dev/null 2>&1 &); while [ ! -s {note} ]; do sleep 0.01; done; echo done"
    run = ChildRun(command, b"", os.environ, str(tmp_path))
    wait_for(run._exited.is_set)
    ended = run.poll(5)
    assert ended is not None and (ended.state, ended.message) == ("completed", "done")
    pid = int(note.read_text())
    assert pid in all_processes()
    os.kill(pid, signal.SIGKILL)
