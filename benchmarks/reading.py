"""Reading: the inbox while the log grows, and the cost of index updates."""

from __future__ import annotations

import json
import shutil
from functools import partial
from itertools import islice

from gitmem import records, views
from gitmem.index import catch_up, index_file
from gitmem.signals import inbox as operation

from . import stage as stages
from .measure import Figure, cpu_here, cpu_of, in_turn
from .stage import Stage

UNREAD = 5


def growth(stage: Stage) -> list[Figure]:
    """Measure `inbox` in a long log and in a short one."""
    return _grown(stage, stage.size.many, 1.3)


def million(stage: Stage) -> list[Figure]:
    """Measure `inbox` in a log of a million lines."""
    return _grown(stage, stage.size.most, 1.5)


def _grown(stage: Stage, many: int, at_most: float) -> list[Figure]:
    size = stage.size
    long, short = (_with_signals(stage, f"inbox-{many}-{count}", count) for count in (many, size.few))
    what, floor = f"`inbox` at {many:,} signals", f"at {size.few:,}"
    found = []
    for state, number, more in (("nothing new", 1, ()), (f"{UNREAD} unread", 0, ("--no-mark",))):
        environment = {**stage.environment, "GITMEM_SESSION": stages.session_of(number)}
        command = [stage.program("gitmem"), "inbox", *more]
        got, base = in_turn(
            size.rounds, cpu_of(command, long, environment), cpu_of(command, short, environment), warm=2
        )
        found.append(Figure(f"{what}, {state}: the command, CPU", floor, got, base, at_most, "ms"))
    logs = [stages.open_log(where, stages.session_of(0)) for where in (long, short)]
    readings = [cpu_here(partial(log.inbox, mark=False)) for log in logs]
    assert [operation.count(log.store, log.caller).unread for log in logs] == [UNREAD, UNREAD]
    got, base = in_turn(5 * size.rounds, *readings, warm=5)
    found.append(Figure(f"{what}, {UNREAD} unread: in process, CPU", floor, got, base, at_most, "ms"))
    for log in logs:
        log.close()
    return found


def _with_signals(stage: Stage, name: str, count: int) -> str:
    """Create a log of this many signals; its first agent has a few unread ones and its second has none."""
    where = stage.repository(name)
    stages.start(where, "Caller")
    stages.publish(where, stages.sessions(stages.START))
    stages.publish(where, stages.history(count, unread=UNREAD), commits=20)
    with stages.open_log(where) as log:
        log.store.db()  # updates the index
    return where


def catching_up(stage: Stage) -> list[Figure]:
    """Measure the update of an index that lacks a thousand records, as after a sync."""
    where = stage.repository("catching-up")
    stages.start(where, "Caller")
    stages.publish(where, stages.sessions(stages.START))
    month = stages.START + 30 * stages.DAY
    stages.publish(where, stages.history(stage.size.few, last=month))
    with stages.open_log(where) as log:
        store = log.store
        store.db()
    before = index_file.path(store.repo, store.machine)
    fresh = stages.history(stage.size.fresh, first=month, last=month + stages.DAY, seed=21)
    lines = stages.publish(where, islice(fresh, stage.size.fresh), commits=5)
    trial = before + "-trial"

    opened: list[index_file.Index] = []

    def restore() -> None:
        while opened:
            opened.pop().close()
        shutil.copy(before, trial)
        opened.append(index_file.Index(index_file.connect(trial), views.VIEWS, records.read_groups))

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
        got, base = in_turn(stage.size.rounds, cpu_here(catch, restore), cpu_here(body))
        found.append(
            Figure(f"catching up with {len(lines):,} new records, CPU", floor, got, base, at_most, "ms")
        )
    return found
