"""The plugins of this repository in the real clients: installed by the client's own commands, without `gitmem setup` and beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real_clients.clients import CLIENTS
from tests.real_clients.conftest import ROOT, installed
from tests.real_clients.desk import Desk
from tests.real_clients.test_delivery import FRAME, NEWS, Told

pytestmark = pytest.mark.clients
# What a person types, in a checkout of this repository.
COMMANDS = {
    "claude-code": (
        "plugin validate .",
        "plugin validate plugins/claude-code",
        "plugin install gitmem --marketplace ./",
    ),
    "codex": ("plugin marketplace add ./", "plugin add gitmem@gitmem"),
    "gemini": ("extensions validate .", "extensions install . --consent"),
}  # fmt: skip
INTRODUCTION = "to the other agents in this repository"


@pytest.fixture
def plugged(cache: Path, gitmem: Path, alone: None, tmp_path: Path) -> Iterator[Callable[[str], Desk]]:
    """`plugged("codex")`: two worktrees, and a client with the plugin as its user has installed it."""
    found: list[Desk] = []

    def one(name: str) -> Desk:
        client = next(each for each in CLIENTS if each.name == name)
        there = Desk(tmp_path, gitmem, client, installed(client, cache))
        found.append(there)
        checkout = tmp_path / "checkout"
        subprocess.run(["git", "checkout-index", "--all", f"--prefix={checkout}/"], cwd=ROOT, check=True)
        for words in COMMANDS[name]:
            command = [str(there.program), *words.split()]
            done = subprocess.run(
                command,
                cwd=checkout,
                env=there.env,
                input="y\n",  # whether the folder is trusted
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return there

    yield one
    for each in found:
        each.clear()


@pytest.mark.parametrize("beside_setup", [False, True], ids=["alone", "beside setup"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_plugin_hands_each_message_over_once(
    name: str, beside_setup: bool, plugged: Callable[[str], Desk]
) -> None:
    """With one session and one introduction, whichever of the hooks runs first."""
    there = plugged(name)
    if beside_setup:
        there.gitmem("setup", "--client", name)

    told = Told(there)

    assert [(each["client"], each["worktree"]) for each in told.sessions] == [(name, there.work.name)]
    assert told.texts[0].count(INTRODUCTION) == (1 if there.client.hears_start else 0)
    assert (told.texts[1].count(FRAME), told.texts[1].count(NEWS)) == (1, 1)
    assert (told.texts[2].count(FRAME), told.texts[2].count(NEWS)) == (1, 1), "something was added"
    assert [each["sender_session"] for each in told.replies] == [told.sessions[0]["session_id"]]
