"""The lines of `.gitmem/signers`, and the signatures that count for them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.agents import signers
from tests.signing import ANNA, BOB

W = ANNA.writer
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINTAxP7Gn57z7vmJAm0Z7M3kOtPKwhPLgkcXPwk4OWl+"


@pytest.mark.parametrize(
    ("patterns", "words", "expected"),
    [
        ("human:anna@example.org", "human:anna@example.org", True),
        ("human:anna@example.org", "human:anna@example.organic", False),
        ("human:*@example.org", "human:anna@example.org", True),
        ("human:*@example.org", "human:anna@example.org.evil.net", False),
        ("human:*@example.org", "codex:human:anna@example.org", False),
        ("codex:*:*", "codex:implementer:prices", True),
        ("codex:*:*", "xcodex:implementer:prices", False),
        ("human:ann?@a.b", "human:anna@a.b", True),
        ("human:a.b@c.d", "human:axb@c.d", False),
        ("codex:*:*,human:a@b", "human:a@b", True),
        ("human:*,!human:bob@*", "human:anna@a.b", True),
        ("human:*,!human:bob@*", "human:bob@a.b", False),
        ("!human:bob@*", "human:anna@a.b", False),
    ],
)
def test_patterns_match_whole_words(patterns: str, words: str, expected: bool) -> None:
    """As git's allowed signers: commas, `*`, `?` and `!`."""
    for of in (W, f"{KEY} a comment"):
        rows, problems = signers.parse(f"# who\n\n  {patterns}\t{of}\r\n")
        assert not problems and [row.names(words) for row in rows] == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "human:*", "human:* anna", f"human:* {W}x", "human:* ssh-ed25519", "human:* ssh-ed25519 AAAA", f"anna {W}", f",human:* {W}",
        f"human:[ab]@c {W}", f'"human:*" {W}', f"human:\\* {W}", f"human:* ssh-rsa {KEY.split()[1]}", f"human:* cert-authority {KEY}",
        f"human:{'*' * 9} {W}", f"human:{'a' * 300} {W}",
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_the_others_count(line: str) -> None:
    """With its number and what is valid."""
    rows, problems = signers.parse(f"codex:*:* {W}\n{line}\nhuman:* {W}\n")

    assert [row.writer for row in rows] == [W, W]
    assert len(problems) == 1 and problems[0].startswith("Line 2 does not count: ")


def test_only_so_many_patterns_are_read() -> None:
    """The line from which on nothing counts is named first."""
    rows, problems = signers.parse(f"codex:*:*,human:* {W}\n" * 10_000)

    assert len(rows) == signers.PATTERNS_MAX // 2
    assert problems[0].startswith("Line 501 and what follows does not count")


@given(st.lists(st.sampled_from([*':*?![]@,# \t\n"\\ab\0\x1b', W, KEY, "human:"])).map("".join))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    """What counts names a writer or a key, and every other line is told."""
    rows, problems = signers.parse(text)

    lines = [line for line in text.split("\n") if line.split() and not line.split()[0].startswith("#")]
    assert len(rows) + len(problems) == len(lines)
    assert all(bool(row.writer) != bool(row.key) and row.key in ("", KEY) for row in rows)


@pytest.fixture
def key(tmp_path: Path) -> str:
    path = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return str(path)


def test_a_signature_counts_for_the_writer_that_it_is_of_alone(key: str, tmp_path: Path) -> None:
    """Not for another one that repeats it, nor in another namespace, nor changed, nor with another key put into it."""
    signature = signers.sign(signers.PROGRAM, key, W)
    assert signers.verifies(signature, W)
    assert signers.key_of(signature) == " ".join(Path(f"{key}.pub").read_text().split()[:2])
    assert not signers.verifies(signature, BOB.writer)
    assert not signers.verifies(signature[:-1] + bytes([signature[-1] ^ 1]), W)
    own = base64.b64decode(signers.key_of(signature).split()[1])
    other = base64.b64decode(KEY.split()[1])
    assert not signers.verifies(signature.replace(own, other), W)
    text = tmp_path / "text"
    text.write_text(W)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", key, str(text)], check=True)
    armored = (tmp_path / "text.sig").read_text().split("\n")
    assert not signers.verifies(base64.b64decode("".join(armored[1:-2])), W)


@pytest.mark.parametrize(
    "bad", [b"", b"SSHSIG", b"SSHSIG\0\0\0\1", b"SSHSIG\0\0\0\1\xff\xff\xff\xff", b"x" * 99]
)
def test_bytes_that_are_no_signature_have_no_key(bad: bytes) -> None:
    """So they are not verified."""
    assert signers.key_of(bad) == ""


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("sleep 60", "did not end within 0.5 seconds"), ("exit 0", "has not signed"),
        ("echo 'unknown option -- Y' >&2; exit 1", "too old"), ("echo 'no such key' >&2; exit 255", "has not signed: no such key"),
        ("yes", "wrote more than"),
    ],
)  # fmt: skip
def test_a_program_that_hangs_or_fails_is_named(script: str, sentence: str, key: str, tmp_path: Path) -> None:
    """Within its time, and no success is believed without a signature."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(signers.SshError, match=sentence):
        signers.sign(str(program), key, W, seconds=0.5)


def test_an_exit_status_alone_verifies_nothing(key: str) -> None:
    """It is 0 where the process ignores SIGCHLD."""
    signature = signers.sign(signers.PROGRAM, key, W)
    assert not signers.verifies(signature, W, program="true")
