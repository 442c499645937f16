"""Run a task with a coding agent: its arguments, and what its output of one JSON object a line says.

Only clients are listed that tests/real_clients runs. The text of the task goes to standard input; permissions are those of the client's settings
and of the words that the user adds. A client's session is resumed when its question has been answered.
"""

from __future__ import annotations

import json
import os
import re
import shlex

from .child_process import CHUNK_BYTES, ChildRun
from .runs import NO_ANSWER, RESULT_MAX_BYTES, TEMPORARY, completed, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO, Any

    from .runs import RunEnd
    from .served_task import ServedTask

    # What a line says: its kind, one of the names below, and a text.
    Said = tuple[str, str]

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


class ClientProgram:
    """A coding agent as a program.

    Args:
        begin: Its command line, before the user's words.
        then: Its command line after those.
        resume: What comes after that to go on with a session; `{}` is its id.
        last: The end of its command line.
        read: Returns what a line of its output says; it may raise whatever a line of another form makes it raise.
    """

    def __init__(
        self,
        begin: Sequence[str],
        then: Sequence[str],
        resume: Sequence[str],
        read: Callable[[Mapping[str, Any]], Iterator[Said]],
        last: Sequence[str] = (),
    ) -> None:
        self.begin = begin
        self.then = then
        self.resume = resume
        self.read = read
        self.last = last

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


class ClientOutput:
    """What a client has said so far.

    Attributes:
        session: The id to resume its session by; None until it has named one.
        error: The last error that it has named, or None.
        has_failed: Whether it answers with an error instead of a result.

    Args:
        read: Returns what a line says.
        progress: Called with what it does meanwhile: texts before the last one, and names of tools.
    """

    def __init__(
        self, read: Callable[[Mapping[str, Any]], Iterator[Said]], progress: Callable[[str], object]
    ) -> None:
        self.session: str | None = None
        self.error: str | None = None
        self.has_failed = False
        self._read = read
        self._progress = progress
        self._text = ""
        self._result: str | None = None

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

    try:
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (AttributeError, OSError):
        return
