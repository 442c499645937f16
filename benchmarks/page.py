"""`gitmem view` of a log with many agents: the time to write the page, and its size."""

from __future__ import annotations

import os
import statistics

from . import workbench as workbenches
from .measure import Figure, run
from .page_log import PageLog
from .workbench import Workbench

ROUNDS = 7
CPU_MS, SIZE_KB = 2_000.0, 4_096.0
AGENTS, NODES_SHARE = 50, 5  # one node for so many signals


def view(workbench: Workbench) -> list[Figure]:
    """Measure the command, with an index that is up to date."""
    signals = workbench.size.bulk
    nodes, agents = signals // NODES_SHARE, min(AGENTS, max(4, signals // 20))
    where = workbench.repository("page")
    log = PageLog(signals, nodes, agents)
    log.build(where)
    command = [workbench.program("gitmem"), "view"]
    variables = workbenches.environment(where)
    run(command, where, variables)  # brings the index up to date
    cpu = statistics.median(run(command, where, variables).cpu for _ in range(ROUNDS))
    size = os.path.getsize(os.path.join(where, ".git", "gitmem", "view.html")) / 1024
    what = f"the page of `gitmem view`, {signals:,} signals, {nodes:,} nodes, {agents} agents"
    return [
        Figure(f"{what}, CPU", "the limit", cpu, CPU_MS, 1, "ms"),
        Figure(f"{what}, size", "the limit", size, SIZE_KB, 1, "kB"),
    ]
