"""Clones, worktrees and a remote with a real history, a clock in simulated minutes, and what is measured in them."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Sequence

from .collision_plan import TURN, Job, Plan, Profile
from .workbench import environment

MINUTE = 60 * 1_000_000
BEGINNING = 1_795_000_000_000_000  # microseconds since 1970: in November 2026
SYNC_MINUTES, RADAR_MINUTES = 15, 30
RESOLVE_MINUTES = 15  # that a conflicting merge takes
SAME_CLONE, TWO_CLONES, WITH_OFFLINE = "in one clone", "in two clones", "with a clone offline"


class Clock:
    """The wall clock of all clones: the simulated minute, and a microsecond more each time that it is asked."""

    def __init__(self) -> None:
        self.minute = 0
        self._asked = 0

    def __call__(self) -> int:
        self._asked += 1
        return BEGINNING + self.minute * MINUTE + self._asked

    def seconds(self) -> int:
        """Return the time in seconds."""
        return (BEGINNING + self.minute * MINUTE) // 1_000_000


class WorkRun:
    """One agent's work on a job, from its start until it is on the main branch or dropped.

    Attributes:
        edits: The minute in which the edit of each file began.
        minutes: How long the agent has edited so far.
        landed: Its place among all runs that are on the main branch; None before.
        began_offline: Whether the clone had no network when it began.
    """

    def __init__(self, agent: int, clone: int, job: Job, *, began_offline: bool) -> None:
        self.agent = agent
        self.clone = clone
        self.job = job
        self.began_offline = began_offline
        self.edits: dict[str, int] = {}
        self.minutes = 0
        self.landed: int | None = None
        self.is_over = False


class Overlap:
    """Two runs that edit one file, neither with the other's commits. Files that most jobs change don't count.

    Attributes:
        begun: The minute in which the second of them began to edit the file.
        told: The minute in which one of both agents heard of the other one's run from a tool.
        met: The minute in which one of both merged the other one's commits.
    """

    def __init__(self, one: WorkRun, other: WorkRun, begun: int, where: str) -> None:
        self.runs = (one, other)
        self.begun = begun
        self.where = where
        self.told: int | None = None
        self.met: int | None = None

    @property
    def warning(self) -> int | None:
        """The minutes until a tool or the merge told of it; None if nothing did."""
        known = [each for each in (self.told, self.met) if each is not None]
        return max(0, min(known) - self.begun) if known else None


class World:
    """The remote, the clones and the measurements of one run.

    Args:
        folder: An empty folder.
        history: The repository whose files the remote has, as far as the plan changes them.
    """

    def __init__(self, folder: str, history: str, profile: Profile, plan: Plan) -> None:
        self.folder = folder
        self.profile = profile
        self.plan = plan
        self.clock = Clock()
        self.runs: list[WorkRun] = []
        self.overlaps: list[Overlap] = []
        self.landed: list[WorkRun] = []
        self.merges = self.conflicts = self.idle = 0
        self.finished = 0  # the minute in which the last job landed
        self.environment = {**environment(folder), **_settings({"gc.auto": "0", "core.fsync": "none"})}
        self.hub = os.path.join(folder, "hub.git")
        self._start_hub(history)
        self.clones = [os.path.join(folder, f"clone{number}") for number in range(profile.clones)]
        for where in self.clones:
            options = ["--quiet", "--single-branch", "--branch", "main"]
            self.git(folder, "clone", *options, self.hub, where)
            self.git(where, "config", "user.name", "A Person")
            self.git(where, "config", "user.email", "person@example.org")
            self.git(where, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")

    def _start_hub(self, history: str) -> None:
        """Create the remote with one commit of the files that the plan changes.

        Everything else costs time in each checkout, and other branches would be compared by the radar.
        """
        head, objects, *_ = self._read(
            history, "rev-parse", "HEAD^{tree}", "--path-format=absolute", "--git-path", "objects"
        ).splitlines()
        self.git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", self.hub)
        borrowed = os.path.join(self.hub, "objects", "info", "alternates")
        with open(borrowed, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{objects}\n")
        changed = {path for jobs in self.plan.lists for job in jobs for path in job.hunks}
        entries = self._read(self.hub, "ls-tree", "-rz", head).split("\0")
        names = {each: each.partition("\t")[2] for each in entries}
        kept = [each for each, name in names.items() if name in changed or name.endswith(".gitattributes")]
        self.git(self.hub, "update-index", "-z", "--index-info", given="".join(f"{each}\0" for each in kept))
        tree = self._read(self.hub, "write-tree").strip()
        author = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
        first = self._read(self.hub, *author, "commit-tree", tree, "-m", "First").strip()
        self.git(self.hub, "update-ref", "refs/heads/main", first)
        self.git(self.hub, "repack", "-a", "-d", "--quiet")
        os.remove(borrowed)

    def worktree(self, clone: int, agent: int) -> str:
        """Create an agent's worktree, on a branch of its own; return its folder."""
        where = os.path.join(self.folder, f"worktree{agent}")
        self.git(self.clones[clone], "worktree", "add", "--quiet", "-b", branch(agent), where)
        return where

    def git(self, where: str, *args: str, may_fail: bool = False, given: str = "") -> str | None:
        """Run git at the simulated time; return its output, or None if it failed and may.

        Args:
            given: Its standard input.

        Raises:
            CalledProcessError: It failed and may not.
        """
        date = f"{self.clock.seconds()} +0000"
        variables = {**self.environment, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", *args],
            cwd=where, env=variables, input=given, capture_output=True, text=True, errors="surrogateescape", check=not may_fail,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None

    def _read(self, where: str, *args: str) -> str:
        return self.git(where, *args) or ""

    def is_online(self, clone: int) -> bool:
        """Return whether a clone has a network now."""
        first, last = self.profile.offline
        return clone != self.profile.clones - 1 or not first <= self.clock.minute < last

    def begins_edit(self, run: WorkRun, path: str, seen: int) -> list[Overlap]:
        """Note that a run edits a file now; return the overlaps that begin with it.

        Args:
            seen: How many landed runs the agent's branch contains.
        """
        minute = self.clock.minute
        run.edits.setdefault(path, minute)
        found: list[Overlap] = []
        for other in self.runs if path in run.job.files else ():
            is_news = other.landed is None or other.landed >= seen
            if other.agent == run.agent or path not in other.edits or not is_news:
                continue
            if other.is_over or any({run, other} == set(each.runs) for each in self.overlaps):
                continue
            found.append(Overlap(run, other, minute, self._where(run, other)))
        self.overlaps += found
        return found

    def _where(self, run: WorkRun, other: WorkRun) -> str:
        if run.clone == other.clone:
            return SAME_CLONE
        is_cut = any(each.began_offline or not self.is_online(each.clone) for each in (run, other))
        return WITH_OFFLINE if is_cut else TWO_CLONES

    def hears(self, agent: int, other: int, job: str | None) -> None:
        """Note that a tool told an agent of another one's run, or of all its runs."""
        for each in self.overlaps:
            agents = {run.agent: run for run in each.runs}
            if each.told is not None or each.met is not None or {agent, other} != agents.keys():
                continue
            if job is None or agents[other].job.name == job:
                each.told = self.clock.minute

    def lands(self, runs: Sequence[WorkRun], seen: int) -> None:
        """Note that runs of one agent are on the main branch, on top of others that it had not seen before."""
        self.meets(runs, seen)
        for run in runs:
            run.landed = len(self.landed)
            self.landed.append(run)
        if runs:
            self.finished = self.clock.minute

    def meets(self, runs: Sequence[WorkRun], seen: int) -> None:
        """Note that the agent of some runs has merged all that landed."""
        for each in self.overlaps:
            one, other = each.runs
            for mine, theirs in ((one, other), (other, one)):
                if each.met is None and mine in runs and theirs.landed is not None and theirs.landed >= seen:
                    each.met = self.clock.minute


class Result:
    """What one run comes to."""

    def __init__(self, world: World) -> None:
        done = {run.job.name for run in world.landed}
        worked: dict[str, list[WorkRun]] = {}
        for run in world.runs:
            if run.minutes:
                worked.setdefault(run.job.name, []).append(run)
        self.done = len(done)
        self.jobs = len(world.plan.jobs)
        self.duplicates = sum(len({run.agent for run in runs}) > 1 for runs in worked.values())
        self.wasted = sum(
            sum(run.minutes for run in runs) - max(run.minutes for run in runs) for runs in worked.values()
        )
        self.merges = world.merges
        self.conflicts = world.conflicts
        self.idle = world.idle * TURN
        self.finished = world.finished
        self.overlaps = len(world.overlaps)
        self.told = sum(each.told is not None for each in world.overlaps)
        waits = [each.warning for each in world.overlaps if each.warning is not None]
        self.warning = statistics.median(waits) if waits else None
        self.places = {
            place: (
                sum(each.where == place for each in world.overlaps),
                sum(each.where == place and each.told is not None for each in world.overlaps),
            )
            for place in (SAME_CLONE, TWO_CLONES, WITH_OFFLINE)
        }


def _settings(values: dict[str, str]) -> dict[str, str]:
    """Return the variables that give git settings."""
    found = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (name, value) in enumerate(values.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def branch(agent: int) -> str:
    """Return the name of an agent's branch."""
    return f"agent{agent}"
