"""The system calls of a command before its answer: syncs to the disk, and git processes."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterable

from .background_processes import AdoptedProcesses
from .measure import Figure, not_measured
from .startup import signal_args, with_history
from .workbench import Workbench

ROUNDS = 5
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs")
STARTS = ("clone", "clone3", "fork", "vfork")
TRACED = ",".join((*SYNCS, *STARTS, "execve"))
# A line of `strace -f -o FILE`: process, call, rest. A call that another process's call interrupts has two lines.
_LINE = re.compile(r"(\d+) +(<\.\.\. )?(\w+)(.*)")
_EXIT = re.compile(r"(\d+) +\+\+\+ ")
_CHILD = re.compile(r"= (\d+)$")
_PROGRAM = re.compile(r'^\("([^"]*)"')


def syncs(workbench: Workbench) -> list[Figure]:
    """Measure the syncs to the disk that a signal waits for."""
    return _figure(workbench, "syncs", "disk syncs before `gitmem signal` answers", 1)


def git_processes(workbench: Workbench) -> list[Figure]:
    """Measure the git processes that a signal waits for."""
    return _figure(workbench, "git", "git processes before `gitmem signal` answers", 0)


def _figure(workbench: Workbench, kind: str, what: str, at_most: float) -> list[Figure]:
    if shutil.which("strace") is None:
        return [not_measured(what, "one", at_most, "no strace")]
    where, session = with_history(workbench, f"before-the-answer-{kind}")
    environment = {**workbench.environment, "GITMEM_SESSION": session}
    found = []
    with AdoptedProcesses() as adopted:
        for number in range(min(ROUNDS, workbench.size.rounds) + 1):
            out = os.path.join(workbench.folder, f"strace-{kind}-{number}")
            trace = ["strace", "-f", "-s", "200", "-o", out, "-e", f"trace={TRACED}"]
            command = [*trace, workbench.program("gitmem"), *signal_args("Reader")]
            subprocess.run(command, cwd=where, env=environment, stdout=subprocess.DEVNULL, check=True)
            adopted.wait()
            with open(out, encoding="utf-8", errors="replace") as file:
                seen = SyscallsBeforeAnswer(file)
            found.append(seen.syncs if kind == "syncs" else seen.git)
    return [
        Figure(
            what, "one", statistics.median(found[1:]), 1, at_most, "calls" if kind == "syncs" else "processes"
        )
    ]


class SyscallsBeforeAnswer:
    """Counts of a trace until the traced command exits: its own calls, and those of git processes below it.

    Other programs that it has started, such as the committer, are not part of the answer.

    Args:
        trace: The lines of the trace.

    Attributes:
        syncs: Calls that wait for the disk.
        git: Processes of git.
    """

    def __init__(self, trace: Iterable[str]) -> None:
        self._main = ""
        self._parents: dict[str, str] = {}
        self._programs: dict[str, str] = {}
        synced = []
        for line in trace:
            ended = _EXIT.match(line)
            if ended is not None and ended[1] == self._main:
                break
            found = _LINE.match(line)
            if found is None:
                continue
            process, resumed, call, rest = found.groups()
            self._main = self._main or process
            if call in SYNCS and not resumed:
                synced.append(process)
            elif call in STARTS and (child := _CHILD.search(rest)) is not None:
                self._parents[child[1]] = process
            elif call == "execve" and (program := _PROGRAM.match(rest)) is not None:
                self._programs[process] = os.path.basename(program[1])
        self.syncs = sum(map(self._counts, synced))
        self.git = sum(map(self._counts, filter(self._is_git, self._programs)))

    def _is_git(self, process: str) -> bool:
        return self._programs[process].startswith("git") and process != self._main

    def _counts(self, process: str) -> bool:
        while process != self._main:
            if process in self._programs and not self._is_git(process):
                return False
            process = self._parents.get(process, self._main)
        return True
