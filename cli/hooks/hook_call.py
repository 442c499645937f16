"""One call of a hook: its input from the client, the session of ours that it belongs to, its time limit, and its output.

The input is a JSON object on standard input, of which unexpected fields are ignored. The output is exactly the JSON of each client, because some
clients reject unknown keys.
"""

from __future__ import annotations

import os
import sys
import time

from gitmem.agents import caller as callers
from gitmem.agents import heartbeats, presence
from gitmem.clients import events
from gitmem.clients.events import EDIT, START, STOP
from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import quote
from gitmem.repo import find
from gitmem.signals.message_frame import PROGRAM
from gitmem.text import strict_json
from gitmem.text.sanitize import sanitize_for_model

from ..environment import variable
from ..render.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gitmem.agents.caller import Caller
    from gitmem.agents.presence import Presence
    from gitmem.repo import Repo
    from gitmem.store import Store

    from ..environment import Environment


PATHS_MAX = 100
PATH_MAX = 4_096  # characters
PATCH_MAX = 4_000_000  # characters of a patch that are searched for paths
FOLDERS_MAX = 64  # folders above a new file
# Where clients put a tool's arguments, and the names of a path and of a patch among them.
_ARGUMENTS = ("tool_input", "toolArgs", "args")
_PATHS = ("file_path", "filePath", "path", "notebook_path")
_PATCHES = ("command", "input", "patch", "patchText")
_PATCH = "*** Begin Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def edited_paths(fields: Mapping[str, object]) -> list[str]:
    """Return the paths that a tool changes, as its client names them, and those of a patch."""
    found: dict[str, None] = {}
    for path in _named_paths(_arguments(fields)):
        if 0 < len(path) <= PATH_MAX and "\0" not in path:
            found[path] = None
        if len(found) == PATHS_MAX:
            break
    return list(found)


def within_repo(repo: Repo, folder: str | None, paths: Sequence[str]) -> list[str]:
    """Return paths from the top of the worktree that each is in, without those outside of this repository.

    Args:
        repo: The repository of the hook.
        folder: The folder that relative paths start from; None for the top of the worktree.
        paths: Paths as `edited` returns them.
    """
    start = folder if folder is not None and os.path.isabs(folder) else repo.worktree or ""
    found: dict[str, None] = {}
    for path in paths:
        try:
            inside = _inside(repo, os.path.normpath(os.path.join(start, path)))
        except (OSError, ValueError, GitmemError):
            continue
        if inside is not None:
            found[inside] = None
    return list(found)


def _arguments(fields: Mapping[str, object]) -> Mapping[str, object]:
    value = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    call = fields.get("preToolUse") or fields.get("postToolUse")  # Cline
    if isinstance(call, dict):
        value = call.get("parameters")
    if isinstance(value, str):  # Copilot, in earlier versions
        try:
            value = strict_json.read(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _named_paths(arguments: Mapping[str, object]) -> Iterator[str]:
    for key in _PATHS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield value
    for key in _PATCHES:
        value = arguments.get(key)
        if isinstance(value, str) and _PATCH in value[:PATCH_MAX]:
            for line in value[:PATCH_MAX].split("\n"):
                name = next((each for each in _FILES if line.startswith(each)), None)
                if name is not None:
                    yield line.removeprefix(name).strip()


def _inside(repo: Repo, path: str) -> str | None:
    """Return an absolute path from the top of its worktree; None outside of the repository's worktrees.

    An agent may change files of another worktree of the clone. A link is followed: what it names is changed.
    """
    path = os.path.realpath(path)
    nearest = os.path.dirname(path)
    for _ in range(FOLDERS_MAX):
        if os.path.isdir(nearest):
            break
        nearest = os.path.dirname(nearest)
    place = find(nearest)
    if place.common != repo.common or place.worktree is None:
        return None
    name = os.path.relpath(path, place.worktree).replace(os.sep, "/")
    return None if name == ".." or name.startswith(("../", ".git/")) else name


# Clients that pass their session id to their agent's commands, see `environment.SESSION_VARIABLES`.
_PASS_SESSION_ID = ("claude-code", "codex", "copilot", "opencode")
# Clients whose start gives variables to later hooks; whether the agent's shell gets them is unknown.
_SHELL_UNKNOWN = ("cursor",)
INPUT_MAX_BYTES = 16 * 1024 * 1024  # a longer input is cut, and then is not JSON
ID_MAX = 200
# The keys of the client's own session id; the first that is present counts.
_SESSION = {
    "cursor": ("conversation_id", "session_id"),
    "cline": ("taskId",),
    "copilot": ("sessionId", "session_id"),
}
# The keys that show a call by a subagent. Cline gives every agent an id, and subagents a parent.
_SUBAGENT = {"cline": ("parent_agent_id",)}
_SUBAGENT_USUAL = ("agent_id", "agentId")
CLIENT_PROCESS = "GITMEM_CLIENT_PROCESS"  # a variable of the hook script


class HookInput:
    """One call of a hook.

    Attributes:
        client: Our name of the client, such as `claude-code`.
        event: The client's own name of the event.
        kind: The kind of the event, see `events`.
        cwd: The folder that a tool's relative paths start from, or None.
        fields: The whole input, for what only some calls need.
        edited: The paths that a tool changes, as the client names them.
        folder: The folder of the session, if this process may run in another one; otherwise None.
        name: The event's name in the JSON, or None.
        session: The client's id of the session, or None.
        notices_edits: Whether to notice what this worktree has changed, and nothing else.
        source: How a session starts: `startup`, `resume`, `clear`, `compact`, `fork`.
        in_subagent: Whether a subagent has called, which must not get the signals of the agent.
        again: Whether a hook has already kept the agent from ending its turn.
        saves: Whether to write a checkpoint: so many tool calls have been counted since the last.
        process: The client's process, as the hook script knows it; 0 without it.
    """

    def __init__(self, client: str, event: str, kind: str, fields: Mapping[str, object]) -> None:
        self.client = client
        self.event = event
        self.fields = fields
        self.kind = kind
        self.notices_edits = False
        self.saves = kind == events.CHECKPOINT
        keys = _SESSION.get(client, ("session_id",))
        self.session = next((value for value in (_id(fields.get(key)) for key in keys) if value), None)
        source = fields.get("source")
        self.source = source if isinstance(source, str) else "startup"
        if event == "TaskResume":
            self.source = "resume"
        name = fields.get("hook_event_name")
        self.name = name if isinstance(name, str) else None
        self.folder = _folder(fields.get("workspaceRoots")) if client in events.SHARED_ENVIRONMENT else None
        cwd = fields.get("cwd")
        self.cwd = cwd if isinstance(cwd, str) and "\0" not in cwd else self.folder
        self.edited: list[str] = []
        if kind == events.EDIT or (kind == events.TOOL and not events.names(client, events.EDIT)):
            self.edited = edited_paths(fields)
        self.in_subagent = any(fields.get(key) for key in _SUBAGENT.get(client, _SUBAGENT_USUAL))
        loops = fields.get("loop_count")
        parent = variable(CLIENT_PROCESS) or ""
        self.process = int(parent) if parent.isascii() and parent.isdecimal() and len(parent) < 10 else 0
        self.again = any(fields.get(key) is True for key in ("stop_hook_active", "stopHookActive")) or (
            isinstance(loops, int) and loops > 0
        )


def read_call(client: str, event: str, kind: str) -> HookInput:
    """Return the call that this process was started for."""
    return HookInput(client, event, kind, object_of(_bytes()))


def object_of(data: bytes) -> Mapping[str, object]:
    """Return the object in a JSON text, or an empty one."""
    try:
        found = _value(data.strip())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _value(data: bytes) -> object:
    try:
        return strict_json.read(data.decode("utf-8"))
    except ValueError:  # another encoding, or unusual JSON: json accepts more, but its import is slow
        import json

        return json.loads(data)


def _bytes() -> bytes:
    source = sys.stdin
    try:
        if source is None or source.isatty():
            return b""
        return source.buffer.read(INPUT_MAX_BYTES)
    except (OSError, ValueError, AttributeError):
        return b""


def _folder(roots: object) -> str | None:
    """Return the first of a list of folders, if it exists."""
    first = roots[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) and "\0" not in first and os.path.isdir(first) else None


def _id(value: object) -> str | None:
    """Return an id that is safe to store: a short printable text; otherwise None."""
    if not isinstance(value, str) or not 0 < len(value) <= ID_MAX or not value.isprintable():
        return None
    return value


class HookTimer:
    """The time limit of a hook, which ends this process at any point: each step must survive that.

    Args:
        name: The client and its event.
        seconds: The limit, from now.
        is_background: Whether no client waits for the hook. Its errors then limit no other hook.

    Attributes:
        state: The folder of gitmem's own files, once it is known and exists.
    """

    def __init__(self, name: str, seconds: float, *, is_background: bool = False) -> None:
        self._name = name
        self._is_background = is_background
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._parent = os.getppid()
        self.state = ""

    def is_waited_for(self) -> bool:
        """Return whether the client still waits for the answer."""
        return time.monotonic() < self._deadline and os.getppid() == self._parent

    def begin(self) -> None:
        """Start the timer."""
        import signal

        try:
            signal.signal(signal.SIGALRM, self._give_up)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        except ValueError:
            return  # not the main thread

    def end(self) -> None:
        """Stop the timer: a printed answer must be recorded, however long that takes."""
        import signal

        signal.setitimer(signal.ITIMER_REAL, 0)

    def note(self, sentence: str) -> None:
        """Record an error for the user, and make the script start gitmem only once a turn, unless this is in the background."""
        from gitmem.clients import hook_state

        if os.path.isdir(self.state):
            hook_state.note_error(self.state, time.time_ns() // 1000, self._name, sentence)
            if not self._is_background:
                hook_state.mark(self.state, hook_state.STUCK, True)

    def _give_up(self, *_: object) -> None:
        self.note(f"timed out after {self._seconds:g} s")
        os._exit(0)


def caller(at: Environment, call: HookInput) -> Caller | None:
    """Return the reader, or None for a client's session without one of ours."""
    found = session(at, call)
    return callers.of_session(found, "harness") if found is not None else None


def session(at: Environment, call: HookInput) -> Presence | None:
    """Return the session that was started under the client's id, otherwise one that the user has named.

    An agent that starts another agent passes GITMEM_SESSION on. A session of one client must never be used by another,
    so the variable counts only if no client has started that session.
    """
    found = presence.of_client(at.store(), call.session) if call.session else None
    return found or named(at.store(), at.session, call.client, call.session)


def named(store: Store, name: str | None, client: str, own: str | None) -> Presence | None:
    """Return the session that GITMEM_SESSION names, if it has not ended and does not belong to another client's session.

    Args:
        own: The client's id of its session.
    """
    if not name or client in events.SHARED_ENVIRONMENT:
        return None
    found = presence.get(store, name)
    if found is None or found.ended is not None or found.harness_session is not None:
        return None
    return found if heartbeats.client_of(store, found.session_id) in ("", own) else None


def introduction(at: Environment, call: HookInput, caller: Caller, *, exported: bool = False) -> str:
    """Return the introduction. It has the session id if the agent's own commands would not know it.

    Args:
        exported: Whether the client exports GITMEM_SESSION to these commands.
    """
    about = f" on {sanitize_for_model(caller.wu_id)}" if caller.wu_id else ""
    line = (
        f"You are {sanitize_for_model(caller.name or caller.reader)} ({sanitize_for_model(caller.reader)}) to the other agents in this"
        f" repository{about}. `gitmem inbox` shows your messages, `gitmem signal 'TEXT' --to NAME` sends one,"
        " `gitmem roster` lists the agents."
    )
    if _knows_session(at, call, caller, exported):
        return line
    return f"{line} Run it as `GITMEM_SESSION={caller.session_id} gitmem …`."


def reply_program(at: Environment, call: HookInput, caller: Caller, *, exported: bool = False) -> str:
    """Return the program of reply lines, with the session id if the agent's own commands would not know it."""
    session = caller.session_id
    if session is None or (call.client not in _SHELL_UNKNOWN and _knows_session(at, call, caller, exported)):
        return PROGRAM
    return f"{PROGRAM} --as {quote(session)}"


def _knows_session(at: Environment, call: HookInput, caller: Caller, exported: bool) -> bool:
    try:
        passes_id = call.client in _PASS_SESSION_ID and not at.is_nested(call.session)
        return exported or passes_id or caller.session_id in (None, at.session)
    except UsageError:  # a variable that is not text names no session
        return False


def answer(given: HookInput, text: str, variables: Mapping[str, str]) -> str | None:
    """Return the output that passes a text to the agent; None if this client reads none at this event.

    Args:
        text: The text for the agent; at the end of a turn, its next input. May be empty at a start.
        variables: Environment variables for the commands of a starting session.
    """
    if given.client == "opencode":  # our own plugin inserts the text
        return encode({"context": text}) if text and given.kind == EDIT else text or None
    found = _FORMS.get(given.client, _usual)(given, text, variables)
    return encode(found) if found else None


def refuse(given: HookInput, reason: str) -> str:
    """Return the output that keeps a tool from running, for the clients of `events.REFUSES`."""
    usual = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if given.client == "opencode":
        return encode({"refused": reason})
    if given.client == "gemini":
        return encode({"decision": "deny", "reason": reason})
    if given.client == "copilot" and given.name is None:
        return encode(usual)
    return encode({"hookSpecificOutput": {"hookEventName": given.name or given.event, **usual}})


def _usual(given: HookInput, text: str, variables: Mapping[str, str]) -> dict[str, object]:
    """Return the form of Claude Code. At the end of a turn the agent then continues, which is not an error."""
    if not text:
        return {}
    word = _DECISIONS.get(given.client)
    if word is not None and given.kind == STOP:
        return {"decision": word, "reason": text}
    return {"hookSpecificOutput": {"hookEventName": given.event, "additionalContext": text}}


def _cursor(given: HookInput, text: str, variables: Mapping[str, str]) -> dict[str, object]:
    if given.kind == STOP:
        return {"followup_message": text} if text else {}
    found: dict[str, object] = {"additional_context": text} if text else {}
    if given.kind == START and variables:
        found["env"] = dict(variables)
    return found


def _cline(given: HookInput, text: str, variables: Mapping[str, str]) -> dict[str, object]:
    return {"cancel": False, "contextModification": text} if text else {}


def _copilot(given: HookInput, text: str, variables: Mapping[str, str]) -> dict[str, object]:
    """Return the form of Copilot. VS Code runs the same hooks, with Claude Code's input and output."""
    if not text:
        return {}
    fields: dict[str, object] = (
        {"decision": "block", "reason": text} if given.kind == STOP else {"additionalContext": text}
    )
    return fields if given.name is None else {"hookSpecificOutput": {"hookEventName": given.name, **fields}}


_DECISIONS = {"codex": "block", "gemini": "deny"}  # keeps a turn from ending
_FORMS = {"cursor": _cursor, "cline": _cline, "copilot": _copilot}
