"""Agreement by need and veto, as docs/format.md says it and from nothing but lines; and whether what clones said of it was true.

It shares no code with `gitmem.order.thread`: each question is answered for one thread by itself, as slowly as it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gitmem import records
from gitmem.log.lines import digest, is_attestation
from gitmem.signals import threads
from gitmem.store import Store

DECIDING = ("PROPOSE", "COUNTER", "AGREE", "REJECT")
STRENGTH = {"AGREE": 0, "PROPOSE": 1, "COUNTER": 1, "REJECT": 2}


class Said:
    """That a clone said yes: where, of which thread and proposal, by whose consent, and what it had then."""

    def __init__(
        self, where: str, thread: str, proposal: str, agreeing: Collection[str], lines: Collection[bytes]
    ) -> None:
        self.where = where
        self.thread = thread
        self.proposal = proposal
        self.agreeing = agreeing
        self.lines = lines


class Votes:
    """One thread with a quorum.

    Args:
        root: Its root.
        signals: All signals of the log by id: the record of the lowest line, and all lines.
    """

    def __init__(self, root: str, signals: Mapping[str, tuple[Any, list[bytes]]]) -> None:
        first = signals[root][0]
        self.root, self.need, self.veto = root, int(first["need"]), first.get("veto", [])
        self.sender = first["sender_identity"]
        self.parties = [self.sender, *(each for each in first["recipients"] if each not in _names(first))]
        self.of = {
            id: each for id, (each, _) in signals.items() if each.get("thread_id") == first["thread_id"]
        }
        self.unclear = {id for id in self.of if len(signals[id][1]) > 1}
        self.counting = {id for id, each in self.of.items() if _counts(each, signals)}
        self.proposals = {
            id
            for id in self.counting
            if self.of[id]["intent"] in ("PROPOSE", "COUNTER") and self.is_party(id)
        } | {root}

    def is_party(self, id: str) -> bool:
        return any(each in self.parties for each in _names(self.of[id]))

    def about(self, id: str) -> str | None:
        """The proposal that a decision is on."""
        if id in self.proposals:
            return id
        at, passed = self.of[id].get("reply_to") or self.root, {id}
        while at not in self.proposals:
            if at not in self.of or at in passed or at in self.unclear or not self.is_party(at):
                return None
            if self.of[at]["intent"] in ("PROPOSE", "COUNTER"):
                return None
            passed.add(at)
            at = self.of[at].get("reply_to") or self.root
        return at

    def consents(self, party: str) -> str | None:
        """The one proposal that a party agrees to, or None."""
        own = {id for id, each in self.of.items() if party in _names(each)}
        edges = {
            id: [to for to in (*self.of[id].get("after", ()), self.of[id].get("reply_to")) if to in own]
            for id in own
        }
        edges = {id: [to for to in found if id not in _reached(to, edges)] for id, found in edges.items()}
        decided = {
            id for id in own & self.counting if self.of[id]["intent"] in DECIDING and (id in self.proposals or self.of[id]["intent"] in ("AGREE", "REJECT")) and self.about(id)
        }  # fmt: skip
        last = {id for id in decided if not any(id in _reached(other, edges) for other in decided - {id})}
        if not last or any(
            id in self.unclear
            and (id in self.proposals or self.of[id]["intent"] in ("AGREE", "REJECT", "COUNTER"))
            for id in own
        ):
            return None
        strength = {id: 1 if id == self.root else STRENGTH[self.of[id]["intent"]] for id in last}
        strongest = {id for id in last if strength[id] == max(strength.values())}
        on = {self.about(id) for id in strongest}
        return on.pop() if len(on) == 1 and max(strength.values()) < 2 else None

    def agreed(self) -> tuple[str | None, list[str]]:
        """What is agreed on, and who agrees to it."""
        stands = {each: self.consents(each) for each in self.parties}
        for id in sorted(self.proposals):
            agreeing = [each for each, on in stands.items() if on == id]
            author = self.of[id]["sender_identity"]
            required = {self.sender, author, *self.veto}
            if required <= {*agreeing} and len({*agreeing} - {author}) >= self.need:
                return id, agreeing
        return None, []


def _names(record: Any) -> list[str]:
    return [record["sender_identity"], *filter(None, [record.get("sender_session")])]


def _counts(record: Any, signals: Mapping[str, tuple[Any, list[bytes]]]) -> bool:
    if not record.get("reply_to"):
        return True
    answered = signals.get(record["reply_to"])
    return answered is not None and record.get("answers_digest") in map(digest, answered[1])


def _reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    found, todo = set(), [start]
    while todo:
        for to in edges.get(todo.pop(), ()):
            if to not in found:
                found.add(to)
                todo.append(to)
    return found


def votes(lines: Iterable[bytes]) -> dict[str, Votes]:
    """Return the threads with a quorum in a log of these lines, by root."""
    signals: dict[str, tuple[Any, list[bytes]]] = {}
    for line in sorted(lines):
        record: Any = None if is_attestation(line) else records.read(line)
        if record is not None and record["kind"] == "signal":
            signals.setdefault(record["signal_id"], (record, []))[1].append(line)
    return {
        id: Votes(id, signals)
        for id, (each, _) in signals.items()
        if each.get("need")
        and each["intent"] == "PROPOSE"
        and not each.get("reply_to")
        and each.get("thread_id") == f"thread-{id[4:]}"
    }


def lines_of(store: Store) -> frozenset[bytes]:
    return frozenset(str(body).encode() for (body,) in store.db().execute("SELECT body FROM line").fetchall())


def look(where: str, store: Store) -> tuple[list[Said], list[str]]:
    """Ask a clone about each thread with a quorum; return where it says yes, and where it says otherwise than its lines do."""
    with store.one_look():
        lines = lines_of(store)
        asked = {
            root: (of.agreed(), threads.converged(store, root).agreed_on) for root, of in votes(lines).items()
        }
    yes, wrong = [], []
    for root, ((expected, agreeing), found) in asked.items():
        said = found and found.signal_id
        if said != expected:
            wrong.append(f"{where} says that {root} agreed on {said}, and its lines say {expected}")
        if said:
            yes.append(Said(where, root, said, agreeing, lines))
    return yes, wrong


def false_yes(every: Iterable[Said], lines: frozenset[bytes]) -> list[str]:
    """Return where a clone said yes to what the union of all lines does not have, though nobody of those whom it counted has said more."""
    found, wrong = votes(lines), []
    for each in every:
        now = found[each.thread].agreed()[0] if each.thread in found else None
        more = [records.read(line) for line in lines - {*each.lines} if not is_attestation(line)]
        changed = any(
            record is not None
            and record["kind"] == "signal"
            and record.get("thread_id") == f"thread-{each.thread[4:]}"
            and record["intent"] in DECIDING
            and {*_names(record)} & {*each.agreeing}
            for record in more
        )  # fmt: skip
        if now != each.proposal and not changed:
            wrong.append(
                f"{each.where} said yes to {each.proposal} of {each.thread}, which is {now} without a change of mind"
            )
    return wrong
