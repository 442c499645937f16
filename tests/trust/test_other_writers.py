"""From the command line: the same words of another writer are another agent, and the words alone mean what they are clear for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..hazards.conftest import Said
from .conftest import Machine, git

PRICES, REVIEW = "codex:implementer:prices", "codex:reviewer:prices"


class At:
    """A user's clone, and what its agents do."""

    def __init__(self, user: Machine, hub: Path) -> None:
        self.user = user
        self.repo = user.clone(hub)

    def __call__(self, *args: str) -> Said:
        return self.user(self.repo, *args)

    def json(self, *args: str) -> Any:
        said = self(*args, "--json")
        assert said.status == 0, said
        return said.json

    def start(self, identity: str) -> str:
        return str(self.json("session", "start", "--agent-identity", identity)["session_id"])

    @property
    def writer(self) -> str:
        return str(self.json("whoami", "--as", self.start("codex:any:body"))["writer"])


@pytest.fixture
def anna(hub: Path, machine: Callable[..., Machine]) -> At:
    return At(machine("anna"), hub)


@pytest.fixture
def mallory(hub: Path, machine: Callable[..., Machine]) -> At:
    return At(machine("mallory"), hub)


def exchange(*clones: At) -> None:
    for each in (*clones, *clones):
        assert each.user.sync(each.repo).status == 0


def test_nobody_agrees_reads_or_takes_for_an_agent_by_having_its_words(anna: At, mallory: At) -> None:
    """The answers of both clones are equal, and what they were before."""
    planck, _ = anna.start(PRICES), anna.start(REVIEW)
    asked = anna.json("signal", "Split it?", "--as", planck, "--to", REVIEW, "--intent", "PROPOSE")["signal"]
    task = anna.json("delegate", "Count the prices", "--as", planck, "--to", REVIEW, "--wu", "WU-1")["task"][
        "task_id"
    ]
    exchange(anna, mallory)
    impostor = mallory.start(REVIEW)
    before = anna.json("inbox", "--for", REVIEW)["signals"]

    assert mallory("inbox", "--as", impostor, "--json").json["signals"] == []
    mallory("reply", asked["signal_id"], "yes", "--as", impostor, "--agree")
    assert mallory("task", "take", task, "--as", impostor).status != 0
    exchange(anna, mallory)

    for each in (anna, mallory):
        said = each("converged", asked["thread_id"], "--json")
        assert (said.status, said.json["converged"]) == (1, False), said
        assert [one["decision"] for one in said.json["recipients"]] == ["pending"]
        assert each.json("task", "show", task)["state"] == "submitted"
    assert anna.json("inbox", "--for", REVIEW)["signals"] == before
    shown = {one["agent_identity"] for one in anna.json("roster", REVIEW)["sessions"]}
    assert REVIEW in shown and f"{REVIEW}@{mallory.writer}" in shown


def test_the_words_alone_mean_ones_own_and_else_the_only_one(
    anna: At, mallory: At, hub: Path, machine: Callable[..., Machine]
) -> None:
    """Of several others both are named, and either can be written in full."""
    bob = At(machine("bob"), hub)
    anna.start(PRICES)
    exchange(anna, mallory, bob)
    sent = mallory.json("signal", "To the only one", "--to", PRICES)["signal"]
    assert sent["recipients"] == [PRICES]
    exchange(mallory, anna)
    assert [each["message"] for each in anna.json("inbox", "--as", PRICES)["signals"]] == ["To the only one"]

    mallory.start(PRICES)
    exchange(mallory, anna, bob)
    of_anna, of_mallory = (f"{PRICES}@{each.writer}" for each in (anna, mallory))
    shown = {one["agent_identity"] for one in anna.json("roster")["sessions"]}
    assert {PRICES, of_mallory} <= shown and of_anna not in shown
    refused = bob("signal", "To which?", "--to", PRICES, "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "ambiguous-recipient")
    assert {each.partition(" ")[0] for each in refused.json["error"]["suggestions"]} == {of_anna, of_mallory}
    assert bob("signal", "To Anna's", "--to", of_anna).status == 0
    exchange(bob, mallory, anna)
    assert [each["message"] for each in anna.json("inbox", "--as", PRICES)["signals"]] == ["To Anna's"]
    assert mallory.json("inbox", "--as", PRICES)["signals"] == []
    assert mallory("session", "start", "--agent-identity", of_anna).status == 2


def test_who_reads_as_a_person_of_another_key_only_looks_on(anna: At, mallory: At) -> None:
    """Nothing can be recorded as they: the mail is shown, and stays unread for them."""
    person = anna.json("signal", "I am here")["signal"]["sender_identity"]
    exchange(anna, mallory)
    assert mallory("signal", "For Anna alone", "--to", person).status == 0
    said = mallory("inbox", "--as", person)
    assert (said.status, "For Anna alone" in said.out) == (0, True), said
    assert "which has another key. Nothing is marked as delivered." in said.out
    exchange(anna, mallory)
    assert [each["message"] for each in anna.json("inbox", "--as", person)["signals"]] == ["For Anna alone"]


def test_one_person_sees_words_alone(anna: At) -> None:
    """Neither answers, errors nor commits show a writer where nobody else is."""
    planck = anna.start(PRICES)
    anna.start(REVIEW)
    said = [
        anna(*each, *more)
        for each in (
            ("signal", "Hello", "--as", planck, "--to", REVIEW, "--requires-ack", "--commit"), ("roster",), ("whoami", "--as", planck),
            ("inbox", "--as", REVIEW), ("log",), ("signal", "Hello", "--to", "codex:reviewer:price"), ("session", "end", "--as", planck),
        )
        for more in ((), ("--json",))
    ]  # fmt: skip
    writer = anna.writer
    assert f"@{writer}" not in "".join(f"{each.out}{each.err}" for each in said)
    assert f"@{writer}" not in git(anna.repo, "log", "--format=%an %ae %B", "refs/gitmem/log")
