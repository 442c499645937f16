"""The preparations of cases: agents, a proposal, and records of other programs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from .adapter import Bus, Signal

A, B, C, D = "claude:planner:one", "codex:builder:two", "gemini:tester:three", "cursor:editor:four"


def session(bus: Bus, identity: str | None = None, name: str | None = None) -> str:
    """Start a session and return its id."""
    return bus.start(identity=identity, name=name)["session_id"]


def sessions(bus: Bus, *identities: str) -> list[str]:
    """Start a session for each identity, and return their ids."""
    return [session(bus, identity) for identity in identities]


def messages(signals: Iterable[Signal]) -> list[str]:
    """Return the messages of signals, in their order."""
    return [signal["message"] for signal in signals]


def read(bus: Bus, *whose: str) -> list[list[str]]:
    """Return the messages that each session's inbox shows, and mark them as read."""
    return [messages(bus.inbox(each)) for each in whose]


def states(bus: Bus, signal_id: str) -> dict[str, str]:
    """Return the delivery state by reader. A second receipt of a reader fails the case."""
    receipts = bus.receipts(signal_id)
    found = {each["reader_identity"]: each["delivery_state"] for each in receipts}
    assert len(found) == len(receipts), f"more than one receipt of a reader: {receipts}"
    return found


def before(signal: Signal, known: dict[str, Signal]) -> set[str]:
    """Return the ids that a signal names as seen before it, and those that these signals name."""
    found: set[str] = set()
    todo = [signal]
    while todo:
        each = todo.pop()
        named = {*each.get("after", []), each.get("reply_to") or ""} - found
        found |= named
        todo += [known[id] for id in named if id in known]
    return found


class Proposal:
    """A proposal of A to B and C."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.a, self.b, self.c = sessions(bus, A, B, C)
        self.root = bus.send(self.a, "shall we?", to=[B, C], intent="PROPOSE")
        self.id = self.root["signal_id"]
        self.thread = self.root.get("thread_id") or ""

    def answer(self, session: str, intent: str, message: str = "an answer") -> Signal:
        """Answer the root as a session, with an intent."""
        return self.bus.send(session, message, reply_to=self.id, intent=intent)


def moment(hours: float) -> str:
    """Return the time in this many hours, in the contract's form."""
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def written(
    signal_id: str, sender: str, to: Sequence[str], message: str, *, hours: float = 0.0, **fields: Any
) -> dict[str, Any]:
    """Return a signal of another program, from another place or an earlier time."""
    thread = fields.pop("thread_id", None) or (f"thread-{signal_id[4:]}" if to else None)
    record = {
        "kind": "signal",
        "schema_version": "A2A.V1",
        "signal_id": signal_id,
        "created_at": moment(hours),
        "sender_identity": sender,
        "recipients": list(to),
        "thread_id": thread,
        "intent": "INFO",
        "interrupt_class": "priority" if to else "advisory",
        "requires_ack": False,
        "message": message,
        "origin": "local",
        **fields,
    }
    return {name: value for name, value in record.items() if value is not None}


def decided(root: Signal, signal_id: str, sender: str, intent: str, **fields: Any) -> dict[str, Any]:
    """Return another program's decision on a proposal; its `after` is the root unless it is given."""
    given: dict[str, Any] = {"after": [root["signal_id"]], "origin": "elsewhere", **fields}
    return written(
        signal_id,
        sender,
        [root["sender_identity"]],
        f"{intent} by {sender}",
        intent=intent,
        thread_id=root.get("thread_id"),
        reply_to=root["signal_id"],
        **given,
    )
