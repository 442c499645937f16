"""From the command line: who works under several keys goes on as one, and nobody else does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..cli import pseudo_terminal
from .conftest import Machine
from .test_other_writers import PRICES, REVIEW, At, exchange

MAIL = "anna@example.org"
PERSON = f"human:{MAIL}"


class Person(At):
    """A person at a machine, with her own key there; without a session she is who calls."""

    def __init__(self, user: Machine, hub: Path, mail: str = MAIL) -> None:
        user.config.write_text(f"[user]\n\tname = Anna\n\temail = {mail}\n")
        super().__init__(user, hub)

    @property
    def key(self) -> str:
        return str(self.json("trust")["writer"])

    def unread(self) -> list[str]:
        return [each["message"] for each in self.json("inbox", "--no-mark", "--as", PERSON)["signals"]]

    def trust(self, other: str, *args: str) -> Any:
        said = self("trust", other, "--yes", "--json", *args)
        assert said.status == 0, said
        return said.json


@pytest.fixture
def desk(hub: Path, machine: Callable[..., Machine]) -> Person:
    found = Person(machine("desk"), hub)
    found("signal", "I am at the desk", "--broadcast")
    return found


@pytest.fixture
def laptop(hub: Path, machine: Callable[..., Machine]) -> Person:
    found = Person(machine("laptop"), hub)
    found("signal", "I am at the laptop", "--broadcast")
    return found


@pytest.fixture
def peer(hub: Path, machine: Callable[..., Machine]) -> Person:
    found = Person(machine("peer"), hub, "peer@example.org")
    found("signal", "I am a peer", "--broadcast")
    return found


def continued(first: Person, second: Person, *only: str) -> None:
    """The second one goes on as the first."""
    options = [part for each in only for part in ("--only", each)]
    exchange(first, second)
    granted = first.trust(second.key, *options)
    assert granted["recorded"] == "grant" and f"gitmem trust {first.key}" in granted["remark"]
    exchange(first, second)
    accepted = second.trust(first.key)
    assert accepted["recorded"] == "accept" and accepted["goes_on_as"] == first.key
    exchange(second, first)


def test_a_person_agrees_on_a_second_machine_under_its_own_key(
    desk: Person, laptop: Person, peer: Person
) -> None:
    """On all clones alike; the second machine reads her mail, and what she has read there is read."""
    continued(desk, laptop)
    exchange(desk, peer)
    asked = peer.json("signal", "Split it?", "--to", PERSON + "@" + desk.key, "--intent", "PROPOSE")["signal"]
    exchange(peer, laptop)
    assert "Split it?" in laptop.unread()

    assert laptop("reply", asked["signal_id"], "yes", "--agree").status == 0
    exchange(laptop, desk, peer)

    for each in (laptop, desk, peer):
        said = each("converged", asked["thread_id"], "--json")
        assert (said.status, said.json["converged"]) == (0, True), said
        assert each.json("verify", asked["thread_id"])["held"] == []
    assert "Split it?" not in desk.unread()
    assert laptop.json("whoami")["reader_identity"] == desk.json("whoami")["reader_identity"] == PERSON


def test_the_same_words_alone_are_nobody(desk: Person, laptop: Person, peer: Person) -> None:
    """Without a grant, and with one for other words, she is another person there."""
    for only in ((), (PRICES,)):
        if only:
            continued(desk, laptop, *only)
        exchange(desk, laptop, peer)
        to = PERSON + "@" + desk.key
        asked = peer.json("signal", f"Split it {only}?", "--to", to, "--intent", "PROPOSE")["signal"]
        exchange(peer, laptop)
        assert asked["message"] not in laptop.unread()
        laptop("reply", asked["signal_id"], "yes", "--agree")
        exchange(laptop, desk, peer)
        for each in (laptop, desk, peer):
            assert each("converged", asked["thread_id"]).status == 1


def test_an_agent_in_a_cloud_goes_on_as_its_words_and_as_nothing_else(
    desk: Person, laptop: Person, peer: Person
) -> None:
    """It takes what is for that agent; it can't start as another one or speak for the person."""
    desk.start(PRICES)
    continued(desk, laptop, PRICES)
    exchange(desk, peer)
    task = peer.json("delegate", "Count", "--to", f"{PRICES}@{desk.key}", "--wu", "WU-1")["task"]["task_id"]
    exchange(peer, laptop)
    cloud = laptop.start(PRICES)
    assert laptop("task", "take", task, "--as", cloud).status == 0
    exchange(laptop, desk, peer)
    assert [each.json("task", "show", task)["state"] for each in (laptop, desk, peer)] == ["working"] * 3

    for identity in (f"{REVIEW}@{desk.key}", f"{PRICES}@{peer.key}"):
        refused = laptop("session", "start", "--agent-identity", identity, "--json")
        assert (refused.status, refused.json["error"]["code"]) == (2, "bad-identity")
    other = laptop.start(REVIEW)
    assert laptop.json("whoami", "--as", other)["agent_identity"] == REVIEW
    desk.start(REVIEW)
    exchange(laptop, desk)
    shown = [one["agent_identity"] for one in desk.json("roster", "--all")["sessions"]]
    assert f"{REVIEW}@{laptop.key}" in shown and PRICES in shown


def test_a_key_is_followed_by_another_and_that_by_a_third(
    desk: Person, laptop: Person, hub: Path, machine: Callable[..., Machine], peer: Person
) -> None:
    """The person stays one, though the third key knows the second alone; mail to the first is hers."""
    continued(desk, laptop)
    third = Person(machine("third"), hub)
    third("signal", "I am at the third", "--broadcast")
    exchange(laptop, third)
    assert laptop.trust(third.key)["recorded"] == "grant"
    exchange(laptop, third)
    assert third.trust(laptop.key)["goes_on_as"] == desk.key
    exchange(third, peer)
    asked = peer.json("signal", "Still you?", "--to", f"{PERSON}@{desk.key}", "--requires-ack")["signal"]
    exchange(peer, third)
    said = third("reply", asked["signal_id"], "yes")
    assert said.status == 0, said
    exchange(third, desk)
    assert "Still you?" not in desk.unread()


def test_what_both_have_typed_before_they_met_makes_one_person(desk: Person, laptop: Person) -> None:
    """Each has let the other go on as it: the next to run the command goes on, and the other one stays who it is."""
    exchange(desk, laptop)
    first, second = desk.key, laptop.key
    assert [desk.trust(second)["recorded"], laptop.trust(first)["recorded"]] == ["grant", "grant"]
    exchange(desk, laptop)
    assert laptop.trust(first)["recorded"] == "accept"
    exchange(laptop, desk)
    assert desk.trust(second)["recorded"] is None
    assert desk.json("trust")["goes_on_as"] is None and laptop.json("trust")["goes_on_as"] == first


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["not-a-writer"], "bad-writer"),
        (["0" * 15], "bad-writer"),
        (["i" * 16], "bad-writer"),
        (["0" * 16, "--only", "prices"], "bad-words"),
        (["0" * 16, "--only", f"{PRICES}@{'0' * 16}"], "bad-words"),
        (["0" * 16, *["--only", PRICES] * 3, *(part for n in range(100) for part in ("--only", f"a:b:c{n}"))], "bad-words"),
        (["0" * 16], "not-confirmed"),
        (["--only", PRICES], "usage"),
    ],
)  # fmt: skip
def test_wrong_words_and_an_unanswered_question_write_nothing(
    desk: Person, args: list[str], code: str
) -> None:
    """The answer says what is valid."""
    before = desk.json("log")["entries"]
    refused = desk("trust", *args, "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, code), refused
    assert "Nothing was written" in refused.json["error"]["message"]
    assert desk.json("log")["entries"] == before


def test_a_person_is_asked_once(desk: Person, laptop: Person) -> None:
    """At a terminal; what the question says is what is recorded, and no is no."""
    exchange(desk, laptop)
    for answer, expected in ((b"n\r", "You said no"), (b"y\r", "may write as all of your addresses")):
        _, shown = pseudo_terminal.run(
            ["trust", laptop.key],
            desk.repo,
            typed=answer,
            after=b"[y/N] ",
            both=True,
            columns=500,
            variables=desk.user.env,
        )
        assert "can't be taken back. [y/N]" in shown and expected in shown
    assert [each["you_allow"] for each in desk.json("trust")["others"] if each["writer"] == laptop.key] == [
        ["*"]
    ]
