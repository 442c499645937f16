"""Doctor's look at the clone key, and what puts it right."""

from __future__ import annotations

import os

from ..agents import clone_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Findings
    from .mending.done import Done
    from .store import Store

DAMAGED, EXPOSED = "clone-key", "clone-key-exposed"
CODES = (DAMAGED, EXPOSED)


def check(store: Store, found: Findings) -> None:
    """A key that can't be used, or that others may read."""
    key = store.keys.now()
    if key.damage:
        found.problem(
            DAMAGED,
            f"The clone key can't be used: {key.damage}. Commands that write refuse.",
            key.path,
            "Put it back from a backup if there is one. Else it is moved aside and another one is made: what sessions "
            "that are open now wrote so far is then no longer told from lines that others forge.",
            mends=True,
        )
    if key.is_exposed:
        found.problem(
            EXPOSED,
            "Other users of this machine can read the clone key, and with it write lines as the sessions of this clone.",
            key.path,
            f"Its mode becomes {clone_key.mode(key.path):o}.",
            mends=True,
        )


def mend(store: Store, done: Done) -> None:
    """Move a damaged key aside and make another; take an exposed one from others."""
    from .mending.files import put_aside

    key = store.keys.now()
    if key.damage:
        where = put_aside(store, key.path)
        store.keys.for_writing()
        done.say(DAMAGED, key.path, f"It is {where} now, and a new key was made.")
    if key.is_exposed:
        os.chmod(key.path, clone_key.mode(key.path))
        store.keys.forget()
        done.say(EXPOSED, key.path, "Nobody else may read it now.")
