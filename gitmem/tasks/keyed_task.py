"""The task of an idempotency key: the same key is the same task, whatever has changed since it was recorded."""

from __future__ import annotations

from ..agents.addressing import ROLE_PREFIX
from ..errors import UsageError
from ..outcome import command
from ..records import KEYED, ids
from ..records.table import FILLED
from . import chains, find_task, task_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..records.record_types import TaskRecord
    from ..store import Store
    from .task_options import TaskOptions

_ADDRESSEE = ("agent", "target_role")
_DEFAULTED = (
    "requested_role",
    "requested_ownership_scope",
)  # by the addressee; what a repetition says of them counts
# Parts of a payload that say how and where the task was written.
_OF_WRITING = (task_signals.TELL, chains.AGAIN, "brief", "clientMessageId", "acceptedOutputModes")


def id_of(caller: Caller, key: str) -> str:
    """Return the id of the task of a key."""
    return ids.keyed_id("task", caller.reader, key)


def find(store: Store, caller: Caller, fields: Mapping[str, Any], options: TaskOptions) -> TaskRecord | None:
    """Return the task of a key that was recorded for the same addressee, as typed, with the same content; None if that is not certain.

    Who has repeated a command gets its task also if the deadline is over, an enclosing task is finished, or the addressee is gone.

    Args:
        fields: The fields that the options name; of a role and a scope the parts that they name.

    Raises:
        UsageError: `key-reused`: another field than the addressee differs. Nothing was written.
    """
    before = recorded(store, caller, options.get("idempotency_key"))
    if before is None:
        return None
    refuse_another(before, fields, [name for name in KEYED["task"] if name not in (*_ADDRESSEE, *_DEFAULTED)])
    for name in _DEFAULTED:
        asked: Mapping[str, Any] = fields.get(name) or {}
        had: Mapping[str, Any] = before.get(name) or {}  # type: ignore[assignment]
        refuse_another(
            {**before, name: {part: had.get(part) for part in asked}}, fields, [name] if asked else ()
        )
    role, agent = before.get("target_role"), before.get("agent")
    known = {before.get("requested_to") or agent, agent, f"{ROLE_PREFIX}{role}" if role else None} - {None}
    asked_of = (options.get("to") or f"{ROLE_PREFIX}{options.get('target_role')}").strip()
    return before if asked_of in known else None


def recorded(store: Store, caller: Caller, key: str | None) -> TaskRecord | None:
    """Return the task of a caller's key; None without one. Whoever knows the key can write the id; the task is only the caller's own."""
    if not key:
        return None
    found = find_task.record_of(store.db(), id_of(caller, key))
    return found if found is not None and found["sender_identity"] == caller.reader else None


def refuse_another(
    before: Mapping[str, Any], fields: Mapping[str, Any], names: Sequence[str] = _ADDRESSEE
) -> None:
    """Raise UsageError if the caller means another task than that of the key."""
    for name in names:
        if _value(before, name) != _value(fields, name):
            raise UsageError(
                f"The idempotency key belongs to {before['task_id']}, which has another {name}. Nothing was written.",
                hint="Use a new key for a new task.",
                code="key-reused",
                next=[command("gitmem", "task", "show", before["task_id"])],
            )


def _value(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field for a comparison: a missing one as its default."""
    value = fields.get(name) or FILLED["task"].get(name) or None
    if name == "payload" and value:
        return {part: each for part, each in value.items() if part not in _OF_WRITING} or None
    return list(value) if isinstance(value, tuple) else value
