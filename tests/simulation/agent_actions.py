"""What agents do in a run: each process is one of them for a while, and its deeds are drawn from the seed."""

from __future__ import annotations

import time
from random import Random

from gitmem import commit_process
from gitmem.agents import caller, delivery, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import GitmemError
from gitmem.history import forget as forgetting
from gitmem.signals import inbox, send
from gitmem.sync import exchange
from gitmem.text.addresses import of_writer
from gitmem.work import new_task, task_decisions, task_work
from tests.clones import agreed
from tests.sandbox import annas

from . import quorum
from .scheduler import Process
from .world import Clone, WatchedStore, World

AGENTS = 2  # of each clone
SAFE = ("synced", "up-to-date")
TIMEOUT = 30.0
WORDS = ("boundary", "module", "tests", "green", "red", "yours", "again")


def agents(clone: Clone) -> list[str]:
    return [annas(f"test:worker:{clone.name}{number}", clone.key) for number in range(AGENTS)]


class AgentActions:
    """One process's life."""

    def __init__(self, world: World, clone: Clone, plan: list[str], gap: float) -> None:
        self.world = world
        self.clone = clone
        self.plan = plan
        self.gap = gap
        self.process: Process = None  # type: ignore[assignment]
        self.agent = ""

    @property
    def random(self) -> Random:
        return self.process.random

    def act(self) -> None:
        self.agent = self.random.choice(agents(self.clone))
        store = self.world.open(self.clone, self.process)
        for deed in self.plan:
            if self.gap:
                time.sleep(self.gap * self.random.random())
            began = time.thread_time()
            try:
                done = getattr(self, deed)(store)
            except GitmemError as error:
                done = f"{error.code}"
            self.world.cpu_seconds = max(self.world.cpu_seconds, time.thread_time() - began)
            self.world.outcomes.append(f"{self.process.name} {deed}: {done}")
            self.world.turns.note(f"{deed}: {done}")
        if store.recorded and store.commit_after and not self.process.is_confined:
            self._start_committer()
        store.close()

    def _start_committer(self) -> None:
        """As a command does that ends."""
        if commit_process.is_wanted(self.clone.repo):
            name = f"committer {self.process.name.partition('/')[2]}"
            started = process(self.world, self.clone, name, ["be_committer"])
            self.world.hand.doom(started)
            self.world.turns.start(started, self.world.turns.now)

    def _caller(self, store: WatchedStore) -> Caller:
        session = self.clone.sessions.get(self.agent)
        if session is not None:
            found = caller.find(store, CallerClaims(session=session))
            assert found is not None
            return found
        alone = Caller(
            of_writer(self.agent, store.writers.writer()), f"{self.agent} <{self.agent}@gitmem>", "as"
        )
        alone.identity = alone.reader
        return alone

    def begin(self, store: WatchedStore) -> str:
        started = lifecycle.start(
            store, CallerClaims(), agent_identity=self.agent, wu=self.random.choice([None, "WU-1", "WU-2"]),
            role="reviewer/docs" if self.world.stranger else None,
        )  # fmt: skip
        self.clone.sessions[self.agent] = started.session_id
        return f"{started.session_id} {started.display_name}"

    def end(self, store: WatchedStore) -> str:
        who = self._caller(store)
        self.clone.sessions.pop(self.agent, None)
        return lifecycle.end(store, who).session_id

    def _text(self) -> str:
        size = self.random.choice([3, 8, 8, 40, 200])
        return " ".join(self.random.choice(WORDS) for _ in range(size))

    def _others(self) -> list[str]:
        every = [agent for clone in self.world.clones for agent in agents(clone) if agent != self.agent]
        return self.random.sample(every, min(len(every), self.random.randrange(1, 4)))

    def say(self, store: WatchedStore) -> str:
        to = self._others() if self.random.random() < 0.7 else []
        sent = send.send(store, self._caller(store), self._text(), to=to, allow_unseen=True)
        return f"{sent.signal['signal_id']} {sent.commit}"

    def propose(self, store: WatchedStore) -> str:
        sent = send.send(
            store, self._caller(store), self._text(), to=self._others(), intent="PROPOSE", allow_unseen=True
        )
        return f"{sent.signal['signal_id']} {sent.commit}"

    def propose_by_name(self, store: WatchedStore) -> str:
        sent = send.send(
            store, self._caller(store), self._text(), to=self._others(), intent="PROPOSE", thread="launch", allow_unseen=True
        )  # fmt: skip
        return f"{sent.signal['signal_id']} {sent.commit}"

    def propose_to_some(self, store: WatchedStore) -> str:
        """Propose to agents of all clones; some of them suffice, and somebody may have a veto."""
        others = [agent for clone in self.world.clones for agent in agents(clone) if agent != self.agent]
        to = self.random.sample(others, min(len(others), self.random.choice([3, 3, 4])))
        need = str(min(self.random.choice([1, 2, 2, 2, 3]), len(to)))
        veto = self.random.sample(to, 1) if self.random.random() < 0.3 else []
        sent = send.send(
            store,
            self._caller(store),
            self._text(),
            to=to,
            intent="PROPOSE",
            need=need,
            veto=veto,
            allow_unseen=True,
        )
        return f"{sent.signal['signal_id']} {sent.commit}"

    def vote(self, store: WatchedStore) -> str:
        """Let a party that is an agent of this clone answer a proposal of a thread with a quorum, as a rule with AGREE."""
        found = quorum.votes(quorum.lines_of(store)).values()
        own = agents(self.clone)
        open_ = [
            (id, who, each.consents(who) == id)
            for each in found
            for id in sorted(each.proposals)
            for who in each.parties
            if who in own
        ]
        if not open_:
            return "nothing to vote on"
        undecided = [each for each in open_ if not each[2]]
        id, self.agent, has_agreed = self.random.choice(undecided or open_)
        intent = self.random.choice(["AGREE"] * (0 if has_agreed else 8) + ["REJECT", "COUNTER"])
        sent = send.send(store, self._caller(store), self._text(), reply_to=id, intent=intent)
        return f"{sent.signal['signal_id']} {intent} {sent.commit}"

    def conclude(self, store: WatchedStore) -> str:
        """Look at what was agreed on, as somebody who is about to carry it out."""
        yes, wrong = quorum.look(self.process.name, store)
        self.world.yes += yes
        self.world.wrong += wrong
        return " ".join(each.proposal for each in yes)

    def ask(self, store: WatchedStore) -> str:
        near = [agent for agent in agents(self.clone) if agent != self.agent]
        to = self.random.choice([*self._others(), *near])
        made = new_task.create(store, self._caller(store), self._text(), to=to, allow_unseen=True)
        return f"{made.task['task_id']} {made.commit}"

    def work(self, store: WatchedStore) -> str:
        """Let an agent of this clone take a task that is for it and, perhaps, do it."""
        task = self._task(store, "agent")
        taken = task_work.take(store, self._caller(store), task)
        if self.random.random() < 0.5:
            return taken.state
        end = self.random.choice(["completed", "failed"])
        return task_work.report(store, self._caller(store), task, end, "Here it is.").state

    def decide(self, store: WatchedStore) -> str:
        """Let an agent of this clone seal or cancel a task of its own, or give one back."""
        if self.random.random() < 0.3:
            task = self._task(store, "holder")
            return task_work.release(store, self._caller(store), task).state
        task = self._task(store, "caller")
        if self.random.random() < 0.3:
            return task_decisions.cancel(store, self._caller(store), task).state
        return task_decisions.seal_task(store, self._caller(store), task).state

    def _task(self, store: WatchedStore, column: str) -> str:
        """Return a task in which an agent of this clone has this part, and be that agent."""
        rows = store.db().execute(f"SELECT task_id, {column} FROM task ORDER BY task_id").fetchall()
        own = [(str(id), who) for id, who in rows if who in agents(self.clone)]
        id, self.agent = self.random.choice(own) if own else ("task-none", self.agent)
        return id

    def answer(self, store: WatchedStore) -> str:
        rows = store.db().execute(
            "SELECT DISTINCT signal_id FROM signal WHERE intent IN ('PROPOSE', 'COUNTER') ORDER BY signal_id"
        )
        known = [str(row[0]) for row in rows]
        if not known:
            return "nothing to answer"
        intent = self.random.choice(["AGREE", "AGREE", "REJECT", "COUNTER", "INFO"])
        sent = send.send(
            store, self._caller(store), self._text(), reply_to=self.random.choice(known), intent=intent
        )
        return f"{sent.signal['signal_id']} {intent} {sent.commit}"

    def read(self, store: WatchedStore) -> str:
        who = self._caller(store)
        with delivery.delivery_lock(store, who.reader, wait_seconds=delivery.WAIT_SECONDS):
            found = inbox.read(store, who)
            inbox.mark(store, found)
        return " ".join(str(each["signal_id"]) for each in found.signals)

    def be_committer(self, store: WatchedStore) -> str:
        """The life of a process that commands start: it commits what has waited for the window."""
        store.run_committer(pause=time.sleep)
        return "ended"

    def commit(self, store: WatchedStore) -> str:
        """What `gitmem log`, --commit and the end of a session do: commit now."""
        return str(store.commit(commit_process.COMMIT_SECONDS))

    def roll(self, store: WatchedStore) -> str:
        store.log.make_state()
        return store.log.new_token()

    def look(self, store: WatchedStore) -> str:
        """What was acknowledged in this clone before is seen in it."""
        before = list(self.clone.has)
        rows = store.db().execute("SELECT body FROM line").fetchall()
        seen = {str(body).encode() for (body,) in rows}
        for line in before:
            if not self.world.has(line, seen):
                self.world.wrong.append(f"{self.process.name} does not see {line[:160]!r}")
        return str(len(before))

    def repair(self, store: WatchedStore) -> str:
        """What `gitmem sync --repair origin --yes` does."""
        (found,) = exchange.exchange(
            store.log, ["origin"], may_send=agreed, timeout=TIMEOUT, repair=True, force=True, pause=time.sleep
        )
        store.refresh()
        return f"{found.state} {found.message}"

    def forget(self, store: WatchedStore) -> str:
        """Forget a text of this clone's own, if it has any."""
        rows = store.db().execute("SELECT DISTINCT signal_id FROM signal ORDER BY signal_id").fetchall()
        if not rows:
            return "nothing to forget"
        (id,) = self.random.choice(rows)
        found = forgetting.forget(store, self._caller(store), str(id), "A leaked key.")
        return f"{id} {found.lines} {found.commit}"

    def rewrite(self, store: WatchedStore) -> str:
        """What `gitmem sync --forget --yes` does."""
        (found,) = exchange.exchange(
            store.log, ["origin"], may_send=agreed, timeout=TIMEOUT, forget=True, force=True, pause=time.sleep
        )
        store.refresh()
        return f"{found.state} {found.message}"

    def sync(self, store: WatchedStore) -> str:
        """Where it says that all is well, what was committed here before is on the remote."""
        before, tampered = self.world.committed(self.clone), self.world.tampered
        (found,) = exchange.exchange(
            store.log, ["origin"], may_send=agreed, timeout=TIMEOUT, pause=time.sleep
        )
        store.refresh()
        if found.state in SAFE and self.world.tampered == tampered:
            there = self.world.on_remote()
            for line in before:
                if self.world.has(line, there):
                    self.world.safe[line] = None
                else:
                    self.world.wrong.append(f"{self.process.name} {found.state}, and it lacks {line[:160]!r}")
        return f"{found.state} {found.received} {found.sent} {found.attempts} {str(found.tip)[:12]}"


KINDS: list[tuple[str, int]] = [
    ("say", 8), ("propose", 3), ("answer", 4), ("read", 4), ("sync", 7), ("begin", 2), ("end", 1), ("roll", 1), ("look", 2),
    ("commit", 2),
]  # fmt: skip


MEDDLED_WITH = [("propose_by_name", 3), ("ask", 6), ("work", 10), ("decide", 4)]
FORGETTING = [("forget", 4), ("rewrite", 3)]
VOTING = [("propose_to_some", 5), ("vote", 50), ("conclude", 20), ("sync", 25)]


def drawn(
    random: Random, count: int, *, forgetful: bool = False, hostile: bool = False, voting: bool = False
) -> list[str]:
    kinds = [
        *KINDS,
        *(FORGETTING if forgetful else ()),
        *(MEDDLED_WITH if hostile else ()),
        *(VOTING if voting else ()),
    ]
    return random.choices([name for name, _ in kinds], [weight for _, weight in kinds], k=count)


def process(world: World, clone: Clone, name: str, plan: list[str], gap: float = 0.0) -> Process:
    """A process of a clone that does these things, with pauses of up to `gap` seconds."""
    deeds = AgentActions(world, clone, plan, gap)
    made = Process(f"{clone.name}/{name}", clone, Random(f"{world.seed} {clone.name} {name}"), deeds.act)
    deeds.process = made
    clone.processes.append(made)
    return made
