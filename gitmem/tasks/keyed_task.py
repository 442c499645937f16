"""The task of an idempotency key: the same key is the same task, whatever has changed since it was recorded."""

from __future__ import annotations

from ..agents.role_holders import PREFIX
from ..errors import UsageError
from ..records import ids
from ..text.shell_quote import command
from . import DELEGATION, find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..records.record_types import TaskRecord
    from ..store import Store
    from .task_options import TaskOptions

# Tasks of one key must agree in these.
_COMPARED = ("message", "purpose", "agent", "target_role", "wu_id")


def id_of(caller: Caller, key: str) -> str:
    """Return the id of the task of a key."""
    return ids.keyed_id("task", caller.reader, key)


def find(store: Store, caller: Caller, message: str, options: TaskOptions) -> TaskRecord | None:
    """Return the task of a key that was recorded for the same addressee, as typed, with the same text; None if that is not certain.

    It looks at nothing else: who has repeated a command gets its task also if the deadline is over, an enclosing task is finished, or the
    addressee is gone.
    """
    before = recorded(store, caller, options.get("idempotency_key"))
    if before is None:
        return None
    role, agent = before.get("target_role"), before.get("agent")
    known = {before.get("requested_to") or agent, agent, f"{PREFIX}{role}" if role else None} - {None}
    asked = (options.get("to") or f"{PREFIX}{options.get('target_role')}").strip()
    said = (message, options.get("purpose") or DELEGATION, options.get("wu") or None)
    is_same = asked in known and said == (before["message"], before["purpose"], before.get("wu_id"))
    return before if is_same else None


def recorded(store: Store, caller: Caller, key: str | None) -> TaskRecord | None:
    """Return the task of a caller's key; None without one. Whoever knows the key can write the id; the task is only the caller's own."""
    if not key:
        return None
    found = find_task.record_of(store.db(), id_of(caller, key))
    return found if found is not None and found["sender_identity"] == caller.reader else None


def refuse_another(before: TaskRecord, fields: Mapping[str, Any]) -> None:
    """Raise UsageError if the caller means another task than that of the key."""
    for name in _COMPARED:
        if (before.get(name) or None) != (fields.get(name) or None):
            raise UsageError(
                f"The idempotency key belongs to {before['task_id']}, which has another {name}. Nothing was written.",
                hint="Use a new key for a new task.",
                code="key-reused",
                next=[command("gitmem", "task", "show", before["task_id"])],
            )
