"""One of many processes that append at once: says `ready`, and for each word appends and says `done`."""

from __future__ import annotations

import fcntl
import os
import random
import sys
import time
from collections.abc import Callable

from gitmem import place, records
from gitmem.log import append, ref
from gitmem.log.log import Log
from gitmem.log.spool import Entry
from gitmem.log.union import union

from . import stage
from .by_hand import Hand

TEXT = "Please look at the boundary of the index before the review."


def append_alone(log: Log, entry: Entry, *, wait_seconds: float = 0) -> append.Appended:
    """An append without the spool: wait for the lock, then a commit for this entry alone."""
    log.make_state()
    entry.token = entry.token or log.token()
    with open(os.path.join(log.place.state, "lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return append.Appended(append.commit_entries(log, [entry]))


def by_library(where: str, session: str, to: str) -> Callable[[int], None]:
    log = stage.open_log(where, session)
    log.inbox(mark=False)  # the index is open, and everything imported, before the word

    def send(number: int) -> None:
        log.signals.send(f"{TEXT} {number}", to=[to], wu="WU-1")

    return send


def by_hand(where: str, session: str, to: str) -> Callable[[int], None]:
    """The line of such a signal, read and written under one lock."""
    common = place.find(where).common
    hand = Hand(common)
    dice = random.Random(session)
    token = stage.id_of("", dice)[1:9]

    def send(number: int) -> None:
        nonlocal token
        fields = stage.signal_fields(dice, session[-4:], session, [to]) | {"message": f"{TEXT} {number}"}
        line = records.line("signal", time.time_ns() // 1000, fields)
        path = ref.segment_path("signals", line, token)
        message = f"{session} → {to}: {TEXT} {number}\n\n{TEXT} {number}\n\nAgent: {session}\n"
        with open(os.path.join(common, "gitmem", "lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tip = hand.tip()
            content = union(hand.read(tip, path), line)
            hand.append(tip, path, content, b"A Person <person@example.org>", message.encode())
        if len(content) >= ref.SEGMENT_MAX_BYTES:
            token = stage.id_of("", dice)[1:9]

    return send


def main() -> None:
    kind, where, session, to, count = sys.argv[1:]
    if kind == "alone":
        append.append = append_alone
    send = (by_hand if kind == "hand" else by_library)(where, session, to)
    print("ready", flush=True)
    for _ in sys.stdin:
        for number in range(int(count)):
            send(number)
        print("done", flush=True)


if __name__ == "__main__":
    main()
