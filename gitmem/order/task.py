"""Reduce the events of one task to its state, the same on every clone and in any order of arrival.

The order of events is causal, by the events that each writer had seen, of those who have to do with the task: nobody else orders what they
do. Events that it does not order are ordered by `(at, bytes)`.
docs/format.md section 15 has the rules. Clocks decide nothing: whether a take is void depends on the leases that its writer
had seen and on the time in its own line.
"""

from __future__ import annotations

from ..log.lines import digest, parse_at
from ..records.ids import is_bound, is_of_somebody, is_of_writer, keyed_id
from ..text.addresses import PERSON, writer_of
from .causal import CausalOrder, by_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..records.record_types import TaskEventRecord, TaskRecord

    Sender = tuple[str, str | None]


TERMINAL = ("completed", "failed", "canceled", "rejected")
WAITING = ("input-required", "auth-required")
SUBMITTED, WORKING = "submitted", "working"
HANDOFF, DELEGATION = "handoff", "delegation"
TAKERS_MAX = 100  # agents that have taken a task, whose claims are compared
LEASE_MAX_MICROS = 24 * 3600 * 1_000_000
_NAMED = ("take", "outcome", "launch", "relaunch_of")  # fields with an id that the writer must have seen


class TaskEvent:
    """An event of a task.

    Lines start with their time, so they sort by `(at, bytes)`. Of several lines of one id the lowest counts.

    Attributes:
        named: The ids of the events that its writer had seen.
        sender: Identity and session of its writer.
        replaces: Of the acceptance of a handoff: the giver's take that it replaces.
        giver: Of the acceptance of a handoff: the writer of the handoff.
        versions: The events of all lines with its id, itself first.
    """

    __slots__ = (
        "event", "giver", "id", "line", "named", "record", "replaces", "sender", "versions",
    )  # fmt: skip

    def __init__(self, record: TaskEventRecord, line: bytes) -> None:
        self.record = record
        self.id = record["event_id"]
        self.event = record["event"]
        self.line = line
        self.versions = [self]
        self.sender = sender_of(record)
        self.named = set(record.get("after") or ())
        for name in _NAMED:
            id = record.get(name)
            if id is not None:
                self.named.add(id)  # type: ignore[arg-type]
        self.replaces: str | None = None
        self.giver: Sender | None = None

    @property
    def at(self) -> int:
        """The time of its line in microseconds."""
        return micros(self.record["at"])

    @property
    def take(self) -> str | None:
        """The take under which it was written; for a take its own id."""
        return self.id if self.event == "take" else self.record.get("take")

    @property
    def state(self) -> str | None:
        """The state that it reports or decides."""
        return self.record.get("state")

    @property
    def until(self) -> int:
        """The end of the lease that it gives; leases longer than allowed are cut."""
        return min(micros(self.record.get("until")), self.at + LEASE_MAX_MICROS)

    @property
    def is_terminal(self) -> bool:
        """Whether it reports that the work has ended."""
        return self.event == "status" and self.state in TERMINAL

    @property
    def is_retryable(self) -> bool:
        """Whether it reports a failure after which somebody else may take the task."""
        return self.state == "failed" and self.record.get("retryable") is True

    @property
    def is_derived(self) -> bool:
        """Whether its id is the free one of such an event: anybody could give it to another event."""
        return self.event == "escalate" and self.id == escalation_id(
            self.record["task_id"], self.take or "", self.record.get("level") or ""
        )

    @property
    def is_rejection(self) -> bool:
        """Whether an addressee refuses the task with it, without a take."""
        return self.event == "status" and self.state == "rejected" and self.record.get("take") is None

    def version(self, wanted: str | None) -> TaskEvent | None:
        """Return the event of this id whose line has this digest; without one, of the lowest line."""
        if wanted is None:
            return self
        return next((each for each in self.versions if digest(each.line) == wanted), None)

    def accepting(self, replaces: str, giver: Sender) -> TaskEvent:
        """Return this take of a handoff as an event of a task that is handed over."""
        found = TaskEvent(self.record, self.line)
        found.named = {*self.named, replaces}
        found.replaces, found.giver = replaces, giver
        return found


def escalation_id(task_id: str, take: str, level: str) -> str:
    """Return the id of the event that a task is stuck, whoever writes it."""
    return keyed_id("tev", "escalate", task_id, take, level)


def micros(at: str | None) -> int:
    """Return a time in microseconds; 0 without one, and for a date such as the 30th of February."""
    try:
        return parse_at(at) if at else 0
    except ValueError:
        return 0


def sender_of(record: TaskRecord | TaskEventRecord) -> Sender:
    """Return identity and session of a writer."""
    return record["sender_identity"], record.get("sender_session") or None


def may_decide(identity: str, caller: str) -> bool:
    """Return whether somebody may close or cancel the task of a caller: its identity, or a person with its key."""
    return identity == caller or (identity.startswith(PERSON) and is_of_writer(caller, writer_of(identity)))


def is_by(sender: Sender, agent: str | None) -> bool:
    """Return whether a sender is an agent: its identity, its session, or with an identity another session of its writer."""
    if agent is None or agent in sender:
        return agent is not None
    return is_of_somebody("sess", agent) and is_bound(agent, writer_of(sender[0]))


def by_id(events: Iterable[TaskEvent]) -> dict[str, TaskEvent]:
    """Return the lowest event of each id, with all its versions. First come acceptances, then events from which the id is derived."""
    found: dict[str, TaskEvent] = {}
    for each in sorted(events, key=lambda each: (each.replaces is None, not each.is_derived, each.line)):
        if each.id not in found:
            found[each.id] = each
            each.versions = [each]
        else:
            found[each.id].versions.append(each)
    return found


class FoldedTask:
    """A task and its state.

    Attributes:
        record: The task as its caller wrote it.
        events: The events that are read, by id, with the acceptances of handoffs.
        state: `submitted`, or a state of task events.
        decided_by: What decided a terminal state: `seal`, `close` or `status`, which is unconfirmed; None before that.
        outcome: The event with the result, if it is here as its caller saw it.
        seal: The caller's seal that counts; of an accepted handoff one whose writer had seen that.
        close: The close that counts where no seal does; shown beside a seal, too. So of an accepted handoff.
        takes: The valid takes.
        void: The other takes.
        held: The takes that are not released and that no later take had seen. Several are a conflict.
        holder: The lowest of them, whose writer holds the task; None if nobody does.
        late: Reports of an end that did not become the outcome.
        cancels: The events in which the caller or a person asks for a cancellation.
        rejections: The events with which addressees refused it.
        replaced_by: The ids of tasks of the same caller that supersede it.
        left_out: The number of lines that are not read, because there are too many.
    """

    def __init__(
        self,
        record: TaskRecord,
        events: Iterable[TaskEvent],
        replaced_by: Collection[str] = (),
        left_out: int = 0,
    ) -> None:
        self.record = record
        self.replaced_by = sorted(replaced_by)
        self.left_out = left_out
        self.events = by_id(events)
        self._takers = {
            each.sender[0]
            for each in self.events.values()
            if each.event == "take" and (each.replaces is not None or record.get("agent") is None)
        }
        self._order = CausalOrder(self.events.values(), leads=self.leads)
        self._by_kind: dict[str, list[TaskEvent]] = {}
        self._of_take: dict[tuple[str, str | None], list[TaskEvent]] = {}
        for each in self.events.values():
            self._by_kind.setdefault(each.event, []).append(each)
            self._of_take.setdefault((each.event, each.take), []).append(each)
        self.cancels = by_line(filter(self._may_decide, self._kind("cancel")))
        self.rejections = by_line(each for each in self._kind("status") if each.is_rejection)
        self.seal = self._order.first(self._seals())
        self.close = self._order.first(self._closes())
        self._ends = [each for each in self._kind("status") if each.is_terminal]
        # Of those whose take is here: the bits of both.
        self._reports = [
            (each, self._order.bits([each, self.events[under]]))
            for each in self._ends
            if (under := each.take) in self.events
        ]
        self._valid: dict[str, TaskEvent] = {}
        self.void: list[TaskEvent] = []
        self._judge_takes()
        if record["purpose"] == HANDOFF and self._valid:
            self.seal, self.close = map(self._after_acceptance, (self._seals(), self._closes()))
        self.takes = by_line(self._valid.values())
        self._seen_by_takes = self._order.seen_by(self.takes)
        self._taken_by: dict[Sender, int] = {}
        for take in self.takes:
            self._taken_by[take.sender] = self._taken_by.get(take.sender, 0) | self._order.bits([take])
        self.held = [take for take in self._order.heads(self.takes) if not self.is_released(take)]
        self.holder = self.held[0] if self.held else None
        self.decided_by: str | None = None
        self.outcome: TaskEvent | None = None
        self.state = self._decide() or self._working_state()
        self.late = by_line(self._late()) if self.is_finished else []

    @property
    def caller(self) -> Sender:
        """Identity and session of its caller."""
        return sender_of(self.record)

    @property
    def is_finished(self) -> bool:
        """Whether it has an outcome, confirmed or not."""
        return self.decided_by is not None

    @property
    def conflict(self) -> bool:
        """Whether several hold it, each without knowing of the others."""
        return len(self.held) > 1

    @property
    def is_replaced(self) -> bool:
        """Whether another task of its caller replaces it and nobody has taken it."""
        return bool(self.replaced_by) and not self.takes

    @property
    def stands_beside(self) -> bool:
        """Whether it was taken although its caller has replaced it: both stand, and both sides are told."""
        return bool(self.replaced_by) and bool(self.takes)

    @property
    def worker_take(self) -> TaskEvent | None:
        """The take of whoever did the task, else of its holder; None if nobody has it."""
        by_outcome = self.outcome.take if self.outcome is not None else None
        return next((each for each in self.takes if each.id == by_outcome), None) or self.holder

    def heads(self) -> list[TaskEvent]:
        """Return the events that no other writer had seen, the last one first."""
        return self._order.heads(self.events.values())[::-1]

    def leads(self, event: TaskEvent) -> bool:
        """Return whether what an event names counts: it is of the caller or its person, of the addressee or a taker."""
        return (
            event.sender[0] in self._takers
            or self._may_decide(event)
            or is_by(event.sender, self.record.get("agent"))
        )

    def lease(self, take: TaskEvent, seen_by: TaskEvent | None = None) -> int:
        """Return the end of a take's lease with its renewals: all, or those that the writer of an event had seen."""
        return max(
            take.until,
            *(
                each.until
                for each in self._of_take.get(("renew", take.id), ())
                if each.sender == take.sender and (seen_by is None or self._order.has_seen(seen_by, each.id))
            ),
            0,
        )

    def has_seen(self, later: TaskEvent, earlier: TaskEvent) -> bool:
        """Return whether the writer of an event had seen another one."""
        return self._order.has_seen(later, earlier.id)

    def counts(self, event: TaskEvent) -> bool:
        """Return whether an event was written by its taker under a valid take; any session of an agent may release its take."""
        take = self._valid.get(event.take or "")
        if take is None:
            return False
        return event.sender[0] == take.sender[0] if event.event == "release" else event.sender == take.sender

    def _kind(self, event: str) -> list[TaskEvent]:
        return self._by_kind.get(event, [])

    def _seals(self) -> list[TaskEvent]:
        return [each for each in self._kind("seal") if each.sender == self.caller and each.state in TERMINAL]

    def _closes(self) -> list[TaskEvent]:
        """Return the closes that count."""
        return [each for each in self._kind("close") if each.state in TERMINAL and self._may_decide(each)]

    def _may_decide(self, event: TaskEvent) -> bool:
        return may_decide(event.sender[0], self.caller[0])

    def _after_acceptance(self, decisions: Iterable[TaskEvent]) -> TaskEvent | None:
        """Return the first decision about a handoff whose writer had seen an acceptance: one beats a concurrent withdrawal."""
        taken = self._order.bits(self._valid.values())
        return self._order.first([each for each in decisions if self._order.seen(each) & taken])

    def _judge_takes(self) -> None:
        """Separate valid takes from void ones, those that others had seen first."""
        decided = self._order.bits([*self._seals(), *self._closes()])
        valid = 0
        for take in self._order.facts:
            if take.event == "take":
                if self._is_valid(take, (decided, valid)):
                    self._valid[take.id] = take
                    valid |= self._order.bits([take])
                else:
                    self.void.append(take)
        self.void = by_line(self.void)

    def _is_valid(self, take: TaskEvent, bits: tuple[int, int]) -> bool:
        """Return whether a take is valid, by what its writer had seen: all of that is judged already."""
        decided, valid = bits
        agent, given = self.record.get("agent"), None
        if take.replaces is not None:
            given = self._valid.get(take.replaces)
            if given is None or given.sender != take.giver or self._is_sealed_under(given):
                return False
        elif agent is not None and not is_by(take.sender, agent):
            return False
        seen = self._order.seen(take)
        if seen & decided:
            return False
        if not seen & valid:
            return True
        reported = [each for each, both in self._reports if not both & ~seen and self.counts(each)]
        if not all(each.is_retryable for each in reported):
            return False
        failed = {each.take for each in reported}
        for other in self._order.heads(
            other for id, other in self._valid.items() if self._order.has_seen(take, id)
        ):
            is_free = other is given or other.id in failed or self.lease(other, take) <= take.at
            if not (is_free or self.is_released(other, take)):
                return False
        return True

    def _is_sealed_under(self, take: TaskEvent) -> bool:
        """Return whether the caller's seal names a result that was reported under a take."""
        named = self.events.get(self.seal.record.get("outcome") or "") if self.seal is not None else None
        return named is not None and named.event == "status" and named.take == take.id

    def is_released(self, take: TaskEvent, seen_by: TaskEvent | None = None) -> bool:
        """Return whether its taker has given a take back; with an event, whether its writer had seen that."""
        return any(
            self.counts(each) and (seen_by is None or self.has_seen(seen_by, each))
            for each in self._of_take.get(("release", take.id), ())
        )

    def rejection_by(self, sender: Sender) -> TaskEvent | None:
        """Return the rejection of a sender that still stands."""
        return next((each for each in self.rejections if each.sender == sender and self._stands(each)), None)

    def _stands(self, rejection: TaskEvent) -> bool:
        """Return whether nobody whom a rejection concerns has a take that its writer had not seen, or not seen released.

        It concerns its writer; the rejection of a task for one agent concerns all.
        """
        if self.record.get("agent"):
            return all(self.is_released(take, rejection) for take in self._order.heads(self.takes))
        return not self._taken_by.get(rejection.sender, 0) & ~self._order.seen(rejection)

    def refused_by(self) -> list[Sender]:
        """Return the senders whose rejections of a task for a role stand: it is not offered to them any more."""
        found = (each.sender for each in self.rejections if self._stands(each))
        return [] if self.record.get("agent") else sorted(set(found), key=str)

    def takers(self) -> frozenset[str]:
        """Return the first agents that have taken it, if there are several; also by void takes, whose writers may be at work."""
        found = dict.fromkeys(each.sender[0] for each in by_line([*self.takes, *self.void]))
        return frozenset(list(found)[:TAKERS_MAX]) if len(found) > 1 else frozenset()

    def gave_up(self) -> frozenset[str]:
        """Return the agents that have released or ended each take of theirs that none of their later ones has seen."""
        over = {each.take for each in self._ends if self.counts(each)}
        own: dict[str, list[TaskEvent]] = {}
        for each in self.takes:
            own.setdefault(each.sender[0], []).append(each)
        return frozenset(
            agent
            for agent, takes in own.items()
            if all(each.id in over or self.is_released(each) for each in self._order.heads(takes))
        )

    def _decide(self) -> str | None:
        """Set the outcome and return the terminal state, or None while there is none."""
        decision = self.seal or self.close
        if decision is not None:
            self.decided_by = decision.event
            self.outcome = self._named_by(decision)
            return decision.state
        given_up = {take.replaces for take in self.takes}
        candidates = [each for each in self._kind("status") if self._may_be_outcome(each, given_up)]
        agent = self.record.get("agent")
        if not candidates and agent:
            candidates = [
                each for each in self.rejections if is_by(each.sender, agent) and self._stands(each)
            ]
        self.outcome = self._order.first(candidates)
        if self.outcome is None:
            return None
        self.decided_by = "status"
        return self.outcome.state

    def _named_by(self, decision: TaskEvent) -> TaskEvent | None:
        """Return the event that a seal or close names, if it is here with the line that its writer had seen."""
        event = self.events.get(decision.record.get("outcome") or "")
        return event.version(decision.record.get("answers_digest")) if event is not None else None

    def _may_be_outcome(self, event: TaskEvent, given_up: Collection[str | None]) -> bool:
        """Return whether an event reports an end that becomes the outcome if the caller decides nothing else."""
        if not event.is_terminal or event.take in given_up or not self.counts(event):
            return False
        return not (self.is_released(self._valid[event.take or ""], event) or self._was_retried(event))

    def _was_retried(self, event: TaskEvent) -> bool:
        """Return whether somebody took the task again because an event reports a failure that allows it."""
        return event.is_retryable and bool(self._seen_by_takes & self._order.bits([event]))

    def _late(self) -> Iterable[TaskEvent]:
        decision = self.seal or self.close
        kept = {decision.record.get("outcome") if decision is not None else None}
        if self.outcome is not None:
            kept.add(self.outcome.id)
        for each in self._kind("status"):
            if each.is_terminal and each.id not in kept and not self._was_retried(each):
                yield each

    def _working_state(self) -> str:
        """Return the state of a task without an outcome, by what its holder reported last."""
        if self.holder is None:
            return SUBMITTED
        own = [each for each in self._of_take.get(("status", self.holder.id), ()) if self.counts(each)]
        last = next(reversed(self._order.heads(own)), None)
        if last is None or last.state not in WAITING:
            return WORKING
        if any(
            each.sender[0] == self.caller[0] and self._order.has_seen(each, last.id)
            for each in self._kind("message")
        ):
            return SUBMITTED
        return str(last.state)
