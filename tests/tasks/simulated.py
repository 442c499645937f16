"""Clones, callers and takers on one seed, with clocks that disagree, crashes and partial syncs.

Writers do what `gitmem.work.task_rules` allows by what their clone knows; lines travel as in a sync, wholly or in part. The real fold
and the real lines are used; only the log between them is a set.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from gitmem import records
from gitmem.log.lines import digest, format_at
from gitmem.order.task import FoldedTask, TaskEvent, sender_of
from gitmem.records.record_types import TaskRecord
from gitmem.work import task_rules

from .events_by_hand import BEGINNING, SECOND, described

SKEW, STEPS, LEASE = 60, 60, 40
Known = tuple[TaskRecord, bytes] | TaskEvent


class Clone:
    """What one clone knows, and its clock."""

    def __init__(self, number: int, skew: int) -> None:
        self.number = number
        self.skew = skew
        self.last = 0
        self.lines: dict[bytes, Known] = {}
        self.offline_until = 0


class Actor:
    """Somebody at work in a clone; crashed until a time."""

    def __init__(self, identity: str, session: str | None, clone: Clone) -> None:
        self.sender = (identity, session)
        self.clone = clone
        self.crashed_until = 0

    @property
    def addresses(self) -> set[str]:
        return {each for each in self.sender if each}


class World:
    """One run; `wrong` lists what must not happen.

    Args:
        fold: The fold, or one with a rule taken out.
        signed: The writer of all lines, and their salt.
    """

    def __init__(
        self, seed: int, fold: type[FoldedTask] = FoldedTask, signed: Mapping[str, Any] | None = None
    ) -> None:
        self.folded = fold
        self.signed = signed or {}
        self.random = random.Random(seed)
        self.refusing = random.Random(f"{seed} rejects")  # apart: the other draws of a seed stay as they were
        self.now = 0
        self.count = 0
        self.wrong: list[str] = []
        self.clones = [
            Clone(number, self.random.randint(-SKEW, SKEW)) for number in range(self.random.randint(2, 4))
        ]
        pick = self.random.choice
        self.caller = Actor("codex:planner:one", "sess-pl01", self.clones[0])
        self.twin = Actor(
            "codex:planner:one", "sess-pl02", pick(self.clones)
        )  # another session of the same identity
        self.person = Actor("human:ada@example.org", None, pick(self.clones))
        self.workers = [
            Actor(f"claude:worker:{name}", f"sess-{name}", pick(self.clones))
            for name in ("bohr", "curie", "dirac")
        ]
        self.workers.append(Actor("claude:worker:bohr", "sess-bohr2", pick(self.clones)))
        self.sealed: dict[str, tuple[str, bytes | None]] = {}  # what the caller acted on, by task
        self.tasks: list[str] = []
        self.handoffs: list[tuple[Actor, str, str]] = []

    # Writing

    def at(self, clone: Clone) -> int:
        clone.last = max(
            clone.last + 1, BEGINNING + (self.now + clone.skew) * SECOND + self.random.randrange(SECOND)
        )
        return clone.last

    def clock(self, clone: Clone) -> int:
        return BEGINNING + (self.now + clone.skew) * SECOND

    def write(self, who: Actor, kind: str, **fields: object) -> Known:
        """Record a line in the writer's clone, as it is read."""
        whole = {**fields, "sender_identity": who.sender[0], "sender_session": who.sender[1]}
        whole = dict(records.addressed(kind, whole, self.signed.get("writer", "")))
        line = records.line(kind, self.at(who.clone), whole, **self.signed)
        found: Known
        if kind == "task":
            task = records.read_kind("task", line)
            assert task is not None
            found = (task, line)
        else:
            event = records.read_kind("task_event", line)
            assert event is not None
            found = TaskEvent(event, line)
        who.clone.lines[line] = found
        return found

    def new_task(self, who: Actor, **fields: object) -> str:
        self.count += 1
        task_id = f"task-{self.count:04}"
        self.write(who, "task", task_id=task_id, thread_id="thread-0001", message="work", **fields)
        self.tasks.append(task_id)
        return task_id

    def event(self, who: Actor, task: FoldedTask, event: str, **fields: object) -> TaskEvent:
        self.count += 1
        after = [*(each.id for each in task.heads()), *fields.pop("more", ())]  # type: ignore[misc]
        found = self.write(who, "task_event", event_id=f"tev-{self.count:05}", task_id=task.record["task_id"], event=event,
                           after=after, **fields)  # fmt: skip
        assert isinstance(found, TaskEvent)
        return found

    # Reading

    def fold(self, lines: Iterable[Known], task_id: str) -> FoldedTask | None:
        """Fold a task from lines as a clone does that has exactly these."""
        every = list(lines)
        tasks: dict[str, TaskRecord] = {
            each[0]["task_id"]: each[0] for each in every if isinstance(each, tuple)
        }
        if task_id not in tasks:
            return None
        events = [each for each in every if isinstance(each, TaskEvent)]
        own = [each for each in events if each.record["task_id"] == task_id]
        record = tasks[task_id]
        for handoff in self.counted_handoffs(tasks, record, events):
            at = list(handoff["handoff_tasks"]).index(task_id)
            there = self.folded(
                handoff, (each for each in events if each.record["task_id"] == handoff["task_id"])
            )
            own += [take.accepting(handoff["handoff_takes"][at], sender_of(handoff)) for take in there.takes]
        replacing = [
            id for id, other in tasks.items()
            if task_id in other.get("supersedes", ()) and other["sender_identity"] == record["sender_identity"]
        ]  # fmt: skip
        return self.folded(record, own, replacing)

    def counted_handoffs(
        self, tasks: dict[str, TaskRecord], record: TaskRecord, events: list[TaskEvent]
    ) -> list[TaskRecord]:
        """The handoffs of a task by whoever wrote a take of it, or of a handoff that counts."""
        left = [
            each for _, each in sorted(tasks.items())
            if record["purpose"] != "handoff" and record["task_id"] in each.get("handoff_tasks", ())
        ]  # fmt: skip
        found: list[TaskRecord] = []
        ids = {record["task_id"]}
        while True:
            takers = {
                each.sender for each in events if each.event == "take" and each.record["task_id"] in ids
            }
            more = [each for each in left if sender_of(each) in takers]
            if not more:
                return found
            found += more
            left = [each for each in left if each not in more]
            ids |= {each["task_id"] for each in more}

    def known(self, who: Actor, task_id: str) -> FoldedTask | None:
        return self.fold(who.clone.lines.values(), task_id)

    # What happens

    def run(self) -> list[str]:
        for _ in range(self.random.randint(1, 2)):
            agent = self.random.choice([None, None, "claude:worker:bohr"])
            self.new_task(self.caller, **({"agent": agent} if agent else {"target_role": "implementer/test"}))
        for _ in range(STEPS):
            self.now += self.random.choice([0, 1, 2, 5, 10, LEASE])
            self.step()
            self.look()
        for one in self.clones:
            for other in self.clones:
                one.lines.update(other.lines)
        for one in self.clones:
            for other in self.clones:
                one.lines.update(other.lines)
        self.look(final=True)
        self.compare()
        return self.wrong

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.30:
            self.sync()
        elif chance < 0.34:
            self.random.choice([*self.workers, self.caller]).crashed_until = self.now + self.random.choice(
                [5, LEASE, 10 * LEASE]
            )
        elif chance < 0.38:
            self.random.choice(self.clones).offline_until = self.now + self.random.choice(
                [5, LEASE, 10 * LEASE]
            )
        else:
            who = self.random.choice(
                [*self.workers, *self.workers, self.caller, self.caller, self.twin, self.person]
            )
            task_id = self.random.choice(self.tasks)
            if self.handoffs and self.random.random() < 0.3:  # the giver goes on, and others accept
                giver, given, handoff_id = self.random.choice(self.handoffs)
                who, task_id = self.random.choice(
                    [(giver, given), (self.random.choice(self.workers), handoff_id)]
                )
            task = self.known(who, task_id)
            if who.crashed_until <= self.now and task is not None:
                self.act(who, task)

    def sync(self) -> None:
        """One side gets all or a part of what the other has; or both all."""
        one, other = self.random.sample(self.clones, 2)
        if max(one.offline_until, other.offline_until) > self.now:
            return
        missing = [line for line in other.lines if line not in one.lines]
        if self.random.random() < 0.3:
            missing = self.random.sample(missing, self.random.randint(0, len(missing)))
        self.random.shuffle(missing)
        one.lines.update((line, other.lines[line]) for line in missing)

    def act(self, who: Actor, task: FoldedTask) -> None:
        if who is self.caller and task.caller == who.sender:
            self.call(who, task)
        elif who in (self.twin, self.person):
            self.interfere(who, task)
        elif task.record["purpose"] == "handoff":
            self.hand_over(who, task)
        else:
            self.work(who, task)

    def work(self, who: Actor, task: FoldedTask) -> None:
        """What a worker does with a task."""
        mine = task_rules.own_take(task, who.sender)
        if mine is None:
            self.begin(who, task)
            return
        do = self.random.choice(
            ["renew", "release", "working", "input-required", "completed", "completed", "failed", "hand"]
        )
        if task_rules.report(task, who.sender) is not None:
            return
        if do == "renew":
            until = format_at(self.clock(who.clone) + LEASE * SECOND)
            self.event(who, task, "renew", take=mine.id, until=until)
        elif do == "release":
            self.event(who, task, "release", take=mine.id)
            given_back = self.known(who, task.record["task_id"])
            if given_back is not None and self.refusing.random() < 0.7:
                self.reject(who, given_back)
        elif do == "hand":
            self.give(who, task, mine)
        else:
            if task.cancels and do == "working":
                do = "canceled"
            may_retry = do == "failed" and self.random.random() < 0.5
            self.event(
                who,
                task,
                "status",
                take=mine.id,
                state=do,
                retryable=may_retry,
                message=f"{do} by {who.sender[1]}",
            )

    def begin(self, who: Actor, task: FoldedTask) -> None:
        """What a worker does with a task that it does not have."""
        if task.takes and self.random.random() < 0.1:  # a writer with an error in it
            self.err(who, task)
        elif task.takes and task.record.get("agent") and self.refusing.random() < 0.1:
            self.event(who, task, "status", state="rejected")  # whatever another session does with it
        elif task_rules.take(task, who.sender, who.addresses, self.clock(who.clone)) is None:
            until = format_at(self.clock(who.clone) + LEASE * SECOND)
            self.event(who, task, "take", until=until)
        elif self.random.random() < 0.1:
            self.reject(who, task)

    def reject(self, who: Actor, task: FoldedTask) -> None:
        if task_rules.refuse(task, who.sender, who.addresses) is None:
            self.event(who, task, "status", state="rejected")

    def err(self, who: Actor, task: FoldedTask) -> None:
        """End or hand over what another one has."""
        if self.random.random() < 0.5:
            self.give(who, task, task.takes[0])
        else:
            self.event(who, task, "status", take=task.takes[0].id, state="completed", message="not mine")

    def give(self, who: Actor, task: FoldedTask, take: TaskEvent) -> None:
        """Offer a task, by a take of it."""
        task_id = task.record["task_id"]
        handoff_id = self.new_task(who, purpose="handoff", target_role="implementer/test", handoff_takes=[take.id],
                                   handoff_tasks=[task_id])  # fmt: skip
        self.handoffs.append((who, task_id, handoff_id))

    def hand_over(self, who: Actor, handoff: FoldedTask) -> None:
        """Accept or refuse a handoff; its giver may withdraw it."""
        if who.sender == handoff.caller:
            if self.random.random() < 0.3 and not handoff.takes and not handoff.is_finished:
                self.cancel(who, handoff)
            return
        given = self.known(who, handoff.record["handoff_tasks"][0])
        if given is not None and given.is_finished and self.random.random() < 0.9:
            return
        if task_rules.accept(handoff, who.sender, who.addresses, self.clock(who.clone)) is None:
            until = format_at(self.clock(who.clone) + LEASE * SECOND)
            seen = [each.id for each in given.heads()] if given is not None else []
            take = self.event(who, handoff, "take", until=until, more=seen)
            self.event(
                who, handoff, "status", take=take.id, state="completed", message="Accepted.", more=[take.id]
            )

    def call(self, who: Actor, task: FoldedTask) -> None:
        """What the session that wrote a task does with it."""
        task_id = task.record["task_id"]
        do = self.random.choice(["seal", "seal", "seal", "message", "cancel", "replace", "nothing"])
        if task.state == "input-required" and self.random.random() < 0.7:
            do = "message"
        if do == "seal" and task_rules.seal(task, who.sender) is None and task.outcome is not None:
            self.seal(
                who,
                task,
                task.outcome,
                str(task.outcome.state) if task.outcome.event == "status" else str(task.state),
            )
        elif do == "message" and not task.is_finished:
            self.event(who, task, "message", message="half up")
        elif do == "cancel" and not task.is_finished:
            self.cancel(who, task)
        elif do == "replace" and not task.is_finished and not task.replaced_by and len(self.tasks) < 5:
            self.new_task(who, target_role="implementer/test", supersedes=[task_id])

    def cancel(self, who: Actor, task: FoldedTask) -> None:
        wish = self.event(who, task, "cancel", reason="not needed")
        if task_rules.may_cancel_at_once(task):
            self.seal(who, task, wish, "canceled", more=[wish.id])

    def seal(self, who: Actor, task: FoldedTask, outcome: TaskEvent, state: str, **fields: object) -> None:
        self.event(
            who, task, "seal", outcome=outcome.id, answers_digest=digest(outcome.line), state=state, **fields
        )
        self.sealed[task.record["task_id"]] = (state, outcome.line)

    def interfere(self, who: Actor, task: FoldedTask) -> None:
        """A person, or another session of the caller's identity, closes; the latter also tries to seal."""
        state = self.random.choice(["failed", "canceled", "completed"])
        if who is self.twin and self.random.random() < 0.5:
            self.event(who, task, "seal", state=state, outcome=task.outcome.id if task.outcome else None)
        elif self.random.random() < 0.15 and task_rules.close(task, who.sender) is None:
            self.event(who, task, "close", state=state, outcome=task.outcome.id if task.outcome else None)

    # What must hold

    def look(self, *, final: bool = False) -> None:
        """No outcome changes that its caller had sealed, on no clone that has the seal; but an acceptance beats a withdrawal."""
        for task_id, (state, line) in self.sealed.items():
            for clone in self.clones:
                task = self.fold(clone.lines.values(), task_id)
                if task is not None and task.record["purpose"] == "handoff" and task.takes:
                    if task.state == "canceled":
                        self.wrong.append(f"{task_id} is accepted and canceled in clone {clone.number}")
                    continue
                if task is None or task.seal is None:
                    if final:
                        self.wrong.append(f"{task_id} has lost its seal in clone {clone.number}")
                    continue
                if task.state != state or (task.outcome is not None and task.outcome.line != line):
                    self.wrong.append(
                        f"{task_id} was {state} and is {task.state} in clone {clone.number} at {self.now}"
                    )
                if final and task.outcome is None:
                    self.wrong.append(f"{task_id} has lost its result")

    def compare(self) -> None:
        """All clones fold alike, in whatever order; every end that somebody reported is kept."""
        for task_id in self.tasks:
            folds = []
            for clone in self.clones:
                lines = list(clone.lines.values())
                self.random.shuffle(lines)
                task = self.fold(lines, task_id)
                assert task is not None
                folds.append((described(task), task))
            if any(each != folds[0][0] for each, _ in folds[1:]):
                self.wrong.append(f"{task_id} differs between clones")
            self.check(task_id, folds[0][1])

    def check(self, task_id: str, task: FoldedTask) -> None:
        """What each rule is there for, told without the methods that implement it."""
        events = list(task.events.values())
        ends = {each.id for each in events if each.is_terminal and task.counts(each)}
        shown = {each.id for each in (*task.late, *((task.outcome,) if task.outcome else ()))}
        retried = {each.id for each in events if each.is_retryable}
        taken = {each.id: each for each in task.takes}
        last = taken.get(task.outcome.take or "") if task.outcome and task.decided_by == "status" else None
        releases = {(each.take, each.sender[0]) for each in events if each.event == "release"}
        claims = {
            "hides an end": task.is_finished and ends - shown - retried,
            "ends by somebody who had not taken it": last
            and task.outcome
            and last.sender != task.outcome.sender,
            "is held by a released take": [
                each for each in task.held if (each.id, each.sender[0]) in releases
            ],
            "is held by a take that a later one had seen": [
                one for one in task.held for other in task.takes if task.has_seen(other, one)
            ],
            "was taken beside a lease that the taker knew": [
                one for one in task.takes for other in task.takes if self.is_double(task, one, other)
            ],
            "ends with what its giver reported": last
            and [each for each in task.takes if each.replaces == last.id],
            "was taken and shows as replaced": task.is_replaced and task.takes,
            "was sealed by somebody else": task.seal and task.seal.sender != task.caller,
            "is rejected by somebody who had not seen each take given back": task.decided_by == "status"
            and task.outcome in task.rejections
            and not self.is_refused_after_all_takes(task, task.outcome),
            "is open although its addressee has refused it": not task.is_finished
            and [
                each
                for each in task.rejections
                if task.record.get("agent") in each.sender and self.is_refused_after_all_takes(task, each)
            ],
            "waits although its caller has answered": task.state == "input-required"
            and self.is_answered(task),
            "ignores an acceptance": self.ignored(task),
            "is a handoff that was accepted and is open": task.record["purpose"] == "handoff"
            and task.takes
            and not task.is_finished,
            "was handed over although its caller had the giver's result": self.taken_with_a_result(task),
            "was handed over by somebody who had not taken it": [
                each for each in task.takes if each.replaces and taken[each.replaces].sender != each.giver
            ],
        }
        self.wrong += [f"{task_id} {claim}" for claim, found in claims.items() if found]

    def is_double(self, task: FoldedTask, one: TaskEvent, other: TaskEvent) -> bool:
        """Whether a valid take began while its writer knew of another one, neither released, failed nor over."""
        if (
            one is other
            or one.replaces is not None
            or not task.has_seen(one, other)
            or task.lease(other, one) <= one.at
        ):
            return False
        if any(task.has_seen(one, each) and task.has_seen(each, other) for each in task.takes):
            return False  # somebody had taken it over before
        ends = [each for each in task.events.values() if each.take == other.id and task.has_seen(one, each)]
        return not any(each.event == "release" or each.is_retryable for each in ends)

    def is_refused_after_all_takes(self, task: FoldedTask, rejection: TaskEvent) -> bool:
        """Whether each take that no other one had seen was given back by its agent before a rejection."""
        before = [each for each in task.events.values() if task.has_seen(rejection, each)]
        back = {(each.take, each.sender[0]) for each in before if each.event == "release"}
        last = [one for one in task.takes if not any(task.has_seen(each, one) for each in task.takes)]
        return all((one.id, one.sender[0]) in back for one in last)

    def is_answered(self, task: FoldedTask) -> bool:
        events = task.events.values()
        asked = [
            each
            for each in events
            if task.holder and each.state == "input-required" and each.take == task.holder.id
        ]
        answers = [each for each in events if each.event == "message" and each.sender[0] == task.caller[0]]
        return bool(asked) and all(any(task.has_seen(answer, each) for answer in answers) for each in asked)

    def taken_with_a_result(self, task: FoldedTask) -> list[TaskEvent]:
        """The valid acceptances of takes under which the result was reported that the caller sealed."""
        sealed = task.events.get(task.seal.record.get("outcome") or "") if task.seal is not None else None
        return [
            each for each in task.takes if each.replaces and sealed is not None and sealed.event == "status" and sealed.take == each.replaces
        ]  # fmt: skip

    def ignored(self, task: FoldedTask) -> list[TaskEvent]:
        """The void acceptances that nothing speaks against: the giver held the task alone, and nobody had decided."""
        return [
            each for each in task.void
            if (each.replaces, each.giver) in {(take.id, take.sender) for take in task.takes} and len(task.takes) == 1
            and not task.seal and not task.close
            and not any(other.is_terminal and task.has_seen(each, other) for other in task.events.values())
        ]  # fmt: skip
