"""What a hook prints: each client's JSON, exactly, and nothing beside it (some clients refuse a key too many)."""

from __future__ import annotations

from gitmem.operations.hooks.events import START, STOP

from ..render.as_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .given import Given


def answer(given: Given, text: str, variables: Mapping[str, str]) -> str | None:
    """The output that hands a text to the agent; None where this client takes none at this event.

    Args:
        text: What the agent is to read; at the end of a turn, what it goes on with. May be empty at a start.
        variables: What a starting session's commands are to find in their environment.
    """
    found = _FORMS[given.client](given, text, variables)
    if found is None or isinstance(found, str):
        return found
    return encode(found)


def _claude(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    """At the end of a turn too: it goes on then, and that is no error."""
    if not text:
        return None
    return {"hookSpecificOutput": {"hookEventName": given.event, "additionalContext": text}}


def _codex(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    if text and given.kind == STOP:
        return {"decision": "block", "reason": text}
    return _claude(given, text, variables)


def _gemini(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    if text and given.kind == STOP:
        return {"decision": "deny", "reason": text}
    return _claude(given, text, variables)


def _cursor(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    if given.kind == STOP:
        return {"followup_message": text} if text else None
    found: dict[str, object] = {"additional_context": text} if text else {}
    if given.kind == START and variables:
        found["env"] = dict(variables)
    return found or None


def _opencode(given: Given, text: str, variables: Mapping[str, str]) -> str | None:
    """Our own plugin puts it where it belongs."""
    return text or None


def _cline(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    return {"cancel": False, "contextModification": text} if text else None


def _copilot(given: Given, text: str, variables: Mapping[str, str]) -> dict[str, object] | None:
    """VS Code runs the same hooks, and says and wants it as Claude Code does."""
    if not text:
        return None
    if given.name is None:
        return {"decision": "block", "reason": text} if given.kind == STOP else {"additionalContext": text}
    said = {"decision": "block", "reason": text} if given.kind == STOP else {"additionalContext": text}
    return {"hookSpecificOutput": {"hookEventName": given.name, **said}}


_FORMS = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "opencode": _opencode,
    "cline": _cline,
    "copilot": _copilot,
}
