"""The methods of a bus under test: six that every bus has, and optional ones.

An adapter translates between these methods and a bus. It makes no decisions: it adds no missing values, except the
contract's defaults for missing fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, Protocol, Required, TypedDict, Unpack

from .work_adapter import WorkBus

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
        agreed_on: The id of the proposal that every party has agreed to, or None.
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

    def second(self) -> FullBus:
        """Return another place of the same bus, which shares records with this one only by `exchange`."""

    def exchange(self) -> None:
        """Send this place's records to the other places, and fetch those that they have sent."""


class Factory(Protocol):
    """The function of `--adapter module:factory`."""

    def __call__(self, folder: Path) -> Bus:
        """Return a new, empty bus."""
