"""The sentences of the contract, each checked by the case whose docstring begins with it; and the preparations of cases."""

from __future__ import annotations

import datetime
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

from .adapter import Bus, Signal

# Group → its subject, and the module with its cases.
GROUPS = {
    "visibility": ("who sees which signal", "gitmem.conformance.test_visibility"),
    "routing": ("to whom a signal goes, and in which thread", "gitmem.conformance.test_routing"),
    "fields": ("what a signal carries", "gitmem.conformance.test_fields"),
    "roles": ("who does which part of the work", "gitmem.conformance.test_roles"),
    "tasks": ("what is asked of whom, who does it, and how it ends", "gitmem.conformance.test_tasks"),
    "claims": ("who changes what", "gitmem.conformance.test_claims"),
    "receipt": ("who has read a signal, and who has accepted it", "gitmem.conformance.test_receipt"),
    "convergence": ("whether all recipients agree", "gitmem.conformance.test_convergence"),
    "quorum": ("how many have to agree", "gitmem.conformance.test_quorum"),
    "signing": ("whose line is whose, and what is forgotten", "gitmem.conformance.test_signing"),
}
# What a bus of signals alone can do: docs/spec-core.md. `-m core` runs these groups.
CORE = ("visibility", "routing", "fields", "receipt", "convergence")
# A2A.V1: published; gitmem: gitmem's decisions where A2A.V1 has no rule.
SOURCES = ("A2A.V1", "gitmem")
_QUOTE = re.compile(rf"({'|'.join(map(re.escape, SOURCES))}): “(.+?)”", re.DOTALL)


F = TypeVar("F", bound=Callable[..., object])


def needs(*optional: str) -> Callable[[F], F]:
    """Return a decorator that notes which optional methods a case needs."""

    def note(case: F) -> F:
        vars(case)["needs"] = optional
        return case

    return note


def needed(case: Callable[..., object]) -> Sequence[str]:
    """Return the names from `adapter.OPTIONAL` that a case needs."""
    found: Sequence[str] = vars(case).get("needs", ())
    return found


class Case:
    """One case: its group, its name, its sentence, and the source of the sentence."""

    def __init__(self, group: str, name: str, function: Callable[..., object]) -> None:
        found = _QUOTE.match(inspect.getdoc(function) or "")
        if found is None:
            raise ValueError(f"{name} does not quote a sentence of the contract")
        self.group = group
        self.name = name
        self.source = found[1]
        self.sentence = " ".join(found[2].split())


def cases() -> Iterator[Case]:
    """Yield every case, in the order of the sources."""
    for group, (_, module) in GROUPS.items():
        for name, value in vars(import_module(module)).items():
            if name.startswith("test_"):
                yield Case(group, name.removeprefix("test_"), value)


def lines() -> Iterator[str]:
    """Yield the contract as lines of Markdown, for the terminal and for docs/conformance.md."""
    for group, (about, _) in GROUPS.items():
        yield f"### {group}: {about}"
        yield ""
        yield from (
            f"- `{case.name}` ({case.source}): {case.sentence}" for case in cases() if case.group == group
        )
        yield ""


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
    assert {each["signal_id"] for each in receipts} <= {signal_id}
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


def received(signal_id: str, reader: str, at: str, **fields: Any) -> dict[str, Any]:
    """Return a receipt of another program; it is `delivered` unless that is given."""
    head = {"kind": "receipt", "schema_version": "A2A.V1", "signal_id": signal_id}
    return {**head, "reader_identity": reader, "read_at": at, "delivery_state": "delivered", **fields}


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
