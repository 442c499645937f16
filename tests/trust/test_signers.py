"""From the command line: what `.gitmem/signers` and SSH signatures mark as known, and that they do nothing else."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..hazards.conftest import Said
from .conftest import Machine, git
from .test_continuation import MAIL, PERSON, Person
from .test_other_writers import PRICES, exchange


def ssh_key(person: Person, passphrase: str = "") -> str:
    """Let git sign with a new key of hers; return the public one."""
    path = person.user.top / "ssh"
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    git(person.repo, "config", "gpg.format", "ssh")
    git(person.repo, "config", "user.signingkey", f"{path}.pub")
    return Path(f"{path}.pub").read_text().strip()


def write(person: Person, *lines: str) -> Path:
    path = person.repo / ".gitmem" / "signers"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(("# who is who", "", *lines, "")))
    return path


@pytest.fixture
def desk(hub: Path, machine: Callable[..., Machine]) -> Person:
    return met(Person(machine("desk"), hub))


@pytest.fixture
def impostor(hub: Path, machine: Callable[..., Machine]) -> Person:
    """Says that she is Anna."""
    return met(Person(machine("impostor"), hub))


@pytest.fixture
def peer(hub: Path, machine: Callable[..., Machine]) -> Person:
    return met(Person(machine("peer"), hub, "peer@example.org"))


def met(found: Person) -> Person:
    found("signal", f"I am at the {found.user.top.name}", "--broadcast")
    return found


def to_words(person: Person, words: str = PERSON) -> Said:
    return person("signal", "Split it?", "--to", words, "--json")


def reaches(person: Person, key: str) -> bool:
    """Whether a signal of the peer is for the words under this key."""
    said = to_words(person)
    assert said.status == 0, said
    return bool(said.json["signal"]["recipients"] == [f"{PERSON}@{key}"])


def test_words_of_several_writers_mean_the_known_one_by_writer_or_by_ssh_key(
    desk: Person, impostor: Person, peer: Person
) -> None:
    """Without the file they stay ambiguous, and with it those who have them mean their own."""
    key = ssh_key(desk)
    signed = desk.json("trust", "--sign")
    assert signed["recorded"] == "endorse" and f"{PERSON} {' '.join(key.split()[:2])}" in signed["remark"]
    assert desk.json("trust", "--sign")["recorded"] is None
    exchange(desk, impostor, peer)
    assert to_words(peer).json["error"]["code"] == "ambiguous-recipient"

    for line in (f"human:*@example.org {desk.key}", f"human:*,!human:peer@* {key}"):
        for each in (impostor, peer):
            write(each, line)
        assert reaches(peer, desk.key)
        shown = {each["writer"]: each["known_for"] for each in peer.json("verify")["writers"]}
        assert shown == {desk.key: [PERSON], impostor.key: [], peer.key: []}
        assert f"known for {PERSON}" in peer("verify").out
        assert to_words(impostor).json["signal"]["recipients"] == [PERSON]
        assert impostor.json("whoami")["known"] is False

    write(desk, f"human:*@example.org {key}")
    own = desk.json("trust")
    assert own["known_for"] == [PERSON] and own["signers"] == str(desk.repo / ".gitmem" / "signers")
    assert [each["known_for"] for each in own["others"]] == [[]]
    assert desk.json("whoami")["known"] is True and "known: by" in desk("whoami").out
    write(peer, f"human:*@example.org {desk.key}", f"human:anna@* {impostor.key}")
    assert to_words(peer).json["error"]["code"] == "ambiguous-recipient"


def test_sessions_of_known_agents_are_marked(desk: Person, impostor: Person, peer: Person) -> None:
    """In `roster --all`; the agent of the same words under another key is not."""
    desk.start(PRICES)
    impostor.start(PRICES)
    exchange(desk, impostor, peer)
    write(peer, f"codex:*:* {desk.key} # the desk")

    rows = {each["agent_identity"]: each.get("known") for each in peer.json("roster", "--all")["sessions"]}

    assert rows == {f"{PRICES}@{desk.key}": True, f"{PRICES}@{impostor.key}": None}
    assert peer("roster", "--all").out.count("(known)") == 1
    assert not any("known" in each for each in peer.json("roster")["sessions"])


def test_the_file_lets_nobody_act_and_redirects_no_clear_words(
    desk: Person, impostor: Person, peer: Person
) -> None:
    """Neither those of an own agent nor those of the only other writer; nor does it say who calls."""
    peer.start(PRICES)
    impostor.start(PRICES)
    exchange(impostor, peer)
    write(peer, f"* {impostor.key}")
    assert to_words(peer, PRICES).json["signal"]["recipients"] == [PRICES]
    write(peer, f"human:* {desk.key}")
    assert to_words(peer).json["signal"]["recipients"] == [PERSON]  # of the only one, who is not known
    exchange(desk, peer)

    write(peer, f"human:* {desk.key}")
    for command in (("inbox",), ("signal", "I agree", "--broadcast")):
        said = peer(*command, "--as", PERSON, "--json")
        assert (said.status, said.json["error"]["code"]) == (2, "ambiguous-recipient")


def test_a_key_with_a_passphrase_asks_nobody_and_records_nothing(desk: Person) -> None:
    """Not even the program that the user's desktop has for questions."""
    ssh_key(desk, "secret words")
    asks, asked = desk.user.top / "ask", desk.user.top / "asked"
    asks.write_text(f"#!/bin/sh\ntouch {asked}\necho secret words\n")
    asks.chmod(0o755)
    desk.user.env |= {"SSH_ASKPASS": str(asks), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    began = time.monotonic()

    said = desk("trust", "--sign", "--json")

    assert (said.status, said.json["error"]["code"]) == (4, "ssh-keygen")
    assert "ssh-add" in said.json["error"]["hint"] and not asked.exists()
    assert time.monotonic() - began < 20
    assert "endorse" not in desk("log", "--json").out


def test_without_a_key_to_sign_with_it_says_what_to_set(desk: Person) -> None:
    """Neither without one nor with one of OpenPGP; and one that is missing is named."""
    for settings in ({}, {"user.signingkey": "ABCD1234"}):
        for name, value in settings.items():
            git(desk.repo, "config", name, value)
        said = desk("trust", "--sign", "--json")
        assert (said.status, said.json["error"]["code"]) == (2, "no-signing-key")
    git(desk.repo, "config", "gpg.format", "ssh")
    assert "has not signed" in desk("trust", "--sign", "--json").json["error"]["message"]
    git(desk.repo, "config", "gpg.ssh.program", "/no/such/program")
    assert "could not be started" in desk("trust", "--sign", "--json").json["error"]["message"]
    assert desk("trust", desk.key, "--sign").status == 2


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (_link, "it points outside of the worktree"),
    "pipe": (os.mkfifo, "it is not a file"),
    "folder": (Path.mkdir, "Is a directory"),
    "latin-1": (lambda path: path.write_bytes(b"human:\xfc@* x\n"), "it is not UTF-8"),
    "large": (lambda path: path.write_text("#" * (1 << 20) + "\n"), "it is larger than 1 MiB"),
    "long": (lambda path: path.write_text("human:* 0123456789abcdef\n" * 10_000), "1,000 patterns are read"),
    "glob": (lambda path: path.write_text("human:[a 0123456789abcdef\n"), "no pattern of an address: human:[a"),
    "stars": (lambda path: path.write_text(f"{'*a' * 100} 0123456789abcdef\n"), "no pattern of an address"),
    "key": (lambda path: path.write_text("human:* ssh-ed25519 AAAA\n"), "an SSH key, such as"),
    "options": (lambda path: path.write_text('human:* namespaces="x" ssh-ed25519 AAAA\n'), "an SSH key"),
    "escape": (lambda path: path.write_text("\x1b[31m x\n"), "no pattern of an address: \\u001b"),
}  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_file_is_named_and_hinders_nothing(peer: Person, hostile: str) -> None:
    """The commands that read it say which file it is and what of it does not count."""
    make, sentence = HOSTILE[hostile]
    path = write(peer)
    path.unlink()
    make(path)

    said = peer.json("trust")

    assert any(sentence in each and "/.gitmem/signers: " in each for each in said["problems"]), said
    assert peer("verify").status == 0 and peer("whoami").status == 0
    assert sentence in peer("verify").out


def test_verifying_without_ssh_keygen_knows_nobody_and_says_so(desk: Person, peer: Person) -> None:
    """The program is missing, or too old; nothing fails."""
    key = ssh_key(desk)
    desk.json("trust", "--sign")
    exchange(desk, peer)
    write(peer, f"human:{MAIL} {key}")
    programs = peer.user.top / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(str(git(peer.repo, "--exec-path")) + "/git")
    old = programs / "ssh-keygen"
    for text, sentence in (("", "could not be started"), ("#!/bin/sh\necho 'unknown option -- Y' >&2; exit 1\n", "too old")):  # fmt: skip
        if text:
            old.write_text(text)
            old.chmod(0o755)
        peer.user.env["PATH"] = f"{programs}"
        said = peer.json("verify")
        assert any(sentence in each for each in said["problems"]), said
        assert [each["known_for"] for each in said["writers"]] == [[], []]
