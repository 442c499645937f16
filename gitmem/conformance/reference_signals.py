"""The part of the reference that is about signals.

Records never change, and every answer is computed from all of them: the union of two places' records, in any order,
makes their answers the same.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from .adapter import Convergence, Options, Receipt, Refused, Session, Signal
from .definitions import (
    Called,
    PlaceRecords,
    age,
    content,
    holds,
    is_by,
    keyed,
    named_by,
    receipts_of,
    role_of,
    root_of,
    text,
    thread_of,
    without_own,
)

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
            "artifact_path": options.get("artifact_path"),
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
        """Return the named recipients, else the answered sender, else the thread's members; [] for a broadcast."""
        named = [part for each in options.get("to", ()) for part in each.split(",")]
        if options.get("broadcast"):
            return []
        parties: list[str] = []
        if signals and options.get("intent") in ("PROPOSE", "COUNTER"):
            parties = self.agreement(signals).parties
        own = (self.reader(session), session)
        parties = [each for each in parties if each not in own] if {*parties} & {*own} else []
        if named:
            unseen = options.get("allow_unseen", False)
            found = [who for each in named for who in self.addresses(session, each, unseen)]
            return list(dict.fromkeys([*found, *parties]))
        if parties:
            return parties
        if answered is not None:
            members = [answered["sender_identity"]]
        elif signals:
            members = [root_of(signals)["sender_identity"], *root_of(signals)["recipients"]]
        elif options.get("thread_id"):
            raise Refused(f"Unknown thread: {options['thread_id']}.")
        else:
            return []
        return [each for each in members if each not in (self.reader(session), session)]

    def seen(self, reader: str, signals: Mapping[str, Signal], answered: Signal | None) -> list[str]:
        """Return the `after` of a new signal: the ids that its writer knows, without those that the others imply."""
        ids = {
            id
            for id, each in signals.items()
            if is_by(each, reader)
            or self.has_read([reader], id)
            or (answered and id == answered["signal_id"])
        }
        return sorted(ids - {id for each in ids for id in named_by(signals[each])})

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
        return Agreement(signals, {each["id"]: [each["identity"] or each["id"]] for each in every})

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
    """

    def __init__(self, signals: Mapping[str, Signal], called: Called) -> None:
        self.signals = without_own(signals, called)
        self.root = root_of(signals)
        edges = {id: {each for each in named_by(one) if each in signals} for id, one in signals.items()}
        self._edges = {id: {to for to in names if id not in _reach(to, edges)} for id, names in edges.items()}
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

    def last(self, signals: Iterable[Signal]) -> list[Signal]:
        """Return those of these signals that none of the others follows."""
        every = list(signals)
        before = {id for each in every for id in _reach(each["signal_id"], self._edges, start=False)}
        return [each for each in every if each["signal_id"] not in before]

    def proposal_of(self, id: str | None) -> str | None:
        """Return the first proposal reached through `reply_to`; a signal without that field answers the root."""
        seen: set[str] = set()
        while id in self.signals and id not in seen and id not in self.ids:
            seen.add(id)
            id = self.signals[id].get("reply_to") or self.root["signal_id"]
        return id if id in self.ids else None

    def position(self, reader: str) -> tuple[str, set[str]]:
        """Return the strongest intent of a reader's latest decisions, and the proposals that these answer."""
        own = [
            each
            for each in self.signals.values()
            if (each["signal_id"] in self.ids or each["intent"] in ("AGREE", "REJECT"))
            and is_by(each, reader)
            and self.proposal_of(each["signal_id"])
        ]
        last = self.last(own)
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
        return max(self.last(own), key=lambda each: (self._rank(each), each["signal_id"]), default=None)

    def convergence(self, ambiguous: Collection[str], asked: str) -> Convergence:
        """Return the answer to the question whether a thread, or one of its proposals, has converged."""
        agreed = None if ambiguous else self.agreed_on
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
        return self.proposal_of(parent) if parent else self.proposal_of(signal["signal_id"])

    def _agreed_on(self) -> str | None:
        stands = [self.position(each) for each in self.parties]
        agreed = (id for id in self.ids if all(how != "reject" and on == {id} for how, on in stands))
        return next(agreed, None) if stands else None

    def _latest_proposals(self) -> list[str]:
        left = [each for each in self.proposals if not self._is_withdrawn(each)]
        return [each["signal_id"] for each in self.last(left)]

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
