"""Lists of tasks, in a log with many of them."""

from __future__ import annotations

from collections.abc import Iterator

from gitmem.log.lines import digest, format_at

from . import workbench as workbenches
from .measure import Figure
from .startup import FLOOR, against_python
from .workbench import NAMES, Workbench, id_of, identity, session_of

EVENTS = 20  # of each task: a take, renewals, messages, and of every other task a result and its seal
HOUR = 3600 * 1_000_000


def task_list(workbench: Workbench) -> list[Figure]:
    """Measure `gitmem task list` with tasks of 20 agents, half of them open."""
    count = workbench.size.few
    where = workbench.repository("tasks")
    session = workbenches.start(where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START))
    workbenches.publish(where, tasks(count))
    workbenches.start(where, "Reader")  # its record makes the index complete
    with workbenches.open_log(where, session) as log:
        db = log.store.db()
        events = "SELECT count(*) FROM entity_line WHERE kind = 'task' AND event <> 'task'"
        found = [db.execute(query).fetchone()[0] for query in ("SELECT count(*) FROM task", events)]
    if found != [count, count * EVENTS]:
        raise RuntimeError(f"{found} tasks and events are in the log")
    took, floor = against_python(workbench, where, session, lambda: ["task", "list"])
    what = f"`gitmem task list`, {count:,} tasks of {EVENTS} events, CPU"
    return [Figure(what, FLOOR, took.cpu, floor.cpu, 4, "ms")]


def tasks(count: int, *, seed: int = 9) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of tasks of the last month; every other one is completed and sealed."""
    dice = workbenches.dice(seed)
    last = workbenches.now()
    for number in range(count):
        at = last - 30 * workbenches.DAY + 29 * workbenches.DAY * number // count
        caller, worker = dice.sample(range(len(NAMES)), 2)
        task_id = id_of("task", dice)
        task = {
            "task_id": task_id, "thread_id": f"thread-{task_id[5:]}", "message": workbenches.message(dice),
            "purpose": "delegation", "agent": identity(NAMES[worker]), "priority": dice.choice(("P1", "P2", "P3")),
            "wu_id": f"WU-{dice.randint(1, 400)}", **_sender(caller),
        }  # fmt: skip
        yield "tasks", workbenches.line("task", at, task)
        take, before = "", b""
        ids: list[str] = []
        for step in range(EVENTS):
            fields = {
                "event_id": id_of("tev", dice),
                "task_id": task_id,
                "after": ids[-1:],
                **_sender(worker),
            }
            moment = at + (step + 1) * HOUR // 2
            if step == 0:
                take = str(fields["event_id"])
                fields |= {"event": "take", "until": format_at(moment + HOUR)}
            elif number % 2 and step == EVENTS - 2:
                fields |= {"event": "status", "take": take, "state": "completed", "message": "Done."}
            elif number % 2 and step == EVENTS - 1:
                answered = digest(before)
                fields |= {
                    "event": "seal",
                    "state": "completed",
                    "outcome": ids[-1],
                    "answers_digest": answered,
                }
                fields |= _sender(caller)
            elif step % 2:
                fields |= {"event": "renew", "take": take, "until": format_at(moment + HOUR)}
            else:
                fields |= {"event": "message", "message": workbenches.message(dice)}
            before = workbenches.line("task_event", moment, fields)
            ids.append(str(fields["event_id"]))
            yield "tasks", before


def _sender(number: int) -> dict[str, object]:
    name = NAMES[number]
    return {"sender_identity": identity(name), "sender_session": session_of(number), "sender_name": name}
