"""A first fetch that was made before anybody asked for it is not made twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import RemoteError
from gitmem.git import plumbing
from gitmem.git.network import GitNetwork
from gitmem.git.temporary import Incoming

Run = Callable[..., str]
INTO = "refs/gitmem/remotes/origin/"
OTHER = "refs/gitmem/remotes/other/"
BRANCH = "refs/heads/gitmem"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every fetch that is really made: its url, and where it goes."""
    made: list[tuple[str, str]] = []
    fetch = GitNetwork._fetch_into

    def counted(self: GitNetwork, into: Incoming, url: str, prefix: str, timeout: float) -> object:
        assert timeout == 30
        made.append((url, prefix))
        return fetch(self, into, url, prefix, timeout)

    monkeypatch.setattr(GitNetwork, "_fetch_into", counted)
    return made


def test_only_the_first_and_the_same_question_is_answered_by_it(
    common: str, hub: Path, git: Run, asked: list[tuple[str, str]]
) -> None:
    """Whoever asks again wants to know what is there by then."""
    git("branch", "gitmem", "main", cwd=hub)
    network = GitNetwork(common)
    assert network.fetch_ahead(str(hub), INTO, 30)
    assert list(plumbing.refs_below(common, INTO)) == [INTO + "heads/gitmem"]

    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO)]
    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO)] * 2


def test_another_question_is_asked(common: str, hub: Path, git: Run, asked: list[tuple[str, str]]) -> None:
    """Of another remote, or for another place; and what was fetched first is old then."""
    git("branch", "gitmem", "main", cwd=hub)
    network = GitNetwork(common)
    assert network.fetch_ahead(str(hub), INTO, 30)
    network.fetch(str(hub), OTHER, 30)
    assert list(plumbing.refs_below(common, OTHER)) == [OTHER + "heads/gitmem"]
    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO), (str(hub), OTHER), (str(hub), INTO)]


def test_what_failed_is_told_to_who_asks_and_then_tried_again(
    common: str, hub: Path, tmp_path: Path, asked: list[tuple[str, str]]
) -> None:
    """A remote that is back by then is reached."""
    away = tmp_path / "away.git"
    network = GitNetwork(common)
    assert not network.fetch_ahead(str(away), INTO, 30)
    with pytest.raises(RemoteError):
        network.fetch(str(away), INTO, 30)
    assert len(asked) == 1

    hub.rename(away)
    network.fetch(str(away), INTO, 30)
    assert len(asked) == 2
