"""A gateway for A2A 1.0: agents of a log answer clients that speak this protocol over HTTP.

A request becomes a task on the log, whoever serves its agent takes it, and answers are folded from the log, so a restarted gateway goes
on. Only the gateway and calls to other servers import the A2A SDK; it is the extra `a2a` of the package.
"""

from __future__ import annotations

PROTOCOL = "1.0"
CLIENT = "a2a"  # the client of the sessions of callers
EXTENSION = "https://gitmem.dev/a2a/v1"  # the metadata of tasks that A2A has no field for
IDEMPOTENCY = "https://gitmem.dev/a2a/idempotency/v1"  # the metadata of a message with the key of its task
CLIENT_MESSAGE, CONTEXT, PARTS, METADATA, OUTPUT_MODES = "clientMessageId", "contextId", "parts", "metadata", "acceptedOutputModes"  # fmt: skip
BODY_MAX_BYTES = 256 * 1024
