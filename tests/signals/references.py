"""The folds of a thread as docs/format.md has them, word for word and without regard to time.

What the program computes in one pass is computed here for each id by itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from gitmem.order.thread import ThreadSignal
from gitmem.records.record_types import SignalRecord

if TYPE_CHECKING:
    from gitmem.order.causal import Fact

F = TypeVar("F", bound="Fact")
Edges = Mapping[str, set[str]]


def reach(start: str, edges: Edges) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        for name in edges[todo.pop()] - found:
            found.add(name)
            todo.append(name)
    return found


def named(thread: Mapping[str, F]) -> dict[str, set[str]]:
    return {id: {name for name in said.named if name in thread} for id, said in thread.items()}


def earlier(thread: Mapping[str, F]) -> dict[str, set[str]]:
    edges = named(thread)
    return {id: {name for name in edges[id] if id not in reach(name, edges)} for id in edges}


def latest(candidates: Iterable[F], edges: Edges) -> F | None:
    said = list(candidates)
    free = [one for one in said if not any(one.id in reach(other.id, edges) - {other.id} for other in said)]
    return max(free, key=lambda one: one.line, default=None)


def in_order(thread: Mapping[str, F], edges: Edges) -> list[str]:
    shown: list[str] = []
    for one in sorted(thread.values(), key=lambda each: each.line):
        todo = [one.id]
        while todo:
            missing = [name for name in edges[todo[-1]] if name not in shown]
            if missing:
                todo.append(min(missing, key=lambda name: thread[name].line))
            elif todo[-1] not in shown:
                shown.append(todo.pop())
            else:
                todo.pop()
    return shown


def said(record: SignalRecord) -> ThreadSignal:
    return ThreadSignal(record, [json.dumps(record, separators=(",", ":")).encode()])


def random_thread(seed: int) -> dict[str, ThreadSignal]:
    """Up to 24 signals of few writers that name each other at random: cycles, unknown ids, equal times, ids twice."""
    draw = random.Random(seed)
    count = draw.randint(1, 24)
    ids = [f"sig-{draw.randrange(2 * count):04}" for _ in range(count)]
    width, backward = draw.choice((1, 2, 5)), draw.random() < 0.5
    found = {}
    for place, id in enumerate(ids):
        names = ids[:place] if backward else [*ids, "sig-elsewhere"]
        after = [draw.choice(names) for _ in range(draw.randint(0, width)) if names]
        found[id] = said(
            {
                "kind": "signal",
                "message": "",
                "interrupt_class": "advisory",
                "origin": "local",
                "at": f"2026-11-21T20:00:00.{draw.randint(0, 9):06d}Z",
                "signal_id": id,
                "sender_identity": draw.choice("abc"),
                "sender_session": draw.choice(("sess-1", "sess-2", None)),
                "intent": draw.choice(("INFO", "PROPOSE", "AGREE", "AGREE", "REJECT", "COUNTER")),
                "recipients": draw.sample("abc", draw.randint(0, 3)),
                "after": after,
                "reply_to": draw.choice([*names, None]) if names else None,
            }
        )
    return found
