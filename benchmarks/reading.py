"""Reading: whether an inbox stays as quick as the log grows, what catching up costs, and what history weighs."""

from __future__ import annotations

import gzip
import json
import shutil
from functools import partial
from itertools import islice

import gitmem
from gitmem import records
from gitmem.index import catch_up, schema
from gitmem.log import ref
from gitmem.operations import inbox as operation
from gitmem.operations import views

from . import stage as stages
from .measure import Figure, cpu_here, cpu_of, in_turn
from .stage import Stage

UNREAD = 5


def growth(stage: Stage) -> list[Figure]:
    """`inbox` in a long log and in a short one."""
    return _grown(stage, stage.size.many, 1.3)


def million(stage: Stage) -> list[Figure]:
    """`inbox` in a log as nobody has one yet."""
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
    """A log of so many signals whose first agent has a few unread and whose second has none."""
    where = stage.repository(name)
    stages.start(where, "Caller")
    stages.publish(where, stages.sessions(stages.START))
    stages.publish(where, stages.history(count, unread=UNREAD), commits=20)
    with gitmem.open(where) as log:
        log.store.db()  # catches up
    return where


def catching_up(stage: Stage) -> list[Figure]:
    """An index that lacks a thousand records, as after a sync."""
    where = stage.repository("catching-up")
    stages.start(where, "Caller")
    stages.publish(where, stages.sessions(stages.START))
    month = stages.START + 30 * stages.DAY
    stages.publish(where, stages.history(stage.size.few, last=month))
    store = stages.open_store(where)
    store.db()
    store.close()
    before = schema.path(store.place, store.machine)
    fresh = stages.history(stage.size.fresh, first=month, last=month + stages.DAY, seed=21)
    lines = stages.publish(where, islice(fresh, stage.size.fresh), commits=5)
    trial = before + "-trial"

    opened: list[schema.Index] = []

    def restore() -> None:
        while opened:
            opened.pop().close()
        shutil.copy(before, trial)
        opened.append(schema.Index(schema.connect(trial), views.VIEWS, records.read))

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
        ("parsing their lines", parse, 5.0),
        ("`records.read` of their lines", read, None),
    ):
        got, base = in_turn(stage.size.rounds, cpu_here(catch, restore), cpu_here(body))
        found.append(
            Figure(f"catching up with {len(lines):,} new records, CPU", floor, got, base, at_most, "ms")
        )
    return found


def packed(stage: Stage) -> list[Figure]:
    """What many signals, a commit each, weigh in a pack; sent in the course of a month."""
    where = stage.repository("packed")
    caller = stages.start(where, "Caller")
    names = stages.NAMES[1:5]
    for name in names:
        stages.start(where, name)
    count = stage.size.packed
    begin, dice = stages.now(), stages.dice(8)
    at = begin
    with gitmem.open(where, session=caller, now=lambda: at) as log:
        for number in range(count):
            at = begin + 30 * stages.DAY * number // count
            to = stages.identity(dice.choice(names))
            log.signals.send(stages.message(dice), to=[to], wu=f"WU-{dice.randint(1, 400)}")
        lines = [body.encode() for (body,) in log.store.db().execute("SELECT body FROM line")]
    stage.git(where, "reflog", "expire", "--expire=now", "--all")
    stage.git(where, "repack", "-adfq")
    stage.git(where, "prune-packed", "-q")
    sizes = dict(row.split(": ") for row in stage.git(where, "count-objects", "-v").splitlines())
    commits = int(stage.git(where, "rev-list", "--count", ref.LOG_REF))
    assert commits > count, f"{commits} commits"
    what = f"size after packing, {count:,} signals, a commit each"
    base = len(gzip.compress(b"".join(line + b"\n" for line in sorted(lines)))) / 1e3
    return [Figure(what, "their lines, gzipped together", int(sizes["size-pack"]) * 1.024, base, 10, "kB")]
