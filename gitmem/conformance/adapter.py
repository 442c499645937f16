"""The methods of a bus under test: those that every bus has, and optional ones.

An adapter translates between these methods and a bus. It makes no decisions: it adds no missing values, except the
contract's defaults for missing fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, Protocol, Required, TypedDict, Unpack


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
        """Release a claim of the session.

        Raises:
            Refused: It is somebody else's.
        """

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


# The methods that an adapter may lack, and why the cases need them.
OPTIONAL = {
    "count": "counts unread signals without reading them",
    "watch": "receives signals without asking",
    "take": "stores a record of another program unchanged",
    "second": "opens another place of the same bus",
    "role": "states the actual role of a session",
    "delegate": "delegates tasks, whose answers have what becomes of them",
    "handoff": "hands tasks over to somebody else",
    "claim": "claims paths",
    "judge": "says which signed lines count",
}


class Signal(TypedDict, total=False):
    """A signal with the contract's field names."""

    schema_version: Required[str]
    signal_id: Required[str]
    created_at: Required[str]
    sender_identity: Required[str]
    recipients: Required[list[str]]
    intent: Required[str]
    interrupt_class: Required[str]
    requires_ack: Required[bool]
    message: Required[str]
    origin: Required[str]
    sender_session: str | None
    target_agent: str | None
    workspace_id: str | None
    thread_id: str | None
    reply_to: str | None
    after: list[str]
    answers_digest: str | None
    via: str | None
    need: str | None
    veto: list[str]
    idempotency_key: str | None
    wu_id: str | None
    initiative_id: str | None
    lane: str | None
    sender_role: str | None
    target_role: str | None
    delegation_id: str | None
    artifact_path: str | None


class Receipt(TypedDict):
    """The one effective receipt of a reader for a signal."""

    signal_id: str
    reader_identity: str
    read_at: str
    delivery_state: str
    answers_digest: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class Convergence(TypedDict):
    """What a thread says now.

    Attributes:
        agreed_on: The id of the proposal that every party has agreed to, or as many as its root says, or None.
        in_force: That id, else the ids of the latest proposals.
        agreed, rejected, countered, pending: The parties that are asked, by their decision, as reader identities.
    """

    converged: bool
    agreed_on: str | None
    in_force: list[str]
    agreed: list[str]
    rejected: list[str]
    countered: list[str]
    pending: list[str]
    ambiguous: list[str]


class Session(TypedDict):
    """A session that the bus has started."""

    session_id: str
    display_name: str
    agent_identity: NotRequired[str | None]


class Options(TypedDict, total=False):
    """The optional fields of a new signal. A missing option is not the same as an empty one."""

    to: Sequence[str]
    broadcast: bool
    intent: str
    requires_ack: bool
    reply_to: str
    thread_id: str
    need: str
    veto: Sequence[str]
    interrupt_class: str
    idempotency_key: str
    allow_unseen: bool
    wu_id: str
    initiative_id: str
    lane: str
    target_role: str
    delegation_id: str
    artifact_path: str


class Refused(Exception):  # noqa: N818  # an answer of the bus, not an error
    """The bus has refused an operation, and has written nothing."""


class Bus(Protocol):
    """One place of a bus, used by one case. A factory makes it in an empty folder for each case.

    Attributes:
        lacks: The names from `OPTIONAL` that the bus does not support, each with the reason as a sentence for the
            report. A method that is neither there nor in `lacks` is a failure.
    """

    lacks: Mapping[str, str]

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Start a session, optionally with an agent identity, a display name or a workspace."""

    def end(self, session: str) -> None:
        """End a session."""

    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Send a signal as a session.

        Raises:
            Refused: The bus does not accept it.
        """

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """Return the unread signals of a session's reader, oldest first; mark them as read if `mark` is set."""

    def receipts(self, signal_id: str) -> list[Receipt]:
        """Return the receipts of a signal: those of its recipients, and of the readers of a broadcast."""

    def converged(self, thread: str) -> Convergence:
        """Return whether a thread, or one of its proposals, has converged.

        Args:
            thread: The id of a proposal, or of a thread.

        Raises:
            Refused: The thread is unknown.
        """

    def close(self) -> None:
        """End the use of the bus, after a case."""


class FullBus(Bus, WorkBus, Protocol):
    """A bus with all of `OPTIONAL`."""

    def count(self, session: str) -> int:
        """Return the number of unread signals. Marks nothing."""

    def watch(self, session: str) -> list[Signal]:
        """Return the signals that a watch of a session shows now."""

    def take(self, record: Mapping[str, Any]) -> None:
        """Write another program's record unchanged: fields of the contract, `kind` is `signal` or `receipt`."""

    def judge(self, lines: Sequence[str]) -> list[str]:
        """Return which lines count, in a log that has only these lines, which arrive in this order.

        Args:
            lines: Lines of docs/format.md, without LF.

        Returns:
            The lines in the order of their bytes, each once; of a forgotten line its reduced form; no attestations.
        """

    def second(self) -> FullBus:
        """Return another place of the same bus, which shares records with this one only by `exchange`."""

    def exchange(self) -> None:
        """Send this place's records to the other places, and fetch those that they have sent."""


class Factory(Protocol):
    """The function of `--adapter module:factory`."""

    def __call__(self, folder: Path) -> Bus:
        """Return a new, empty bus."""
