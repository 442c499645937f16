"""A log with everything that the page of `gitmem view` shows, of any size, the same for the same seed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator

from gitmem.log.lines import digest, format_at

from . import nodes
from . import workbench as workbenches
from .workbench import DAY, id_of, line, message, session_of

HOUR = 3600 * 1_000_000
ROLES = ("architect", "implementer", "reviewer", "tester")
BRANCHES = 8
OF_SIGNALS = {"tasks": 50, "claims": 100, "commits": 50}  # one of these for so many signals
_CHANGES = 4  # one node in four was changed later

Line = tuple[str, bytes]


class PageLog:
    """The lines of a log.

    Args:
        signals: How many signals; tasks, claims and commits are in proportion.
        nodes: How many nodes of the memory.
        agents: How many agents; each has one session, and every third has ended it.
        days: How many days it lasts.
        last: When it ends, microseconds since 1970; by default now.
        seed: Of the random choices.
    """

    def __init__(
        self,
        signals: int = 10_000,
        nodes: int = 2_000,
        agents: int = 50,
        *,
        days: int = 14,
        last: int | None = None,
        seed: int = 17,
    ) -> None:
        self._dice = random.Random(seed)
        self._signals = signals
        self._nodes = nodes
        self._agents = range(agents)
        self._seed = seed
        self._last = last if last is not None else workbenches.now()
        self._first = self._last - days * DAY

    def lines(self) -> Iterator[Line]:
        """Yield all lines with their streams."""
        yield from self._sessions()
        yield from self._threads()
        yield from self._tasks(max(2, self._signals // OF_SIGNALS["tasks"]))
        yield from self._claims(max(2, self._signals // OF_SIGNALS["claims"]))
        yield from self._memory()

    def build(self, where: str) -> None:
        """Write the log into a repository, and commits of the user beside it."""
        self._commit(where, max(10, self._signals // OF_SIGNALS["commits"]))
        with workbenches.open_log(where, now=lambda: self._last) as log:  # starts the log
            log.sessions.start(name="Reader", agent_identity=workbenches.identity("Reader"))
        workbenches.publish(where, self.lines())

    def _at(self, number: int, count: int) -> int:
        return self._first + (self._last - self._first) * (number + 1) // (count + 2)

    def _sender(self, number: int) -> dict[str, object]:
        name = _name(number)
        return {
            "sender_identity": _identity(number),
            "sender_session": session_of(number),
            "sender_name": name,
        }

    def _sessions(self) -> Iterator[Line]:
        for number in self._agents:
            fields: dict[str, object] = {
                "session_id": session_of(number), "event": "start", "display_name": _name(number), "clone_id": "elsewhere0",
                "agent_identity": _identity(number), "worktree": f"tree{number % BRANCHES}", "branch": f"lane{number % BRANCHES}",
                "client": ("claude-code", "codex", "gemini")[number % 3], "wu_id": f"WU-{number % 20 + 1}",
            }  # fmt: skip
            at = self._first + number * 1_000
            yield "sessions", line("session", at, fields)
            if number % 3 == 2:
                yield (
                    "sessions",
                    line("session", self._last - HOUR + number, {**fields, "event": "end"}),
                )

    def _threads(self) -> Iterator[Line]:
        """Yield threads: broadcasts, questions with answers of some recipients, and receipts."""
        dice, done = self._dice, 0
        while done < self._signals:
            sender, *others = dice.sample(self._agents, min(4, len(self._agents)))
            recipients = others[: dice.choice((0, 1, 1, 1, 2, 3))]
            at, unit = self._at(done, self._signals), f"WU-{dice.randint(1, 20)}"
            intent = dice.choice(("INFO", "PROPOSE")) if recipients else "INFO"
            root = self._signal(at, sender, recipients, unit, intent)
            done += 1
            yield root[1]
            for reader in recipients or dice.sample(self._agents, min(3, len(self._agents))):
                if dice.random() < 0.9:
                    yield self._receipt(at + dice.randint(1, 600) * 1_000_000, root, reader)
            for reader in recipients if intent == "PROPOSE" else ():
                if done < self._signals and dice.random() < 0.8:
                    answer = dice.choice(("AGREE", "AGREE", "AGREE", "REJECT", "COUNTER"))
                    moment = at + dice.randint(60, 20_000) * 1_000_000
                    one = self._signal(moment, reader, [sender], unit, answer, root)
                    done += 1
                    yield one[1]
                    yield self._receipt(moment + 1_000_000, one, sender)

    def _signal(
        self,
        at: int,
        sender: int,
        recipients: list[int],
        unit: str,
        intent: str,
        answered: tuple[str, Line] | None = None,
    ) -> tuple[str, Line]:
        id = id_of("sig", self._dice)
        thread = f"thread-{(answered[0] if answered else id)[4:]}"
        fields: dict[str, object] = {
            "signal_id": id, **self._sender(sender), "recipients": [_identity(each) for each in recipients], "thread_id": thread,
            "intent": intent, "interrupt_class": "priority" if recipients else "advisory", "message": message(self._dice),
            "origin": "local", "wu_id": unit, "requires_ack": intent == "PROPOSE",
        }  # fmt: skip
        if answered is not None:
            fields |= {
                "reply_to": answered[0],
                "after": [answered[0]],
                "answers_digest": digest(answered[1][1]),
            }
        return id, ("signals", line("signal", at, fields))

    def _receipt(self, at: int, signal: tuple[str, Line], reader: int) -> Line:
        fields = {
            "signal_id": signal[0], "reader_identity": _identity(reader), "delivery_state": "delivered",
            "answers_digest": digest(signal[1][1]),
        }  # fmt: skip
        return "receipts", line("receipt", at, fields)

    def _tasks(self, count: int) -> Iterator[Line]:
        """Yield tasks; of three one waits, one is being done, and one was completed and sealed."""
        dice = self._dice
        for number in range(count):
            caller, worker = dice.sample(self._agents, 2)
            at, task_id = self._at(number, count), id_of("task", dice)
            task = {
                "task_id": task_id, "thread_id": f"thread-{task_id[5:]}", "message": message(dice), "purpose": "delegation",
                "agent": _identity(worker), "priority": dice.choice(("P1", "P2")), "wu_id": f"WU-{dice.randint(1, 20)}",
                "requested_role": {"lifecycle_role": dice.choice(ROLES)}, **self._sender(caller),
            }  # fmt: skip
            yield "tasks", line("task", at, task)
            if number % 3 == 0:
                continue
            take = {
                "event_id": id_of("tev", dice), "task_id": task_id, "event": "take", "until": format_at(at + 2 * HOUR),
                "actual_role": {"lifecycle_role": dice.choice(ROLES)}, **self._sender(worker),
            }  # fmt: skip
            yield "tasks", line("task_event", at + HOUR, take)
            if number % 3 == 1:
                continue
            ended = {
                "event_id": id_of("tev", dice), "task_id": task_id, "event": "status", "take": take["event_id"], "after": [take["event_id"]],
                "state": dice.choice(("completed", "completed", "failed")), "message": message(dice), **self._sender(worker),
            }  # fmt: skip
            end = line("task_event", at + 2 * HOUR, ended)
            yield "tasks", end
            seal = {
                "event_id": id_of("tev", dice), "task_id": task_id, "event": "seal", "state": ended["state"], "outcome": ended["event_id"],
                "after": [ended["event_id"]], "answers_digest": digest(end), **self._sender(caller),
            }  # fmt: skip
            yield "tasks", line("task_event", at + 3 * HOUR, seal)

    def _claims(self, count: int) -> Iterator[Line]:
        """Yield claims of a few hours, of which the last two contest each other."""
        dice = self._dice
        for number in range(count):
            is_last = number >= count - 2
            at = self._last - HOUR + number if is_last else self._at(number, count)
            fields = {
                "claim_id": id_of("claim", dice), "event": "claim", "until": format_at(at + dice.randint(2, 8) * HOUR), "mode": "exclusive",
                "paths": ["part0/*"] if is_last else [nodes.file(dice.randrange(nodes.FILES))], "reason": message(dice)[:80],
                **self._sender(dice.randrange(len(self._agents)) if not is_last else number % 2),
            }  # fmt: skip
            yield "claims", line("claim", at, fields)

    def _memory(self) -> Iterator[Line]:
        """Yield nodes, some changed later, with relations to earlier ones of which some are superseded, and a cycle."""
        dice = self._dice
        before: list[str] = []
        for number, given in enumerate(nodes.nodes(self._nodes, seed=self._seed)):
            id, at, sender = (
                id_of("mem", dice),
                self._at(number, self._nodes),
                self._sender(dice.choice(self._agents)),
            )
            fields = {
                name: given[name]
                for name in ("content", "type", "lifecycle", "priority", "paths", "tags")
                if name in given
            }
            yield (
                "memory",
                line("node", at, {"id": id, **fields, "wu_id": f"WU-{number % 20 + 1}", **sender}),
            )
            if number % _CHANGES == 1:
                patch = {
                    "id": id_of("patch", dice),
                    "node_ids": [id],
                    "content": nodes.content(dice),
                    **sender,
                }
                yield "memory", line("patch", at + HOUR, patch)
            if before and dice.random() < 0.6:
                yield self._relation(
                    at + 1_000, id, dice.choice(before[-40:]), supersedes=dice.random() < 0.2
                )
            before.append(id)
        if len(before) > 2:
            for place in range(3):
                yield self._relation(self._last, before[place], before[(place + 1) % 3], supersedes=True)

    def _relation(self, at: int, new: str, old: str, *, supersedes: bool) -> Line:
        fields = {
            "id": id_of("rel", self._dice),
            "from_id": new,
            "to_id": old,
            "type": "supersedes" if supersedes else "related",
            **self._sender(0),
        }
        return "memory", line("relation", at, fields)

    def _commit(self, where: str, count: int) -> None:
        """Write commits on several branches with one run of git."""
        dice, parts = self._dice, []
        start = _revision(where)
        for number in range(count):
            branch, subject = f"refs/heads/lane{number % BRANCHES}", message(dice)[:60].encode()
            at = self._at(number, count) // 1_000_000
            first = f"from {start}\n".encode() if number < BRANCHES and start else b""
            content = f"# {number}\n".encode()
            parts.append(
                b"commit %s\ncommitter %s <a@example.org> %d +0000\ndata %d\n%s\n%sM 100644 inline %s\ndata %d\n%s\n"
                % (branch.encode(), _name(number % len(self._agents)).encode(), at, len(subject), subject, first,
                   nodes.file(number % nodes.FILES).encode(), len(content), content)
            )  # fmt: skip
        subprocess.run(["git", "fast-import", "--quiet"], cwd=where, input=b"".join(parts), check=True)


def _name(number: int) -> str:
    return f"Agent{number}"


def _identity(number: int) -> str:
    return f"bench:{ROLES[number % len(ROLES)]}:agent{number}"


def _revision(where: str) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=where, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
