"""The kinds of each client's events.

The names are the clients' own, from their settings files. The hook script gets one as its argument and passes it to
`gitmem hook`.
"""

from __future__ import annotations

TOOL = "tool"  # a tool has run: the model reads on in a moment
EDIT = "edit"  # a tool is about to change files
PROMPT = "prompt"  # the user has sent a prompt
START = "start"
STOP = "stop"  # the agent is done and would wait for its user
END = "end"
CHECKPOINT = "checkpoint"  # the client drops context, or a subagent is done: save what is known

EVENTS: dict[str, dict[str, str]] = {
    "claude-code": {
        "PreToolUse": EDIT, "PostToolUse": TOOL, "PostToolUseFailure": TOOL, "PostToolBatch": TOOL, "UserPromptSubmit": PROMPT,
        "SessionStart": START, "Stop": STOP, "SessionEnd": END,
        "PreCompact": CHECKPOINT, "SubagentStop": CHECKPOINT,
    },
    "codex": {
        "PreToolUse": EDIT, "PostToolUse": TOOL, "UserPromptSubmit": PROMPT, "SessionStart": START, "Stop": STOP, "SessionEnd": END,
        "PreCompact": CHECKPOINT, "SubagentStop": CHECKPOINT,
    },
    "gemini": {
        "BeforeTool": EDIT, "AfterTool": TOOL, "BeforeAgent": PROMPT, "SessionStart": START, "AfterAgent": STOP, "SessionEnd": END,
    },
    "cursor": {
        "postToolUse": TOOL, "postToolUseFailure": TOOL, "sessionStart": START, "stop": STOP, "sessionEnd": END,
    },
    "opencode": {
        "tool.execute.before": EDIT, "tool.execute.after": TOOL, "chat.message": PROMPT, "session.created": START, "session.idle": STOP,
        "session.deleted": END,
    },
    "cline": {
        "PreToolUse": EDIT, "PostToolUse": TOOL, "UserPromptSubmit": PROMPT, "TaskStart": START, "TaskResume": START,
        "TaskCancel": END,
    },
    "copilot": {
        "preToolUse": EDIT, "postToolUse": TOOL, "postToolUseFailure": TOOL, "userPromptSubmitted": PROMPT, "sessionStart": START,
        "agentStop": STOP, "sessionEnd": END,
    },
}  # fmt: skip

# The events whose output reaches the model. For others the client drops it, or another client's hook may show it.
READS = {
    "claude-code": (EDIT, TOOL, PROMPT, START, STOP),
    "codex": (EDIT, TOOL, PROMPT, START, STOP),
    "gemini": (TOOL, PROMPT, START, STOP),
    "cursor": (TOOL, START, STOP),
    "opencode": (EDIT, TOOL, PROMPT, START, STOP),
    "cline": (EDIT, TOOL),
    "copilot": (EDIT, TOOL, START, STOP),
}

# The tools before which a client runs the hooks of its edit event. Cline has no such choice; our plugin has one of its own.
MATCHERS = {
    "claude-code": "Edit|MultiEdit|NotebookEdit|Write",
    "codex": "apply_patch",
    "gemini": "replace|write_file",
    "copilot": "apply_patch|create|edit",
}
# The clients whose hooks can keep a tool from running. In Cline that would end the whole task.
REFUSES = ("claude-code", "codex", "gemini", "opencode", "copilot")

# The variables with the client's own session id, and with the folder of the session, in a hook's environment.
SESSION_VARIABLES = {
    "claude-code": "CLAUDE_CODE_SESSION_ID",
    "gemini": "GEMINI_SESSION_ID",
    "opencode": "OPENCODE_SESSION_ID",  # our plugin sets it, for the agent's commands too
}
FOLDER_VARIABLES = {
    "claude-code": "CLAUDE_PROJECT_DIR",
    "gemini": "GEMINI_PROJECT_DIR",
    "cursor": "CURSOR_PROJECT_DIR",
    "copilot": "COPILOT_PROJECT_DIR",
}
# The clients that run no hook at the end of a turn.
NO_STOP = ("opencode", "cline")
# The hooks of these clients may have the environment of another run.
SHARED_ENVIRONMENT = ("cline",)


# The triggers of automatic checkpoints: by the event, and for the last of so many tool calls, which the hook script counts.
TRIGGERS = {"PreCompact": "pre-compact", "SubagentStop": "subagent-stop"}
COUNTED = "tool-calls"
# The word by which the hook script asks to notice what was edited.
EDITED = "edits"


def kind(client: str, event: str) -> str | None:
    """Return the kind of an event, or None for an unknown one."""
    return EVENTS.get(client, {}).get(event)


def names(client: str, kind: str) -> list[str]:
    """Return a client's events of one kind."""
    return [event for event, found in EVENTS.get(client, {}).items() if found == kind]
