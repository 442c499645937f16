"""From the command line: who works under several keys goes on as one, and nobody else does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem import records
from tests.signing import AT, attest, key_of

from ..cli import pseudo_terminal
from .conftest import Machine, git
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
    assert granted["recorded"] == "grant" and f"gitmem trust {first.key} --accept" in granted["remark"]
    exchange(first, second)
    accepted = second.trust(first.key, "--accept")
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
        replied = laptop.json("reply", asked["signal_id"], "yes", "--agree")
        assert any(f"gitmem trust {desk.key} --accept" in each for each in replied["warnings"])
        exchange(laptop, desk, peer)
        (got,) = peer.json("inbox", "--as", "human:peer@example.org", "--intent", "AGREE", "--no-mark")[
            "signals"
        ][-1:]
        assert got["decides"] is False and got["no_party"] is True
        assert "does not count" in peer("inbox", "--all", "--no-mark").out
        assert "does not count" in peer("thread", asked["thread_id"]).out
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
    assert third.trust(laptop.key, "--accept")["goes_on_as"] == desk.key
    exchange(third, peer)
    asked = peer.json("signal", "Still you?", "--to", f"{PERSON}@{desk.key}", "--requires-ack")["signal"]
    exchange(peer, third)
    said = third("reply", asked["signal_id"], "yes")
    assert said.status == 0, said
    exchange(third, desk)
    assert "Still you?" not in desk.unread()


def test_a_line_with_an_address_that_nobody_has_allowed_is_held_and_counted(
    desk: Person, peer: Person
) -> None:
    """In every clone; and it counts once the grant is there."""
    exchange(desk, peer)
    words, key = f"codex:reviewer:forged@{desk.key}", key_of(bytes([9]) * 32)
    forged = records.line(
        "signal", AT, {"signal_id": "sig-forged01", "sender_identity": words, "message": "I am the reviewer"},
        writer=key.writer, may_have=lambda each: True,
    )  # fmt: skip
    push(desk.user, desk.repo, [forged, attest([forged], key)])
    for each in (desk, peer):
        exchange(each)
        assert each("show", "sig-forged01").status == 2
        codes = {one["code"]: one["what"] for one in each("doctor", "--json").json["findings"]}
        assert "1 line of the log has an address of another writer" in codes["not-allowed"]
        held = each("verify", "--json")
        assert held.status == 0 and [one["id"] for one in held.json["held"]] == ["sig-forged01"]

    desk.trust(key.writer)
    exchange(desk, peer)
    for each in (desk, peer):
        assert each.json("show", "sig-forged01")["record"]["message"] == "I am the reviewer"
        assert "not-allowed" not in {one["code"] for one in each("doctor", "--json").json["findings"]}


def push(user: Machine, repo: Path, lines: list[bytes]) -> None:
    """Somebody commits lines to the log of the hub."""
    name = "signals/2026-11/21/gm-00000009.jsonl"
    blob = git(repo, "hash-object", "-w", "--stdin", given=b"\n".join([*sorted(lines), b""]))
    git(repo, "fetch", "--quiet", "origin", "refs/heads/gitmem")
    index = {"GIT_INDEX_FILE": str(repo / ".git" / "forging")}

    def run(*args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=repo, env={**os.environ, **user.env, **index}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    run("read-tree", "FETCH_HEAD")
    run("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    tree = run("write-tree")
    commit = run("commit-tree", tree, "-p", "FETCH_HEAD", "-m", "forged")
    run("push", "--quiet", "origin", f"{commit}:refs/heads/gitmem")


def test_what_both_have_typed_before_they_met_makes_one_person(desk: Person, laptop: Person) -> None:
    """Each has let the other go on as it: the next to run the command goes on, and the other one stays who it is."""
    exchange(desk, laptop)
    first, second = desk.key, laptop.key
    assert [desk.trust(second)["recorded"], laptop.trust(first)["recorded"]] == ["grant", "grant"]
    exchange(desk, laptop)
    assert laptop.trust(first, "--accept")["recorded"] == "accept"
    exchange(laptop, desk)
    assert desk.trust(second)["recorded"] is None
    refused = desk("trust", second, "--accept", "--yes", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "goes-on")
    assert desk.json("trust")["goes_on_as"] is None and laptop.json("trust")["goes_on_as"] == first


def test_accepting_never_grants_and_granting_never_accepts(desk: Person, laptop: Person) -> None:
    """Whatever has been synced; a refusal has the command to run first, and the question tells which of the two it is."""
    refused = laptop("trust", desk.key, "--accept", "--yes", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "not-granted")
    assert f"gitmem trust {laptop.key}" in refused.json["error"]["hint"]
    assert laptop.json("trust")["others"] == []
    exchange(desk, laptop)
    desk.trust(laptop.key)
    exchange(desk, laptop)
    asked = [
        laptop("trust", desk.key, *more, "--json").json["error"]["message"] for more in ((), ("--accept",))
    ]
    assert "act as you" in asked[0] and f"gitmem trust {desk.key} --accept" in asked[0]
    assert asked[1].startswith("Go on here as")
    assert laptop.trust(desk.key)["recorded"] == "grant"
    assert laptop.json("trust")["goes_on_as"] is None


def test_going_on_as_another_ends_with_the_own_key(desk: Person, laptop: Person) -> None:
    """What was written stays of the other one."""
    continued(desk, laptop)
    assert [each["goes_on_as_you"] for each in desk.json("trust")["others"]] == [True]
    assert laptop.trust(laptop.key)["goes_on_as"] is None
    assert laptop.json("signal", "As myself", "--broadcast")["signal"]["sender_identity"] == PERSON
    exchange(laptop, desk)
    last = desk.json("log", "-n", "1")["entries"][0]
    assert last["sender_identity"] == f"{PERSON}@{laptop.key}"
    assert [each["goes_on_as_you"] for each in desk.json("trust")["others"]] == [False]


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
        (["--accept"], "usage"),
        (["0" * 16, "--accept", "--only", PRICES], "usage"),
        (["0" * 16, "--accept", "--yes"], "not-granted"),
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


def test_a_second_machine_says_once_how_to_go_on(desk: Person, laptop: Person) -> None:
    """By `whoami`, and by the first session of an agent; the older key is to go on, and its machine gives no other instruction."""
    desk.start(PRICES)
    exchange(desk, laptop)
    old, new = desk.key, laptop.key
    said = laptop.json("whoami", "--as", PERSON)["remark"]
    assert f"run gitmem trust {new} on its machine" in said and f"gitmem trust {old} --accept here" in said
    assert any(said in one["what"] for one in laptop("doctor", "--json").json["findings"])
    there = desk.json("whoami", "--as", PERSON)["remark"]
    assert f"run gitmem trust {new} here first" in there and "--accept" not in there
    first, again = (laptop.json("session", "start", "--agent-identity", PRICES) for _ in range(2))
    assert f"gitmem trust {old} --accept" in first["remark"] and "gitmem trust" not in (again["remark"] or "")
    continued(desk, laptop)
    for each in (laptop, desk):
        assert "gitmem trust" not in (each.json("whoami", "--as", PERSON)["remark"] or "")


def test_of_several_keys_the_one_that_others_go_on_as_is_named(
    desk: Person, laptop: Person, hub: Path, machine: Callable[..., Machine]
) -> None:
    """Never one that goes on as another itself."""
    continued(desk, laptop)
    third = Person(machine("third"), hub)
    third("signal", "I am at the third", "--broadcast")
    exchange(third)
    said = third.json("whoami", "--as", PERSON)["remark"]
    assert desk.key in said and laptop.key not in said


def test_an_agent_is_told_whose_the_same_words_are(desk: Person, peer: Person) -> None:
    """So that it doesn't take somebody else for itself."""
    desk.start(PRICES)
    exchange(desk, peer)
    said = peer.json("session", "start", "--agent-identity", PRICES)["remark"]
    assert f"{desk.key} (of {PERSON})" in said and "ask your user" in said


def test_a_machine_that_has_only_received_says_so(hub: Path, machine: Callable[..., Machine]) -> None:
    """Before its first record, too: by an inbox without news, and by `whoami`; what it says to run works."""
    desk = Person(machine("desk"), hub)
    asked = desk("signal", "For the desk", "--as", desk.start(PRICES), "--to", f"{PERSON}@{desk.key}")
    assert asked.status == 0, asked
    exchange(desk)
    new = Person(machine("new"), hub)
    new.user.sync(new.repo)
    words = f"gitmem trust {desk.key} --accept"
    assert words in new.json("whoami", "--as", PERSON)["remark"]
    assert any(words in each for each in new.json("inbox", "--as", PERSON)["warnings"])
    refused = new("trust", desk.key, "--accept", "--yes", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "not-granted")
    assert f"gitmem trust {new.key}" in refused.json["error"]["hint"]


def test_after_a_lost_key_another_key_is_named_and_the_lost_one_gets_nothing(
    desk: Person, laptop: Person
) -> None:
    """The machine that went on as the lost one lets the new one go on."""
    continued(desk, laptop)
    lost = desk.key
    Path(desk.json("trust")["key_file"]).unlink()
    assert desk("doctor", "--fix").status == 0
    desk("signal", "A new key", "--broadcast")
    said = desk.json("whoami", "--as", PERSON)["remark"]
    assert f"gitmem trust {desk.key} on its machine" in said and f"gitmem trust {laptop.key} --accept" in said
    assert lost not in said
    for more in ((), ("--accept",)):
        refused = desk("trust", lost, "--yes", "--json", *more)
        assert (refused.status, refused.json["error"]["code"]) == (2, "lost-key"), refused
    exchange(desk, laptop)
    laptop.trust(desk.key)
    exchange(laptop, desk)
    assert desk.trust(laptop.key, "--accept")["goes_on_as"] == lost


def test_mail_to_the_address_that_was_left_is_told(desk: Person, laptop: Person, peer: Person) -> None:
    """By the answer itself, roster and doctor, with a command that shows it."""
    exchange(laptop, peer)
    peer.json("signal", "To the laptop", "--to", f"{PERSON}@{laptop.key}")
    exchange(peer, laptop)
    continued(desk, laptop)
    told = laptop.json("roster")["remark"]
    command = f"gitmem inbox --as {PERSON}@{laptop.key}"
    assert command in told
    assert any(command in one["what"] for one in laptop("doctor", "--json").json["findings"])
    assert [each["message"] for each in laptop.json(*command.split()[1:])["signals"]][-1:] == [
        "To the laptop"
    ]
    assert command not in (laptop.json("roster")["remark"] or "")


def test_mail_to_a_lost_key_is_told(desk: Person, laptop: Person, peer: Person) -> None:
    """With a command that shows it, since nobody can answer as that one."""
    exchange(desk, peer)
    old = desk.key
    peer.json("signal", "To the old key", "--to", f"{PERSON}@{old}")
    exchange(peer, desk)
    Path(desk.json("trust")["key_file"]).unlink()
    assert desk("doctor", "--fix").status == 0
    assert desk.key != old and desk("signal", "A new key", "--broadcast").status == 0
    told = desk.json("roster")["remark"]
    assert f"gitmem inbox --for {PERSON}@{old}" in told and "answer as you are" not in told
    shown = desk.json("inbox", "--for", f"{PERSON}@{old}")["signals"]
    assert "To the old key" in [each["message"] for each in shown]


def test_an_address_that_somebody_else_works_under_is_not_told_as_left(
    desk: Person, laptop: Person, peer: Person
) -> None:
    """An agent that goes on under the lost key elsewhere reads its mail itself."""
    desk.start(PRICES)
    continued(desk, laptop)
    laptop.start(PRICES)
    exchange(laptop, desk, peer)
    old = desk.key
    peer.json("signal", "To the agent", "--to", f"{PRICES}@{old}")
    exchange(peer, desk)
    Path(desk.json("trust")["key_file"]).unlink()
    assert desk("doctor", "--fix").status == 0
    assert PRICES not in (desk.json("roster")["remark"] or "")


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
        assert "act as you" in shown and "can't be taken back. Go on? [y/N]" in shown and expected in shown
    assert [each["you_allow"] for each in desk.json("trust")["others"] if each["writer"] == laptop.key] == [
        ["*"]
    ]


def test_a_second_key_forgets_what_the_first_has_said(desk: Person, laptop: Person) -> None:
    """With leave for all addresses; else its writer is asked."""
    sent = [desk.json("signal", f"secret number {n}", "--broadcast")["signal"]["signal_id"] for n in range(2)]
    continued(desk, laptop, PERSON)
    assert laptop.json("forget", sent[0], "A leaked key.")["lines"] == 0
    desk.trust(laptop.key)
    exchange(desk, laptop)
    assert laptop.json("forget", sent[1], "A leaked key.")["lines"] == 1
    exchange(laptop, desk)
    for each in (desk, laptop):
        shown = [each.json("show", id)["record"]["message"] for id in sent]
        assert shown == ["secret number 0", records.FORGOTTEN]
