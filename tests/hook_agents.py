"""Coding agents as far as hooks are concerned: what each says on standard input, and what it takes as an answer.

The inputs have the fields that the real clients send. The answers are checked against what each client's own
schema or parser allows: a key too many, or a text of the wrong type, is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gitmem.clients import client_scope, clients, events

ROOT = Path(__file__).resolve().parents[1]
SHELL = "dash" if Path("/usr/bin/dash").exists() else "sh"

# What a client adds to every event, and what it adds to those that we use.
_MORE: dict[str, dict[str, dict[str, object]]] = {
    "claude-code": {
        "": {"transcript_path": "/t.jsonl", "permission_mode": "default"},
        "PostToolUse": {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": ""},
                        "tool_use_id": "toolu_1"},
        "UserPromptSubmit": {"prompt": "Fix the parser", "source": "user"},
        "SessionStart": {"source": "startup", "model": "m"},
        "Stop": {"stop_hook_active": False, "last_assistant_message": "Done.", "background_tasks": []},
        "SessionEnd": {"reason": "other"},
    },
    "codex": {
        "": {"transcript_path": None, "model": "m", "permission_mode": "default"},
        "PostToolUse": {"turn_id": "t", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "",
                        "tool_use_id": "call_1"},
        "UserPromptSubmit": {"turn_id": "t", "prompt": "Fix the parser"},
        "SessionStart": {"source": "startup"},
        "Stop": {"turn_id": "t", "stop_hook_active": False, "last_assistant_message": None},
        "SessionEnd": {"reason": "other"},
    },
    "gemini": {
        "": {"transcript_path": "/t.json", "timestamp": "2026-11-22T04:00:00Z"},
        "AfterTool": {"tool_name": "run_shell_command", "tool_input": {"command": "ls"},
                      "tool_response": {"llmContent": "", "returnDisplay": ""}},
        "BeforeAgent": {"prompt": "Fix the parser"},
        "SessionStart": {"source": "startup"},
        "AfterAgent": {"prompt": "Fix the parser", "prompt_response": "Done.", "stop_hook_active": False},
        "SessionEnd": {"reason": "exit"},
    },
    "cursor": {
        "": {"generation_id": "g", "model": "m", "cursor_version": "3", "workspace_roots": ["/w"]},
        "postToolUse": {"tool_name": "Shell", "tool_input": {}, "tool_output": "{}", "duration": 5},
        "sessionStart": {"is_background_agent": False},
        "stop": {"status": "completed", "loop_count": 0},
        "sessionEnd": {"reason": "completed"},
    },
    "opencode": {},
    "cline": {
        "": {"clineVersion": "", "timestamp": 1, "userId": "u", "agent_id": "agent_1", "parent_agent_id": None},
        "PostToolUse": {"postToolUse": {"toolName": "bash", "parameters": {}, "result": "", "success": True}},
    },
    "copilot": {"": {"timestamp": 1}, "agentStop": {"stop_hook_active": False}},
}  # fmt: skip
_ID = {"cursor": "conversation_id", "cline": "taskId", "copilot": "sessionId"}


def said(client: str, event: str, session: str, folder: Path, **more: object) -> dict[str, object]:
    """What a client says on standard input of its hook."""
    found: dict[str, object] = {_ID.get(client, "session_id"): session, "cwd": str(folder)}
    if client == "cline":
        found = {"workspaceRoots": [str(folder)], "hookName": "tool_result", **found}
    elif client not in ("copilot", "opencode"):
        found["hook_event_name"] = event
    every = _MORE[client]
    return {**found, **every.get("", {}), **every.get(event, {}), **more}


# What each client says before a tool changes a file.
_EDITS: dict[str, Callable[[str], dict[str, object]]] = {
    "claude-code": lambda path: {"tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}},
    "codex": lambda path: {
        "tool_name": "apply_patch",
        "tool_input": {"command": f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"},
    },
    "gemini": lambda path: {"tool_name": "replace", "tool_input": {"file_path": path, "old_string": "a"}},
    "cursor": lambda path: {"tool_name": "Write", "tool_input": {"file_path": path}},
    "opencode": lambda path: {"args": {"filePath": path, "content": "x"}},
    "cline": lambda path: {
        "preToolUse": {"toolName": "editor", "parameters": {"path": path, "new_text": "x"}}
    },
    "copilot": lambda path: {"toolName": "create", "toolArgs": {"path": path, "file_text": "x"}},
}


def editing(client: str, path: str) -> dict[str, object]:
    """What a client says about an edit, beside what it says at every event."""
    return _EDITS[client](path)


def handed(client: str, event: str, out: str) -> str:
    """The text that reaches the model, of what a hook printed; the client refuses anything else."""
    kind = events.kind(client, event)
    assert (client, kind) != ("gemini", events.EDIT)  # it shows no text before a tool
    if (client, kind) == ("opencode", events.EDIT):
        return _exactly(json.loads(out), {}, "context")
    if client == "opencode":
        assert out.endswith("\n") and not out.endswith("\n\n")
        return out[:-1]
    value = json.loads(out)
    stop = {"codex": "block", "gemini": "deny", "copilot": "block"}
    if client == "cline":
        return _exactly(value, {"cancel": False}, "contextModification")
    if client == "cursor":
        env = value.pop("env", {}) if kind == events.START else {}
        assert all(isinstance(each, str) for pair in env.items() for each in pair)
        return _exactly(value, {}, "followup_message" if kind == events.STOP else "additional_context")
    if kind == events.STOP and client in stop:
        return _exactly(value, {"decision": stop[client]}, "reason")
    if client == "copilot":
        return _exactly(value, {}, "additionalContext")
    assert set(value) == {"hookSpecificOutput"}
    return _exactly(value["hookSpecificOutput"], {"hookEventName": event}, "additionalContext")


def refusal(client: str, event: str, out: str) -> str:
    """The reason for which a client does not run a tool, of what a hook printed."""
    value = json.loads(out)
    deny = {"permissionDecision": "deny"}
    if client == "opencode":
        return _exactly(value, {}, "refused")
    if client == "gemini":
        return _exactly(value, {"decision": "deny"}, "reason")
    if client == "copilot":
        return _exactly(value, deny, "permissionDecisionReason")
    assert set(value) == {"hookSpecificOutput"}
    return _exactly(value["hookSpecificOutput"], {**deny, "hookEventName": event}, "permissionDecisionReason")


def _exactly(value: dict[str, Any], fixed: Mapping[str, object], text: str) -> str:
    assert {**value, text: ""} == {**fixed, text: ""}
    found = value[text]
    assert isinstance(found, str) and found
    return found


def user_state() -> str:
    """gitmem's folder in the state folder of the test's user."""
    return os.path.join(os.environ["XDG_STATE_HOME"], "gitmem")


def note_program(state: Path, program: Path | str) -> None:
    """Have the hooks of a repository start a program, as a gitmem that runs there would."""
    state.mkdir(parents=True, exist_ok=True)
    (state / "program").write_text(f"{program}\n")
    assert clients.add_to_list(user_state(), str(program))


class Done:
    """What the hook's process did."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out.decode()
        self.err = err.decode()

    @property
    def is_silent(self) -> bool:
        return (self.status, self.out, self.err) == (0, "", "")

    def __repr__(self) -> str:
        return f"exit {self.status}\n{self.out}\n--- err\n{self.err}"


class Agent:
    """One session of a client in a folder, whose hooks run the script that is installed."""

    def __init__(self, client: str, session: str, folder: Path, **env: str) -> None:
        self.client = client
        self.session = session
        self.folder = folder
        self.env = dict(env)
        self.script = _written(folder, client)

    def call(
        self,
        event: str,
        *,
        shell: tuple[str, ...] = (SHELL,),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        before: Callable[[], None] | None = None,
        **more: object,
    ) -> Done:
        """Run the hook of an event as the client does."""
        given = {**os.environ, **self.env}
        if self.client in events.SESSION_VARIABLES:
            given[events.SESSION_VARIABLES[self.client]] = self.session
        if self.client in events.FOLDER_VARIABLES:
            given[events.FOLDER_VARIABLES[self.client]] = str(self.folder)
        done = subprocess.run(
            [*shell, str(self.script), event],
            cwd=cwd or self.folder,
            env={**given, **(env or {})},
            input=json.dumps(said(self.client, event, self.session, self.folder, **more)).encode(),
            capture_output=True,
            timeout=60,
            preexec_fn=before,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def reads(self, event: str, **options: Any) -> str:
        """The same; the text that reaches the model, or an empty one."""
        done = self.call(event, **options)
        assert (done.status, done.err) == (0, ""), done
        return handed(self.client, event, done.out) if done.out else ""


def _written(folder: Path, client: str) -> Path:
    """The script outside the repository, under the name of its only event for a client without arguments."""
    path = folder.parent / f"{client}-signal-received.sh"
    path.write_text(client_scope.script_text(client))
    return path


def program(folder: Path) -> Path:
    """A gitmem program that runs these sources."""
    path = folder / "gitmem"
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH={str(ROOT)!r} PYTHONSAFEPATH=1 exec {sys.executable!r} -m cli "$@"\n'
    )
    path.chmod(0o755)
    return path
