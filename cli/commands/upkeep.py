"""`gitmem upkeep`, `gitmem commit-waiting` and `gitmem note-commits`, which commands and hooks start in the background: they print nothing."""

from __future__ import annotations

import os

from ..environment import Environment


def upkeep(at: Environment) -> None:
    """Update the index, and combine the log's small packs if there are many. Prints nothing."""
    store = at.store()
    store.starts_upkeep = None
    store.db()  # with full priority: other processes wait for it
    os.nice(10)
    store.keep_up()


def commit_waiting(at: Environment) -> None:
    """Commit waiting records unless another process does; commands start this automatically."""
    from gitmem import commit_process

    from ..background import COMMIT_AFTER

    store = at.store()
    store.commit_after = commit_process.window(store.settings(), os.environ.get(COMMIT_AFTER))
    commit_process.run(store)
    store.tidy_index()


def note_commits(at: Environment) -> None:
    """Record the commits of this worktree's sessions; git's post-commit hook starts this. Prints nothing."""
    from gitmem.agents import commit_stamps

    commit_stamps.update(at.store(), from_beginning=True)  # every command records them at its end
