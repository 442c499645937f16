"""Doctor: the CPU time and the peak memory of a check of every line of a long log, with all git processes."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice

import gitmem
from gitmem.git.objects import Draft, Signature
from gitmem.log import ref

from . import workbench as workbenches
from .measure import Figure, cpu_of, in_turn
from .workbench import Workbench

LINES_A_COMMIT = 30  # what busy agents write in the second before a commit
ROUNDS = 3  # each takes seconds
MEMORY_MB = 200
POLL_SECONDS = 0.005
# Reads every segment with one `git cat-file --batch`, and parses every line with the json package.
READING = """
import json, subprocess
listed = subprocess.run(["git", "ls-tree", "-r", "-z", "refs/gitmem/log"], capture_output=True, check=True).stdout
files = [row.split()[2] for row in listed.split(b"\\0") if row.endswith(b".jsonl")]
git = subprocess.Popen(["git", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for oid in files:
    git.stdin.write(oid + b"\\n")
    git.stdin.flush()
    size = int(git.stdout.readline().split()[2])
    for line in git.stdout.read(size + 1).splitlines():
        if line:
            json.loads(line)
git.stdin.close()
git.wait()
"""


def doctor(workbench: Workbench) -> list[Figure]:
    """Measure the CPU of `gitmem doctor` in a sound clone with a long packed log, against reading the lines."""
    where, environment = _long_log(workbench)
    got, base = in_turn(
        min(workbench.size.rounds, ROUNDS),
        cpu_of([workbench.program("gitmem"), "doctor"], where, environment),
        cpu_of([sys.executable, "-c", READING], where, environment),
        warm=0,
    )
    what = f"`doctor` at {workbench.size.checked:,} lines, CPU"
    return [Figure(what, "`git cat-file --batch` and json.loads of each line", got, base, 6, "ms")]


def doctor_memory(workbench: Workbench) -> list[Figure]:
    """Measure the peak memory of `gitmem doctor` with all its git processes."""
    where, environment = _long_log(workbench)
    peak = peak_megabytes([workbench.program("gitmem"), "doctor"], where, environment)
    what = f"`doctor` at {workbench.size.checked:,} lines, peak memory of it and its gits"
    return [Figure(what, "the limit", peak, MEMORY_MB, 1, "MB")]


def _long_log(workbench: Workbench) -> tuple[str, dict[str, str]]:
    """Return a repository with a long packed log and an up-to-date index, and the environment of a session in it."""
    count = workbench.size.checked
    where = os.path.join(workbench.folder, f"checked-{count}")
    if os.path.isdir(where):
        return where, workbench.environment
    workbench.repository(f"checked-{count}")
    workbenches.start(where, "Caller")
    lines = islice(
        chain(workbenches.sessions(workbenches.START), workbenches.history(count)), count - 1
    )  # and the start
    _publish(where, lines)
    workbench.git(where, "repack", "-adq")
    with gitmem.open(where) as log:
        query = "SELECT count(*) FROM line WHERE kind != 'attestation'"
        (found,) = log.store.db().execute(query).fetchone()
    assert found == count, f"{found} lines are in the log"
    return where, workbench.environment


def _publish(where: str, lines: Iterator[tuple[str, bytes]]) -> None:
    """Write lines to a log as busy agents do: each commit appends to some segments."""
    somebody = Signature("A Person", "person@example.org", workbenches.START // 1_000_000)
    drafts = [Draft(dict(each), somebody, somebody, "Some lines\n") for each in _commits(lines)]
    with workbenches.open_log(where) as log:
        git = log.store.git
        tip = git.tip(ref.LOG_REF)
        assert tip is not None, "the log has not been started"
        assert git.swap(ref.LOG_REF, tip, git.write(drafts, tip)[-1], "benchmark")


def _commits(lines: Iterator[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """Yield the segments that each commit changes, by path."""
    growing: dict[str, tuple[str, bytes]] = {}
    number = 0
    lines = workbenches.attested(lines)
    while some := list(islice(lines, LINES_A_COMMIT)):
        changes = {}
        for stream, line in some:
            folder = ref.segment_path(stream, line, "").rpartition("/")[0]
            path, content = growing.get(folder, ("", b""))
            if not path or len(content) >= ref.SEGMENT_MAX_BYTES:
                number += 1
                path, content = f"{folder}/gm-{number:08}.jsonl", b""
            growing[folder] = changes[path] = (path, content + line + b"\n")
        yield {
            path: b"".join(sorted(content.splitlines(keepends=True))) for path, content in changes.values()
        }


def peak_megabytes(command: list[str], folder: str, environment: dict[str, str]) -> float:
    """Return the peak memory of a command and its children, in MB, as far as the system reports it.

    On Linux it is the sum of the peaks of all processes that run at one time, which is never too small. On other
    systems it is the greatest single peak, which includes this process, because a child begins as a copy of it.

    Raises:
        RuntimeError: The command failed.
    """
    quiet = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    with contextlib.chdir(folder):  # posix_spawn takes no working folder
        pid = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    most, ended = 0.0, 0
    while not ended:
        most = max(most, sum(map(_peak_of, _with_children(pid))))
        time.sleep(POLL_SECONDS)
        ended, status, used = os.wait4(pid, os.WNOHANG)
    if status:
        raise RuntimeError(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return most / 1e3 or used.ru_maxrss / unit


def _with_children(pid: int) -> list[int]:
    """Return a process and all its descendants, without forked children before their exec: those share its memory."""
    found = [pid]
    for each in found:  # the loop appends to it
        try:
            with open(f"/proc/{each}/task/{each}/children", encoding="ascii") as file:
                found += [
                    child for child in map(int, file.read().split()) if _command(child) != _command(each)
                ]
        except OSError:
            continue
    return found


def _command(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def _peak_of(pid: int) -> int:
    """Return the peak of a process in kB; 0 if it is unknown."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next((int(row.split()[1]) for row in file if row.startswith("VmHWM:")), 0)
    except OSError:
        return 0
