"""Background commands, such as the committer, that outlive this process. No process waits for them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


COMMIT_AFTER = "GITMEM_COMMIT_AFTER"  # an environment variable
# Signals that this process may ignore, but a child must not: ignoring SIGCHLD hides the exit status of its own
# children.
_SIGPIPE, _SIGXFSZ, _SIGCHLD = 13, 25, 17 if sys.platform == "linux" else 20
_started: list[int] = []


def start(args: Sequence[str]) -> None:
    """Start this program with these arguments as a detached process: its own session, no input, no output.

    It inherits the folder and the environment, but no open file: another process may wait for the end of a pipe. A
    failure to start it is ignored.
    """
    _collect_ended()
    try:
        command = [*program(), *args]
        try:
            _started.append(_spawn(command))
        except NotImplementedError:  # a Python whose posix_spawn has no sessions
            _start_portably(command)
    except (OSError, ValueError):
        return


def commit_window() -> float:
    """Return the seconds until a command's records must be committed; 0 for before its answer."""
    from gitmem import commit_process

    return commit_process.window(os.environ.get(COMMIT_AFTER))


def program() -> list[str]:
    """Return the command line of this program, from a checkout, too; append its arguments.

    It starts without the folders of PYTHONPATH and the current one: see `__init__`.
    """
    package = __package__ or "cli"
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {above!r}); from {package}.main import main; sys.exit(main())"
    return [sys.executable, "-E", "-P", "-c", code]


def _spawn(command: list[str]) -> int:
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
    """Return the open files that a child would inherit, besides the standard streams."""
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
            except OSError:  # the handle of the folder itself
                continue
        break
    return found


def _collect_ended() -> None:
    """Collect ended children: a long-lived process would keep them as zombies."""
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
    subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True)
