"""Records and sessions in the form of answers."""

from __future__ import annotations

from .. import strict_json
from ..log.lines import format_at
from ..records.ids import implied_role, role_id
from . import presence

_DESCRIPTOR = ("lifecycle_role", "specialty_profile", "role_alias")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, NotRequired, TypedDict

    from ..records.record_types import AuditRecord, NodeRecord, PatchRecord, SignalRecord
    from ..roles.scope import OwnershipScope
    from ..store import Store
    from .presence import Presence, ShownNames

    SentRecord = SignalRecord | NodeRecord | PatchRecord | AuditRecord

    class RoleRow(TypedDict):
        """What a session says of its role. `role` only shows its two parts; `implied_role` is from the identity."""

        role: str | None
        implied_role: str | None
        actual_role: dict[str, Any] | None
        lifecycle_role: str | None
        specialty_profile: str | None
        role_alias: str | None
        role_pack: str | None
        capabilities: list[str]
        actual_ownership_scope: OwnershipScope | None
        model: str | None
        branch: str | None
        task_id: str | None

    class SessionRow(RoleRow):
        """A session in an answer; only the roster has `unread`, which is None if counting takes too long, `handoffs`, and `edits`."""

        session_id: str
        display_name: str
        agent_identity: str | None
        reader_identity: str
        wu_id: str | None
        initiative_id: str | None
        lane: str | None
        activity: str | None
        summary: str | None
        worktree: str | None
        client: str | None
        workspace_id: str | None
        here: bool
        status: str
        last_seen: str
        headline: str
        unread: NotRequired[int | None]
        handoffs: NotRequired[list[str]]
        edits: NotRequired[list[str]]


def sender_name(store: Store, record: SentRecord) -> str | None:
    """Return the present name of a record's sender, else its name when it wrote."""
    return sender_name_from(presence.names_by_session(store.db()), record)


def sender_name_from(names: ShownNames, record: SentRecord) -> str | None:
    """Return the same as `sender_name`, for callers with many lookups."""
    session, name = record.get("sender_session"), record.get("sender_name")
    return (names.get(session) if session else None) or name


def role_row(record: Mapping[str, str], identity: str | None) -> RoleRow:
    """Return the role of a folded session, under the names of the role contract."""
    capabilities, scope = record.get("capabilities"), record.get("actual_ownership_scope")
    return {
        "role": role_id(record.get("lifecycle_role"), record.get("specialty_profile")),
        "implied_role": implied_role(identity),
        "actual_role": actual_role(record) or None,
        "lifecycle_role": record.get("lifecycle_role"),
        "specialty_profile": record.get("specialty_profile"),
        "role_alias": record.get("role_alias"),
        "role_pack": record.get("role_pack"),
        "capabilities": [str(each) for each in strict_json.read(capabilities)] if capabilities else [],
        "actual_ownership_scope": scope_of(scope) if scope else None,
        "model": record.get("model"),
        "branch": record.get("branch"),
        "task_id": record.get("task_id"),
    }


def actual_role(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the role that a folded session states, as a descriptor in the role contract's form; empty if it states none."""
    if not record.get("lifecycle_role"):
        return {}
    found: dict[str, Any] = {name: record[name] for name in _DESCRIPTOR if record.get(name)}
    return {**found, "capabilities": strict_json.read(record.get("capabilities") or "[]")}


def set_role_fields(answer: object, record: Mapping[str, str], identity: str | None) -> None:
    """Set the fields of `role_row` in an answer that has them as attributes."""
    for name, value in role_row(record, identity).items():
        setattr(answer, name, value)


def scope_of(text: str) -> OwnershipScope | None:
    """Return the scope that a folded session has as JSON, without what has another form."""
    from ..roles import scope

    return scope.read(strict_json.read(text))


def row(found: Presence, headline: str) -> SessionRow:
    """Return a session as `session list` and `roster` show it."""
    record = found.record
    return {
        "session_id": found.session_id,
        "display_name": found.name,
        "agent_identity": found.agent_identity,
        "reader_identity": found.reader,
        **role_row(record, found.agent_identity),  # type: ignore[typeddict-item]  # only the roster has `unread`
        "wu_id": found.wu_id,
        "initiative_id": record.get("initiative_id"),
        "lane": record.get("lane"),
        "activity": record.get("activity"),
        "summary": record.get("summary"),
        "worktree": found.worktree,
        "client": record.get("client"),
        "workspace_id": record.get("workspace_id"),
        "here": found.here,
        "status": found.status,
        "last_seen": format_at(found.last_seen),
        "headline": headline,
    }


def by_role(found: Iterable[Presence]) -> list[Presence]:
    """Return sessions grouped by their roles, those without one last; in each group last seen first."""
    return sorted(
        found, key=lambda one: (one.role is None, one.role or "", -one.last_seen, one.name, one.session_id)
    )
