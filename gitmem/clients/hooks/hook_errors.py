"""Errors in hooks. A hook reports no error to the agent, but notes it in the state folder for the user.

- `hook-error`: the last error, one line.
- `hook-stuck`: exists while a hook could not do its work. The script then starts gitmem only once a turn, so no tool
  call waits in vain.
- `hook-left`: exists while entries outside the repository could not be committed. They are then no reason to start
  gitmem at each tool call.
"""

from __future__ import annotations

import os

from ... import atomic_write, state_files
from ...log.lines import format_at
from ...text.sanitize import sanitize_for_model

ERROR, STUCK, LEFT = "hook-error", "hook-stuck", "hook-left"
SENTENCE_MAX = 500


def note(state: str, now: int, hook: str, sentence: str) -> None:
    """Write the last error. Never raises.

    Args:
        state: The folder of gitmem's own files.
        now: Microseconds since the epoch.
        hook: The client and its event.
        sentence: The error.
    """
    text = f"{format_at(now)} {hook}: {' '.join(sentence.split())}"
    _write(os.path.join(state, ERROR), sanitize_for_model(text)[:SENTENCE_MAX] + "\n")


def read(state: str) -> str | None:
    """Return the last error with its time, or None."""
    text = state_files.read(os.path.join(state, ERROR), SENTENCE_MAX * 4).decode("utf-8", "replace")
    return sanitize_for_model(text.strip()) or None


def clear_if_fixed(state: str, client: str, known: str | None) -> None:
    """Remove the last error if it belongs to a client whose hooks have worked since.

    Args:
        state: The folder of gitmem's own files.
        known: The error that was noted before the test; a newer one stays.
    """
    if known is not None and known == read(state) and known.split(" ")[1:2] == [client]:
        atomic_write.remove_quietly(os.path.join(state, ERROR))


def limit_to_turns(state: str) -> None:
    """Make the script start gitmem only once a turn."""
    _write(os.path.join(state, STUCK), "")


def lift_limit(state: str) -> None:
    """Make the script start gitmem at every tool call again."""
    atomic_write.remove_quietly(os.path.join(state, STUCK))


def set_left(state: str, is_left: bool) -> None:
    """Note whether entries wait outside the repository: the script then starts gitmem for them only once a turn."""
    path = os.path.join(state, LEFT)
    if is_left:
        _write(path, "")
    else:
        atomic_write.remove_quietly(path)


def _write(path: str, text: str) -> None:
    atomic_write.try_replace(path, text.encode("utf-8", "backslashreplace"))
