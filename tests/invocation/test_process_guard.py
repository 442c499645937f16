"""Which processes end with a run: its group, and what its processes have started in other groups, and no others."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitmem.invocation import process_guard
from gitmem.invocation.process_guard import ProcessTree, all_processes


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

    process_guard.end(tree, send)
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
