"""What a bus has to offer to be tried: six methods, and four more for what not every bus can do.

An adapter translates between this and a bus. It decides nothing: what the bus does not say is not filled in,
but for the defaults that the contract has for a missing field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, Protocol, Required, TypedDict, Unpack

# What an adapter may lack, and what the cases need it for.
OPTIONAL = {
    "count": "to ask how much is unread, and nothing else",
    "watch": "to have signals pushed instead of asking for them",
    "take": "to take a record as another program wrote it",
    "second": "a second place that meets the first only in an exchange",
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
    artifact_path: str | None


class Receipt(TypedDict):
    """The one effective receipt of a reader for a signal."""

    signal_id: str
    reader_identity: str
    delivery_state: str


class Convergence(TypedDict):
    """Where the recipients of a thread's root stand, by their reader identities."""

    converged: bool
    agreed: list[str]
    rejected: list[str]
    countered: list[str]
    pending: list[str]
    ambiguous: list[str]


class Session(TypedDict):
    """A session, as the bus started it."""

    session_id: str
    display_name: str
    agent_identity: NotRequired[str | None]


class Options(TypedDict, total=False):
    """What may be said of a signal beside its text. A missing option is not the same as an empty one."""

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
    artifact_path: str


class Refused(Exception):  # noqa: N818  # an answer of the bus, and no error of anybody
    """The bus said no, and wrote nothing."""


class Bus(Protocol):
    """One place of a bus that nobody else uses meanwhile. A factory makes it of an empty folder, one for each case.

    Attributes:
        lacks: Which of `OPTIONAL` the bus can't do → why, as a sentence for the report. Whatever is
            neither here nor there is a failure.
    """

    lacks: Mapping[str, str]

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Start a session: by an agent identity, a display name, in a workspace, or by nothing of these."""

    def end(self, session: str) -> None:
        """End a session."""

    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Say something as a session. Raises: Refused."""

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """What the reader of a session has not read, oldest first; marked as read where `mark` says so."""

    def receipts(self, signal_id: str) -> list[Receipt]:
        """The receipts of a signal: of its recipients, and of whoever read a broadcast."""

    def converged(self, thread: str) -> Convergence:
        """Whether a thread has converged. Raises: Refused where that can't be asked of it."""

    def close(self) -> None:
        """The case is over."""


class Able(Bus, Protocol):
    """A bus with all of `OPTIONAL`."""

    def count(self, session: str) -> int:
        """How much is unread. Marks nothing."""

    def watch(self, session: str) -> list[Signal]:
        """What a watcher of a session is given now."""

    def take(self, record: Mapping[str, Any]) -> None:
        """Take a record from elsewhere as it is: fields of the contract, `kind` is `signal` or `receipt`."""

    def second(self) -> Able:
        """Another place of the same bus, of which this one hears only by an exchange."""

    def exchange(self) -> None:
        """Give to the other places what this one has, and take what they gave."""


class Factory(Protocol):
    """What `--adapter module:factory` names."""

    def __call__(self, folder: Path) -> Bus:
        """A new bus, with nothing in it."""
