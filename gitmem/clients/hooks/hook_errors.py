"""What went wrong in a hook. A hook says nothing to the agent, so it leaves a note for whoever looks after it.

`<state>/hook-error` is the last trouble, one line. `<state>/hook-stuck` is there while a hook could not do what
it was started for: the script then asks again only once a turn, so that no tool call waits for it in vain.
`<state>/hook-left` is there while something outside the repository could not be committed: that is no reason to start any more.
"""

from __future__ import annotations

import os

from ... import atomic_write
from ...log.lines import format_at
from ...text.sanitize import sanitize_for_model

ERROR, STUCK, LEFT = "hook-error", "hook-stuck", "hook-left"
SENTENCE_MAX = 500


def note(state: str, now: int, hook: str, sentence: str) -> None:
    """Keep a trouble; the one before it is gone. Never an error.

    Args:
        state: The folder of gitmem's own files.
        now: Microseconds since the epoch.
        hook: The client and its event.
        sentence: What went wrong.
    """
    text = f"{format_at(now)} {hook}: {' '.join(sentence.split())}"
    _write(os.path.join(state, ERROR), sanitize_for_model(text)[:SENTENCE_MAX] + "\n")


def read(state: str) -> str | None:
    """The last trouble with its time, or None where there was none."""
    try:
        with open(os.path.join(state, ERROR), "rb") as file:
            return sanitize_for_model(file.read(SENTENCE_MAX * 4).decode("utf-8", "replace").strip()) or None
    except OSError:
        return None


def settle(state: str, client: str, known: str | None) -> None:
    """Forget the last trouble, where it was one of a client whose hooks were seen to work since.

    Args:
        known: The trouble that was there before they were tried: a newer one stays.
    """
    if known is not None and known == read(state) and known.split(" ")[1:2] == [client]:
        atomic_write.drop(os.path.join(state, ERROR))


def stick(state: str) -> None:
    """Have the script ask only once a turn."""
    _write(os.path.join(state, STUCK), "")


def go_on(state: str) -> None:
    """Have the script ask at every tool call again."""
    atomic_write.drop(os.path.join(state, STUCK))


def leave(state: str, is_left: bool) -> None:
    """Have the script ask once a turn for what waits outside the repository, or at every tool call; for mail as ever."""
    path = os.path.join(state, LEFT)
    if is_left:
        _write(path, "")
    else:
        atomic_write.drop(path)


def _write(path: str, text: str) -> None:
    try:
        atomic_write.replace(path, text.encode("utf-8", "backslashreplace"))
    except OSError:
        return
