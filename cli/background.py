"""Commands of ours that go on by themselves when this process has ended, such as the committer. Nobody waits for them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.repo import Repo

    from .opened_repo import OpenedRepo

COMMIT_AFTER = "GITMEM_COMMIT_AFTER"  # a variable
# What a caller may ignore and a child must not: an ignored SIGCHLD hides how its own children ended.
_SIGPIPE, _SIGXFSZ, _SIGCHLD = 13, 25, 17 if sys.platform == "linux" else 20
_started: list[int] = []


def start(args: Sequence[str]) -> None:
    """Run this program with these arguments, apart from us: a session of its own, no input, no output.

    It inherits the folder and the environment, but no open file, since somebody may wait for the end of a pipe.
    That it can't be started is no error.
    """
    _reap()
    try:
        command = [*program(), *args]
        if sys.platform != "win32" and hasattr(os, "posix_spawn"):
            try:
                _started.append(_spawn(command))
                return
            except NotImplementedError:  # a libc without sessions for posix_spawn
                pass
        _start_portably(command)
    except (OSError, ValueError):
        return


def commit_window(place: Repo) -> float:
    """Return after how many seconds what a command records is to be committed; 0 for before its answer.

    Only the repository's own config is looked at: the committer asks git, and waits as long as that says.
    """
    from gitmem import commit_process
    from gitmem.repo import read_config, read_small

    given = os.environ.get(COMMIT_AFTER)
    content = b"" if given else read_small(os.path.join(place.common, "config"))
    has_setting = b"commitafter" in content.lower()
    return commit_process.window(dict(read_config(content)) if has_setting else {}, given)


def start_committer(at: OpenedRepo) -> None:
    """Have what waits committed in the background; at once by this command, where no process can be left behind."""
    from gitmem import commit_process
    from gitmem.errors import GitmemError

    if commit_process.is_wanted(at.place):
        start([*at.same_place, "commit-waiting"])
    elif commit_process.is_off(at.place):
        try:
            commit_process.commit_waiting(at.store())
        except (GitmemError, OSError):
            return  # it waits, and doctor says why


def program() -> list[str]:
    """The program that runs now, also from a checkout; what arguments are put behind."""
    package = __package__ or "cli"
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {above!r}); from {package}.main import main; sys.exit(main())"
    return [sys.executable, "-P", "-c", code]


def _spawn(command: list[str]) -> int:
    assert sys.platform != "win32"
    actions: list[tuple[int, int, str, int, int] | tuple[int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, handle) for handle in _inherited()]
    return os.posix_spawn(
        command[0], command, os.environ, file_actions=actions, setsid=True,
        setsigdef=[_SIGPIPE, _SIGXFSZ, _SIGCHLD],
    )  # fmt: skip


def _inherited() -> list[int]:
    """Open files, beside the standard streams, that a child would get."""
    found = []
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for handle in map(int, filter(str.isdigit, names)):
            try:
                if handle > 2 and os.get_inheritable(handle):
                    found.append(handle)
            except OSError:  # the folder's own
                continue
        break
    return found


def _reap() -> None:
    """Let those that have ended go: a process that lives long would keep them as zombies."""
    for pid in list(_started):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except OSError:
            ended = True
        if ended:
            _started.remove(pid)


def _start_portably(command: Sequence[str]) -> None:
    import subprocess

    none = subprocess.DEVNULL
    apart = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    subprocess.Popen(
        command, stdin=none, stdout=none, stderr=none, creationflags=apart, start_new_session=apart == 0
    )
