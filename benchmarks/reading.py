"""Reading: the inbox while the log grows, and the cost of index updates."""

from __future__ import annotations

import json
import shutil
from functools import partial
from itertools import islice

from gitmem import records
from gitmem.index import catch_up, index_file
from gitmem.log.lines import is_attestation
from gitmem.signals import inbox as operation

from . import workbench as workbenches
from .measure import Figure, cpu_here, cpu_of, in_turn
from .workbench import Workbench

UNREAD = 5


def growth(workbench: Workbench) -> list[Figure]:
    """Measure `inbox` in a long log and in a short one."""
    return _grown(workbench, workbench.size.many, 1.3)


def million(workbench: Workbench) -> list[Figure]:
    """Measure `inbox` in a log of a million lines."""
    return _grown(workbench, workbench.size.most, 1.5)


def _grown(workbench: Workbench, many: int, at_most: float) -> list[Figure]:
    size = workbench.size
    long, short = (_with_signals(workbench, f"inbox-{many}-{count}", count) for count in (many, size.few))
    what, floor = f"`inbox` at {many:,} signals", f"at {size.few:,}"
    found = []
    for state, number, more in (("nothing new", 1, ()), (f"{UNREAD} unread", 0, ("--no-mark",))):
        environment = {**workbench.environment, "GITMEM_SESSION": workbenches.session_of(number)}
        command = [workbench.program("gitmem"), "inbox", *more]
        got, base = in_turn(
            size.rounds, cpu_of(command, long, environment), cpu_of(command, short, environment), warm=2
        )
        found.append(Figure(f"{what}, {state}: the command, CPU", floor, got, base, at_most, "ms"))
    logs = [workbenches.open_log(where, workbenches.session_of(0)) for where in (long, short)]
    readings = [cpu_here(partial(log.inbox, mark=False)) for log in logs]
    assert [operation.count(log.store, log.caller).unread for log in logs] == [UNREAD, UNREAD]
    got, base = in_turn(5 * size.rounds, *readings, warm=5)
    found.append(Figure(f"{what}, {UNREAD} unread: in process, CPU", floor, got, base, at_most, "ms"))
    for log in logs:
        log.close()
    return found


def _with_signals(workbench: Workbench, name: str, count: int) -> str:
    """Create a log of this many signals; its first agent has a few unread ones and its second has none."""
    where = workbench.repository(name)
    workbenches.start(where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START))
    workbenches.publish(where, workbenches.history(count, unread=UNREAD), commits=20)
    with workbenches.open_log(where) as log:
        log.store.db()  # updates the index
    return where


def catching_up(workbench: Workbench) -> list[Figure]:
    """Measure the update of an index that lacks a thousand records, as after a sync."""
    where = workbench.repository("catching-up")
    workbenches.start(where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START))
    month = workbenches.START + 30 * workbenches.DAY
    workbenches.publish(where, workbenches.history(workbench.size.few, last=month))
    with workbenches.open_log(where) as log:
        store = log.store
        store.db()
    before = index_file.path(store.repo, store.machine)
    fresh = workbenches.history(workbench.size.fresh, first=month, last=month + workbenches.DAY, seed=21)
    published = workbenches.publish(where, islice(fresh, workbench.size.fresh), commits=5)
    lines = [line for line in published if not is_attestation(line)]
    trial = before + "-trial"

    opened: list[index_file.Index] = []

    def restore() -> None:
        while opened:
            opened.pop().close()
        shutil.copy(before, trial)
        opened.append(index_file.Index(index_file.connect(trial), store.views, records.read))

    def catch() -> None:
        catch_up.catch_up(opened[0], store.log)

    def parse() -> None:
        for line in lines:
            json.loads(line)

    def read() -> None:
        for line in lines:
            records.read(line)

    found = []
    for floor, body, at_most in (
        ("parsing their lines", parse, 4.0),
        ("`records.read` of their lines", read, None),
    ):
        got, base = in_turn(workbench.size.rounds, cpu_here(catch, restore), cpu_here(body))
        found.append(
            Figure(f"catching up with {len(lines):,} new records, CPU", floor, got, base, at_most, "ms")
        )
    return found
