"""Long operations show on standard error how far they are: for people, with a total, and never back to the start."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.render import terminal as shown
from cli.render.terminal import Progress

from . import pseudo_terminal
from .conftest import Run

pytestmark = pytest.mark.usefixtures("commits")

Start = Callable[..., str]


class Watch:
    """A clock that goes on by itself, a little at each look."""

    def __init__(self, step: float) -> None:
        self.now = 100.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def lines_of(said: str) -> list[str]:
    return [line.removesuffix(shown.ERASE) for line in re.split("[\r\n]+", said) if line]


def counts(said: str) -> list[tuple[str, int, int]]:
    """Return step, done and total of each line."""
    found = [re.fullmatch(r"gitmem: (.*): ([\d,]+) of ([\d,]+)", line) for line in lines_of(said)]
    assert None not in found, said
    return [(each[1], int(each[2].replace(",", "")), int(each[3].replace(",", ""))) for each in found if each]


def test_a_step_with_nothing_to_do_is_not_shown() -> None:
    """`indexing lines: 0 of 0` says nothing."""
    stream = io.StringIO()
    progress = Progress(stream, clock=Watch(2.0))
    for _ in range(3):
        progress("indexing lines", 0, 0)

    assert stream.getvalue() == ""


def test_nothing_is_shown_within_the_first_second() -> None:
    """Most commands end before."""
    stream = io.StringIO()
    progress = Progress(stream, clock=Watch(0.009))
    for done in range(100):
        progress("indexing lines", done, 100)

    assert stream.getvalue() == ""


REPORTS = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), st.integers(0, 50), st.integers(0, 50)), max_size=60
)


@given(reports=REPORTS)
def test_no_step_ever_goes_back(reports: list[tuple[str, int, int]]) -> None:
    """Whatever order reports come in: a step that is done twice, such as catching up with an index, goes on."""
    stream = io.StringIO()
    progress = Progress(stream, after=0.0, clock=Watch(0.7))
    for report in reports:
        progress(*report)
    progress.end()

    last: dict[str, int] = {}
    for step, done, total in counts(stream.getvalue()):
        assert last.get(step, 0) <= done <= total
        last[step] = done
    assert stream.getvalue().endswith("\n") or not stream.getvalue()


def test_the_end_of_a_step_is_shown() -> None:
    """And each step in a line of its own."""
    stream = io.StringIO()
    clock = Watch(0.001)
    progress = Progress(stream, clock=clock)
    progress("checking lines", 0, 10_000)
    clock.now += 2
    for done in range(11):
        progress("checking lines", 1_000 * done, 10_000)
    progress("indexing words", 5, 10)
    clock.now += 1
    progress("indexing words", 7, 10)
    progress.end()

    assert stream.getvalue() == (
        f"\rgitmem: checking lines: 0 of 10,000{shown.ERASE}"
        f"\rgitmem: checking lines: 10,000 of 10,000{shown.ERASE}\n"
        f"\rgitmem: indexing words: 5 of 10{shown.ERASE}"
        f"\rgitmem: indexing words: 7 of 10{shown.ERASE}\n"
    )


@pytest.mark.parametrize("seconds", [3600, 2])
def test_a_long_lived_process_begins_each_operation_anew(seconds: int) -> None:
    """A watch that indexes for a moment now and then shows nothing."""
    stream = io.StringIO()
    clock = Watch(0.01)
    progress = Progress(stream, clock=clock)
    for _ in range(5):
        clock.now += seconds
        progress("indexing lines", 0, 10)
        progress("indexing lines", 10, 10)

    assert stream.getvalue() == ""


def test_a_name_in_a_step_cannot_move_the_cursor() -> None:
    """Whoever wrote the configuration has named the remote."""
    stream = io.StringIO()
    Progress(stream, after=0.0, clock=Watch(2))("fetching from \x1b[2J\r", 1, 2)

    assert "\x1b[2J" not in stream.getvalue() and stream.getvalue().count("\r") == 1


def imported(folder: Path, count: int) -> Path:
    memory = folder / ".lumenflow" / "memory"
    memory.mkdir(parents=True)
    nodes = (
        {"id": f"mem-{number:04x}", "type": "note", "lifecycle": "wu", "content": f"Number {number}", "wu_id": "WU-1",
         "created_at": "2026-01-01T00:00:00Z"}
        for number in range(count)
    )  # fmt: skip
    (memory / "memory.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    return folder


def test_each_long_operation_reports_to_its_end(
    start: Start, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Callable[..., str]
) -> None:
    """Import, doctor, a new index and sync, on a terminal alone."""
    monkeypatch.setenv("GITMEM_SESSION", start("Planck"))
    git("init", "--quiet", "--bare", str(tmp_path / "hub.git"))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
    git("push", "--quiet", "origin", "HEAD", cwd=repo)
    folder = imported(tmp_path / "theirs", 1_200)
    steps = {
        ("import", "lumenflow", str(folder)): {"reading bytes", "recording lines"},
        ("doctor",): {"checking lines"},
        ("sync", "--publish"): {"fetching from origin", "uniting with origin"},
    }
    for args, expected in steps.items():
        status, said = pseudo_terminal.run(args, repo, errors=True, variables={"GIT_PROGRESS_DELAY": "0"})
        assert status == 0, said
        assert expected <= {step for step, _, _ in counts(said)}, (args, said)


def test_pipes_stay_as_they_are(run: Run, start: Start) -> None:
    """Progress is on standard error, and only on a terminal."""
    start("Planck")

    assert (
        run("doctor", GIT_PROGRESS_DELAY="0").err == run("doctor", "--json", GIT_PROGRESS_DELAY="0").err == ""
    )


@pytest.mark.deep
def test_a_terminal_shows_progress_by_itself(run: Run, start: Start, repo: Path, tmp_path: Path) -> None:
    """Without an option, in one line for each step, which the answer does not overwrite. The delay is short: an import is fast."""
    start("Planck")
    folder = imported(tmp_path / "theirs", 20_000)

    status, said = pseudo_terminal.run(
        ["import", "lumenflow", str(folder), "--as", "Planck"],
        repo,
        both=True,
        variables={"GIT_PROGRESS_DELAY": "0.1"},
    )

    assert status == 0
    assert re.search(r"\rgitmem: [a-z ]+: [\d,]+ of 20,0\d\d", said)
    assert re.search(r"\n[^\r\n]*theirs/.lumenflow/memory", said), said
    assert "indexing" not in said  # the import says how many lines it has recorded
