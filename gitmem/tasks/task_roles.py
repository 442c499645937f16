"""Roles and scopes of tasks: what a taker says of itself, and how that differs from what was requested.

Requested and actual values stay apart in the records; the difference is computed where it is shown, and never blocks.
"""

from __future__ import annotations

from ..agents import descriptions, descriptors
from ..outcome import Outcome
from ..records.ids import role_id
from ..text.name_matching import is_identity
from ..text.sanitize import SEPARATOR
from . import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents import vocabulary
    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..records.record_types import TaskRecord
    from .append import TakeFacts

_TEXTS = ("model", "client", "worktree", "branch")
SHOWN_MAX = 10  # takes of a task that are compared


class TakeMismatch(Outcome):
    """How a taker differs from what was requested.

    Attributes:
        take: The event of its take.
        text: A sentence about it.
        scope_fields: The fields of the scope that differ.
    """

    def __init__(self, take: str, text: str, values: Mapping[str, Any]) -> None:
        self.take = take
        self.text = text
        descriptors.set_fields(self, values)


def parts(role: vocabulary.Role) -> dict[str, Any]:
    """Return a role that was looked up, in parts."""
    values = {
        "lifecycle_role": role.lifecycle_role,
        "specialty_profile": role.specialty_profile,
        "role_alias": role.role_alias,
        "capabilities": role.capabilities,
    }
    return {name: value for name, value in values.items() if value or name == "capabilities"}


def of_text(text: str) -> dict[str, Any]:
    """Return a role in parts, of a text as in `target_role`."""
    lifecycle, _, specialty = text.partition("/")
    special = {"specialty_profile": specialty} if specialty else {}
    return {"lifecycle_role": lifecycle, **special, "capabilities": []}


def scope_of(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope that a folded session states; empty if it states none."""
    found = descriptions.scope_of(record.get("actual_ownership_scope") or "{}")
    return dict(found.as_json()) if found is not None else {}


def facts_of(caller: Caller) -> TakeFacts:
    """Return what the caller's session says of itself, for its take."""
    record = caller.record or {}
    facts: Any = {name: record[name] for name in _TEXTS if record.get(name)}
    if role := descriptions.actual_role(record):
        facts["actual_role"] = role
    if covered := scope_of(record):
        facts["actual_ownership_scope"] = covered
    found: TakeFacts = facts
    return found


def addressed_by(caller: Caller) -> tuple[str | None, str | None]:
    """Return the roles that tasks for a caller's role name: its role, and its lifecycle role alone, for any profile."""
    record = caller.record or {}
    lifecycle = record.get("lifecycle_role")
    return role_id(lifecycle, record.get("specialty_profile")), lifecycle


def asked(values: Mapping[str, Any]) -> str | None:
    """Return in one line which role, model and scope a task asks for, and until when it may begin; None if it says nothing of them.

    Args:
        values: Its record, or its row in a list.
    """
    covered = descriptors.read_scope(values.get("requested_ownership_scope"))
    where = covered and (covered.paths or covered.wu_ids or covered.lane or covered.initiative_id)
    role = descriptors.role_text(values.get("requested_role")) or values.get("target_role")
    until = values.get("deadline")
    found = [
        *(descriptors.listed(each) for each in (role, values.get("requested_model"), where) if each),
        *([f"until {until[:10]} {until[11:16]} UTC"] if until else []),
    ]
    return SEPARATOR.join(found) or None


def brief_text(top: str | None, task: TaskRecord) -> str | None:
    """Return the path of a task's brief, and whether it is in this work tree as attested; None if the task has none."""
    found = brief.check(top, task)
    if found is None:
        return None
    status = "as attested" if found.status == brief.MATCHES else found.status
    return f"{descriptors.listed(found.path)} ({status})"


def mismatches(task: FoldedTask) -> list[TakeMismatch]:
    """Return how the valid takers of a task differ from what was requested; of many takes the last ones."""
    found = (_mismatch(task, take) for take in task.takes[-SHOWN_MAX:])
    return [each for each in found if each is not None]


def worker_take(task: FoldedTask) -> TaskEvent | None:
    """Return the take of whoever did the task, else of its holder; None if nobody has it."""
    by_outcome = task.outcome.take if task.outcome is not None else None
    return next((each for each in task.takes if each.id == by_outcome), None) or task.holder


def fields_of(task: FoldedTask, take_id: str | None = None) -> dict[str, Any]:
    """Return the fields `descriptors.COMPARED` of a task and a take of it; of whoever works on it if that take is none."""
    take = next((each for each in task.takes if each.id == take_id), None) or worker_take(task)
    return descriptors.fields_of(task.record, take.record if take is not None else {})


def _asked(task: FoldedTask, take: TaskEvent) -> str | None:
    """Return whom a task was asked of, by name if that agent took it, too; None if that is the taker, or a session, which may be the taker's."""
    agent = task.record.get("agent")
    if not agent or agent in take.sender or not is_identity(agent):
        return None
    return (
        next((each.record.get("sender_name") for each in task.takes if agent in each.sender), None) or agent
    )


def _mismatch(task: FoldedTask, take: TaskEvent) -> TakeMismatch | None:
    values = descriptors.fields_of(task.record, take.record)
    text = descriptors.mismatch_sentence(
        take.record.get("sender_name") or take.sender[0], values, _asked(task, take)
    )
    return TakeMismatch(take.id, text, values) if text else None
