"""The claims of others, before a real client edits a file: a warning in the model's next request, or a refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitmem.clients import events
from tests.real_clients.clients import CLIENTS, Codex
from tests.real_clients.desk import PEER, Desk, until
from tests.real_clients.model import Asked
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

REASON = "rounding the prices: amber"
CODEX_MODEL = "gpt-5.5"  # Codex offers its tool for edits only to models that it knows

each_client = pytest.mark.parametrize("name", [each.name for each in CLIENTS])


def editing(desk: Callable[..., Desk], name: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The client in a repository where a peer in another worktree has claimed `src`."""
    there = desk(name)
    if isinstance(there.client, Codex):
        monkeypatch.setattr(there.client, "model", CODEX_MODEL)
    (there.work / "src").mkdir()
    there.gitmem("claim", "src", "--reason", REASON, cwd=there.away, session=there.peer)
    return there


def edit(there: Desk, path: str) -> Callable[[Asked], Step]:
    """A step in which the client's own tool writes a file."""

    def step(asked: Asked) -> Step:
        assert until(there.sessions), "no hook has registered the session"
        return there.client.edit(str(there.work / path))

    return step


@each_client
def test_an_edit_of_a_claimed_file_is_warned_about_once(
    name: str, desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written, and the next request has holder, reason and command; the second edit adds nothing."""
    there = editing(desk, name, monkeypatch)

    asked = there.turn(
        [
            edit(there, "docs.md"),
            edit(there, "src/a.py"),
            edit(there, "src/a.py"),
            lambda asked: Step("Done."),
        ]
    )

    assert [each.text.count(f"{PEER} claims it until") for each in asked] == [0, 0, 1, 1]
    assert [each.text.count(REASON) for each in asked] == [0, 0, 1, 1]
    assert "May I change src/a.py?" in asked[2].text
    assert (there.work / "src" / "a.py").exists()


@pytest.mark.parametrize("name", [each.name for each in CLIENTS if each.name in events.REFUSES])
def test_a_setting_keeps_the_edit_from_happening(
    name: str, desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model reads why, and goes on with another file."""
    there = editing(desk, name, monkeypatch)
    there.git("config", "gitmem.guard", "block")

    asked = there.turn([edit(there, "src/a.py"), edit(there, "docs.md"), lambda asked: Step("Done.")])

    assert "gitmem.guard is block" in asked[1].text
    assert not (there.work / "src" / "a.py").exists()
    assert (there.work / "docs.md").exists()
