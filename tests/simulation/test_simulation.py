"""Clones and a remote on one seed: whatever went wrong, in the end nothing is lost and all agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.agents import presence
from gitmem.git import packs
from gitmem.log import ref_checks, tree_union
from gitmem.order import task
from gitmem.order.thread import FoldedThread
from gitmem.records import lines
from gitmem.sync import exchange

from . import adversary
from .memory import MemoryGit
from .run import Run, simulate

ROOT = Path(__file__).resolve().parents[2]
DIGEST = """
import hashlib, pathlib, sys
from tests.simulation.run import simulate
run = simulate(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
print(hashlib.sha256("\\n".join([*run.trace, *run.outcomes]).encode()).hexdigest())
"""


def checked(
    seed: int,
    root: Path,
    place: str = "memory",
    *,
    hostile: bool = False,
    forgetful: bool = False,
    voting: bool = False,
) -> Run:
    run = simulate(
        seed,
        root / f"{place}-{seed}",
        place,
        hostile=hostile,
        forgetful=forgetful,
        voting=voting,
    )
    if run.wrong:
        trace = root / f"trace-{seed}.txt"
        trace.write_text("\n".join([*run.trace, "", *run.outcomes]) + "\n")
        wrong = "\n".join(run.wrong[:10])
        pytest.fail(
            f"seed {seed}: replay it with `pytest tests/simulation --seed {seed}`; {trace}\n{wrong}", False
        )
    return run


def test_nothing_is_lost_and_all_agree(seed: int, tmp_path: Path) -> None:
    """All clones hold the same lines, what was acknowledged once, what failed not at all; every fold agrees."""
    checked(seed, tmp_path)


@pytest.mark.parametrize("forgetful_seed", range(1, 11))
def test_nothing_is_lost_where_texts_are_forgotten(forgetful_seed: int, tmp_path: Path) -> None:
    """Clones write the log anew while others write, sync, crash and are away."""
    checked(forgetful_seed, tmp_path, forgetful=True)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1, 2_001, 100))
def test_nothing_is_lost_in_two_thousand_runs(first: int, tmp_path: Path) -> None:
    """The same, a hundred seeds at a time."""
    for each in range(first, first + 100):
        checked(each, tmp_path)


def test_real_git_takes_the_same_steps(
    disk_seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a bare repository, by the product's own port and network: the same steps, commits and answers."""
    monkeypatch.setattr(packs, "objects_due", lambda common: 0)  # in memory there are no packs to unite
    memory, disk = checked(disk_seed, tmp_path), checked(disk_seed, tmp_path, "disk")

    steps, others = memory.trace, disk.trace
    for number, (one, other) in enumerate(zip(steps, others, strict=False)):
        before = "\n".join(steps[max(0, number - 5) : number])
        assert one == other, f"seed {disk_seed}, step {number}, after\n{before}"
    assert len(steps) == len(others)
    assert memory.outcomes == disk.outcomes
    assert memory.spawned == 0


@pytest.mark.deep
def test_a_seed_is_one_run(tmp_path: Path) -> None:
    """In another process, where Python orders its sets otherwise, every step is the same."""
    found = set()
    for order in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST, "12", str(tmp_path / order)],
            cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": order}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


def swap_anyway(git: MemoryGit, name: str, old: str | None, new: str, why: str) -> bool:
    """A swap that doesn't compare."""
    git.repository.refs[name] = new
    return True


BROKEN = {
    "a union that keeps the greater file": (tree_union, "union", lambda *contents: max(contents)),
    "a swap that does not compare": (MemoryGit, "swap", swap_anyway),
    "outboxes that nobody deletes": (exchange, "_delete_merged", lambda *args: None),
}


@pytest.mark.deep
@pytest.mark.parametrize("what", BROKEN)
def test_a_simulation_finds(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is there for: with a guard taken out some seed fails."""
    monkeypatch.setattr(*BROKEN[what])

    assert any(simulate(seed, tmp_path / str(seed)).wrong for seed in range(1, 100))


def test_an_adversary_changes_nothing_but_what_anybody_may_write(seed_of_attack: int, tmp_path: Path) -> None:
    """Forged, malformed, replayed and reordered lines and trees on every place of the remote, at any time."""
    checked(seed_of_attack, tmp_path, hostile=True)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1, 2_001, 100))
def test_an_adversary_in_two_thousand_runs(first: int, tmp_path: Path) -> None:
    """The same, a hundred seeds at a time."""
    for each in range(first, first + 100):
        checked(each, tmp_path, hostile=True)


def test_nobody_says_yes_to_what_too_few_agreed_on(seed_of_votes: int, tmp_path: Path) -> None:
    """Three clones, one of them offline; each answer is that of the lines that it is from, and only a change of mind undoes a yes."""
    checked(seed_of_votes, tmp_path, voting=True, hostile=seed_of_votes % 3 == 0)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1, 1_001, 100))
def test_nobody_says_yes_to_what_too_few_agreed_on_in_a_thousand_runs(first: int, tmp_path: Path) -> None:
    """The same, a hundred seeds at a time."""
    for each in range(first, first + 100):
        checked(each, tmp_path, voting=True, hostile=each % 3 == 0)


MISCOUNTED = {
    "a veto that nobody heeds": ("required", lambda self, id: [next(iter(self.parties))]),
    "one consent too few": ("consents", lambda self, id: len(self.agreeing(id))),
    "a proposer who need not agree": ("required", lambda self, id: list(self.veto)),
}


@pytest.mark.deep
@pytest.mark.parametrize("what", MISCOUNTED)
def test_a_vote_finds(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rule broken some seed fails."""
    name, broken = MISCOUNTED[what]
    monkeypatch.setattr(FoldedThread, name, broken)

    assert any(simulate(seed, tmp_path / str(seed), voting=True).wrong for seed in range(1, 60))


UNGUARDED = {
    "places whose format nobody looks at": (
        [(ref_checks.RefCheck, "_reason", lambda *args: ("", ""))],
        "without_projects",
        5,
    ),
    "trees whose names nobody looks at": (
        [(ref_checks.RefCheck, "_check_trees", lambda *args: True)],
        "hostile_tree",
        128,
    ),
    "sessions that anybody may change": (
        [(lines, "field_of_another", lambda *args: "")],
        "forge_sessions",
        14,
    ),
    "receipts that anybody may write": (
        [(lines, "field_of_another", lambda *args: "")],
        "forge_receipts",
        120,
    ),
    "ids of other writers": (
        [(lines, "field_of_another", lambda *args: "")],
        "speak_for_itself",
        10,
    ),
    "tasks that anybody ends": ([(task, "may_decide", lambda *args: True)], "meddle", 8),
    "roles of who has no writer": ([(presence, "is_of_somebody", lambda *args: True)], "bring_in", 14),
}
"""What is taken out, what the adversary does most often then, and a seed that went wrong when this was written: it is tried first."""


@pytest.mark.deep
@pytest.mark.parametrize("what", UNGUARDED)
def test_an_adversary_gets_through_without(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a guard taken out some seed fails."""
    guards, act, known = UNGUARDED[what]
    for guard in guards:
        monkeypatch.setattr(*guard)
    monkeypatch.setattr(adversary, "MORE_ACTS", (act,) * 30)

    def goes_wrong(seed: int) -> bool:
        try:
            return bool(simulate(seed, tmp_path / str(seed), hostile=True).wrong)
        except RecursionError:  # a tree of 2,000 folders got in
            return True

    assert any(goes_wrong(seed) for seed in (known, *range(1, 101)))
