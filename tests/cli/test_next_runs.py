"""Every `next` of a day's commands, run as it is printed in a shell: by an agent that used --as, and by one with a session."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

Start = Callable[..., str]
PLACES = re.compile(r"\b[A-Z]{2,}\b")  # NAME, PATH, ID: what a reader would have to replace
FILLER = ("gitmem log", "gitmem whoami")
# What each of two agents does in a day; {1} is the id that the command marked with it has printed, and so on.
DAY = (
    "A whoami", "A roster", "A session list", "A session note reading", "A session set --lane core", "A role list", "A name list",
    "A1 signal 'Split it?' --to Curie --intent propose --wu WU-7", "A converged {1}", "A thread {1}", "A receipts {1}", "C gate --wu WU-7",
    "C inbox --no-mark", "C inbox", "C reply {1} yes --agree", "A converged {1}", "A inbox", "A inbox", "C gate --wu WU-7",
    "A signal hello", "A signal hello --to Curi", "A2 delegate Review --to Curie", "A delegate Review", "A task list", "C task take {2}",
    "C task show {2}", "C task ask {2} which", "A task show {2}", "C task done {2} ok", "A task seal {2}", "A task tree", "A task stats",
    "A3 claim src", "C claim src", "C claim check src", "C claim list", "A claim release src", "A claim release", "C claim list",
    "A4 mem create 'A fact' --wu WU-7", "A mem list", "A mem ready --wu WU-7", "A mem search fact", "A mem search zebra",
    "A mem context --wu WU-7", "A mem checkpoint half", "A mem recover", "A mem update {4} --priority P1", "A mem show {4}",
    "A mem promote {4}", "A mem promote {4} --tag decision", "A mem profile", "A mem triage", "A mem archive", "A mem archive {4}",
    "A mem cleanup", "A mem delete {4}", "A log", "A show {1}", "A show {2}", "A show {3}", "A show tev-zzzzzz", "A handoff --to Curie --dry-run",
    "A overlap", "A stats", "A wu:prep", "A mem:signal",
)  # fmt: skip


@pytest.mark.parametrize("by", ["--as", "environment"])
def test_each_next_of_a_day_runs_as_it_is_printed(
    run: Run, shell: Run, start: Start, repo: Path, by: str
) -> None:
    """It is a whole command of gitmem, acts as whoever asked, and is no usage error. The day goes on as if it had not been run."""
    names = {"A": "Planck", "C": "Curie"}
    sessions = {who: start(name) for who, name in names.items()}
    ids: dict[str, str] = {}
    wrong: list[tuple[str, str, object]] = []
    seen = 0
    for line in DAY:
        who, _, rest = line.partition(" ")
        for number, id in ids.items():
            rest = rest.replace(f"{{{number}}}", id)
        kept = repo.parent / "kept"
        session = None if by == "--as" else sessions[who[0]]
        chosen = f" --as {names[who[0]]}" if by == "--as" else ""
        said = shell(f"gitmem {rest}{chosen} --json", session=session)
        if who[1:]:
            ids[who[1:]] = re.findall(
                r'"(?:signal|task|claim)_id": "([a-z]+-\w+)"|"id": "(mem-\w+)"', said.out
            )[0][who[1:] == "4"]
        for step in said.json["next"]:
            if step.endswith(" --help") or step.startswith("export "):
                continue
            seen += 1
            if step in FILLER or PLACES.sub("", step.replace("WU-7", "")) != step.replace("WU-7", ""):
                wrong.append((rest, step, "filler, or a place to fill in"))
            if (
                by == "--as"
                and "--as" not in step
                and not step.startswith(("gitmem sync", "gitmem session start", "gitmem view"))
            ):
                wrong.append((rest, step, "acts as somebody else"))
            if step.startswith(("gitmem sync", "gitmem view")):  # no remote and no browser here
                continue
            shutil.copytree(repo, kept, symlinks=True)
            done = shell(step.replace("--wait 60s", "--wait 0s"), session=session)
            if done.status not in (0, 1):
                wrong.append((rest, step, done))
            shutil.rmtree(repo, ignore_errors=True)
            kept.rename(repo)
    assert not wrong
    assert seen > 60
