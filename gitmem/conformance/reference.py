"""The contract as a simple program, a bus in memory: `--adapter gitmem.conformance.reference:Reference`.

The terms of the contract, each as a function: thread, root, earlier, decision, content.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Unpack

from .. import records
from ..agents import vocabulary
from ..outcome import Struct
from .adapter import Claim, Convergence, Descriptor, Options, Receipt, Refused, Session, Signal, Task
from .reference_lines import SignedLines

Called = Mapping[str, Collection[str]]  # a session's id → its other names

STATES = {"AGREE": "acked", "REJECT": "rejected"}
DECISIONS = ("AGREE", "REJECT", "COUNTER")
# Two signals with one key, perhaps sent in two clones, are the same if these fields are equal.
KEYED = records.KEYED["signal"]


class PlaceRecords(Struct):
    """All records of a place; they never change."""

    signals: dict[str, Signal] = {}  # by their text: the same record is kept once
    receipts: dict[str, Mapping[str, Any]] = {}
    sessions: dict[str, Mapping[str, Any]] = {}
    ended: set[str] = set()
    tasks: dict[str, Mapping[str, Any]] = {}
    events: dict[str, Mapping[str, Any]] = {}  # of tasks
    claims: dict[str, Mapping[str, Any]] = {}
    unclaimed: set[str] = set()

    def add(self, other: PlaceRecords) -> None:
        """Add the records of another place."""
        for name, mine in vars(self).items():
            mine.update(vars(other)[name])


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


INTENTS = ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT")
MESSAGE_BYTES_MAX = 64 * 1024

RANK = {"AGREE": 0, "PROPOSE": 1, "COUNTER": 1, "REJECT": 2}


class SignalReference:
    """One place of the bus. It does not use `folder`; `hub` has the records of exchanges, None for a new bus."""

    lacks: Mapping[str, str] = {}

    def __init__(self, folder: Path, hub: PlaceRecords | None = None) -> None:
        self.folder = folder
        self.hub = hub or PlaceRecords()
        self.records = PlaceRecords()
        self._last = 0

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Start a session; without a name its id is the display name."""
        id = f"sess-{self._new()}"
        record = {"id": id, "identity": identity, "name": name or id, "workspace": workspace}
        self.records.sessions[id] = record
        return {"session_id": id, "display_name": name or id, "agent_identity": identity}

    def end(self, session: str) -> None:
        """End a session, which frees its display name."""
        self.records.ended.add(session)

    def reader(self, session: str) -> str:
        """Return the reader of a session: its agent identity, or the session id if it has none."""
        return self.records.sessions[session]["identity"] or session

    def address(self, text: str, allow_unseen: bool) -> str:
        """Return the reader that a text names."""
        seen = {self.reader(id) for id in self.records.sessions}
        seen.update(each["sender_identity"] for each in self.signals().values())
        if text in self.records.sessions:
            return self.reader(text)
        if text in seen:
            return text
        for id, session in self.records.sessions.items():
            if session["name"] == text and id not in self.records.ended:
                return self.reader(id)
        if allow_unseen and text.count(":") == 2:
            return text
        raise Refused(f"Unknown recipient: {text}.")

    def addresses(self, session: str, text: str, allow_unseen: bool) -> list[str]:
        """Return the readers that a text names: one, or all who hold a role but the sender."""
        if not text.startswith("role:"):
            return [self.address(text, allow_unseen)]
        others = {
            id: each for id, each in self.records.sessions.items() if id not in (session, *self.records.ended)
        }
        held = [self.reader(id) for id, each in others.items() if holds(each, text[len("role:") :])]
        if not held:
            raise Refused(f"Nobody holds {text}.")
        return held

    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Send a signal as a session; the same key and content return the first signal again."""
        if not 0 < len(message.encode()) <= MESSAGE_BYTES_MAX:
            raise Refused("A message has 1 byte to 64 KiB.")
        if options.get("intent", "INFO") not in INTENTS:
            raise Refused(f"Invalid intent: {options['intent']}.")
        answered = self.signals().get(options.get("reply_to", ""))
        if answered is None and options.get("reply_to"):
            raise Refused(f"Unknown signal: {options['reply_to']}.")
        thread = options.get("thread_id") or (thread_of(answered) if answered else None)
        signals = self.thread(thread)
        recipients = self.recipients(session, options, answered, signals)
        if answered is None and signals:
            answered = root_of(signals)
        sender, key = self.reader(session), options.get("idempotency_key")
        vetoes = self.vetoes(session, options, recipients, begins=answered is None)
        recipients = list(dict.fromkeys([*recipients, *vetoes]))
        id = keyed(sender, key) if key else self._new()
        if thread is None and recipients:
            thread = f"thread-{id}"
        signal: Signal = {
            "schema_version": "A2A.V1", "signal_id": f"sig-{id}", "created_at": self._now(),
            "sender_identity": sender, "sender_session": session, "recipients": recipients,
            "target_agent": recipients[0] if recipients else None,
            "workspace_id": self.records.sessions[session]["workspace"], "thread_id": thread,
            "reply_to": answered["signal_id"] if answered else None,
            "after": self.seen(sender, signals, answered),
            "answers_digest": content(answered) if answered else None,
            "intent": options.get("intent", "INFO"),
            "interrupt_class": options.get("interrupt_class", "priority" if recipients else "advisory"),
            "requires_ack": options.get("requires_ack", False), "message": message, "idempotency_key": key,
            "origin": "local", "wu_id": options.get("wu_id"), "initiative_id": options.get("initiative_id"),
            "lane": options.get("lane"), "sender_role": role_of(self.records.sessions[session]),
            "target_role": options.get("target_role"), "delegation_id": options.get("delegation_id"),
            "artifact_path": options.get("artifact_path"), "need": options.get("need"), "veto": vetoes,
        }  # fmt: skip
        before = self.signals().get(signal["signal_id"])
        if before is None:
            self.records.signals[text(signal)] = signal
        elif content(before) != content(signal):
            raise Refused("The key was used for other content.")
        return before or signal

    def recipients(
        self, session: str, options: Options, answered: Signal | None, signals: Mapping[str, Signal]
    ) -> list[str]:
        """Return the named recipients, else whom a signal answers, else the thread's members; [] for a broadcast."""
        if options.get("broadcast"):
            return []
        own, unseen = (self.reader(session), session), options.get("allow_unseen", False)
        asks = bool(signals) and options.get("intent") in ("PROPOSE", "COUNTER")
        parties = self.agreement(signals).parties if asks else []
        texts = [part for each in options.get("to", ()) for part in each.split(",")]
        named = [who for each in texts for who in self.addresses(session, each, unseen)]
        if named:
            added = [each for each in parties if each not in own] if {*parties} & {*own} else []
            return list(dict.fromkeys([*named, *added]))
        parent = answered or (root_of(signals) if signals else None)
        if parent is None:
            if options.get("thread_id"):
                raise Refused(f"Unknown thread: {options['thread_id']}.")
            return []
        members = [*parties, parent["sender_identity"]]
        if parties or answered is None:
            members += parent["recipients"]
        elif any(is_by(parent, each) for each in own):  # what follows a signal goes where that went
            members = list(parent["recipients"])
        members = list(dict.fromkeys(members))
        return [each for each in members if each not in own] or members

    def vetoes(self, session: str, options: Options, asked: Collection[str], *, begins: bool) -> list[str]:
        """Return the addresses of those who have to agree in any case; refuse a quorum that can't be."""
        named = [part for each in options.get("veto", ()) for part in each.split(",")]
        unseen, own = options.get("allow_unseen", False), {self.reader(session), session}
        found = list(dict.fromkeys(who for each in named for who in self.addresses(session, each, unseen)))
        need = options.get("need", "")
        is_count = need.isdecimal() and 0 < int(need) <= len({*asked, *found} - own)
        is_first = begins and options.get("intent") == "PROPOSE" and not options.get("broadcast")
        if ("need" in options or found) and not (is_count and is_first and own.isdisjoint(found)):
            raise Refused("A proposal that begins a thread says how many of the others have to agree.")
        return found

    def seen(self, reader: str, signals: Mapping[str, Signal], answered: Signal | None) -> list[str]:
        """Return the `after` of a new signal: the ids that its writer knows, without those that the others imply."""
        known = [
            each
            for id, each in signals.items()
            if is_by(each, reader)
            or self.has_read([reader], id)
            or (answered and id == answered["signal_id"])
        ]
        of_parties = self.agreement(signals).of_parties(known) if known else []
        found: set[str] = set()
        for some in known, of_parties, [each for each in known if is_by(each, reader)]:
            ids = {each["signal_id"] for each in some}
            found |= ids - {id for each in some for id in named_by(each)}
        return sorted(found)

    def take(self, record: Mapping[str, Any]) -> None:
        """Keep a record as it is; a missing `recipients` becomes `target_agent`."""
        if record["kind"] == "receipt":
            self.records.receipts[text(record)] = dict(record)
            return
        signal: Any = {name: value for name, value in record.items() if name != "kind"}
        alias = signal.get("target_agent")
        signal.setdefault("recipients", [alias] if alias else [])
        self.records.signals[text(signal)] = signal

    def signals(self) -> dict[str, Signal]:
        """Return every signal by id; if an id has several records, the oldest."""
        found: dict[str, Signal] = {}
        for each in sorted(self.records.signals.values(), key=age):
            if each["schema_version"] == "A2A.V1":
                found.setdefault(each["signal_id"], each)
        return found

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """Return the unread signals of a session, oldest first."""
        unread = [
            each
            for id, each in self.signals().items()
            if self.is_for(session, each) and not self.has_read([self.reader(session), session], id)
        ]
        shown = [
            each
            for each in unread
            if (thread is None or thread_of(each) == thread) and (not intents or each["intent"] in intents)
        ]
        for each in shown if mark else ():
            self.take(
                {
                    "kind": "receipt",
                    "signal_id": each["signal_id"],
                    "read_at": self._now(),
                    "reader_identity": self.reader(session),
                    "delivery_state": "delivered",
                }
            )
        return shown

    def is_for(self, session: str, signal: Signal) -> bool:
        """Return whether a session's inbox may show a signal, read or not."""
        workspace = self.records.sessions[session]["workspace"]
        if workspace and signal.get("workspace_id") not in (None, workspace):
            return False
        own = (self.reader(session), session)
        if signal["recipients"]:
            return any(each in own for each in signal["recipients"])
        return signal["sender_identity"] not in own and signal.get("sender_session") not in own

    def has_read(self, readers: Sequence[str], signal_id: str) -> bool:
        """Return whether a receipt or answer of a reader has no digest, or that of one of the signal's contents."""
        return any(
            each["signal_id"] == signal_id
            and each["reader_identity"] in readers
            and each.get("answers_digest") in (None, *self.contents(signal_id))
            for each in self.records.receipts.values()
        ) or any(
            (each.get("reply_to"), each.get("via")) == (signal_id, None) and self.counts(each)
            for each in self.signals().values()
            if any(is_by(each, reader) for reader in readers)
        )

    def contents(self, signal_id: str) -> set[str]:
        """Return the digests of all records of an id."""
        return {content(each) for each in self.records.signals.values() if each["signal_id"] == signal_id}

    def counts(self, signal: Signal) -> bool:
        """Return whether a signal answers nothing or an existing content. Signals from elsewhere may have no digest."""
        answered, digest = signal.get("reply_to"), signal.get("answers_digest")
        return not answered or (digest in self.contents(answered) if digest else signal["origin"] != "local")

    def count(self, session: str) -> int:
        """Return the number of unread signals of a session."""
        return len(self.inbox(session, mark=False))

    def watch(self, session: str) -> list[Signal]:
        """Return the unread signals of a session, and mark them as read."""
        return self.inbox(session)

    def receipts(self, signal_id: str) -> list[Receipt]:
        """Return one receipt for each reader of a signal; a decision overrides a recorded state."""
        signal = self.signals()[signal_id]
        said = self.thread(thread_of(signal))
        has_read = {each for each in signal["recipients"] if self.has_read([each], signal_id)}
        decided = {each: self.decision(each, signal_id, said) for each in signal["recipients"]}
        return receipts_of(signal, self.records.receipts.values(), has_read, decided, self.signals().values())

    def thread(self, thread: str | None) -> dict[str, Signal]:
        """Return the signals of a thread; decisions on unknown contents become INFO."""
        found = {id: each for id, each in self.signals().items() if thread and thread_of(each) == thread}
        for id, each in found.items():
            if not self.counts(each):
                found[id] = {**each, "intent": "INFO"}
        return found

    def converged(self, thread: str) -> Convergence:
        """Return whether a thread, or the proposal with this id, has converged, and where each party stands."""
        id = thread_of(self.signals()[thread]) if thread in self.signals() else thread
        signals = self.thread(id)
        if not signals:
            raise Refused("The thread is unknown.")
        return self.agreement(signals).convergence(self.ambiguous(signals), thread)

    def agreement(self, signals: Mapping[str, Signal]) -> Agreement:
        """Return what a thread says now."""
        every = self.records.sessions.values()
        called = {each["id"]: [each["identity"] or each["id"]] for each in every}
        return Agreement(signals, called, self.ambiguous(signals))

    def decision(self, reader: str, signal_id: str, signals: Mapping[str, Signal]) -> Signal | None:
        """Return a reader's latest decision on a signal of a thread, or None."""
        return self.agreement(signals).answer(reader, signal_id)

    def ambiguous(self, signals: Mapping[str, Signal]) -> list[str]:
        """Return the ids with more than one content."""
        return [id for id in signals if len(self.contents(id)) > 1]

    def second(self) -> SignalReference:
        """Return another place of the same bus."""
        return type(self)(self.folder, self.hub)

    def exchange(self) -> None:
        """Give all records to the hub, and take all of its records."""
        self.hub.add(self.records)
        self.records.add(self.hub)

    def close(self) -> None:
        """Do nothing."""
        return

    def _now(self) -> str:
        """Return the time, later than every earlier result of this place."""
        self._last = max(time.time_ns() // 1000, self._last + 1)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._last // 1_000_000))
        return f"{at}.{self._last % 1_000_000:06}Z"

    def _new(self) -> str:
        return keyed(str(id(self)), self._now())


class Agreement:
    """The parties of a thread, their proposals, and where each stands.

    Args:
        signals: The signals of the thread by id; those that do not count are INFO.
        called: The other names of sessions, see `without_own`.
        ambiguous: The ids with more than one content.
    """

    def __init__(
        self, signals: Mapping[str, Signal], called: Called, ambiguous: Collection[str] = ()
    ) -> None:
        self.signals = without_own(signals, called)
        self.root = root_of(signals)
        self._ambiguous = ambiguous
        self.parties = self.parties_of(self.root)
        self.proposals = [
            each
            for each in self.signals.values()
            if each["signal_id"] == self.root["signal_id"]
            or (each["intent"] in ("PROPOSE", "COUNTER") and self.may_propose(each))
        ]
        self.ids = {each["signal_id"] for each in self.proposals}
        self.agreed_on = self._agreed_on()
        self.in_force = [self.agreed_on] if self.agreed_on else self._latest_proposals()

    def parties_of(self, root: Signal) -> list[str]:
        """Return the parties: the root's sender and its other recipients; none if there are no others."""
        others = [each for each in root["recipients"] if not is_by(root, each)]
        return list(dict.fromkeys([root["sender_identity"], *others])) if others else []

    def may_propose(self, signal: Signal) -> bool:
        """Return whether a signal is of a party."""
        return any(is_by(signal, party) for party in self.parties)

    def of_parties(self, signals: Iterable[Signal]) -> list[Signal]:
        """Return those of these signals that are of a party; all if there are no parties."""
        return [each for each in signals if not self.parties or self.may_propose(each)]

    def last(self, signals: Iterable[Signal], among: Iterable[Signal]) -> list[Signal]:
        """Return those of these signals that none of the others follows, by what these and the signals among them name."""
        every, named = list(signals), {each["signal_id"]: named_by(each) for each in among}
        edges = {id: {to for to in names if to in named} for id, names in named.items()}
        edges = {id: {to for to in names if id not in _reach(to, edges)} for id, names in edges.items()}
        before = {id for each in every for id in _reach(each["signal_id"], edges, start=False)}
        return [each for each in every if each["signal_id"] not in before]

    def last_of(self, reader: str, signals: Iterable[Signal]) -> list[Signal]:
        """Return the last ones of some signals of a reader, as it alone has ordered them."""
        return self.last(signals, (each for each in self.signals.values() if is_by(each, reader)))

    def proposal_of(self, id: str) -> str | None:
        """Return the proposal that a signal belongs to: itself, or the first one reached from what it answers."""
        if id in self.ids:
            return id
        one = self.signals[id]
        return None if one["intent"] in ("PROPOSE", "COUNTER") else self.reached(self._parent(one))

    def reached(self, id: str | None) -> str | None:
        """Return the first proposal from a signal on, through `reply_to`.

        Nothing leads past another PROPOSE or COUNTER, what is of no party, or ambiguous.
        """
        seen: set[str] = set()
        while id in self.signals and id not in seen and id not in self.ids:
            at = self.signals[id]
            if at["intent"] in ("PROPOSE", "COUNTER") or id in self._ambiguous or not self.of_parties([at]):
                return None
            seen.add(id)
            id = self._parent(at)
        return id if id in self.ids else None

    def _parent(self, signal: Signal) -> str:
        return signal.get("reply_to") or self.root["signal_id"]

    def position(self, reader: str) -> tuple[str, set[str]]:
        """Return the strongest intent of a reader's latest decisions, and the proposals that these answer."""
        own = [
            each
            for each in self.signals.values()
            if (each["signal_id"] in self.ids or each["intent"] in ("AGREE", "REJECT"))
            and is_by(each, reader)
            and self.proposal_of(each["signal_id"])
        ]
        last = self.last_of(reader, own)
        most = max(map(self._rank, last), default=-1)
        on = {self.proposal_of(each["signal_id"]) or "" for each in last if self._rank(each) == most}
        return ("pending", "agree", "counter", "reject")[most + 1], on

    def answer(self, reader: str, id: str) -> Signal | None:
        """Return a reader's latest decision on a signal: it answers that signal, or one that belongs to it."""
        own = [
            each
            for each in self.signals.values()
            if (each["intent"] in ("AGREE", "REJECT", "COUNTER") or each["signal_id"] in self.ids)
            and is_by(each, reader)
            and id
            in (
                each.get("reply_to"),
                self._answered(each),
                self.ids & {each["signal_id"]} and each["signal_id"],
            )
        ]
        return max(
            self.last_of(reader, own), key=lambda each: (self._rank(each), each["signal_id"]), default=None
        )

    def decides(self, id: str) -> bool:
        """Return whether a signal is a proposal, or a party's decision."""
        signal = self.signals[id]
        return id in self.ids or (self.may_propose(signal) and signal["intent"] in ("AGREE", "REJECT"))

    def convergence(self, ambiguous: Collection[str], asked: str) -> Convergence:
        """Return the answer to the question whether a thread, or one of its proposals, has converged."""
        agreed = self.agreed_on
        found: Convergence = {
            "converged": agreed is not None and (asked not in self.ids or asked == agreed),
            "agreed_on": agreed, "in_force": list(self.in_force), "agreed": [], "rejected": [], "countered": [],
            "pending": [], "ambiguous": list(ambiguous),
        }  # fmt: skip
        lists = {"agree": "agreed", "reject": "rejected", "counter": "countered", "pending": "pending"}
        sender, root = self.root["sender_identity"], self.root["signal_id"]
        for party in self.parties if self.in_force else ():
            how, on = self.position(party)
            if party == sender and how != "reject" and on == {root} == {*self.in_force}:
                continue  # nobody asks it
            if not on & {*self.in_force} or (how != "reject" and len(on) > 1):
                how = "pending"
            if how == "counter" and (agreed or on == {root}):
                how = "agree"
            of: list[str] = found[lists[how]]  # type: ignore[literal-required]
            of.append(party)
            if how == "counter":
                found["agreed"].append(party)
        return found

    def _rank(self, signal: Signal) -> int:
        return 1 if signal["signal_id"] in self.ids else RANK[signal["intent"]]

    def _answered(self, signal: Signal) -> str | None:
        parent = signal.get("reply_to")
        return self.reached(parent) if parent else self.proposal_of(signal["signal_id"])

    def _agreed_on(self) -> str | None:
        return next(filter(self.has_agreement, self.ids), None) if self.parties else None

    def has_agreement(self, id: str) -> bool:
        """Return whether all parties agree to a proposal, or as many, and those, as the root says."""
        unclear = [self.signals[each] for each in self._ambiguous if self.decides(each)]
        agreeing = {
            each
            for each in self.parties
            if not any(is_by(one, each) for one in unclear)
            for how, on in [self.position(each)]
            if how != "reject" and on == {id}
        }
        need = (
            self.root.get("need")
            if self.root["intent"] == "PROPOSE" and not self.root.get("reply_to")
            else None
        )
        if not need:
            return agreeing == {*self.parties}
        authors = {each for each in self.parties if is_by(self.signals[id], each)}
        required = {self.root["sender_identity"], *authors, *self.root.get("veto", ())}
        return required <= agreeing and len(agreeing - authors) >= int(need)

    def _latest_proposals(self) -> list[str]:
        left = [each for each in self.proposals if not self._is_withdrawn(each)]
        return [each["signal_id"] for each in self.last(left, self.of_parties(self.signals.values()))]

    def _is_withdrawn(self, proposal: Signal) -> bool:
        id, writers = proposal["signal_id"], (proposal["sender_identity"], proposal.get("sender_session"))
        last = [self.answer(each, id) for each in writers if each]
        return any(
            each is not None and each["intent"] == "REJECT" and each["signal_id"] != id for each in last
        )


def _reach(id: str, edges: Mapping[str, Collection[str]], *, start: bool = True) -> set[str]:
    """Return the ids that can be reached from an id, with itself if `start` is set."""
    found, todo = ({id} if start else set()), [id]
    while todo:
        new = set(edges[todo.pop()]) - found
        found |= new
        todo += new
    return found


Event = Mapping[str, Any]


class Reference(SignalReference, SignedLines):
    """One place of the bus: signals, roles, tasks, claims and verdicts on lines."""

    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role."""
        found = descriptor_of(role)
        self.records.sessions[session] = {**self.records.sessions[session], "role": found}
        return found

    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Record a task, and send it to whom it is for."""
        stated = (each.get("role") for each in self.records.sessions.values() if to in each.values())
        asked = (
            descriptor_of(role)
            if role
            else next(filter(None, stated), descriptor_of(vocabulary.builtin().default_lifecycle))
        )
        if asked is None:
            raise Refused("A delegation names a role.")
        kinds = vocabulary.builtin().lifecycle_roles.get(asked["lifecycle_role"], ())
        scope = {"responsibility_kinds": [*kinds], "paths": [*paths]}
        wanted = to.removeprefix("role:") if to.startswith("role:") else None
        task = self._record(
            session,
            message,
            agent=None if wanted else self.address(to, False),
            wanted=wanted,
            role=asked,
            scope=scope,
            handed=[],
        )
        told = [each for each in self.records.sessions.values() if wanted and holds(each, wanted)]
        if told or not wanted:
            self.send(
                session, message, to=[to], delegation_id=task["task_id"], intent="PROPOSE", requires_ack=True
            )
        return task

    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Record a task that hands others over."""
        for id in task_ids:
            if self._holder(id) != session:
                raise Refused(f"{id} is not yours.")
        return self._record(
            session,
            "handoff",
            agent=self.address(to, False),
            wanted=None,
            role=None,
            scope={"responsibility_kinds": []},
            handed=[*task_ids],
        )

    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Record an event of a task, and of a taken handoff one of each task that it hands over."""
        task, shown = self.records.tasks[task_id], self.task(task_id)
        if event == "seal":
            if task["session"] != session or shown["confirmed"] or shown["result"] is None:
                raise Refused("Only the session that asked accepts an end, once.")
        elif shown["state"] in ("completed", "canceled"):
            raise Refused(f"It is {shown['state']}.")
        elif event == "take":
            self._check_take(session, task, shown)
        elif event in ("message", "cancel"):
            if task["sender"] != self.reader(session):
                raise Refused("Somebody else asked for it.")
        elif self._holder(task_id) != session and session not in [
            each["session"] for each in self._held(task_id)
        ]:
            raise Refused("You have not taken it.")
        ended = next((each["id"] for each in self._ends(task_id)), None)
        for id in (task_id, *(task["handed"] if event == "take" else ())):
            self._add(id, session, event, text, ended)
        return self.task(task_id)

    def task(self, task_id: str) -> Task:
        """Return a task with what its events make of it."""
        task, events = self.records.tasks[task_id], self._events(task_id)
        seal = next((each for each in events if each["event"] == "seal"), None)
        end = next(
            (each for each in self._ends(task_id) if seal is None or each["id"] == seal["ended"]), None
        )
        held = self._held(task_id)
        holder = held[0] if held else None
        actual = holder["role"] if holder else None
        is_canceled = any(each["event"] == "cancel" for each in events) and not held
        state = "completed" if end else "canceled" if is_canceled else self._open_state(events, holder)
        asked = task["role"]
        return {
            "task_id": task_id, "message": task["message"], "sender_identity": task["sender"], "agent": task["agent"],
            "state": state, "requested_role": asked, "requested_ownership_scope": task["scope"],
            "holder": holder["by"] if holder else None, "actual_role": actual,
            "role_mismatch": bool(asked and actual and _parts(asked) != _parts(actual)), "conflict": len(held) > 1,
            "result": end["text"] if end else None, "confirmed": seal is not None or is_canceled,
        }  # fmt: skip

    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Record a claim on paths that nobody else claims."""
        who, stands = self.reader(session), self.claims()
        if any(each["owner"] != who and self.overlap(each["paths"], paths) for each in stands):
            raise Refused("Somebody else claims one of these paths.")
        id = f"claim-{self._new()}"
        seen = [*self.records.claims]
        self.records.claims[id] = {"claim_id": id, "owner": who, "paths": [*paths], "seen": seen}
        return self._shown(id)

    def unclaim(self, session: str, claim_id: str) -> None:
        """Record that a claim of the session's reader has ended."""
        if self.records.claims[claim_id]["owner"] != self.reader(session):
            raise Refused(f"{claim_id} is somebody else's.")
        self.records.unclaimed.add(claim_id)

    def claims(self) -> list[Claim]:
        """Return the claims that have not ended."""
        return [self._shown(id) for id in sorted(self.records.claims) if id not in self.records.unclaimed]

    @staticmethod
    def overlap(some: Iterable[str], others: Sequence[str]) -> bool:
        """Return whether two lists of paths have a file in common. Of two patterns one must be a path without `*`."""
        return any(_covers(one, other) or _covers(other, one) for one in some for other in others)

    def _shown(self, id: str) -> Claim:
        one = self.records.claims[id]
        contested = any(
            other["owner"] != one["owner"]
            and self.overlap(other["paths"], one["paths"])
            and id not in other["seen"]
            and name not in one["seen"]
            and name not in self.records.unclaimed
            for name, other in self.records.claims.items()
        )
        return {"claim_id": id, "owner": one["owner"], "paths": [*one["paths"]], "contested": contested}

    def _record(self, session: str, message: str, **fields: Any) -> Task:
        id = f"task-{self._new()}"
        self.records.tasks[id] = {
            "session": session,
            "sender": self.reader(session),
            "message": message,
            **fields,
        }
        return self.task(id)

    def _add(self, task_id: str, session: str, event: str, text: str, ended: str | None) -> None:
        id = f"tev-{self._new()}"
        self.records.events[id] = {
            "id": id, "task": task_id, "event": event, "by": self.reader(session), "session": session, "text": text,
            "at": self._now(), "ended": ended, "seen": [each["id"] for each in self._events(task_id)],
            "role": self.records.sessions[session].get("role"),
        }  # fmt: skip

    def _check_take(self, session: str, task: Mapping[str, Any], shown: Task) -> None:
        """Raise Refused if somebody else has a task, or it is for somebody else."""
        if task["agent"] not in (None, self.reader(session)):
            raise Refused(f"It is for {task['agent']}.")
        if shown["holder"]:
            raise Refused(f"{shown['holder']} has it.")

    def _events(self, task_id: str) -> list[Event]:
        found = [each for each in self.records.events.values() if each["task"] == task_id]
        return sorted(found, key=lambda each: (each["at"], each["id"]))

    def _held(self, task_id: str) -> list[Event]:
        """Return the takes that nobody had seen who took it later, and that their takers have not given back."""
        events = self._events(task_id)
        takes = [each for each in events if each["event"] == "take"]
        given_back = {each["session"]: each["seen"] for each in events if each["event"] == "release"}
        return [
            each
            for each in takes
            if each["id"] not in given_back.get(each["session"], ())
            and not any(each["id"] in later["seen"] for later in takes)
        ]

    def _holder(self, task_id: str) -> str | None:
        held = self._held(task_id)
        return str(held[0]["session"]) if held else None

    def _ends(self, task_id: str) -> list[Event]:
        return [each for each in self._events(task_id) if each["event"] == "done"]

    @staticmethod
    def _open_state(events: Sequence[Event], holder: Event | None) -> str:
        said = [each["event"] for each in events if each["event"] in ("take", "ask", "message", "release")]
        if holder is None:
            return "submitted"
        return {"ask": "input-required", "message": "submitted"}.get(said[-1], "working")


def _covers(pattern: str, path: str) -> bool:
    return path == pattern or path.startswith(f"{pattern}/") or fnmatchcase(path, pattern)


def _parts(role: Mapping[str, Any]) -> tuple[str, str]:
    return role["lifecycle_role"], role["specialty_profile"]
