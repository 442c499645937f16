"""A process that takes the tasks of an agent with the library alone: `python worker.py FUNCTION`."""

from __future__ import annotations

import sys
import threading

import gitmem


def main(function: str) -> None:
    """Run tasks until it is killed."""
    with gitmem.open(".", identity="gitmem:worker:prices") as log:
        log.sessions.start()
        pause = threading.Event()
        while True:
            for task in log.tasks.list(open=True).tasks:
                if task.holder is None:
                    taken = log.tasks.take(str(task.task_id))
                    answer = getattr(str, function)(log.tasks.show(taken.task_id).task["message"])
                    log.tasks.report(taken.task_id, "completed", answer)
            pause.wait(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
