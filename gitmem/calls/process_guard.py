"""A program that runs a command, and ends it with everything that it has started, when whoever started this program closes its standard input or dies.

It is run by its path, so it imports nothing of gitmem. Coding agents start the commands of their tools in sessions of their own, which a signal to the
process group does not reach. On Linux this process becomes the parent of each descendant that has lost its own, so that daemons are found, too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import NoReturn

    # Of a process: its parent, its process group, and when it started.
    Process = tuple[int, int, str]


KILL_SECONDS = 2.0  # between SIGTERM and SIGKILL
_LOOK_SECONDS = 0.05
_ROUNDS = 20  # of SIGKILL: what is started meanwhile is found in the next one
NOT_FOUND = 127  # the exit status of a shell that does not find the command
_CHILD_SUBREAPER = 36  # of prctl
_CONTROL, _STATUS = 0, 1  # descriptors: its end ends all; the exit status of the command is written to it
_DEFAULTS = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]


def all_processes() -> dict[int, Process]:
    """Return all processes that have not ended, by `/proc`, or by `ps` where that does not exist."""
    found: dict[int, Process] = {}
    if not os.path.isdir("/proc/self"):
        import subprocess

        rows = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="],
            check=False,
            capture_output=True,
            text=True,
            timeout=10,
        )
        for row in rows.stdout.splitlines():
            pid, parent, group, state = row.split()
            if not state.startswith("Z") and int(parent) != os.getpid():  # `ps` itself
                found[int(pid)] = (int(parent), int(group), "")
        return found
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()  # the name before it may have any bytes
        except OSError:  # it has ended
            continue
        if words[0] not in (b"Z", b"X"):
            found[int(name)] = (int(words[1]), int(words[2]), words[19].decode())
    return found


class ProcessTree:
    """The processes of a group, their descendants, and those in the groups of these.

    What it has seen once stays part of it: when a process ends, its children get another parent. A process that has left its group and whose parent
    has ended before the first look is part of it only as a child of one of `parents`.

    Args:
        group: The process group.
        excluded: Processes that are no part of it.
        parents: Processes whose children are part of it.
        processes: Returns all processes.
    """

    def __init__(
        self,
        group: int,
        excluded: Iterable[int] = (),
        parents: Iterable[int] = (),
        processes: Callable[[], Mapping[int, Process]] = all_processes,
    ) -> None:
        self._groups = {group}
        self._known: dict[int, str] = {}
        self._excluded = {0, 1, *excluded}
        self._parents = frozenset(parents)
        self._processes = processes

    def look(self) -> list[int]:
        """Return those that have not ended."""
        every = self._processes()
        found = {pid for pid, start in self._known.items() if pid in every and every[pid][2] == start}
        is_more = True
        while is_more:
            is_more = False
            for pid, (parent, group, _) in every.items():
                if (
                    pid not in found
                    and pid not in self._excluded
                    and (parent in found or parent in self._parents or group in self._groups)
                ):
                    found.add(pid)
                    self._groups.add(group)
                    is_more = True
        self._known.update((pid, every[pid][2]) for pid in found)
        return sorted(found)


def end_tree(tree: ProcessTree, send: Callable[[int, int], object] = os.kill) -> None:
    """End all processes of a tree: SIGTERM first, then SIGKILL."""
    _send_all(tree.look(), signal.SIGTERM, send)
    limit = time.monotonic() + KILL_SECONDS
    while (left := tree.look()) and time.monotonic() < limit:
        time.sleep(_LOOK_SECONDS)
    for _ in range(_ROUNDS):
        if not left:
            return
        _send_all(left, signal.SIGKILL, send)
        time.sleep(_LOOK_SECONDS)
        left = tree.look()


def _send_all(pids: Iterable[int], number: int, send: Callable[[int, int], object]) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended, or belongs to somebody else
            send(pid, number)


def main(command: str, *descriptors: str) -> None:
    """Run a command with `sh -c`; write its exit status, and wait for the end of standard input to end it with all that it has started.

    Args:
        descriptors: Its standard input, output and error.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # sent to the group
        signal.signal(number, signal.SIG_IGN)
    _adopt_orphans()
    own = os.getpid()
    changed, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()  # there is one thread
    if child == 0:
        _execute(command, [int(each) for each in descriptors])
    for each in descriptors:
        os.close(int(each))
    while True:
        ready = select.select([_CONTROL, changed], [], [])[0]
        if changed in ready:
            os.read(changed, 4096)
            _collect(child)
        if _CONTROL in ready and not os.read(_CONTROL, 1):
            break
    end_tree(ProcessTree(own, excluded=(own, os.getppid()), parents=(own,)))


def _execute(command: str, standard: Sequence[int]) -> NoReturn:
    """Become the command, with these descriptors as its standard ones."""
    try:
        signal.set_wakeup_fd(-1)
        for each in _DEFAULTS:
            signal.signal(each, signal.SIG_DFL)
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.execvp("sh", ["sh", "-c", command])  # noqa: S606  (the user's command)
    finally:
        os._exit(NOT_FOUND)


def _adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs, where the system has that."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


def _collect(child: int) -> None:
    """Collect the children that have ended, and write the exit status of the command if it is one of them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            try:
                os.write(_STATUS, b"%d\n" % os.waitstatus_to_exitcode(status))
            except OSError:  # whoever reads it has died
                continue


if __name__ == "__main__":
    main(*sys.argv[1:])
