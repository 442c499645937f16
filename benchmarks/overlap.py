"""`gitmem overlap` in a repository with many branches, beside git's own merges of the same pairs."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence

from gitmem.history import overlap as overlaps

from . import workbench as workbenches
from .measure import Figure, Timing, run, timings_in_turn
from .workbench import Workbench

COMMITS, BRANCHES, RECENT = 5_000, 100, 30
FILES, LINES, CHANGED = 300, 40, 8
ROUNDS = 7
DAY_SECONDS = 24 * 3600
FIRST_MS, AGAIN_MS = 5_000.0, 300.0


def overlap(workbench: Workbench) -> list[Figure]:
    """Measure the first `gitmem overlap`, and one after which nothing has changed."""
    where = workbench.repository("overlap")
    fill(where)
    args = [workbench.program("gitmem"), "overlap"]
    # Branches conflict, so its exit status is 1.
    command = ["/bin/sh", "-c", f"{' '.join(args)}; test $? = 1"]
    variables = workbenches.environment(where)
    kept = os.path.join(where, ".git", "gitmem", overlaps.FILE)
    run(command, where, variables)
    pairs = _pairs(where)

    def first() -> Timing:
        os.unlink(kept)
        return run(command, where, variables)

    def merges() -> Timing:
        return run(
            ["/bin/sh", "-c", "git merge-tree --write-tree --stdin --name-only; :"],
            where,
            variables,
            stdin=pairs,
        )

    took, floor = timings_in_turn(ROUNDS, first, merges)
    again = statistics.median(run(command, where, variables).wall for _ in range(ROUNDS))
    what = f"`gitmem overlap`, {COMMITS:,} commits, {BRANCHES} branches of which {RECENT} are recent"
    return [
        Figure(f"{what}, wall", "the limit", took.wall, FIRST_MS, 1, "ms"),
        Figure(f"{what}, CPU", "one `git merge-tree` of the same pairs", took.cpu, floor.cpu, None, "ms"),
        Figure(f"{what}, when nothing changed, wall", "the limit", again, AGAIN_MS, 1, "ms"),
    ]


def _pairs(where: str) -> str:
    """Write the pairs that are merged to a file; return its path."""
    with workbenches.open_log(where, None) as log:
        found = overlaps.overlap(log.store).overlaps
    path = os.path.join(where, ".git", "pairs")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{each.sides[0].commit} {each.sides[1].commit}\n" for each in found)
    return path


def fill(where: str) -> None:
    """Make the commits and branches."""
    git = ["git", "-C", where]
    data = "".join(_stream(random.Random(7), int(time.time())))
    subprocess.run([*git, "fast-import", "--quiet", "--force"], input=data.encode(), check=True)
    subprocess.run([*git, "symbolic-ref", "HEAD", "refs/heads/main"], check=True)
    subprocess.run([*git, "reset", "--quiet", "--hard"], check=True)


def _stream(dice: random.Random, now: int) -> Iterator[str]:
    texts = {f"src/part{number % 20}/file{number}.py": _lines(number) for number in range(FILES)}
    yield _commit("main", 1, now - 200 * DAY_SECONDS, None, texts)
    for number in range(2, COMMITS + 1):
        path = dice.choice(list(texts))
        texts[path] = _edited(texts[path], dice, number)
        seconds = now - 200 * DAY_SECONDS + number * (100 * DAY_SECONDS // COMMITS)
        yield _commit("main", number, seconds, None, {path: texts[path]})
    for number in range(BRANCHES):
        age = dice.randrange(13 * DAY_SECONDS) if number < RECENT else 90 * DAY_SECONDS
        paths = dice.sample(list(texts), CHANGED)
        changed = {path: _edited(texts[path], dice, number) for path in paths}
        parent = f":{COMMITS - dice.randrange(200)}"
        yield _commit(f"topic{number}", COMMITS + 1 + number, now - age, parent, changed)


def _lines(number: int) -> list[str]:
    return [f"line {line} of file {number}" for line in range(LINES)]


def _edited(lines: Sequence[str], dice: random.Random, number: int) -> list[str]:
    edited = list(lines)
    edited[dice.randrange(LINES)] = f"changed by {number}"
    return edited


def _commit(branch: str, mark: int, seconds: int, parent: str | None, texts: dict[str, list[str]]) -> str:
    head = (
        f"commit refs/heads/{branch}\nmark :{mark}\ncommitter Person <person@example.org> {seconds} +0000\n"
    )
    rows = [head, "data 1\nx\n", f"from {parent}\n" if parent else ""]
    for path, lines in texts.items():
        text = "\n".join(lines) + "\n"
        rows.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n")
    return "".join([*rows, "\n"])
