"""What a call hands over: finding the agent, making 16 KiB of it, and handing it to who takes the task."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from gitmem.agents.caller import Caller
from gitmem.api.log import Log
from gitmem.calls import bundle, call
from gitmem.calls.bundle import BUDGET_BYTES, Transfer
from gitmem.work import new_task, task_decisions, task_rules

from . import nodes
from . import workbench as workbenches
from .measure import Figure, time_here
from .workbench import Workbench

DISCOVERY, SERIALIZATION, TRANSFER = 1.0, 10.0, 20.0  # milliseconds
CALLEE = "Callee"
OWN = 40  # decisions and notes of the caller's session; not all of them fit
WORDS = 60  # of each


def transfer(workbench: Workbench) -> list[Figure]:
    """Measure the three steps of a call with context and memory, on a log of many lines."""
    where = nodes.memory(workbench, "transfer", workbench.size.bulk)
    session, callee = workbenches.start(where, "Caller"), workbenches.start(where, CALLEE)
    with (
        workbenches.open_log(where, session, commit_after=None) as log,
        workbenches.open_log(where, callee, commit_after=None) as other,
    ):
        dice = workbenches.dice(4)
        texts = [" ".join(dice.choices(workbenches.WORDS, k=WORDS)) for _ in range(OWN)]
        log.memory.append_many([{"content": text, "tags": ["decision"], "wu": nodes.WU} for text in texts])
        caller = log.caller
        words = " ".join(nodes.vocabulary()[3:5])
        make = partial(_make, log, caller, words)
        context, made = make()
        if not 12 * 1024 < made.bytes <= BUDGET_BYTES or not context["memory"]:
            raise RuntimeError(f"the bundle has {made.bytes} bytes: {made.counts}")
        found = [
            _median(workbench, partial(_find, log, caller)),
            _median(workbench, make),
            _median(workbench, partial(_hand_over, log, other, context), after=partial(_cancel, log)),
        ]
    what = f"16 KiB, log of {workbench.size.bulk:,} lines, median, wall"
    names = (
        "finding the agent of a call",
        "making what a call hands over",
        "recording and reading it",
    )
    limits = (DISCOVERY, SERIALIZATION, TRANSFER)
    return [
        Figure(f"{name}, {what}", "the limit", got, limit, 1, "ms")
        for name, got, limit in zip(names, found, limits, strict=True)
    ]


def _median(
    workbench: Workbench, body: Callable[[], object], after: Callable[[], object] | None = None
) -> float:
    took = []
    for number in range(workbench.size.rounds + 2):
        timing = time_here(body)
        took += [timing.wall] if number >= 2 else []
        if after is not None:
            after()
    return statistics.median(took)


def _find(log: Log, caller: Caller) -> None:
    log.store.with_one_snapshot(lambda: call.find_callees(log.store, caller, [CALLEE]), exact=True)


def _make(log: Log, caller: Caller, words: str) -> tuple[dict[str, Any], Transfer]:
    return bundle.build(
        log.store, caller, context=True, variables={"limits": list(range(100))}, memory_query=words
    )


def _hand_over(log: Log, other: Log, context: dict[str, Any]) -> None:
    """Record a task with what it hands over, and read it in the log of the callee."""
    done = new_task.create(log.store, log.caller, "Is it right?", to=CALLEE, purpose="call", context=context)
    task = task_rules.require(other.store, done.task["task_id"])
    assert bundle.receive(other.store, task.record).text


def _cancel(log: Log) -> None:
    """Cancel what was called: a caller has a limited number of open tasks."""
    for row in log.tasks.list(open=True).tasks:
        task_decisions.cancel(log.store, log.caller, str(row.task_id))
