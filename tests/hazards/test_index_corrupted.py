"""Bytes of the index file are overwritten with noise: every command answers, and what is said is recorded."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ..hook_agents import said as given
from .conftest import Desk, powerless, process

PROGRAM = str(Path(sys.executable).with_name("gitmem"))
SIGNALS = 12


class Office:
    """A log of some size, its index, and who asks."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.repo = desk.repo
        self.planck, self.curie = desk.start("Planck"), desk.start("Curie")
        for number in range(SIGNALS):
            desk.send(self.planck, f"Result {number}: {'the parser takes tabs now; ' * 60}", "--to", "Curie")
        (self.index,) = (self.repo / ".git" / "gitmem").glob("index-*.sqlite3")
        self.kept = self.index.read_bytes()
        assert len(self.kept) > 60_000

    def run(self, *args: str, session: str | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PROGRAM, *args], cwd=self.repo, env={**os.environ, "GITMEM_SESSION": session or self.planck},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr and "malformed" not in done.stderr, (args, done.stderr)
        return done

    def corrupt(self, at: int, length: int, seed: int) -> None:
        for suffix in ("-wal", "-shm"):
            Path(f"{self.index}{suffix}").unlink(missing_ok=True)
        data = bytearray(self.kept)
        length = min(length, len(data) - at)
        data[at : at + length] = random.Random(seed).randbytes(length)
        self.index.write_bytes(data)


@pytest.fixture
def office(desk: Desk) -> Office:
    return Office(desk)


COMMANDS = [
    ("signal", "Said in spite of it.", "--to", "Curie"),
    ("signal", "To everybody.", "--broadcast"),
    ("inbox", "--no-mark"),
    ("roster",),
    ("log",),
    ("mem", "create", "A note in spite of it.", "--type", "note"),
]


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_noise_in_the_middle_of_the_file_costs_no_answer(office: Office, args: tuple[str, ...]) -> None:
    """Some pages in the middle, which only some questions read: the file itself opens."""
    office.corrupt(20_000, 9_000, 1)

    done = office.run(*args, session=office.curie if args[0] == "inbox" else None)

    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "spite" not in " ".join(args) or "spite" in office.run("log", "-n", "3").stdout


@pytest.mark.deep
def test_a_signal_is_recorded_once_however_the_index_is_damaged(office: Office) -> None:
    """The command runs again after the index was put away, and says the same thing once."""
    for seed, at in enumerate(range(8_192, len(office.kept), len(office.kept) // 6)):
        office.corrupt(at, 9_000, seed)
        done = office.run("signal", f"Unique {seed}", "--to", "Curie", "--json")
        assert done.returncode == 0, done.stderr
        said = office.run(
            "inbox", "--no-mark", "--all", "--max-bytes", "1000000", "--json", session=office.curie
        )
        messages = [each["message"] for each in json.loads(said.stdout)["signals"]]
        assert messages.count(f"Unique {seed}") == 1


def test_a_message_from_standard_input_is_there_for_the_second_try(office: Office) -> None:
    office.corrupt(20_000, 9_000, 1)
    done = subprocess.run(
        [PROGRAM, "signal", "-", "--to", "Curie", "--json"], cwd=office.repo, input="Piped.", text=True,
        env={**os.environ, "GITMEM_SESSION": office.planck}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signal"]["message"] == "Piped."


def test_a_damaged_index_in_a_folder_that_cannot_be_written(office: Office) -> None:
    """It can't be put away: the process goes on with an index in memory."""
    expected = office.run("inbox", "--no-mark", "--json", session=office.curie).stdout
    office.corrupt(20_000, 9_000, 1)
    state = office.repo / ".git" / "gitmem"
    bent = [path for path in (office.repo / ".git").rglob("*") if path.is_dir() or path.parent == state]
    modes = {path: path.stat().st_mode for path in [*bent, office.repo / ".git"]}
    try:
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        env = {"GITMEM_SESSION": office.curie}
        said = process("inbox", "--no-mark", "--json", cwd=office.repo, env=env, before=powerless)
        counted = process("inbox", "--count", cwd=office.repo, env=env, before=powerless)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert (said.status, said.out) == (0, expected), said
    assert (counted.status, counted.out.strip()) == (0, str(SIGNALS))


@pytest.mark.deep
def test_any_part_of_the_file_may_be_noise(office: Office) -> None:
    """Wherever it is and however long: no command fails, and everything that was said is there once."""
    for seed in range(50):
        dice = random.Random(seed)
        at = dice.randrange(len(office.kept))
        office.corrupt(at, dice.choice([1, 40, 700, 4_096, 9_000, 40_000]), seed)
        for args in dice.sample(COMMANDS, 1):
            done = office.run(*args, session=office.curie if args[0] == "inbox" else None)
            assert done.returncode == 0, (seed, at, args, done.stdout, done.stderr)
        done = office.run("signal", f"Unique {seed}", "--broadcast")
        assert done.returncode == 0, (seed, at, done.stdout, done.stderr)
    office.index.unlink()
    said = office.run("log", "-n", "1000").stdout
    for seed in range(50):
        assert said.count(f"Unique {seed}\n") == 1, seed


def hook(office: Office, event: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "hook", "codex", event], cwd=office.repo, input=json.dumps(given("codex", event, "c-1", office.repo)),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_hook_hands_over_what_waits_in_spite_of_a_damaged_index(office: Office) -> None:
    """It puts the index away and runs again by itself, and hands the signal over once."""
    sessions = office.repo / ".git" / "gitmem" / "sessions"
    before = {path.name for path in sessions.iterdir()}
    assert hook(office, "SessionStart").returncode == 0
    (own,) = {path.name for path in sessions.iterdir()} - before
    for seed in range(4):
        office.desk.send(office.planck, f"Unique {seed}.", "--to", own)
        office.kept = office.index.read_bytes()
        office.corrupt(8_192 + seed * (len(office.kept) // 5), 9_000, seed)

        done = hook(office, "PostToolUse")

        assert (done.returncode, done.stdout.count(f"Unique {seed}.")) == (0, 1), (seed, done)
        json.loads(done.stdout)
        assert hook(office, "PostToolUse").stdout == ""
    assert not (office.repo / ".git" / "gitmem" / "hook-error").exists()
