"""Fixtures of the tests of sync."""

from __future__ import annotations

import pytest

from gitmem.sync import rebase


@pytest.fixture
def short_lock_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the log's lock for a moment only."""
    monkeypatch.setattr(rebase, "LOCK_SECONDS", 0.05)
