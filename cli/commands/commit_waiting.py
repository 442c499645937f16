"""`gitmem commit-waiting`, which commands start by themselves."""

from __future__ import annotations

from ..surroundings import Surroundings


def commit_waiting(at: Surroundings) -> None:
    """Commit what is recorded and waits; commands start this by themselves."""
    from .. import committer

    committer.run(at)
