"""`gitmem why FILE:LINE` in a repository of 5,000 commits with a log of 100,000 lines, beside git's own blame."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Iterator

from gitmem.records import ids

from . import overlap
from . import workbench as workbenches
from .measure import Figure, run, timings_in_turn
from .page_log import PageLog
from .workbench import Workbench

SIGNALS, NODES = 36_000, 10_000  # with receipts, patches, tasks, claims and commits more than 100,000 lines
PATH, LINE = "src/part7/file7.py", 12
ROUNDS = 7
BEYOND_BLAME_MS = 300.0


def why(workbench: Workbench) -> list[Figure]:
    """Measure the CPU of `gitmem why FILE:LINE` beyond that of `git blame`."""
    where = workbench.repository("why")
    overlap.fill(where)
    made = subprocess.run(
        ["git", "-C", where, "log", "--format=%H %at"], capture_output=True, text=True, check=True
    ).stdout
    history = [(oid, int(seconds)) for oid, seconds in map(str.split, made.splitlines())]
    log = PageLog(SIGNALS, NODES, last=int(time.time()) * 1_000_000)
    with workbenches.open_log(where) as opened:
        opened.sessions.start(name="Reader", agent_identity=workbenches.identity("Reader"))
    lines = workbenches.publish(where, _all(log, history))
    variables = workbenches.environment(where)
    target = f"{PATH}:{LINE}"
    asked = [workbench.program("gitmem"), "why", target]
    run(asked, where, variables)  # fills the index
    blame = [
        shutil.which("git") or "git",
        "blame",
        "--incremental",
        "--root",
        "-M",
        "-C",
        f"-L{LINE},{LINE}",
        "--",
        PATH,
    ]
    took, floor = timings_in_turn(
        ROUNDS, lambda: run(asked, where, variables), lambda: run(blame, where, variables)
    )
    what = f"`gitmem why FILE:LINE`, {len(history):,} commits, {len(lines):,} lines: CPU beyond `git blame`"
    return [Figure(what, "the limit", took.cpu - floor.cpu, BEYOND_BLAME_MS, 1, "ms")]


def _all(log: PageLog, history: list[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    yield from log.lines()
    dice = random.Random(17)
    for oid, seconds in history:
        session = workbenches.session_of(dice.randrange(50))
        yield (
            "commits",
            workbenches.line("commit", seconds * 1_000_000, {
                "link_id": ids.own_id("link", workbenches.WRITER, oid, session), "commit": oid, "action": "commit", "evidence": "environment",
                "wu_id": "WU-1", "sender_identity": session, "sender_session": session,
            }),
        )  # fmt: skip
    for number in range(200):
        yield (
            "memory",
            workbenches.line("node", (history[-1][1] + number) * 1_000_000, {
                "id": workbenches.id_of("mem", dice), "type": "note", "lifecycle": "project", "content": f"Finding {number}",
                "paths": [PATH], "head": history[number][0], "sender_identity": "test:worker:bohr",
            }),
        )  # fmt: skip
