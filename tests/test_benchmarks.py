"""The benchmarks run, and their table has every row that was promised. What they find is not tested."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import peers, transfer
from benchmarks.__main__ import SOURCES
from benchmarks.background_processes import AdoptedProcesses
from benchmarks.mailboxes import Gitmem, GitmemLibrary, Mailbox
from benchmarks.measure import TABLE_HEAD, Figure, not_measured
from benchmarks.rows import EVERY
from benchmarks.syscalls import SyscallsBeforeAnswer
from benchmarks.workbench import Size, Workbench

ROOT = Path(__file__).resolve().parent.parent
TINY = Size(rounds=1, sends=2, writers=2, each=2, many=120, few=100, fresh=10, lines=10, packed=5, nodes=300, few_nodes=100,
            batch=20, calls=12, clones=2, many_clones=3, clone_rounds=1, pace=0.05, bulk=40, most=150, checked=150)  # fmt: skip
# What the table says of each row, and how many times its floor it may cost.
PROMISED = {
    "inbox": ("`gitmem inbox` with nothing new", 1.6),
    "signal": ("`gitmem signal` to one agent", 2.5),
    "everyday": ("`gitmem ", 4),
    "task-list": ("`gitmem task list`, ", 4),
    "call": ("a call ", 1),
    "call-transfer": ("16 KiB, log of ", 1),
    "signal-syncs": ("disk syncs before `gitmem signal` answers", 1),
    "signal-git": ("git processes before `gitmem signal` answers", 0),
    "signal-commit": ("`gitmem signal` and its commit by itself", 1.5),
    "until-commit": ("answer of `gitmem signal` → its commit", 1),
    "send": ("`signals.send` in process", 0.5),
    "writers": ("processes × ", 0.2),
    "growth": ("`inbox` at ", 1.3),
    "catch-up": ("catching up with ", 4),
    "first-look": ("first command in a clone of ", 1.5),
    "merge": ("merge driver on 3 × ", 2),
    "size": (" signals in bursts of 1 to 5 a second", 6),
    "size-attested": (", with their attestations", 1.2),
    "overlap": ("`gitmem overlap`", 1),
    "view": ("the page of `gitmem view`, ", 1),
    "why": ("`gitmem why FILE:LINE`", 1),
    "doctor": ("`doctor` at 1", 6),
    "doctor-memory": ("`doctor` at 1", 1),
    "context": ("`mem context` at ", 2),
    "recall": ("`mem search` at ", 4),
    "recall-typo": ("`mem search` at ", 1),
    "archive": ("archive pass over ", 3),
    "creates": (" creates in a batch", 4),
    "hook": ("hook with nothing ", 2),
    "hook-signal": ("hook with one signal", 4),
    "hook-tokens": ("hook, tokens beside the text of ", 1),
    "watch": (" printed by `gitmem watch` in another", 1),
    "watch-idle": ("`gitmem watch` idle for ", 1),
    "page-browser": (" agents in Chromium", 1),
    "top": ("`gitmem top` at ", 1),
    "sync-nothing": ("`gitmem sync` with nothing new", 2),
    "sync-10000": (" lines each way", 2),
    "contention-20": (" clones × 10 signals", 4),
    "contention-50": (" clones × 4 signals", 5),
    "inbox-million": ("`inbox` at ", 1.5),
    "kept-up": ("objects on the disk, ", 1),
}
# Rows with more than one limit.
SEVERAL = {
    "signal": 2,
    "call": 3,
    "call-transfer": 3,
    "everyday": 6,
    "growth": 3,
    "context": 2,
    "overlap": 2,
    "view": 2,
    "hook": 3,
    "hook-tokens": 2,
    "watch": 2,
    "top": 4,
    "page-browser": 2,
    "sync-10000": 4,
    "inbox-million": 3,
}
PROGRAMS = {"gitmem": "cli.main", "gitmem-merge": "merge_driver.main"}


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
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
    folder = tmp_path / "workbench"
    folder.mkdir()
    with AdoptedProcesses():  # waits for whatever still runs
        yield Workbench(str(folder), str(programs), TINY)


def test_the_wheel_that_is_measured_is_built_from_all_that_it_contains() -> None:
    """A file that pyproject.toml adds to the wheel is among the sources that are copied."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    added = [path for paths in project["tool"]["setuptools"]["data-files"].values() for path in paths]

    assert added
    assert [path for path in added if not path.startswith(tuple(f"{each}/" for each in SOURCES))] == []


def test_every_promised_row_is_measured() -> None:
    """No row goes missing, and none is added without a promise."""
    assert list(EVERY) == list(PROMISED)


def test_i39_the_three_steps_of_a_call_are_measured() -> None:
    """Against at most the times that the callAgent document names: 1 to 5, 10 to 50 and 20 to 100 ms."""
    assert (transfer.DISCOVERY, transfer.SERIALIZATION, transfer.TRANSFER) == (1, 10, 20)
    assert SEVERAL["call-transfer"] == 3 and "call-transfer" in EVERY


# Five seconds or more at the least size.
SLOW = (
    "why",
    "hook-tokens",
    "call",
    "overlap",
    "sync-10000",
    "contention-20",
    "contention-50",
    "top",
    "page-browser",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.soak if name in SLOW else pytest.mark.deep) for name in PROMISED],
)
def test_each_measure_runs(name: str, workbench: Workbench) -> None:
    """At a tiny size: it gives two figures, under the promised name and limit."""
    what, at_most = PROMISED[name]

    figures = EVERY[name](workbench)

    limited = [each for each in figures if each.at_most is not None]
    assert len(limited) == SEVERAL.get(name, 1)
    assert all(what in each.what and each.at_most == at_most for each in limited)
    missing = [each.missing for each in figures if each.missing]
    if missing:
        pytest.skip(missing[0])
    assert all(each.got >= 0 and each.base > 0 for each in figures)


@pytest.mark.deep
def test_mailboxes_are_asked_alike(workbench: Workbench) -> None:
    """Ours in both forms, as the others: a send, an inbox, writers at once, and what was stored in the end."""
    found = peers.measure(
        workbench, peers.Size(messages=60, rounds=1, writers=2), (Gitmem, GitmemLibrary)
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

    lines = [*TABLE_HEAD.splitlines(), over.row(), free.row()]

    assert lines[2] == "| this | that | 3.00 ms | 1.00 ms | 3.00 × | 2 × | **no** |"
    assert lines[3] == "| this | that | 3.00 ms | 1.00 ms | 3.00 × |  |  |"


def test_a_row_that_cannot_be_measured_keeps_its_place() -> None:
    """The table has it with the reason and its limit, and no verdict."""
    found = [*TABLE_HEAD.splitlines(), not_measured("this", "that", 2, "no strace").row()]

    assert found[2] == "| this | that | not measured: no strace | | | 2 × | |"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt others")
def test_the_work_of_a_process_that_outlives_its_command_counts() -> None:
    """It is waited for, and its CPU is lines, though its parent has ended long before."""
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    with AdoptedProcesses() as adopted:
        subprocess.run(["/bin/sh", "-c", f"{sys.executable} -c '{spin}' & exit 0"], check=True)

        assert adopted.wait() >= 200
        assert adopted.wait() == 0


TRACE = """\
10 execve("/usr/bin/gitmem", ["gitmem"], 0x7 /* 9 vars */) = 0
10 fdatasync(3)                = 0
10 vfork( <unfinished ...>
11 execve("/usr/local/bin/git", ["git", "cat-file"], 0x7 /* 9 vars */) = -1 ENOENT (No such file or directory)
11 execve("/usr/bin/git", ["git", "cat-file"], 0x7 /* 9 vars */ <unfinished ...>
10 <... vfork resumed>)        = 11
11 <... execve resumed>)       = 0
11 fsync(4 <unfinished ...>
10 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88) = 12
11 <... fsync resumed>)        = 0
12 execve("/usr/bin/python3", ["python3", "-c", "commit"], 0x7 /* 9 vars */) = 0
12 fsync(5)                    = 0
12 fork()                      = 13
13 execve("/usr/bin/git", ["git", "fast-import"], 0x7 /* 9 vars */) = 0
13 fsync(5)                    = 0
11 +++ exited with 0 +++
10 fdatasync(3)                = -1 EIO (Input/output error)
10 +++ exited with 0 +++
12 fsync(6)                    = 0
"""


def test_only_what_the_answer_waits_for_is_counted() -> None:
    """Of the command and the git that it runs, until it exits; not of the program that commits later."""
    seen = SyscallsBeforeAnswer(TRACE.splitlines(keepends=True))

    assert (seen.syncs, seen.git) == (3, 1)


def test_each_program_that_is_compared_can_be_used() -> None:
    """A class that lacks a method ends the comparison with a TypeError, after the programs were installed."""
    from benchmarks import other_mailboxes

    kinds = [
        each
        for each in vars(other_mailboxes).values()
        if isinstance(each, type) and issubclass(each, Mailbox)
    ]
    assert {each.__name__ for each in kinds} >= {"AgentMailCli", "Hcom", "McpAgentMail"}
    assert {each.__name__: each.__abstractmethods__ for each in (*kinds, Gitmem, GitmemLibrary) if each is not Mailbox and each.__abstractmethods__} == {}  # fmt: skip
