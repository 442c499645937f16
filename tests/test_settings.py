"""Settings: a value that does not count changes nothing in silence."""

from __future__ import annotations

import pytest

from gitmem import settings
from gitmem.errors import UsageError


@pytest.mark.parametrize(
    ("setting", "given", "value"),
    [
        (settings.COMMITS, None, "on"),
        (settings.COMMITS, "false", "off"),
        (settings.COMMITS, "exact", "on"),
        (settings.GUARD, None, ""),
        (settings.GUARD, " Block ", "block"),
        (settings.AUTOSYNC, "5m", "5m"),
        (settings.AUTOSYNC, "0.1s", "off"),
        (settings.CHECKPOINT_EVERY, "30", "30"),
        (settings.CHECKPOINT_EVERY, "0", ""),
        (settings.CHECKPOINT_EVERY, "1000", ""),
        (settings.CHECKPOINT_EVERY, "\u0663", ""),
        (settings.WU, "Shop 7", "Shop 7"),
    ],
)
def test_a_value_counts_or_the_default_does(setting: settings.Setting, given: str | None, value: str) -> None:
    assert setting.value({} if given is None else {setting.key.lower(): given}) == value


def test_a_gate_does_not_go_on_by_the_default_where_another_value_was_meant() -> None:
    """A word mistyped by the user would open it."""
    with pytest.raises(UsageError) as caught:
        settings.CHECKPOINT_GATE.checked({"gitmem.checkpointgate": "blok"})

    assert "blok; valid are off, warn, block" in caught.value.message
    assert caught.value.next == ["git config gitmem.checkpointGate off"]
