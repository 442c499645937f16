"""The output of a hook: exactly the JSON of each client, because some clients reject unknown keys."""

from __future__ import annotations

from gitmem.clients.hooks.events import EDIT, START, STOP

from ..render.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .hook_input import HookInput


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
