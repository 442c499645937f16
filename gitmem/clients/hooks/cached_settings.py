"""Git config values that hooks need, cached in files at session start: each call of git config costs a process."""

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
KEEP_PROMPTS = "keep-prompts"  # an empty file; the hook script stores prompts only while it exists


def budget(store: Store) -> int | None:
    """Return `gitmem.hookBudget` in bytes as of the last session start, or None if it is not set."""
    try:
        with open(os.path.join(store.place.state, BUDGET), "rb") as file:
            return _number(file.read(20).decode("ascii", "replace"))
    except OSError:
        return None


def update(store: Store) -> None:
    """Cache the current values of the git config. Never raises."""
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
    """Allow the hook script to store prompts if headlines may show them; otherwise remove stored prompts."""
    allowed = os.path.join(store.place.state, KEEP_PROMPTS)
    if headline.shows_prompts(store):
        try:
            os.close(shared_mode.open_file(allowed, os.O_WRONLY | os.O_CREAT))
            return
        except OSError:
            return
    folder = os.path.join(store.place.state, PROMPTS)
    atomic_write.remove_quietly(allowed)
    try:
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_size:  # an empty file only has the time of the prompt
                atomic_write.remove_quietly(entry.path)
    except OSError:
        return


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
