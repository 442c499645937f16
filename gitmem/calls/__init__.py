"""Calls: agents call agents, here or through A2A. A call is a task with a caller that waits for its result, and a worker that runs it.

`call.py` writes the task and waits, `worker.py` takes and runs tasks. All of their state is in the records of tasks. The gateway turns a
request of A2A into such a task and folds its answers from the log, so a restarted gateway goes on. Only the gateway and calls to other
servers import the A2A SDK; it is the extra `a2a` of the package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..store import Store
    from ..work.task_list import TaskDetail
    from ..work.task_records import TaskChange

ANSWER = "answer"  # in the payload of a result: `message` if a client of A2A gets it without its task
SERVER = "a2a:server:"  # of the identities of A2A servers that are called
WORKER = "gitmem-worker"  # the client of the sessions of workers
DEADLINE_SECONDS = 600.0  # after which nobody begins a call, and whoever works on it gives up
AGENTS_MAX = 20  # of one call: open tasks of its caller

A2A_PROTOCOL, A2A_OLD = "1.0", "0.3"
A2A_CLIENT = "a2a"  # the client of the sessions of callers
EXTENSION = "https://gitmem.dev/a2a/v1"  # the metadata of tasks that A2A has no field for
IDEMPOTENCY = "https://gitmem.dev/a2a/idempotency/v1"  # the metadata of a message with the key of its task
CLIENT_MESSAGE, CONTEXT, PARTS, METADATA, OUTPUT_MODES = "clientMessageId", "contextId", "parts", "metadata", "acceptedOutputModes"  # fmt: skip
BODY_MAX_BYTES = 256 * 1024


def attach_received(store: Store, found: TaskDetail | TaskChange, task: Mapping[str, Any]) -> None:
    """Set what a task hands over in an answer about it; nothing changes if it hands over nothing."""
    if task.get("context"):
        from . import bundle

        own = bundle.receive(store, task)
        found.received = own if own.text else None
