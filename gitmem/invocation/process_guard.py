"""A program that ends a process group and everything that its processes have started, when whoever started it closes its standard input or dies.

It is run by its path, so it imports nothing of gitmem. Coding agents start the commands of their tools in sessions of their own, which a signal to the
process group does not reach.
"""

from __future__ import annotations

import os
import signal
import time

KILL_SECONDS = 2.0  # between SIGTERM and SIGKILL
_LOOK_SECONDS = 0.05
_ROUNDS = 20  # of SIGKILL: what is started meanwhile is found in the next one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    # Of a process: its parent, its process group, and when it started.
    Process = tuple[int, int, str]


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
    has ended before the first look is none of it.

    Args:
        group: The process group.
        excluded: Processes that are no part of it.
        processes: Returns all processes.
    """

    def __init__(
        self,
        group: int,
        excluded: Iterable[int] = (),
        processes: Callable[[], Mapping[int, Process]] = all_processes,
    ) -> None:
        self._groups = {group}
        self._known: dict[int, str] = {}
        self._excluded = {0, 1, *excluded}
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
                    and (parent in found or group in self._groups)
                ):
                    found.add(pid)
                    self._groups.add(group)
                    is_more = True
        self._known.update((pid, every[pid][2]) for pid in found)
        return sorted(found)


def end(tree: ProcessTree, send: Callable[[int, int], object] = os.kill) -> None:
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
        try:
            send(pid, number)
        except OSError:  # it has ended, or belongs to somebody else
            continue


def main() -> None:
    """Wait for the end of standard input, and end the group that this process leads."""
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # sent to the group
        signal.signal(each, signal.SIG_IGN)
    tree = ProcessTree(os.getpid(), excluded=(os.getpid(), os.getppid()))
    while os.read(0, 1):
        pass
    end(tree)


if __name__ == "__main__":
    main()
