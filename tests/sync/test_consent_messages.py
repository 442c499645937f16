"""What an answer says of the agreement to publish."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gitmem.sync import consent, sync_remotes

URL = "https://example.org/a.git"


@pytest.mark.parametrize("remote", ["origin", "backup"])
def test_an_agent_is_told_the_command_for_this_remote(remote: str) -> None:
    """Where the plain command would publish elsewhere the remote is named, and no next command publishes."""
    proposed = "gitmem sync --publish" if remote == "origin" else f"gitmem sync --publish {remote}"
    each = SimpleNamespace(state="consent-needed", name=remote, message="It lacks 3 records.")
    synced: Any = SimpleNamespace(remotes=[each], next=[proposed, "gitmem log"])
    sync_remotes.reword_for_agent(synced)
    assert each.message.endswith(f"after a yes: `{proposed}`.")
    assert synced.next == ["gitmem log"]


@pytest.mark.parametrize(
    ("state", "told"), [("offline", "when it is reachable"), ("rejected", "the next successful sync")]
)
def test_an_agreement_says_when_it_takes_effect(tmp_path: Path, state: str, told: str) -> None:
    """A remote that is away is sent to once it is reachable, one that refused at the next sync; without consent nothing is said."""
    each: Any = SimpleNamespace(state=state, url=URL, message="")
    store: Any = SimpleNamespace(repo=SimpleNamespace(state=str(tmp_path)))
    sync_remotes.report_consent(store, [each])
    assert each.message == ""
    consent.give_consent(store.repo, URL, consent.BY_INIT, "2026-11-22T12:00:00.000000Z")
    sync_remotes.report_consent(store, [each])
    assert f"You have agreed to publish to {URL}" in each.message and told in each.message
