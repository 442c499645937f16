"""Record the commits that sessions have made in this worktree: after commands, in clients' hooks, and before a sync.

Commands and hooks import this module only if `commit_stamps` says that there may be new commits.
"""

from __future__ import annotations

import re
import time

from gitmem.agents import commit_stamps
from gitmem.errors import GitmemError
from gitmem.history import commits
from gitmem.history.commits import Clues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitmem.agents.caller import Caller

    from .environment import Environment

SECONDS = 5.0
HOOK_SECONDS = 2.0
ANSWER_SECONDS, PAUSE_SECONDS = 1.0, 0.1  # each look runs git
OUTPUT_MAX, DEPTH_MAX, PRINTED_MAX = 256 * 1024, 4, 64
_ASKED = ("tool_input", "toolArgs", "args")
_PRINTED = ("tool_response", "tool_output", "toolResult", "toolOutput", "output", "result")
# A command that makes commits, and what git prints then: `[branch 1234567] subject`.
_MAKES = re.compile(r"\bgit\b[^\n]{0,4096}\b(?:commit|cherry-pick|revert)\b")
_MADE = re.compile(r"^\[[^\]\n]{1,300} ([0-9a-f]{7,64})\] ", re.MULTILINE)


def of_command(at: Environment) -> None:
    """Record the commits of a command's worktree. An agent's own command runs in the turn of its session."""
    commits.try_note(at.store(), _clues(at), seconds=SECONDS)


def before_answer(at: Environment) -> bool:
    """Record the commits of a command's worktree; wait a moment for another process that does so, and for the note of git's hook.

    Returns:
        Whether some may still be missing.
    """
    until = time.monotonic() + ANSWER_SECONDS
    while at.repo.worktree is not None:
        try:
            commits.note(at.store(), _clues(at), seconds=ANSWER_SECONDS)
        except (GitmemError, OSError, ValueError, KeyError):
            return False  # they can't be recorded here, now or later
        if not commit_stamps.has_news(at.repo):
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _clues(at: Environment) -> Clues:
    return Clues(at.caller_if_any(), in_turn=at.client_session is not None)


def of_hook(at: Environment, caller: Caller | None, fields: object, *, in_turn: bool) -> None:
    """Record the commits of a client's worktree.

    Args:
        fields: The input of the hook, which may have the output of a command.
        in_turn: Whether the agent is in its turn.
    """
    clues = Clues(caller, printed(fields), in_turn=in_turn)
    commits.try_note(at.store(), clues, seconds=HOOK_SECONDS)


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
