"""What the events of each client are to us.

The names are the clients' own, as they stand in their settings files: the hook script gets one as its
argument and hands it to `gitmem hook`.
"""

from __future__ import annotations

TOOL = "tool"  # a tool has run: the model reads on in a moment
PROMPT = "prompt"  # the user has said something
START = "start"
STOP = "stop"  # the agent is done and would wait for its user
END = "end"
WAKE = "wake"  # in the background of an agent that waits

EVENTS: dict[str, dict[str, str]] = {
    "claude-code": {
        "PostToolUse": TOOL, "PostToolUseFailure": TOOL, "PostToolBatch": TOOL, "UserPromptSubmit": PROMPT,
        "SessionStart": START, "Stop": STOP, "SessionEnd": END, "Wake": WAKE,
    },
    "codex": {
        "PostToolUse": TOOL, "UserPromptSubmit": PROMPT, "SessionStart": START, "Stop": STOP, "SessionEnd": END,
    },
    "gemini": {
        "AfterTool": TOOL, "BeforeAgent": PROMPT, "SessionStart": START, "AfterAgent": STOP, "SessionEnd": END,
    },
    "cursor": {
        "postToolUse": TOOL, "postToolUseFailure": TOOL, "sessionStart": START, "stop": STOP, "sessionEnd": END,
    },
    "opencode": {
        "tool.execute.after": TOOL, "chat.message": PROMPT, "session.created": START, "session.idle": STOP,
        "session.deleted": END,
    },
    "cline": {
        "PostToolUse": TOOL, "UserPromptSubmit": PROMPT, "TaskStart": START, "TaskResume": START,
        "TaskCancel": END,
    },
    "copilot": {
        "postToolUse": TOOL, "postToolUseFailure": TOOL, "userPromptSubmitted": PROMPT, "sessionStart": START,
        "agentStop": STOP, "sessionEnd": END,
    },
}  # fmt: skip

# Where what a hook prints reaches the model. Elsewhere the client throws it away, or another's hook may.
READS = {
    "claude-code": (TOOL, PROMPT, START, STOP),
    "codex": (TOOL, PROMPT, START, STOP),
    "gemini": (TOOL, PROMPT, START, STOP),
    "cursor": (TOOL, START, STOP),
    "opencode": (TOOL, PROMPT, START, STOP),
    "cline": (TOOL,),
    "copilot": (TOOL, START, STOP),
}

# Where the environment of a hook has the client's own session id, and the folder that the session works in.
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
# Its hooks may have the environment of another run.
FORGETFUL = ("cline",)


def kind(client: str, event: str) -> str | None:
    """What an event is, or None for one that we don't know."""
    return EVENTS.get(client, {}).get(event)


def names(client: str, kind: str) -> list[str]:
    """The events of a client that are of one kind."""
    return [event for event, found in EVENTS.get(client, {}).items() if found == kind]
