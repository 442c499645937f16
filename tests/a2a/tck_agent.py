"""What the scenarios of the A2A compatibility kit ask of an agent, by the beginning of the message's id.

`gitmem serve-agent tck --callable tck_agent:answer`; benchmarks/README.md has the commands of the kit.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from gitmem import DirectAnswer, InputNeededError, TaskRejectedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmem.calls.worker import ServedTask

LONG_SECONDS = 4.5  # twice the kit's time limit of streams


def _file(task: ServedTask) -> str:
    task.artifact({"raw": "ZmlsZQ==", "filename": "output.txt", "mediaType": "text/plain"})
    return ""


def _url(task: ServedTask) -> str:
    task.artifact(
        {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
    )
    return ""


def _data(task: ServedTask) -> str:
    task.artifact({"data": {"key": "value", "count": 42}})
    return ""


def _text(text: str) -> Callable[[ServedTask], str]:
    def answer(task: ServedTask) -> str:
        task.artifact(text)
        return ""

    return answer


def _chunks(task: ServedTask) -> str:
    task.artifact("chunk-1 ", artifact_id="chunks", last_chunk=False)
    task.artifact("chunk-2", artifact_id="chunks", append=True)
    return ""


def _ask(task: ServedTask) -> str:
    if task.messages and not task.messages[-1][1].startswith("TCK history message"):
        return "Thank you"
    raise InputNeededError("What next?")


def _reject(_: ServedTask) -> str:
    raise TaskRejectedError("rejected")


def _long(_: ServedTask) -> str:
    time.sleep(LONG_SECONDS)
    return ""


def _until_told(_: ServedTask) -> str:
    """Our own tests say when it ends: by a file in the worker's folder."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not Path("go-on").exists():
        time.sleep(0.02)
    return ""


SCENARIOS: dict[str, Callable[[ServedTask], str]] = {
    "tck-artifact-file-url": _url,
    "tck-artifact-file": _file,
    "tck-artifact-text": _text("Generated text content"),
    "tck-artifact-data": _data,
    "tck-message-response": lambda _: DirectAnswer("Direct message response"),
    "tck-input-required": _ask,
    "tck-reject-task": _reject,
    "tck-stream-001": _text("Stream hello from TCK"),
    "tck-stream-002": lambda _: DirectAnswer("Stream hello from TCK"),
    "tck-stream-003": _text("Stream task lifecycle"),
    "tck-stream-ordering-001": _text("Ordered output"),
    "tck-stream-artifact-text": _text("Streamed text content"),
    "tck-stream-artifact-file": _file,
    "tck-stream-artifact-chunked": _chunks,
    "test-resubscribe-message-id": _long,
    "until-told": _until_told,
}


def answer(task: ServedTask) -> str:
    """Return what the scenario of a message says."""
    named = str(task.payload.get("clientMessageId", ""))
    for prefix, found in SCENARIOS.items():
        if named.startswith(prefix):
            return found(task)
    return "Hello from TCK"
