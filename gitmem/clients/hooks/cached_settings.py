"""What a hook has to know of the git config, kept in a file at session start: asking git costs a process each time."""

from __future__ import annotations

import os

from ... import atomic_write, shared_mode
from ...agents.heartbeats import PROMPTS
from ...signals import headline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store

BUDGET = "hook-budget"
SETTING = "gitmem.hookbudget"
KEEP_PROMPTS = "keep-prompts"  # an empty file; the hook script stores prompts only while it is there


def budget(store: Store) -> int | None:
    """`gitmem.hookBudget` in bytes, as it was when a session last started; None where it is not set."""
    try:
        with open(os.path.join(store.place.state, BUDGET), "rb") as file:
            return _number(file.read(20).decode("ascii", "replace"))
    except OSError:
        return None


def keep(store: Store) -> None:
    """Note what the git config says now. Never an error."""
    _keep_prompts(store)
    path = os.path.join(store.place.state, BUDGET)
    found = _number(store.settings().get(SETTING, ""))
    try:
        if found is None:
            os.unlink(path)
        elif found != budget(store):
            atomic_write.replace(path, b"%d\n" % found)
    except OSError:
        return


def _keep_prompts(store: Store) -> None:
    """Allow the hook script to store prompts where headlines may show them; else remove what is stored."""
    allowed = os.path.join(store.place.state, KEEP_PROMPTS)
    if headline.shows_prompts(store):
        try:
            os.close(shared_mode.open_file(allowed, os.O_WRONLY | os.O_CREAT))
            return
        except OSError:
            return
    folder = os.path.join(store.place.state, PROMPTS)
    atomic_write.drop(allowed)
    try:
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_size:  # an empty one only says when the user spoke
                atomic_write.drop(entry.path)
    except OSError:
        return


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
