"""The input of a hook: a JSON object from the client on standard input. Unexpected fields are ignored."""

from __future__ import annotations

import os
import sys

from gitmem import strict_json
from gitmem.clients.hooks import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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
            from . import edit_input

            self.edited = edit_input.edited(fields)
        self.in_subagent = any(fields.get(key) for key in _SUBAGENT.get(client, _SUBAGENT_USUAL))
        loops = fields.get("loop_count")
        self.again = any(fields.get(key) is True for key in ("stop_hook_active", "stopHookActive")) or (
            isinstance(loops, int) and loops > 0
        )


def read(client: str, event: str, kind: str) -> HookInput:
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
