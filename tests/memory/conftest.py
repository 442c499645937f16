"""Somebody at work in a repository of its own, or its user alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .desk import Desk


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    """Planck, at work on WU-7."""
    found = Desk(repo, name="Planck", wu="WU-7")
    yield found
    found.store.close()
