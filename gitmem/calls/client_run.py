"""Run a task with a program: a child process, a coding agent, or a command that the repository names.

Only clients are listed that tests/real_clients runs. The text of the task goes to standard input; permissions are those of the client's settings
and of the words that the user adds. A client's session is resumed when its question has been answered.

A command of the repository stands in `.gitmem/roles.toml`, which anybody may change who can push. It runs only after the user has trusted exactly
this text on this machine. Each trusted one has a file in `<state>/trusted/`, named by the SHA-256 of agent and command; no fetch or checkout can
write there. What a command starts, such as a script of the repository, is not covered.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from .. import local_files
from ..agents import vocabulary
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Struct, command
from ..text.digests import sha256
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from . import process_guard
from .process_guard import KILL_SECONDS
from .worker import NO_ANSWER, RESULT_MAX_BYTES, TEMPORARY, RunEnd, completed, failure, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO, Any

    from ..store import Store
    from .worker import ServedTask

    # What a line says: its kind, one of the names below, and a text.
    Said = tuple[str, str]


LAST_SECONDS = 1.0  # for output that is still in the pipe after the end
ERROR_MAX_BYTES = 4096  # of standard error, its end
CHUNK_BYTES = 64 * 1024
_GUARD_SECONDS = KILL_SECONDS + 3.0  # that the guard may take


class ChildRun:
    """A command that runs with `sh -c`, with a task on its standard input.

    Its result is its standard output if it ends with 0, its error the end of its standard error. The task's text is never part of the
    command line. The command is the child of `process_guard`, which ends it with all that its processes have started when this
    process dies, as the end of a pipe tells it.

    Args:
        command: The command, from the user.
        input: Its standard input.
        environment: All of its variables.
        folder: Where it runs.
    """

    def __init__(self, command: str, input: bytes, environment: Mapping[str, str], folder: str) -> None:
        ours, theirs = [], []
        try:
            for is_input in (True, False, False):
                reads, writes = os.pipe()
                ours.append(writes if is_input else reads)
                theirs.append(reads if is_input else writes)
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", process_guard.__file__, command, *map(str, theirs)], cwd=folder,
                env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pass_fds=theirs, start_new_session=True,  # so that nothing in it can join the group of another program
            )  # fmt: skip
        except (OSError, ValueError):
            for each in ours:
                os.close(each)
            raise
        finally:
            for each in theirs:
                os.close(each)
        self._ended = threading.Event()
        self._code: int | None = None
        self._exited, self._is_unguarded = threading.Event(), threading.Event()
        self._output = b""
        self._error = b""
        self._is_large = False
        to, out, error = os.fdopen(ours[0], "wb", 0), os.fdopen(ours[1], "rb"), os.fdopen(ours[2], "rb")
        self._threads = [
            _thread(self._write, to, input),
            _thread(self._read, out),
            _thread(self._read_error, error),
        ]
        _thread(self._wait)

    def poll(self, seconds: float) -> RunEnd | None:
        """Wait for its end, at most this many seconds."""
        self._ended.wait(seconds)
        if self._is_large:
            self.end()
            return too_large(f"more than {RESULT_MAX_BYTES} bytes")
        # it may have closed its output and go on
        if not self._exited.wait(seconds if self._ended.is_set() else 0):
            return None
        for each in self._threads[1:]:
            each.join(LAST_SECONDS)
        self.end()
        return self._result(self._code if self._code is not None else -int(signal.SIGKILL))

    def end(self) -> None:
        """End it with all processes of its group, and if it runs, with all others that they have started."""
        if self._guard.returncode is not None:
            return
        assert self._guard.stdin is not None
        if not self._exited.is_set():
            self._guard.stdin.close()
            self._is_unguarded.wait(_GUARD_SECONDS)
        if self._code is None:  # the guard was killed: without its help daemons are not found
            ours = (os.getpid(), os.getppid(), self._guard.pid)
            process_guard.end_tree(process_guard.ProcessTree(self._guard.pid, excluded=ours))
        # The guard, and what the command has left in the background.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        self._guard.stdin.close()
        self._guard.wait()

    def _wait(self) -> None:
        """Wait for the exit status of the command, and for the end of its guard."""
        assert self._guard.stdout is not None
        with self._guard.stdout as pipe:
            line = pipe.readline(20)
            self._code = int(line) if line.endswith(b"\n") else None
            self._exited.set()
            pipe.read()
        self._is_unguarded.set()

    def _result(self, code: int) -> RunEnd:
        if self._is_large:
            return too_large(f"more than {RESULT_MAX_BYTES} bytes")
        error = self._error.decode("utf-8", "replace").strip()
        if code:
            kind = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
            said = error or self._output.decode("utf-8", "replace").strip()[-ERROR_MAX_BYTES:]
            return failure("EXIT_STATUS", kind, said or kind, retryable=code == TEMPORARY)
        try:
            return completed(self._output.decode("utf-8").removesuffix("\n"))
        except UnicodeDecodeError as wrong:
            return failure(
                "BINARY_RESULT",
                "UnicodeDecodeError",
                f"The result is not valid UTF-8 (byte {wrong.start}). Commit it, and name the file.",
            )

    def _write(self, pipe: IO[bytes], input: bytes) -> None:
        with suppress(OSError), pipe:  # it may not read
            pipe.write(input)

    def _read(self, pipe: IO[bytes]) -> None:
        parts, size = [], 0
        with pipe:
            while part := os.read(pipe.fileno(), CHUNK_BYTES):
                parts.append(part)
                size += len(part)
                if size > RESULT_MAX_BYTES + 1:  # a newline at its end does not count
                    self._is_large = True
                    break
        self._output = b"".join(parts)
        self._ended.set()

    def _read_error(self, pipe: IO[bytes]) -> None:
        with pipe:
            while part := os.read(pipe.fileno(), CHUNK_BYTES):
                self._error = (self._error + part)[-ERROR_MAX_BYTES:]


def _thread(job: Callable[..., None], *values: object) -> threading.Thread:
    found = threading.Thread(target=job, args=values, daemon=True)
    found.start()
    return found


def end_program(child: subprocess.Popen[bytes]) -> None:
    """End a program with all processes of its process group, which it leads: SIGTERM first, then SIGKILL."""
    if child.poll() is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(KILL_SECONDS)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                continue
            break


# After an error it may go on, such as after one of the network; after a failure it does not.
SESSION, TEXT, TOOL, RESULT, ERROR, FAILED = "session", "text", "tool", "result", "error", "failed"
LINE_MAX_BYTES = 4 * 1024 * 1024  # a longer one, such as of a large file that a tool has read, is skipped
TEXT_MAX = 4 * RESULT_MAX_BYTES  # characters that are kept of an answer: too many, and the result is refused
_TOOL_MAX = 200
_PIPE_BYTES = 1024 * 1024  # that a user may have by default
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def _claude(said: Mapping[str, Any]) -> Iterator[Said]:
    yield SESSION, said.get("session_id") or ""
    if said.get("type") == "result":
        kind = said.get("subtype", "success")
        if said.get("is_error") or kind != "success":
            yield FAILED, said.get("result") or "\n".join(said.get("errors") or ()) or kind
        else:
            yield RESULT, said.get("result") or ""
    elif said.get("type") == "assistant" and not said.get("parent_tool_use_id"):  # else of a subagent
        for each in said["message"]["content"]:
            if each.get("type") == "text":
                yield TEXT, each["text"]
            elif each.get("type") == "tool_use":
                yield TOOL, each["name"]


def _codex(said: Mapping[str, Any]) -> Iterator[Said]:
    kind, item = said.get("type"), said.get("item") or {}
    if kind == "thread.started":
        yield SESSION, said["thread_id"]
    elif kind == "item.completed" and item.get("type") == "agent_message":
        yield TOOL, ""  # each message is a whole one
        yield TEXT, item["text"]
    elif kind == "item.started":
        yield TOOL, item["type"]
    elif kind == "error":
        yield ERROR, said["message"]
    elif kind == "turn.failed":
        yield FAILED, said["error"]["message"]


def _gemini(said: Mapping[str, Any]) -> Iterator[Said]:
    kind = said.get("type")
    if kind == "init":
        yield SESSION, said["session_id"]
    elif kind == "message" and said.get("role") == "assistant":
        yield TEXT, said["content"]
    elif kind == "tool_use":
        yield TOOL, said["tool_name"]
    elif kind == "error":
        yield ERROR, said["message"]
    elif kind == "result" and said.get("status") == "error":
        yield FAILED, (said.get("error") or said)["message"]


def _opencode(said: Mapping[str, Any]) -> Iterator[Said]:
    kind, part = said.get("type"), said.get("part") or {}
    yield SESSION, said.get("sessionID") or ""
    if kind == "text":
        yield TEXT, part["text"]
    elif kind == "tool_use":
        yield TOOL, part["tool"]
    elif kind == "error":
        error = said["error"]
        yield ERROR, (error.get("data") or {}).get("message") or error["name"]


_AT = "＠"  # what models read as @, and their clients as a letter


def prompt(task: ServedTask) -> str:
    """Return the frame of a task. Clients read the file that comes after an @, wherever that stands, so it has none."""
    return task.input().replace("@", _AT)


class ClientProgram(Struct):
    """A coding agent as a program.

    Attributes:
        begin: Its command line, before the user's words.
        then: Its command line after those.
        resume: What comes after that to go on with a session; `{}` is its id.
        last: The end of its command line.
        read: Returns what a line of its output says; it may raise whatever a line of another form makes it raise.
    """

    begin: Sequence[str]
    then: Sequence[str]
    resume: Sequence[str]
    read: Callable[[Mapping[str, Any]], Iterator[Said]]
    last: Sequence[str] = ()

    def command(self, words: Sequence[str], session: str | None) -> str:
        """Return its command line for `sh`."""
        again = [each.format(session) for each in self.resume] if session else []
        return shlex.join([*self.begin, *words, *self.then, *again, *self.last])


CLIENT_PROGRAMS: Mapping[str, ClientProgram] = {
    "claude": ClientProgram(
        ("claude", "-p"), ("--output-format", "stream-json", "--verbose"), ("--resume", "{}"), _claude
    ),
    "codex": ClientProgram(("codex", "exec"), ("--json",), ("resume", "{}"), _codex, ("-",)),
    "gemini": ClientProgram(("gemini",), ("--output-format", "stream-json"), ("--resume", "{}"), _gemini),
    "opencode": ClientProgram(("opencode", "run"), ("--format", "json"), ("--session", "{}"), _opencode),
}


class ClientOutput(Struct):
    """What a client has said so far.

    Attributes:
        session: The id to resume its session by; None until it has named one.
        error: The last error that it has named, or None.
        has_failed: Whether it answers with an error instead of a result.

    Attributes:
        read: Returns what a line says.
        progress: Called with what it does meanwhile: texts before the last one, and names of tools.
    """

    _read: Callable[[Mapping[str, Any]], Iterator[Said]]
    _progress: Callable[[str], object]
    session: str | None = None
    error: str | None = None
    has_failed: bool = False
    _text: str = ""
    _result: str | None = None

    @property
    def text(self) -> str:
        """Its answer."""
        return self._text if self._result is None else self._result

    def add(self, line: bytes) -> None:
        """Read a line; one of an unknown form says nothing."""
        try:
            said = json.loads(line)
            found = list(self._read(said)) if isinstance(said, dict) else []
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        for kind, text in found:
            self._add(
                kind, str(text).encode("utf-8", "replace").decode("utf-8")
            )  # half a surrogate pair is no text

    def _add(self, kind: str, text: str) -> None:
        if kind == SESSION and self.session is None and _SESSION.fullmatch(text):
            self.session = text
        elif kind == TEXT:
            self._text = (self._text + text)[:TEXT_MAX]
        elif kind == RESULT:
            self._result = text[:TEXT_MAX]
        elif kind in (ERROR, FAILED):
            self.error = text[:RESULT_MAX_BYTES]
            self.has_failed = self.has_failed or kind == FAILED
        elif kind == TOOL:
            if self._text:
                self._progress(self._text)
                self._text = ""
            if text:
                self._progress(f"uses {text[:_TOOL_MAX]}")


class ClientRun(ChildRun):
    """A coding agent that runs a task.

    Args:
        output: Gets what it says.
        ended: Called with its session when it has ended.
        is_resumed: Whether it goes on with a session.
    """

    def __init__(
        self, command: str, input: bytes, environment: Mapping[str, str], folder: str,
        *, output: ClientOutput, ended: Callable[[str | None], object], is_resumed: bool = False,
    ) -> None:  # fmt: skip
        self._said = output
        self._is_resumed = is_resumed
        self._report = ended
        super().__init__(command, input, environment, folder)

    def _read(self, pipe: IO[bytes]) -> None:
        _enlarge(pipe)
        line, is_skipped = b"", False
        with pipe:
            while part := os.read(pipe.fileno(), CHUNK_BYTES):
                *whole, rest = part.split(b"\n")
                for each in whole:
                    if not is_skipped:
                        self._said.add(line + each)
                    line, is_skipped = b"", False
                line += rest
                if len(line) > LINE_MAX_BYTES:
                    line, is_skipped = b"", True
        self._said.add(line)
        self._ended.set()

    def _result(self, code: int) -> RunEnd:
        said = self._said
        self._report(said.session)
        if code == 0 and not said.has_failed and said.text:
            return completed(said.text)
        if code == 0 and said.error is None:
            return failure(NO_ANSWER, "no answer", "It ended without an answer in a form that gitmem knows.")
        kind = f"exit status {code}" if code else "error"
        text = said.error or self._error.decode("utf-8", "replace").strip() or kind
        is_gone = self._is_resumed and code != 0 and said.session is None  # another try begins a new session
        return failure("CLIENT", kind, text, retryable=code == TEMPORARY or is_gone)


def _enlarge(pipe: IO[bytes]) -> None:
    """Let more output wait in a pipe where the system has that: Gemini CLI loses what does not fit in it, and its answer with it."""
    import fcntl

    with suppress(AttributeError, OSError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


TRUSTED_FOLDER, TRUST_MAX_BYTES = "trusted", 256 * 1024


def trusted_command(store: Store, name: str, *, trust: bool = False) -> str:
    """Return the command that the repository names for an agent.

    Args:
        name: The agent's name, an alias of `.gitmem/roles.toml`.
        trust: Whether the user trusts the command as it is now, and from now on.

    Raises:
        UsageError: `no-command` or `not-trusted`. Nothing was written.
        StoreError: `read-only`: the trust can't be recorded.
    """
    alias = vocabulary.read(store.repo.worktree).pack.aliases.get(fold(name))
    if alias is None or alias.exec is None:
        raise UsageError(
            f"No command for {sanitize(name)}: {vocabulary.FILE} names none. Nothing was written.",
            hint="Give one with --exec CMD or --callable MODULE:FUNCTION.",
            code="no-command",
        )
    digest = sha256(f"{fold(alias.name)}\n{alias.exec}".encode()).hexdigest()
    path = os.path.join(store.repo.state, TRUSTED_FOLDER, digest)
    if trust:
        kept = {"agent": alias.name, "exec": alias.exec, "at": format_at(store.now())}
        content = f"{json.dumps(kept)}\n".encode()
        local_files.record_choice(store.repo.state, path, content, "the trust", private=local_files.OWN)
    if not _is_trusted(path, alias.name, alias.exec):
        raise UsageError(
            f"The command for {alias.name} in {vocabulary.FILE} is not trusted on this machine: {sanitize(alias.exec)}. Nothing was written.",
            hint="Whoever can push can change that file. Only your user may decide to run it.",
            code="not-trusted",
            next=[command("gitmem", "serve-agent", name, "--trust")],
        )
    return alias.exec


def _is_trusted(path: str, name: str, text: str) -> bool:
    """Return whether this user has recorded that a command is trusted: others may write to the folders of a shared repository."""
    try:
        with open(local_files.open_file(path, os.O_RDONLY), "rb") as file:
            found = os.fstat(file.fileno())
            value = json.loads(file.read(TRUST_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    return isinstance(value, dict) and value.get("agent") == name and value.get("exec") == text
