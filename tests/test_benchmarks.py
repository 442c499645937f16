"""The benchmarks run, and their table has every row that was promised. What they find is not tested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.mailboxes import Gitmem, GitmemLibrary
from benchmarks.measure import Figure, table
from benchmarks.rows import EVERY
from benchmarks.stage import Size, Stage

ROOT = Path(__file__).resolve().parent.parent
TINY = Size(rounds=1, sends=2, writers=2, each=2, many=120, few=100, fresh=10, lines=10, packed=5, nodes=300, few_nodes=100,
            batch=20, calls=12, crowd=2, large_crowd=3, crowds=1, pace=0.05, bulk=40, most=150)  # fmt: skip
# What the table says of each row, and how many times its floor it may cost.
PROMISED = {
    "inbox": ("`gitmem inbox` with nothing new", 2),
    "signal": ("`gitmem signal`, the common shape", 15),
    "send": ("`signals.send` in process", 1.5),
    "writers": ("processes × ", 0.6),
    "growth": ("`inbox` at ", 1.3),
    "catch-up": ("catching up with ", 5),
    "merge": ("merge driver on 3 × ", 2),
    "size": ("size after packing", 10),
    "context": ("`mem context` at ", 2),
    "recall": ("`mem search` at ", 3),
    "archive": ("archive pass over ", 3),
    "creates": (" creates in a batch", 4),
    "hook": ("hook with nothing new", 2),
    "hook-signal": ("hook with one signal", 4),
    "hook-tokens": ("hooks for ", 2),
    "watch": (" printed by `gitmem watch` in another", 1),
    "watch-idle": ("`gitmem watch` idle for ", 1),
    "sync-nothing": ("`gitmem sync` with nothing new", 2),
    "sync-10000": (" lines each way", 3),
    "contention-20": (" clones × 10 signals", 4),
    "contention-50": (" clones × 4 signals", 6),
    "inbox-million": ("`inbox` at ", 1.5),
    "kept-up": ("objects on the disk, ", 1),
}
PROGRAMS = {"gitmem": "cli.main", "gitmem-merge": "merge_driver.main"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Tiny repositories, and console scripts that run the checkout."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in PROGRAMS.items():
        script = programs / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            f"from {module} import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
        )
        script.chmod(0o755)
    folder = tmp_path / "stage"
    folder.mkdir()
    return Stage(str(folder), str(programs), TINY)


def test_every_promised_row_is_measured() -> None:
    """No row goes missing, and none is added without a promise."""
    assert list(EVERY) == list(PROMISED)


@pytest.mark.deep
@pytest.mark.parametrize("name", PROMISED)
def test_each_measure_runs(name: str, stage: Stage) -> None:
    """At a tiny size: it gives two positive figures, under the promised name and limit."""
    what, at_most = PROMISED[name]

    figures = EVERY[name](stage)

    limited = [each for each in figures if each.at_most is not None]
    assert limited
    assert all(what in each.what and each.at_most == at_most for each in limited)
    assert all(each.got > 0 and each.base > 0 for each in figures)


def test_mailboxes_are_asked_alike(stage: Stage) -> None:
    """Ours in both forms, as the others: a send, an inbox, writers at once, and what was stored in the end."""
    found = peers.measure(
        stage, peers.Size(messages=60, rounds=1, writers=2), (Gitmem, GitmemLibrary)
    ).splitlines()

    assert [row.count("|") for row in found] == [0, 0, 5, 5, 5, 5, 0, 10, 10, 10, 10]
    assert all(row.endswith("| 20 | 0 | +0 |") for row in found[-2:])


def test_the_table_in_the_readme_has_every_row() -> None:
    """The figures that a reader sees are those of all promised rows, each with its limit."""
    readme = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("| ")]

    for what, at_most in PROMISED.values():
        assert any(what in row and f"| {at_most:g} × |" in row for row in rows), what


def test_a_missed_target_is_told() -> None:
    """A figure above its limit says so, and one for information says nothing."""
    over = Figure("this", "that", 3.0, 1.0, 2, "ms")
    free = Figure("this", "that", 3.0, 1.0, None, "ms")

    told = table([over, free]).splitlines()

    assert told[2] == "| this | that | 3.00 ms | 1.00 ms | 3.00 × | 2 × | **no** |"
    assert told[3] == "| this | that | 3.00 ms | 1.00 ms | 3.00 × |  |  |"
