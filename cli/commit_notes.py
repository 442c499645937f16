"""Record the commits that sessions have made in this worktree: after commands, in clients' hooks, and before a sync.

Commands and hooks import this module only if `commit_stamps` says that there may be new commits.
"""

from __future__ import annotations

import re

from gitmem.commits import find_commits
from gitmem.commits.find_commits import Clues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitmem.agents.caller import Caller

    from .environment import Environment

SECONDS = 5.0
HOOK_SECONDS = 2.0
OUTPUT_MAX, DEPTH_MAX, PRINTED_MAX = 256 * 1024, 4, 64
_ASKED = ("tool_input", "toolArgs", "args")
_PRINTED = ("tool_response", "tool_output", "toolResult", "toolOutput", "output", "result")
# A command that makes commits, and what git prints then: `[branch 1234567] subject`.
_MAKES = re.compile(r"\bgit\b[^\n]{0,4096}\b(?:commit|cherry-pick|revert)\b")
_MADE = re.compile(r"^\[[^\]\n]{1,300} ([0-9a-f]{7,64})\] ", re.MULTILINE)


def of_command(at: Environment) -> None:
    """Record the commits of a command's worktree. An agent's own command runs in the turn of its session."""
    caller = at.caller_if_any()
    find_commits.try_note(at.store(), Clues(caller, in_turn=at.client_session is not None), seconds=SECONDS)


def of_hook(at: Environment, caller: Caller | None, fields: object, *, in_turn: bool) -> None:
    """Record the commits of a client's worktree.

    Args:
        fields: The input of the hook, which may have the output of a command.
        in_turn: Whether the agent is in its turn.
    """
    clues = Clues(caller, printed(fields), in_turn=in_turn)
    find_commits.try_note(at.store(), clues, seconds=HOOK_SECONDS)


def printed(fields: object) -> list[str]:
    """Return the beginnings of the ids of the commits that a tool's command says it has made."""
    if not isinstance(fields, dict):
        return []
    asked = [text for key in _ASKED for text in _texts(fields.get(key))]
    if not any(_MAKES.search(text) for text in asked):
        return []
    texts = [text for key in _PRINTED for text in _texts(fields.get(key))]
    return [found for text in texts for found in _MADE.findall(text)][:PRINTED_MAX]


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts in a value, cut to a size that is searched quickly."""
    if isinstance(value, str):
        yield value[-OUTPUT_MAX:]
    elif depth < DEPTH_MAX and isinstance(value, (dict, list)):
        for each in list(value.values() if isinstance(value, dict) else value)[:100]:
            yield from _texts(each, depth + 1)
