"""The log's ref moved back or deleted behind a clone: the answers that work depends on say so, and name the repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.log import ledger, ref
from tests.conftest import Git
from tests.hazards.conftest import Desk

FIX = "gitmem doctor --fix"
ASK = ["--intent", "propose", "--requires-ack", "--wu", "WU-7"]


@pytest.fixture
def curie(desk: Desk) -> str:
    """A session that has read a proposal of another, and a second proposal that she has not read."""
    planck, curie = desk.start("Planck"), desk.start("Curie", "--wu", "WU-7")
    desk.send(planck, "Approve the boundary?", "--to", "Curie", *ASK)
    assert desk("inbox", session=curie).status == 0
    desk.send(planck, "And the retry?", "--to", "Curie", *ASK)
    assert desk("gate", session=curie).status == 1
    return curie


def move_back(desk: Desk, git: Git) -> None:
    git("update-ref", ref.LOG_REF, f"{ref.LOG_REF}~1", cwd=desk.repo)


def warned(answer: Any) -> bool:
    """Whether an answer says that lines are missing, with the repair as its next command."""
    assert answer["next"][0] == FIX or not answer["warnings"], answer
    return any("missing from the log" in each for each in answer["warnings"])


@pytest.mark.parametrize("index", ["kept", "deleted"])
def test_gate_inbox_and_converged_say_that_lines_are_missing(
    desk: Desk, curie: str, git: Git, index: str
) -> None:
    planck = desk.start("Noether")
    sent = desk.send(planck, "Shall we?", "--to", "Curie", "--intent", "propose")
    thread = sent["signal"]["thread_id"]
    desk.send(planck, "One more.", "--to", "Curie", "--wu", "WU-7")
    move_back(desk, git)
    if index == "deleted":
        for path in (desk.repo / ".git" / "gitmem").glob("index-*"):
            path.unlink()

    for args in (["gate"], ["inbox", "--no-mark"], ["inbox", "--thread", thread], ["converged", thread]):
        assert warned(desk(*args, "--json", session=curie).json), args
    assert "note: 1 record" in desk("gate", session=curie).out
    assert FIX in desk("gate", session=curie).next

    assert desk(*FIX.split()[1:]).status == 0
    for args in (["gate"], ["inbox"], ["converged", thread]):
        assert not warned(desk(*args, "--json", session=curie).json), args


def test_the_quick_answer_of_an_inbox_with_nothing_new_says_it_too(desk: Desk, curie: str, git: Git) -> None:
    assert desk("inbox", session=curie).status == 0
    desk.send(desk.start("Noether"), "One more.", "--to", "Curie")
    move_back(desk, git)

    first, again = (desk("inbox", "--json", session=curie).json for _ in range(2))

    assert not first["signals"] and not again["signals"]
    assert warned(first) and warned(again)


def test_lines_that_are_written_afterwards_do_not_end_the_warning(desk: Desk, curie: str, git: Git) -> None:
    move_back(desk, git)
    assert warned(desk("gate", "--json", session=curie).json)
    desk.send(curie, "I go on.", "--broadcast")

    assert warned(desk("gate", "--json", session=curie).json)
    assert warned(desk("inbox", "--json", session=curie).json)


def test_a_push_hears_that_lines_are_missing_though_the_gate_is_open(
    desk: Desk, curie: str, git: Git
) -> None:
    git("config", "gitmem.wu", "WU-7", cwd=desk.repo)
    assert desk("inbox", session=curie).status == 0
    desk.send(desk.start("Noether"), "Stop, please.", "--to", "Curie", "--wu", "WU-9")
    for each in desk("inbox", "--all", "--json", session=curie).json["signals"]:
        if each.get("requires_ack"):
            assert desk("reply", each["signal_id"], "Yes.", "--agree", session=curie).status == 0
    assert desk("gate", "--pre-push", session=curie).out == ""
    move_back(desk, git)

    said = desk("gate", "--pre-push", session=curie)

    assert "missing from the log" in said.out and FIX in said.next


def test_a_deleted_ref_is_repaired_and_no_new_session_is_advised(desk: Desk, curie: str, git: Git) -> None:
    git("update-ref", "-d", ref.LOG_REF, cwd=desk.repo)

    said = desk("gate", "--json", session=curie)

    assert said.status == 2 and said.json["next"][0] == FIX
    assert "missing from the log" in said.error["hint"]
    assert desk(*FIX.split()[1:]).status == 0
    assert desk("gate", session=curie).status == 1


def test_an_honest_log_is_never_reported(desk: Desk, curie: str) -> None:
    """Writes, receipts, waiting lines and reads of several sessions."""
    for number in range(3):
        desk.send(curie, f"Word {number}.", "--broadcast")
        for args in (["gate"], ["inbox"]):
            assert not warned(desk(*args, "--json", session=curie).json), args


@pytest.mark.parametrize("digests", [0, 1, 500])
def test_the_last_accepted_commit_is_found_behind_long_records(tmp_path: Path, digests: int) -> None:
    """A record of many lines is longer than what is read of the end of the ledger; lines that wait name no commit."""
    records = [
        f"\n0 {'a' * 40}\n",
        f"\n0 {'b' * 40} {' '.join(['c' * 32] * digests)}\n",
        f"\n- - {'d' * 32}\n",
    ]
    (tmp_path / ledger.NAME).write_text("".join(records))

    assert ledger.last_commit(str(tmp_path)) == "b" * 40


def test_the_last_accepted_commit_is_found_in_the_older_ledger(tmp_path: Path) -> None:
    assert ledger.last_commit(str(tmp_path)) is None
    (tmp_path / ledger.OLDER).write_text(f"\n0 {'a' * 40}\n")
    (tmp_path / ledger.NAME).write_text(f"\n- - {'d' * 32}\n\n0 torn")

    assert ledger.last_commit(str(tmp_path)) == "a" * 40
