"""The only module that starts git: clean environment, no hooks, no prompts, a hard timeout.

Git sets variables for its hooks and aliases (GIT_DIR, GIT_INDEX_FILE, …) that would redirect our commands to another
repository or index; they are never passed on.
"""

from __future__ import annotations

import os
import time

from ..errors import StoreError
from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence


TIMEOUT_SECONDS = 120.0
KILL_WAIT_SECONDS = 5.0
ERRORS_MAX = 1 << 20  # bytes of errors that are kept; what a remote prints is among them
_CHUNK_BYTES = 1 << 16
# For a git that reads many objects: by default it caches 96 MB of delta bases, but a small cache is as fast.
SMALL_DELTA_CACHE = ("-c", "core.deltaBaseCacheLimit=4m")
# With the signal ignored, a process that exceeds the limit says why it ends.
_LIMITED = 'trap "" XFSZ; ulimit -f "$1" 2>/dev/null; shift; exec "$@"'
# Variables of one repository or one command of git. The user's GIT_SSH*, GIT_CONFIG_*, GIT_ASKPASS,
# GIT_SSL*, GIT_TRACE* and the `git -c` values in GIT_CONFIG_PARAMETERS stay.
_LOCAL = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ATTR_SOURCE",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DEFAULT_HASH",
        "GIT_DEFAULT_REF_FORMAT",
        "GIT_DIR",
        "GIT_GLOB_PATHSPECS",
        "GIT_GRAFT_FILE",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INDEX_VERSION",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_PROTOCOL",
        "GIT_QUARANTINE_PATH",
        "GIT_REFLOG_ACTION",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
_OURS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
# Recording never waits for the network: git would ask a remote for an object that a partial clone lacks.
# The second variable is for git before 2.45, which ignores the first.
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


class Result(Struct):
    """The result of git: exit `code`, `out` as bytes, `err` as text."""

    code: int
    out: bytes
    err: str


class OutputTooLargeError(Exception):
    """A process has written more than its caller accepts; the argument is what it had written."""


class GitTimeoutError(StoreError):
    """Git did not end within its timeout and was killed."""

    code = "git-timeout"


class GitOutputError(StoreError):
    """Git wrote more than was asked for and was killed; `out` is what it had written."""

    code = "git-output"
    out = b""


def environment(extra: Mapping[str, str] | None = None, *, online: bool = False) -> dict[str, str]:
    """Return the environment for git, without variables that belong to another repository or command.

    Args:
        online: Whether git may use the network.
    """
    kept = without_local(os.environ)
    kept.update(_OURS)
    if not online:
        kept.update(_OFFLINE)
    if extra:
        kept.update(extra)
    return kept


def without_local(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables without those that belong to one repository or one command of git."""
    return {
        name: value
        for name, value in variables.items()
        if name not in _LOCAL and not name.startswith("GIT_PUSH_OPTION_")
    }


def variable(name: str) -> str | None:
    """Return a variable of the user's environment that git reads, such as GIT_SSH_COMMAND."""
    return os.environ.get(name)


def spawn(common: str, args: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a long-lived git with pipes for standard input and output; its errors are discarded. `close_pipes` ends it."""
    return start(common, args, environment(), None, input=True, errors=False)


def run(
    common: str,
    args: Sequence[str],
    *,
    input: bytes = b"",
    env_extra: Mapping[str, str] | None = None,
    timeout: float | None = None,
    check: bool = True,
    cwd: str | None = None,
    online: bool = False,
    meanwhile: Callable[[], object] | None = None,
    out_max: int | None = None,
    file_max: int | None = None,
) -> Result:
    """Run git on the repository whose common folder is `common`, and wait for it.

    Args:
        common: If empty, git finds the repository that contains `cwd`, as it does for the user.
        args: Subcommand and arguments; `-c key=value` may come first.
        input: Standard input; if empty, git gets none.
        env_extra: Variables to add to the clean environment.
        timeout: Seconds until git and its children are killed; None for `TIMEOUT_SECONDS`.
        check: Raise on an exit status other than 0.
        cwd: Git's current folder; the common folder if None.
        online: Whether git may use the network.
        meanwhile: Called once while git runs; its time does not count.
        out_max: Bytes of output until git is killed; None for no limit. Of its errors the last 1 MiB are kept, however many there are.
        file_max: Bytes of a file until the process that writes it is killed; None for no limit.

    Raises:
        StoreError: git is missing or, with `check`, failed; the message has git's last line.
        GitTimeoutError: git was killed.
        GitOutputError: git wrote more than `out_max` bytes and was killed.
    """
    import signal

    limit = TIMEOUT_SECONDS if timeout is None else timeout
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the system forgets exit statuses then
        raise StoreError(
            f"Whether git {_name(args)} succeeds could not be known, because this process ignores SIGCHLD. Nothing was done.",
            hint="Start it from a program that leaves SIGCHLD at its default.",
            code="git-failed",
        )
    variables = environment(env_extra, online=online)
    child = start(common, args, variables, cwd, input=bool(input), errors=True, file_max=file_max)
    try:
        if meanwhile is not None:
            meanwhile()
        code, out, err = communicate(child, input, limit, out_max)
    except BaseException as error:  # also Ctrl-C: git has its own session and would continue
        kill(child)
        if isinstance(error, TimeoutError):
            raise GitTimeoutError(
                f"git {_name(args)} did not end within {limit:g} seconds and was stopped.",
                hint="Try again; a repository on a slow or hanging disk or network may be the cause.",
            ) from None
        if isinstance(error, OutputTooLargeError):
            found = GitOutputError(
                f"git {_name(args)} wrote more than {out_max:,} bytes and was stopped.",
                hint="Compare smaller changes.",
            )
            (found.out,) = error.args
            raise found from None
        raise
    result = Result(code, out, err.decode("utf-8", "replace"))
    if check and result.code != 0:
        raise failure(args, result)
    return result


def failure(args: Sequence[str], result: Result) -> StoreError:
    """Return the error for a failed git, with git's last line."""
    if "unknown repository extension" in result.err:
        what = " ".join(result.err.rpartition("extension")[2].split()).lstrip("s found:")
        return StoreError(
            f"The git on PATH does not support this kind of repository ({what}). Nothing was done.",
            hint="Install a newer git; the version that created this repository is new enough.",
            code="old-git",
        )
    if "bad config " in result.err:
        words = summary_line(result.err).removeprefix("fatal: ").rstrip(".")
        return StoreError(
            f"git cannot read its configuration: {words}. Nothing was done.",
            hint="Correct that line in an editor: every git command fails until then. Earlier records are kept.",
            code="bad-config",
        )
    words = summary_line(result.err) or f"exit status {result.code}"
    return StoreError(
        f"git {_name(args)} failed: {words.rstrip('.')}.",
        hint="Check for a full disk, missing permissions or a damaged repository, then run the command again.",
        code="git-failed",
    )


def summary_line(err: str) -> str:
    """Return the most informative line of git's errors, safe for a terminal."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))]
    line = (errors or lines or [""])[-1]
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in line)


def communicate(
    child: subprocess.Popen[bytes], data: bytes, limit_seconds: float, out_max: int | None = None
) -> tuple[int, bytes, bytes]:
    """Send `data` to a process, read all of its output and wait for its end.

    Returns:
        Exit status, output, and the last `ERRORS_MAX` bytes of the errors.

    Raises:
        TimeoutError: the process still runs after the limit.
        OutputTooLargeError: it wrote more than `out_max` bytes.
    """
    import selectors
    import subprocess

    deadline = time.monotonic() + limit_seconds
    out, err, rest = bytearray(), bytearray(), memoryview(data)
    assert child.stdout is not None and child.stderr is not None
    with selectors.DefaultSelector() as pipes:
        for read, sink in ((child.stdout, out), (child.stderr, err)):
            pipes.register(read, selectors.EVENT_READ, (read, sink))
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            pipes.register(child.stdin, selectors.EVENT_WRITE, (child.stdin, None))
        while pipes.get_map():
            if (remaining := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            for key, _ in pipes.select(remaining):
                pipe, sink = key.data
                if sink is None:
                    chunk = rest = rest[_write(key.fd, rest) :]
                else:
                    chunk = memoryview(os.read(key.fd, _CHUNK_BYTES))
                    sink.extend(chunk)
                if not chunk:
                    pipes.unregister(pipe)
                    pipe.close()
            if out_max is not None and len(out) > out_max:
                raise OutputTooLargeError(bytes(out))
            del err[: -ERRORS_MAX if len(err) > 2 * ERRORS_MAX else 0]
    try:
        return child.wait(max(0.0, deadline - time.monotonic())), bytes(out), bytes(err[-ERRORS_MAX:])
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def _write(handle: int, data: memoryview) -> int:
    """Return how many bytes the pipe accepted; all of them if the reader has closed it."""
    try:
        return os.write(handle, data[:_CHUNK_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it started; close our pipes even if one of them holds the other end."""
    import signal
    import subprocess

    try:
        if child.returncode is None:  # else its id may belong to another process by now
            os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    close_pipes(child)
    try:
        child.wait(KILL_WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        pass


def close_pipes(child: subprocess.Popen[bytes]) -> None:
    """Close our ends of the pipes: a child that reads gets end of file."""
    for pipe in (child.stdin, child.stdout, child.stderr):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:  # the child ended with unread input
            pass


class ProgramError(Exception):
    """A program other than git could not be used; the argument is why, a sentence without an end.

    Attributes:
        is_missing: It is not on PATH.
        was_started: It perhaps did something before it was killed.
    """

    is_missing = False
    was_started = True


def run_program(
    command: Sequence[str],
    folder: str,
    variables: Mapping[str, str],
    seconds: float,
    out_max: int,
    input: bytes = b"",
) -> Result:
    """Return exit status, output and errors of a program that can ask nobody anything: it has no terminal.

    Args:
        command: The program, found on PATH, and its arguments.
        folder: Its current folder.
        variables: Its environment.
        seconds: The time until it and what it started are killed.
        out_max: Bytes of output until then.

    Raises:
        ProgramError: It could not be started, or was killed.
    """
    import subprocess

    name = os.path.basename(command[0])
    try:
        child = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.PIPE if input else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        problem = ProgramError(f"{name} could not be started ({error.strerror})")
        problem.is_missing, problem.was_started = isinstance(error, FileNotFoundError), False
        raise problem from None
    try:
        code, out, err = communicate(child, input, seconds, out_max)
    except BaseException as error:
        kill(child)
        if isinstance(error, TimeoutError):
            raise ProgramError(f"{name} did not end within {seconds:g} seconds and was stopped") from None
        if isinstance(error, OutputTooLargeError):
            raise ProgramError(f"{name} wrote more than {out_max:,} bytes and was stopped") from None
        raise
    return Result(code, out, err.decode("utf-8", "replace"))


def start(
    common: str,
    args: Sequence[str],
    variables: dict[str, str],
    cwd: str | None,
    *,
    input: bool,
    errors: bool,
    file_max: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start git in a folder and a session of its own; its standard input is a pipe or empty, its errors a pipe or discarded."""
    import subprocess

    # No hooks, no file-system monitor. Not for `git config`, whose output would contain these settings.
    quiet = (
        () if args[0] == "config" else ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
    )
    folder = cwd or common
    if not os.path.isdir(folder):
        raise StoreError(f"Nothing was done: the folder {folder} is missing.", code="folder-missing")
    # A shell sets the limit, as `preexec_fn` is not safe with threads; `-C` because this process' own folder may be gone.
    limit = () if file_max is None else ("sh", "-c", _LIMITED, "sh", f"{-(-file_max // 512)}")
    try:
        return subprocess.Popen(
            [*limit, "git", "-C", folder, *([f"--git-dir={common}"] if common else []), *quiet, *args],
            env=variables,
            stdin=subprocess.PIPE if input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if errors else subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        what = f"the program git could not be started ({error.strerror})"
        if isinstance(error, FileNotFoundError):
            what = "the program git was not found on PATH"
        raise StoreError(
            f"Nothing was done: {what}.", hint="Install git, or repair PATH.", code="git-missing"
        ) from error


def _name(args: Sequence[str]) -> str:
    """Return the subcommand in the arguments, after `-c key=value` pairs and options such as `--git-dir=FOLDER`."""
    at = 0
    while at + 1 < len(args) and args[at].startswith("-"):
        at += 2 if args[at] == "-c" else 1
    return args[at] if args else ""
