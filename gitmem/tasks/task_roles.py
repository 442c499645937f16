"""Roles and scopes of tasks: what a taker says of itself, and how that differs from what was requested.

Requested and actual values stay apart in the records; the difference is computed where it is shown, and never blocks.
"""

from __future__ import annotations

from .. import strict_json
from ..outcome import Outcome
from ..roles import mismatch, scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from .append import TakeFacts
    from .fold import FoldedTask
    from .task_facts import TaskEvent

_PARTS = ("lifecycle_role", "specialty_profile", "role_alias")
_TEXTS = ("model", "client", "worktree", "branch")
SHOWN_MAX = 10  # takes of a task that are compared


class TakeMismatch(Outcome):
    """How a taker differs from what was requested.

    Attributes:
        take: The event of its take.
        text: A sentence about it.
        scope_fields: The fields of the scope that differ.
    """

    __slots__ = ("take", "text", "role_mismatch", "scope_mismatch", "scope_fields", "model_mismatch")

    def __init__(self, take: str, text: str, found: mismatch.Mismatch) -> None:
        self.take = take
        self.text = text
        self.role_mismatch = found.role_mismatch
        self.scope_mismatch = found.scope_mismatch
        self.scope_fields = found.scope_fields
        self.model_mismatch = found.model_mismatch


def role_of(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the role that a folded session states, in parts; empty if it states none."""
    if not record.get("lifecycle_role"):
        return {}
    found: dict[str, Any] = {name: record[name] for name in _PARTS if record.get(name)}
    capabilities = record.get("capabilities")
    if capabilities:
        found["capabilities"] = strict_json.read(capabilities)
    return found


def scope_of(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope that a folded session states; empty if it states none."""
    stored = record.get("actual_ownership_scope")
    found = scope.read(strict_json.read(stored)) if stored else None
    return dict(found.as_json()) if found is not None else {}


def facts_of(caller: Caller) -> TakeFacts:
    """Return what the caller's session says of itself, for its take."""
    record = caller.record or {}
    facts: Any = {name: record[name] for name in _TEXTS if record.get(name)}
    if role := role_of(record):
        facts["actual_role"] = role
    if covered := scope_of(record):
        facts["actual_ownership_scope"] = covered
    found: TakeFacts = facts
    return found


def mismatches(task: FoldedTask) -> list[TakeMismatch]:
    """Return how the valid takers of a task differ from what was requested; of many takes the last ones."""
    found = (_mismatch(task, take) for take in task.takes[-SHOWN_MAX:])
    return [each for each in found if each is not None]


def _mismatch(task: FoldedTask, take: TaskEvent) -> TakeMismatch | None:
    asked, said = task.record, take.record
    roles = asked.get("requested_role"), said.get("actual_role")
    compared = mismatch.compare(
        *roles,
        scope.read(asked.get("requested_ownership_scope")),
        scope.read(said.get("actual_ownership_scope")),
        asked.get("requested_model"),
        said.get("model"),
    )
    text = mismatch.sentence(said.get("sender_name") or take.sender[0], *roles, compared)
    return TakeMismatch(take.id, text, compared) if text else None
