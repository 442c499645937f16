"""The hook script: POSIX sh that checks whether there is anything for this agent, and only then starts gitmem.

A client runs it after every tool call. Without news it starts no program, forks no process and reads no input: it finds
the git folder, tests some files, and ends. Its text is the same in every repository and for every user, so it can be
committed and reviewed once.
"""

from __future__ import annotations

from ...agents import edited_paths
from ..managed_files import content
from . import events

# The key of the client's session id in the JSON on standard input, where no variable has it.
_KEYS = {"codex": "session_id", "cursor": "conversation_id", "cline": "taskId", "copilot": "sessionId"}
_ASKING = (events.TOOL, events.PROMPT, events.STOP)


def text(client: str) -> str:
    """Return the script for one of the clients of `events.EVENTS`; raise KeyError for another."""
    prompt = "by variable" if client in events.SESSION_VARIABLES else "by key"
    if not events.names(client, events.PROMPT):
        prompt = "none"
    left_out = {f"prompt {each}" for each in ("none", "by variable", "by key") if each != prompt}
    if client != "claude-code":
        left_out.add("claude-code")
    folder = events.FOLDER_VARIABLES.get(client)
    theirs = events.SESSION_VARIABLES.get(client)
    values = {
        "CLIENT": client,
        "EVENT": "${0##*/}" if client == "cline" else "${1-}",  # its hooks have no arguments
        "CASES": _cases(client),
        "FOLDER": f"${{{folder}:-${{PWD:-.}}}}" if folder else "${PWD:-.}",
        "OURS": "" if client in events.SHARED_ENVIRONMENT else "${GITMEM_SESSION-}",
        "THEIRS": f"${{{theirs}-}}" if theirs else "",
        "TURN": events.PROMPT if client in events.NO_STOP else events.STOP,
        "EDITS": "" if events.names(client, events.EDIT) else events.TOOL,
        "READS": " | ".join(kind for kind in _ASKING if kind in events.READS[client]),
        "KEY": _KEYS.get(client, ""),
        "KEPT": str(edited_paths.INPUTS_MAX),
        "BYTES": str(edited_paths.INPUT_MAX_BYTES),
    }
    script = "\n".join(part for name, part in parts().items() if name not in left_out)
    for name, value in values.items():
        script = script.replace(f"@{name}@", value)
    return script


def parts() -> dict[str, str]:
    """Return the parts of `hook.sh` by name: each begins with a line `#@ NAME: REMARK`."""
    named = ("#@ head\n" + content("hook.sh")).removeprefix("#@ ").split("\n#@ ")
    lines = [each.partition("\n") for each in named]
    return {line.partition(":")[0]: part for line, _, part in lines}


def _cases(client: str) -> str:
    found: dict[str, list[str]] = {}
    for event, kind in events.EVENTS[client].items():
        found.setdefault(kind, []).append(event)
    return "\n".join(f"  {' | '.join(names)}) kind={kind} ;;" for kind, names in found.items())
