"""The terms of the contract, each as a function: thread, root, earlier, decision, content."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .. import records
from ..agents import vocabulary
from .adapter import Receipt, Signal
from .work_adapter import Descriptor

Called = Mapping[str, Collection[str]]  # a session's id → its other names

STATES = {"AGREE": "acked", "REJECT": "rejected"}
DECISIONS = ("AGREE", "REJECT", "COUNTER")
# Two signals with one key, perhaps sent in two clones, are the same if these fields are equal.
KEYED = records.KEYED["signal"]


class PlaceRecords:
    """All records of a place; they never change."""

    def __init__(self) -> None:
        self.signals: dict[str, Signal] = {}  # by their text: the same record is kept once
        self.receipts: dict[str, Mapping[str, Any]] = {}
        self.sessions: dict[str, Mapping[str, Any]] = {}
        self.ended: set[str] = set()
        self.tasks: dict[str, Mapping[str, Any]] = {}
        self.events: dict[str, Mapping[str, Any]] = {}  # of tasks
        self.claims: dict[str, Mapping[str, Any]] = {}
        self.unclaimed: set[str] = set()

    def add(self, other: PlaceRecords) -> None:
        """Add the records of another place."""
        self.signals.update(other.signals)
        self.receipts.update(other.receipts)
        self.sessions.update(other.sessions)
        self.ended.update(other.ended)
        self.tasks.update(other.tasks)
        self.events.update(other.events)
        self.claims.update(other.claims)
        self.unclaimed.update(other.unclaimed)


def keyed(sender: str, key: str) -> str:
    """Return twelve characters that are determined by sender and key."""
    return base64.b32hexencode(hashlib.sha256(f"{sender}\n{key}".encode()).digest()).decode().lower()[:12]


def text(record: Mapping[str, Any] | Signal) -> str:
    """Return a record as JSON with sorted keys; equal records have equal texts."""
    return json.dumps(record, sort_keys=True)


def age(signal: Signal) -> tuple[str, str]:
    """Return the sort key of a signal by age: its time, then its text."""
    return signal["created_at"], text(signal)


def content(signal: Signal) -> str:
    """Return the digest of a signal's content, which does not include its time."""
    whole: Any = signal
    key = signal.get("idempotency_key")
    is_keyed = bool(key) and signal["signal_id"] == f"sig-{keyed(signal['sender_identity'], str(key))}"
    fields = KEYED if is_keyed else [name for name in whole if name != "created_at"]
    values = {name: whole.get(name) or None for name in fields}
    return hashlib.sha256(text(values).encode()).hexdigest()


def thread_of(signal: Signal) -> str:
    """Return the thread of a signal. The thread of a broadcast has the id of its root."""
    return signal.get("thread_id") or signal["signal_id"]


def root_of(signals: Mapping[str, Signal]) -> Signal:
    """Return the oldest signal that answers no signal of the thread."""
    tops = [each for each in signals.values() if each.get("reply_to") not in signals]
    return min(tops or signals.values(), key=age)


def is_by(signal: Signal, reader: str) -> bool:
    """Return whether a reader (an agent identity or a session id) sent a signal."""
    return reader in (signal["sender_identity"], signal.get("sender_session"))


def named_by(signal: Signal) -> list[str]:
    """Return the ids that the writer of a signal had seen, according to the signal."""
    return [*signal.get("after", []), *filter(None, [signal.get("reply_to")])]


def without_own(signals: Mapping[str, Signal], called: Called) -> dict[str, Signal]:
    """Return a thread with the void decisions, and void proposals but the root, changed to INFO.

    One is void if it is about the sender's own proposal, and one of the two was sent in another's name (`via`).

    Args:
        signals: The signals of the thread.
        called: The other names of sessions: agent identities, and clients if a bus has them.
    """
    tops = [root_of(signals)] if signals else []
    proposals = [*tops, *(each for each in signals.values() if each["intent"] in ("PROPOSE", "COUNTER"))]

    def names(*ids: str | None) -> set[str]:
        return {name for id in ids if id for name in (id, *called.get(id, ()))}

    def own(each: Signal) -> set[str]:
        return names(each["sender_identity"], each.get("sender_session"))

    def is_void(each: Signal) -> bool:
        if each.get("via"):
            return any(
                names(each.get("via")) & (own(proposal) | names(proposal.get("via")))
                for proposal in proposals
            )
        return any(own(each) & names(proposal.get("via")) for proposal in proposals)

    return {
        id: {**each, "intent": "INFO"} if each not in tops and is_void(each) else each
        for id, each in signals.items()
    }


def receipts_of(
    signal: Signal,
    recorded: Iterable[Mapping[str, Any]],
    has_read: Collection[str],
    decided: Mapping[str, Signal | None],
    said: Iterable[Signal],
) -> list[Receipt]:
    """Return one receipt of each reader: the fields of its first record, and the state of its last or of its decision.

    Args:
        has_read: The recipients with a receipt or an answer for the signal.
        decided: The decision of each recipient.
        said: All signals.
    """
    id, found = signal["signal_id"], dict[str, Receipt]()
    for each in sorted(recorded, key=lambda each: str(each["read_at"])):
        if each["signal_id"] == id:
            reader = str(each["reader_identity"])
            first: Any = found.get(reader, each)
            found[reader] = {
                "signal_id": id, "reader_identity": reader, "read_at": first["read_at"],
                "delivery_state": str(each["delivery_state"]), "answers_digest": first.get("answers_digest"),
                "idempotency_key": first.get("idempotency_key"),
            }  # fmt: skip
    answers = [each for each in said if each.get("reply_to") == id]
    for reader, decision in decided.items():
        if decision is not None or reader in has_read:
            own = [each["created_at"] for each in answers if is_by(each, reader)]
            at = min(own, default=(decision or signal)["created_at"])
            new: Receipt = {
                "signal_id": id,
                "reader_identity": reader,
                "read_at": at,
                "delivery_state": "delivered",
            }
            found.setdefault(reader, new)
        if decision is not None:
            found[reader]["delivery_state"] = STATES.get(decision["intent"], "delivered")
    return list(found.values())


def descriptor_of(text: str) -> Descriptor | None:
    """Return the role that a text names: two parts, or an alias of the contract; None for an empty text."""
    alias = vocabulary.builtin().aliases.get(text)
    lifecycle, _, specialty = text.partition("/")
    if alias is not None:
        lifecycle, specialty = alias.lifecycle_role, alias.specialty_profile
    if not text:
        return None
    return {
        "lifecycle_role": lifecycle,
        "specialty_profile": specialty,
        "role_alias": text if alias else None,
        "capabilities": [],
    }


def role_of(session: Mapping[str, Any]) -> str | None:
    """Return the role of a session as its signals have it: the stated one, never a label in its agent identity."""
    stated = session.get("role")
    return f"{stated['lifecycle_role']}/{stated['specialty_profile']}" if stated else None


def holds(session: Mapping[str, Any], role: str) -> bool:
    """Return whether a session states a role, with any profile if that names none."""
    stated, wanted = session.get("role"), descriptor_of(role)
    if not stated or wanted is None:
        return False
    is_profile = wanted["specialty_profile"] in ("", stated["specialty_profile"])
    return is_profile and bool(wanted["lifecycle_role"] == stated["lifecycle_role"])
