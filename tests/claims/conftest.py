"""Clones with agents at work in them, who claim paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.store import Store
from tests.sandbox import Clock, annas, new_repo, open_store

BOHR, CURIE, PLANCK = map(annas, ("claude:worker:bohr", "claude:worker:curie", "codex:worker:planck"))


@pytest.fixture
def far(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """Another clone of the same log; `carry` is a sync of both."""
    found = open_store(new_repo(tmp_path / "far"), clock)
    yield found
    found.close()
