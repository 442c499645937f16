"""Invocation: agents call agents. A call is a task with a caller that waits for its result, and a worker that runs it.

`call.py` writes the task and waits, `worker.py` takes and runs tasks. All of their state is in the records of tasks.
"""

from __future__ import annotations

ANSWER = "answer"  # in the payload of a result: `message` if a client of A2A gets it without its task
SERVER = "a2a:server:"  # of the identities of A2A servers that are called
WORKER = "gitmem-worker"  # the client of the sessions of workers
DEADLINE_SECONDS = 600.0  # after which nobody begins a call, and whoever works on it gives up
AGENTS_MAX = 20  # of one call: open tasks of its caller
