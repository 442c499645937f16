"""Errors of operations in the words of tools: parameters for options of the command line, calls for its commands.

An operation has one text for an error, which names options, because most callers have a command line. A model has tools. What no tool
does keeps its words: it may have a shell, too.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from gitmem.errors import UsageError

from ..main import claims_first, parse
from ..parser_table import COMMANDS
from ..values import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.errors import GitmemError

ELLIPSIS = "…"
WORDS_MAX = 2  # missing words of a command that only names what to call
# The parameters of each tool in their order, which the server fills in.
PARAMETERS: dict[str, tuple[str, ...]] = {}
TASK_ACTIONS = (
    "show",
    "take",
    "renew",
    "release",
    "done",
    "ask",
    "message",
    "reject",
    "cancel",
    "seal",
    "close",
)
# The function of a command, its tool, and the arguments that the command implies. `options` has what is called otherwise.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "signal:signal": ("signal", {}), "signal:reply": ("signal", {}), "inbox:inbox": ("inbox", {}),
    "history:thread": ("thread", {}), "history:converged": ("converged", {}), "receipts:receipts": ("receipts", {}),
    "session:roster": ("roster", {}), "session:whoami": ("session", {}), "session:start": ("session", {}),
    "session:change": ("session", {}), "session:note": ("session", {}), "session:end": ("session", {}),
    "role:listing": ("role", {}), "role:show": ("role", {}), "call:call": ("call", {}), "delegate:delegate": ("delegate", {}),
    "handoff:handoff": ("handoff", {}), "claim:paths": ("claim", {}), "claim:listing": ("claim", {"action": "list"}),
    "claim:check": ("claim", {"action": "check"}), "claim:release": ("claim", {"action": "release"}),
    "overlap:overlap": ("overlap", {}), "why:why": ("why", {}), "sync:sync": ("sync", {}), "gate:gate": ("gate", {}),
    "task:listing": ("task", {"action": "list"}), **{f"task:{each}": ("task", {"action": each}) for each in TASK_ACTIONS},
    "mem.nodes:create": ("mem_create", {}), "mem.nodes:update": ("mem_update", {}),
    "mem.nodes:checkpoint": ("mem_checkpoint", {}), "mem.listing:show": ("mem_show", {}),
    "mem.listing:search": ("mem_search", {}), "mem.listing:ready": ("mem_ready", {}), "mem.listing:export": ("mem_export", {}),
    "mem.context:context": ("mem_context", {}), "mem.context:recover": ("mem_recover", {}),
    "mem.knowledge:promote": ("mem_promote", {}), "mem.upkeep:delete": ("mem_delete", {}),
}  # fmt: skip
# What the parameter of a command is called in its tool, and of a flag with what value.
_ANY: dict[str, str | tuple[str, Any]] = {"tag": "tags", "path": "paths", "agent_identity": "agent_identity"}
RENAMED: dict[str, dict[str, str | tuple[str, Any]]] = {
    "signal": {
        "id": "reply_to", "agree": ("intent", "AGREE"), "reject": ("intent", "REJECT"), "counter": ("intent", "COUNTER"),
    },
    "session": {"text": "activity"},
    "converged": {"thread": "id"},
    "call": {"text": "message", "timeout": "wait_seconds"},
    "delegate": {"text": "message"},
    "handoff": {"text": "message"},
    "claim": {"for_": "lease", "of": "id"},
    "task": {
        "reason": "text", "give_up": "text", "mine": ("only", "mine"), "open_": ("only", "open"), "blocked": ("only", "blocked"),
        "stuck": ("only", "stuck"),
    },
    "mem_promote": {"node": "id"},
}  # fmt: skip
LEFT_OUT = {("roster", "query")}  # without it, the tool answers more
_SECONDS = {"wait": "wait_seconds"}
_CODE = re.compile(r"`([^`\n]*)`")
_OPTION = re.compile(r"(?<![\w`-])--([a-z]+(?:-[a-z]+)*)(?![\w=-])")
_OPTIONS = {
    word.partition("=")[0]
    for declared in COMMANDS.values()
    for word in declared.split()
    if word.startswith("--")
}
_ELSEWHERE = ("signal", "session")  # the tools whose parameters errors of others name


def translate(error: GitmemError, tool: str) -> None:
    """Put an error's message, hint and next commands into the words of a tool."""
    error.message, error.hint = (_prose(text, tool) for text in (error.message, error.hint))
    error.next = [call_of(each) or each for each in error.next if not each.endswith(" --help")]


def call_of(command: str, missing: int = 0) -> str | None:
    """Return the call of a tool that does what a command does, such as `task(action="take", id="task-…")`; None if no tool does.

    Args:
        missing: How many words at its end may be missing.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[:1] != ["gitmem"]:
        return None
    if words[-1] == "--help":
        words, missing = words[:-1], WORDS_MAX
    for count in range(missing + 1):
        parsed = parse(claims_first([*words[1:], *[ELLIPSIS] * count]))
        if parsed is not None:
            return _call(parsed.function, parsed.values)
    return None


def _call(function: str, values: Mapping[str, Any]) -> str | None:
    tool, implied = CALLS.get(function, ("", {}))
    given = dict(implied)
    for name, value in values.items():
        if (tool, name) in LEFT_OUT:
            continue
        named = _parameter(tool, name, value)
        if named is None:
            return None
        given[named[0]] = named[1]
    order = PARAMETERS.get(tool, ())
    return call(tool, {name: given[name] for name in order if name in given}) if tool else None


def call(tool: str, given: Mapping[str, Any]) -> str:
    """Return a call of a tool as text."""
    return f"{tool}({', '.join(f'{name}={json.dumps(value, ensure_ascii=False)}' for name, value in given.items())})"


def _parameter(tool: str, name: str, value: Any = None) -> tuple[str, Any] | None:
    """Return the parameter of a tool that a parameter of its command is, with its value; None if it has none."""
    known = PARAMETERS.get(tool, ())
    if name in _SECONDS and _SECONDS[name] in known:
        return _SECONDS[name], _seconds(value)
    found = RENAMED.get(tool, {}).get(name)
    if found is None:
        found = name if name in known else _ANY.get(name, name)
    named = found if isinstance(found, tuple) else (found, value)
    return named if named[0] in known else None


def _seconds(value: Any) -> Any:
    try:
        return int(duration(str(value)))
    except UsageError:
        return value


def _prose(text: str, tool: str) -> str:
    """Return a text with calls for commands in backquotes, and parameters for options."""
    parts = _CODE.split(text)
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = _OPTION.sub(lambda found: _named(found[0], found[1], tool), part)
        elif part.startswith("gitmem "):
            parts[place] = f"`{call_of(part, WORDS_MAX) or part}`"
        else:
            shown = _OPTION.sub(lambda found: _named(found[0], found[1], tool).strip("`"), part)
            parts[place] = f"`{shown}`"
    return "".join(parts)


def _named(option: str, name: str, tool: str) -> str:
    """Return how an option is called in a tool, else in one of the tools that errors of others name."""
    word = name.replace("-", "_")
    for each in (tool, *_ELSEWHERE):
        for spelled in (word, f"{word}_"):
            found = _parameter(each, spelled)
            if found is not None:
                value = "" if found[1] is None else f": {found[1]}"
                of = "" if each == tool else f" of {each}"
                return f"`{found[0]}{value}`{of}"
    return f"`{option}` of the command line" if option in _OPTIONS else option
