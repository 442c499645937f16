"""The scripted agents of `benchmarks.collisions`, and what they do with each tool.

Without tools an agent knows what is on the main branch when it begins a job. With messages or claims it also leaves a job
to whoever has it, and waits with a file that somebody else has. Both tools are read at each turn and obeyed alike; who
was first goes on.
"""

from __future__ import annotations

import os
import re

import gitmem
from gitmem.errors import GateError
from gitmem.log.lines import parse_at
from gitmem.work import claim_work, edit_guard
from gitmem.work.claims import ClaimRow

from .collision_plan import TURN, Job, edited
from .collision_world import MINUTE, RESOLVE_MINUTES, WorkRun, World, branch

GO, WAIT, STOP = "go", "wait", "stop"
WAIT_MAX = 60  # minutes that an agent waits with a file; then it goes on
BELIEVED = 180  # minutes that an announcement counts
LEASE = 60 * MINUTE
_ANNOUNCED = re.compile(r"(START|DONE|STOP) ([^:]+)(?:: (.*))?")


class Tool:
    """No tool: nobody is asked, and nobody is told."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.world = agent.world

    def look(self) -> None:
        """Read what is new, at the begin of a turn."""

    def forget(self) -> None:
        """Lose what was read."""

    def may_begin(self, job: Job) -> bool:
        """Return whether nobody else has a job or a file of it; tell others that it is begun."""
        return True

    def may_edit(self, run: WorkRun, path: str) -> str:
        """Return whether to edit a file now, to wait with it, or to drop the job."""
        return GO

    def may_commit(self, run: WorkRun, path: str) -> bool:
        """Return whether an edit may be committed."""
        return True

    def ends(self, run: WorkRun, *, landed: bool) -> None:
        """Tell others that a job is on the main branch or dropped."""

    def is_forgotten(self, job: Job) -> bool:
        """Return whether the agent forgets to tell others of a job."""
        return (self.agent.number, job.name) in self.world.plan.forgotten

    def knows(self, other: WorkRun) -> bool:
        """Return whether the agent remembers that somebody is at work on a job."""
        return False


class Logged(Tool):
    """A tool that needs the log."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.log = gitmem.open(agent.where, now=self.world.clock, commit_after=0, machine="benchmark")
        identity = f"bench:worker:{branch(agent.number)}"
        self.log.sessions.start(name=branch(agent.number), agent_identity=identity)

    def new_messages(self) -> list[tuple[str, str, int]]:
        """Return sender, text and time of all unread messages, and mark them as read."""
        found: list[tuple[str, str, int]] = []
        while True:
            page = self.log.inbox()
            found += [
                (str(each.get("sender_name")), str(each["message"]), parse_at(str(each["created_at"])))
                for each in page.signals
            ]
            if len(page.signals) >= page.unread:
                return found


class Messages(Logged):
    """An agent broadcasts each job with its files as it begins it, and at its end, and reads its inbox at each turn."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.known: dict[tuple[int, str], tuple[set[str], int]] = {}
        self.announced: dict[str, int] = {}

    def look(self) -> None:
        for sender, text, at in self.new_messages():
            found = _ANNOUNCED.fullmatch(text)
            number = number_of(sender)
            if found is None or number is None:
                continue
            if found[1] == "START":
                self.known[number, found[2]] = (set((found[3] or "").split()), at)
                self.world.hears(self.agent.number, number, found[2])
            else:
                self.known.pop((number, found[2]), None)
        limit = self.world.clock() - BELIEVED * MINUTE
        self.known = {key: value for key, value in self.known.items() if value[1] > limit}

    def forget(self) -> None:
        self.known.clear()

    def knows(self, other: WorkRun) -> bool:
        return (other.agent, other.job.name) in self.known

    def may_begin(self, job: Job) -> bool:
        if any(job.name == name or files & set(job.files) for (_, name), (files, _) in self.known.items()):
            return False
        if not self.is_forgotten(job):
            self.log.signals.send(f"START {job.name}: {' '.join(job.files)}", broadcast=True, wu=job.name)
            self.announced[job.name] = self.world.clock()
        return True

    def may_edit(self, run: WorkRun, path: str) -> str:
        since = self.announced.get(run.job.name, self.world.clock())
        first = [(name, files) for (_, name), (files, at) in self.known.items() if at < since]
        if any(name == run.job.name for name, _ in first):
            return STOP
        return WAIT if any(path in files for _, files in first) else GO

    def ends(self, run: WorkRun, *, landed: bool) -> None:
        if self.announced.pop(run.job.name, None) is not None:
            word = "DONE" if landed else "STOP"
            self.log.signals.send(f"{word} {run.job.name}", broadcast=True, wu=run.job.name)


class Claims(Logged):
    """An agent claims the files of a job as it begins it, and releases them at its end.

    Hooks do what `gitmem setup` lets them do: at each turn they renew claims and tell of contested ones, before an
    edit they check the file, and the pre-commit hook refuses a commit over somebody else's claim. In one clone
    `gitmem overlap --notify` runs every half an hour; its notices change nothing of what an agent does.
    """

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.claims: dict[str, tuple[str, int]] = {}
        self.heard: set[tuple[int, str | None]] = set()

    def look(self) -> None:
        for line in claim_work.at_command(self.log.store, self.log.caller):
            if line.startswith("contested"):
                self._hear(self.log.claims.check(self._files()).claims)
        for _, text, _ in self.new_messages():
            for number in map(int, re.findall(r"\bagent(\d+)\b", text)):
                if number != self.agent.number:
                    self.world.hears(self.agent.number, number, None)
                    self.heard.add((number, None))

    def forget(self) -> None:
        self.heard.clear()

    def knows(self, other: WorkRun) -> bool:
        return not self.heard.isdisjoint({(other.agent, other.job.name), (other.agent, None)})

    def may_begin(self, job: Job) -> bool:
        if self.is_forgotten(job):
            return True
        try:
            made = self.log.claims.claim(job.files, lease=LEASE, wu=job.name, reason=job.name)
        except GateError:
            self._hear(self.log.claims.check(job.files).claims)
            return False
        self.claims[job.name] = (made.claim_id, self.world.clock())
        return True

    def may_edit(self, run: WorkRun, path: str) -> str:
        if path not in run.job.files:
            return GO
        found = self.log.claims.check([path]).claims
        self._hear(found)
        since = self.claims.get(run.job.name, ("", self.world.clock()))[1]
        first = [each for each in found if each.status != "perhaps renewed" and parse_at(each.since) < since]
        if any(each.wu_id == run.job.name for each in first):
            return STOP
        return WAIT if first else GO

    def may_commit(self, run: WorkRun, path: str) -> bool:
        if path not in run.job.files:
            return True
        guard = edit_guard.check_guard(self.log.store, [self.log.caller], [path])
        self._hear([*guard.blocks, *guard.warns])
        return guard.open

    def ends(self, run: WorkRun, *, landed: bool) -> None:
        claim = self.claims.pop(run.job.name, None)
        if claim is not None:
            self.log.claims.release(claim[0])

    def _files(self) -> list[str]:
        return [path for run in self.agent.current() for path in run.job.files]

    def _hear(self, rows: list[ClaimRow]) -> None:
        for each in rows:
            number = number_of(each.name or "")
            if number is not None:
                self.heard.add((number, each.wu_id))
                self.world.hears(self.agent.number, number, each.wu_id)


TOOLS: dict[str, type[Tool]] = {
    "nothing": Tool,
    "messages only": Messages,
    "claims and radar": Claims,
}


class Agent:
    """An agent in a worktree, which works through its list of jobs.

    Attributes:
        seen: How many of the runs that landed its branch contains.
        run: Its work at present.
        pending: Its finished runs that are not on the main branch yet.
    """

    def __init__(self, world: World, number: int, tool: type[Tool]) -> None:
        self.world = world
        self.number = number
        self.clone = number // world.profile.agents
        self.where = world.worktree(self.clone, number)
        self.jobs = list(world.plan.lists[number])
        self.seen = 0
        self.run: WorkRun | None = None
        self.pending: list[WorkRun] = []
        self.edit: tuple[str, int] | None = None
        self.waited = self.busy_until = 0
        self.tool = tool(self)

    def current(self) -> list[WorkRun]:
        """Return its runs that are not over."""
        return [*self.pending, *([self.run] if self.run is not None else [])]

    def turn(self) -> None:
        """Do what is due in this minute."""
        minute = self.world.clock.minute
        self.tool.look()
        if self.busy_until > minute:
            return
        if self.pending and self.edit is None and self.world.is_online(self.clone):
            self._merge()
            if self.busy_until > minute:
                return
        if self.run is None:
            self._begin_job()
        if self.run is not None:
            self._work(self.run)
        elif self.jobs:
            self.world.idle += 1

    def _begin_job(self) -> None:
        is_behind = self.seen < len(self.world.landed)
        if is_behind and not self.pending and self.world.is_online(self.clone):
            self._git("fetch", "--quiet", "origin", "main")
            self._git("reset", "--quiet", "--hard", "origin/main")
            self.seen = len(self.world.landed)
        done = {run.job.name for run in (*self.world.landed[: self.seen], *self.pending)}
        self.jobs = [job for job in self.jobs if job.name not in done]
        for job in self.jobs:
            if self.tool.may_begin(job):
                offline = not self.world.is_online(self.clone)
                self.run = WorkRun(self.number, self.clone, job, began_offline=offline)
                self.world.runs.append(self.run)
                self.waited = 0
                return

    def _work(self, run: WorkRun) -> None:
        if self.edit is not None:
            path, until = self.edit
            if self.world.clock.minute < until:
                return
            self._end_edit(run, path)
        left = [path for path in run.job.hunks if path not in run.edits]
        if not left:
            self.run = None
            self.pending.append(run)
            if self.world.is_online(self.clone):
                self._merge()
            return
        for path in left:
            answer = self.tool.may_edit(run, path)
            if answer == STOP or (answer == WAIT and not run.edits):
                self._drop(run)
                return
            if answer == GO or self.waited >= WAIT_MAX:
                self._begin_edit(run, path)
                return
        self.waited += TURN
        self.world.idle += 1

    def _begin_edit(self, run: WorkRun, path: str) -> None:
        self.edit = (path, self.world.clock.minute + run.job.minutes[path])
        self.waited = 0
        for overlap in self.world.begins_edit(run, path, self.seen):
            other = next(each for each in overlap.runs if each is not run)
            if self.tool.knows(other):
                overlap.told = overlap.begun
        name = os.path.join(self.where, path)
        with open(name, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
        with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(edited(text, run.job.hunks[path], f"{run.job.name} by {branch(self.number)}"))
        os.utime(name, (self.world.clock.seconds(), self.world.clock.seconds()))

    def _end_edit(self, run: WorkRun, path: str) -> None:
        self.edit = None
        run.minutes += run.job.minutes[path]
        if self.tool.may_commit(run, path):
            self._git("commit", "--quiet", "--message", f"{run.job.name}: {path}", "--", path)
        else:  # the edit is thrown away and made again when the file is free
            self._git("checkout", "--quiet", "HEAD", "--", path)
            del run.edits[path]

    def _drop(self, run: WorkRun) -> None:
        """Give a job up, with its commits."""
        self.run = None
        run.is_over = True
        self.jobs.remove(run.job)
        self.jobs.append(run.job)  # to be looked at again: the other one may drop it, too
        self._git("reset", "--quiet", "--hard", f"HEAD~{len(run.edits)}")
        self.tool.ends(run, landed=False)

    def _merge(self) -> None:
        """Merge the main branch and push; a conflict takes time and keeps the agent's own version."""
        world = self.world
        if self.seen < len(world.landed):
            world.merges += 1
            self._git("fetch", "--quiet", "origin", "main")
            if self._git("merge", "--quiet", "--no-edit", "origin/main", may_fail=True) is None:
                world.conflicts += 1
                self.busy_until = world.clock.minute + RESOLVE_MINUTES
                self._git("merge", "--abort")
                self._git("merge", "--quiet", "--no-edit", "-X", "ours", "origin/main")
        self._git("push", "--quiet", "origin", "HEAD:main")
        mine, self.pending = self.pending, []
        world.lands(mine, self.seen)
        self.seen = len(world.landed)
        for run in mine:
            self.tool.ends(run, landed=True)

    def _git(self, *args: str, may_fail: bool = False) -> str | None:
        return self.world.git(self.where, *args, may_fail=may_fail)


def number_of(name: str) -> int | None:
    """Return the number of the agent with a name."""
    digits = name.removeprefix("agent")
    return int(digits) if digits.isdecimal() else None
