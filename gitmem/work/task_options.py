"""What a caller may say of a new task beside its message, declared once for the library, the commands and the tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003  (the types are evaluated for commands and tools)
from typing import Any, NotRequired, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.addressing import Resolved


class TaskOptions(TypedDict):
    """The options of a new task. One that is missing, None or empty is not given.

    Attributes:
        to: Whom it is for, as typed: one agent, session or person.
        resolved: Whom that names, where the caller has resolved it already.
        requested_to: The text that named a role, if that is not in `to`.
        resolved_by: How it did.
        target_role: The role that it is for, such as `reviewer/docs`; anybody may take it unless `to` is given.
        purpose: `delegation` (default), `call` or `handoff`.
        requested_role: The role in parts.
        requested_ownership_scope: What it covers.
        requested_model: The model that it is for.
        priority: P0 to P3.
        blocked_by: Tasks that must be finished before it.
        supersedes: Earlier tasks of the caller that it replaces.
        references: Other tasks that it refers to.
        within: The task that its writer works on, or `none`; by default the one open task that the caller's session has, if it has exactly one.
        chain: Instead of `within`: the tasks within which it is written, outermost first.
        again: Whether it may be for an agent who is in its chain already.
        deadline: The time after which nobody begins it, in microseconds since 1970-01-01 UTC.
        brief_digest: SHA-256 of the brief.
        artifact: The file of the brief.
        payload: Content beyond the text.
        context: Working memory that the caller hands over.
        semantics: `at-least-once` (default) or `at-most-once`.
        thread: The conversation that it belongs to; by default a new one.
        wu: Work unit.
        initiative: Initiative.
        lane: Lane.
        idempotency_key: The same key is the same task, on all clones of this user.
        handoff_takes, handoff_tasks: Of a handoff: the caller's takes, and the task of each.
        handoff_claims: Of a handoff: the caller's claims.
        handoff_threads: Of a handoff: the open threads.
        checkpoint: Of a handoff: the caller's last checkpoint.
        allow_unseen: Accept an agent identity that is not in the log yet.
    """

    to: NotRequired[str | None]
    resolved: NotRequired[Resolved | None]
    requested_to: NotRequired[str | None]
    resolved_by: NotRequired[str | None]
    target_role: NotRequired[str | None]
    purpose: NotRequired[str | None]
    requested_role: NotRequired[Mapping[str, Any] | None]
    requested_ownership_scope: NotRequired[Mapping[str, Any] | None]
    requested_model: NotRequired[str | None]
    priority: NotRequired[str | None]
    blocked_by: NotRequired[Sequence[str] | None]
    supersedes: NotRequired[Sequence[str] | None]
    references: NotRequired[Sequence[str] | None]
    within: NotRequired[str | None]
    chain: NotRequired[Sequence[str] | None]
    again: NotRequired[bool]
    deadline: NotRequired[int | None]
    brief_digest: NotRequired[str | None]
    artifact: NotRequired[str | None]
    payload: NotRequired[Mapping[str, Any] | None]
    context: NotRequired[Mapping[str, Any] | None]
    semantics: NotRequired[str | None]
    thread: NotRequired[str | None]
    wu: NotRequired[str | None]
    initiative: NotRequired[str | None]
    lane: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]
    handoff_takes: NotRequired[Sequence[str] | None]
    handoff_tasks: NotRequired[Sequence[str] | None]
    handoff_claims: NotRequired[Sequence[str] | None]
    handoff_threads: NotRequired[Sequence[str] | None]
    checkpoint: NotRequired[str | None]
    allow_unseen: NotRequired[bool]
