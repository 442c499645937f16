"""What a hook prints: each client's JSON, exactly, and nothing beside it (some clients refuse a key too many)."""

from __future__ import annotations

from gitmem.clients.hooks.events import START, STOP

from ..render.as_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .hook_input import HookInput


def answer(given: HookInput, text: str, variables: Mapping[str, str]) -> str | None:
    """The output that hands a text to the agent; None where this client takes none at this event.

    Args:
        text: What the agent is to read; at the end of a turn, what it goes on with. May be empty at a start.
        variables: What a starting session's commands are to find in their environment.
    """
    if given.client == "opencode":  # our own plugin puts it where it belongs
        return text or None
    found = _FORMS.get(given.client, _usual)(given, text, variables)
    return encode(found) if found else None


def _usual(given: HookInput, text: str, variables: Mapping[str, str]) -> dict[str, object]:
    """As Claude Code has it: at the end of a turn too, which goes on then, and that is no error."""
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
    """VS Code runs the same hooks, and says and wants it as Claude Code does."""
    if not text:
        return {}
    said: dict[str, object] = (
        {"decision": "block", "reason": text} if given.kind == STOP else {"additionalContext": text}
    )
    return said if given.name is None else {"hookSpecificOutput": {"hookEventName": given.name, **said}}


_DECISIONS = {"codex": "block", "gemini": "deny"}  # what keeps a turn from ending
_FORMS = {"cursor": _cursor, "cline": _cline, "copilot": _copilot}
