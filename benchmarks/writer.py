"""One of many processes that append at once: print `ready`; for each line of input, append and print `done`."""

from __future__ import annotations

import fcntl
import os
import random
import sys
import time
from collections.abc import Callable

from gitmem import repo

from . import workbench
from .dulwich_writer import DulwichRepository, SegmentWriter, message

TEXT = "Please look at the boundary of the index before the review."


def by_library(where: str, session: str, to: str) -> Callable[[int], None]:
    """Return a function that sends a signal with the library."""
    log = workbench.open_log(where, session, commit_after=None)
    log.inbox(mark=False)  # open the index and import everything before the start

    def send(number: int) -> None:
        log.signals.send(f"{TEXT} {number}", to=[to], wu="WU-1")

    return send


def with_dulwich(where: str, session: str, to: str) -> Callable[[int], None]:
    """Return a function that writes the line of such a signal by hand, with reading and writing under one lock."""
    common = repo.find(where).common
    lock_file = os.path.join(common, "lock-with-dulwich")
    dice = random.Random(session)
    segments = SegmentWriter(DulwichRepository(common), dice)

    def send(number: int) -> None:
        text = f"{TEXT} {number}"
        fields = workbench.signal_fields(dice, session[-4:], session, [to]) | {"message": text}
        line = workbench.line("signal", time.time_ns() // 1000, fields)
        words = message(session, to, text, str(fields["signal_id"]))
        with open(lock_file, "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            segments.signal(line, words)

    return send


WAYS = {"library": by_library, "dulwich": with_dulwich}


def main() -> None:
    """Append for each line of standard input."""
    kind, where, session, to, count = sys.argv[1:]
    send = WAYS[kind](where, session, to)
    print("ready", flush=True)
    for _ in sys.stdin:
        for number in range(int(count)):
            send(number)
        print("done", flush=True)


if __name__ == "__main__":
    main()
