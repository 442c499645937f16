"""Artifacts: what somebody makes while working on a task, in the form that A2A has for it, and how their pieces are put together.

An artifact is an object with `artifactId`, `name` and `parts`, of which each has one of `text`, `data` (any JSON), `url`, or `raw` (base64).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..errors import UsageError
from . import task_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store
    from .append import EventContent, TaskChange

ARTIFACT_MAX_BYTES = 32 * 1024  # of one event; more belongs into a commit or a file
ARTIFACTS_MAX = 200
_CONTENTS = ("text", "data", "url", "raw")


def artifact_of(
    content: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    name: str | None = None,
    artifact_id: str | None = None,
) -> dict[str, Any]:
    """Return an artifact of a text, of one part, or of several.

    Raises:
        UsageError: `bad-artifact`: a part has no content.
    """
    if isinstance(content, str):
        content = [{"text": content}]
    parts = [dict(each) for each in ([content] if isinstance(content, Mapping) else content)]
    if not parts or not all(any(name in each for name in _CONTENTS) for each in parts):
        raise UsageError(
            f"An artifact has parts, each with one of {', '.join(_CONTENTS)}. Nothing was written.",
            code="bad-artifact",
        )
    named = {"artifactId": artifact_id, "name": name}
    made: dict[str, Any] = {**{key: value for key, value in named.items() if value}, "parts": parts}
    check(made)
    return made


def check(artifact: Mapping[str, Any]) -> None:
    """Raise UsageError (`large-artifact`) for an artifact that is too large for a record."""
    size = len(json.dumps(dict(artifact), ensure_ascii=False).encode("utf-8", "replace"))
    if size > ARTIFACT_MAX_BYTES:
        raise UsageError(
            f"The artifact has {size} bytes; at most {ARTIFACT_MAX_BYTES} are allowed. Nothing was written.",
            hint="Commit it, and name the commit or the file, or add it in pieces.",
            code="large-artifact",
        )


def add(
    store: Store,
    caller: Caller,
    task_id: str,
    artifact: Mapping[str, Any],
    *,
    append: bool = False,
    last_chunk: bool = True,
) -> TaskChange:
    """Record an artifact, or a piece of one, of the task that the caller works on.

    Args:
        append: Whether it continues the artifact with its id; else it replaces that.
        last_chunk: Whether it is complete.

    Raises:
        UsageError: `bad-artifact`, it is too large, or the caller does not hold the task. Nothing was written.
        StoreError: It can't be recorded.
    """
    check(artifact)
    task, mine = task_work.own(store, caller, task_id, "artifact")
    fields: EventContent = {
        "take": mine.id,
        "payload": {"artifact": dict(artifact)},
        "append": append,
        "last_chunk": last_chunk,
    }
    return task_work.write(store, caller, task, "artifact", fields, "adds an artifact to")


def folded(task: FoldedTask) -> list[dict[str, Any]]:
    """Return the artifacts of a task: pieces joined, and of one id only the last."""
    found: dict[str, dict[str, Any]] = {}
    for each in sorted(task.events.values(), key=lambda each: each.line):
        one = of_event(task, each)
        if one is None or len(found) >= ARTIFACTS_MAX:
            continue
        before = found.get(one["artifactId"])
        if before is not None and each.record.get("append"):
            before["parts"] = [*before["parts"], *one["parts"]]
        else:
            found[one["artifactId"]] = one
    return list(found.values())


def of_event(task: FoldedTask, event: TaskEvent) -> dict[str, Any] | None:
    """Return the artifact of an event that counts. A peer wrote it, so everything else in it may be anything."""
    value = (event.record.get("payload") or {}).get("artifact")
    if event.event != "artifact" or not task.counts(event) or not isinstance(value, dict):
        return None
    parts = value.get("parts")
    named = value.get("artifactId")
    found: dict[str, Any] = {**value, "artifactId": named if isinstance(named, str) and named else event.id}
    found["parts"] = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    return found if found["parts"] else None
