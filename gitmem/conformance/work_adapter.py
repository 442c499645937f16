"""The methods of a bus under test that are about roles, tasks and claims. All of them are optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, Protocol, Required, TypedDict


class Descriptor(TypedDict):
    """The role of an agent (AgentRoleDescriptor). Its two parts count."""

    lifecycle_role: str
    specialty_profile: str
    role_alias: NotRequired[str | None]
    capabilities: list[str]


class Scope(TypedDict, total=False):
    """What an agent is responsible for (OwnershipScope)."""

    responsibility_kinds: Required[list[str]]
    initiative_id: str | None
    wu_ids: list[str]
    lane: str | None
    paths: list[str]


class Task(TypedDict):
    """A task, with what becomes of it.

    Attributes:
        agent: Whom it is for; None if any one may take it.
        state: `submitted`, `working`, `input-required`, `completed`, `failed`, `canceled` or `rejected`.
        holder: The reader who has taken it.
        actual_role: The role that its holder stated.
        role_mismatch: Whether that is another one than was requested.
        conflict: Whether several have taken it, each without knowing of the others.
        result: The text with which it ended.
        confirmed: Whether whoever asked for it has accepted its end.
    """

    task_id: str
    message: str
    sender_identity: str
    agent: str | None
    state: str
    requested_role: Descriptor | None
    requested_ownership_scope: Scope
    holder: str | None
    actual_role: Descriptor | None
    role_mismatch: bool
    conflict: bool
    result: str | None
    confirmed: bool


class Claim(TypedDict):
    """Paths that somebody is about to change.

    Attributes:
        owner: Its reader.
        contested: Whether somebody else claims one of its paths, each without knowing of the other.
    """

    claim_id: str
    owner: str
    paths: list[str]
    contested: bool


class WorkBus(Protocol):
    """A bus whose sessions have roles, delegate tasks and claim paths."""

    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role, `a/b` or an alias; "" removes it. Return what the session has then, None without one.

        Raises:
            Refused: The text cannot be a role.
        """

    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Ask somebody to do something, in a role and on these paths, and send that to them.

        Args:
            to: A reader, or `role:a/b` for any one.

        Raises:
            Refused: It names no role or no paths, or nobody.
        """

    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Change a task as a session.

        Args:
            event: By whoever does it: `take`, `release`, `ask` with a question, or `done` with the result. By whoever asked for it:
                `message` with an answer, `cancel`, or `seal`, which accepts its end.

        Raises:
            Refused: The session may not do that now.
        """

    def task(self, task_id: str) -> Task:
        """Return a task as this place shows it."""

    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Offer the tasks that a session has taken to another reader; they change hands when that one takes the task returned here.

        Raises:
            Refused: The session has not taken them.
        """

    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Claim paths: files, folders with what is in them, and patterns with `*`.

        Raises:
            Refused: Somebody else claims one of them.
        """

    def unclaim(self, session: str, claim_id: str) -> None:
        """Release a claim of the session."""

    def claims(self) -> list[Claim]:
        """Return all claims that stand."""


def as_descriptor(found: Mapping[str, Any]) -> Descriptor | None:
    """Return the role in an answer about a session, or None."""
    if not found.get("lifecycle_role"):
        return None
    return {
        "lifecycle_role": found["lifecycle_role"],
        "specialty_profile": found["specialty_profile"],
        "role_alias": found.get("role_alias"),
        "capabilities": list(found.get("capabilities") or ()),
    }


def as_task(found: Mapping[str, Any]) -> Task:
    """Return the fields of the contract from gitmem's answer about a task."""
    task, holder, end = found["task"], found["holder"] or {}, found["outcome"] or {}
    return {
        "task_id": task["task_id"],
        "message": task["message"],
        "sender_identity": task["sender_identity"],
        "agent": task.get("agent"),
        "state": found["state"],
        "requested_role": as_descriptor(task.get("requested_role") or {}),
        "requested_ownership_scope": task["requested_ownership_scope"]
        if task.get("requested_ownership_scope")
        else {"responsibility_kinds": []},
        "holder": holder.get("sender_identity"),
        "actual_role": as_descriptor(holder.get("actual_role") or {}),
        "role_mismatch": any(each["role_mismatch"] for each in found["mismatches"]),
        "conflict": found["conflict"],
        "result": end.get("message"),
        "confirmed": found["seal"] is not None,
    }


def as_claim(found: Mapping[str, Any]) -> Claim:
    """Return the fields of the contract from gitmem's row of a claim."""
    return {
        "claim_id": found["claim_id"],
        "owner": found["owner"],
        "paths": list(found["paths"]),
        "contested": found["status"] == "contested",
    }
