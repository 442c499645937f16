"""Who works on what in a run of `benchmarks.collisions`: jobs from a real history, and a plan for each seed."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence

COMMITS = 400  # of the history, the newest
FILES_MAX = 6  # that a job changes
HUNKS_MAX, LINES_MAX = 8, 20  # of a file, and of a hunk
HOT_SHARE = 0.1  # a file that more of the commits change is neither announced nor claimed
TURN = 5  # minutes from one turn of an agent to its next
EDIT_MINUTES = (10, 15, 20, 25)
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")

Hunks = list[tuple[int, int]]  # first line and number of lines


class Job:
    """A real commit as a piece of work: the same files are changed at the same lines.

    Attributes:
        name: The work unit.
        hunks: The lines of each file.
        minutes: How long the edit of each file takes.
        files: The files that are announced or claimed: those that hardly any other job changes.
    """

    def __init__(self, name: str, hunks: dict[str, Hunks], hot: set[str], dice: random.Random) -> None:
        self.name = name
        self.hunks = hunks
        self.minutes = {path: dice.choice(EDIT_MINUTES) for path in hunks}
        self.files = [path for path in hunks if path not in hot]


class Profile:
    """The size and the circumstances of a run.

    Attributes:
        title: Its name in the table.
        clones: The number of clones.
        agents: The number of agents in each clone, each in a worktree of its own.
        jobs: The number of jobs of each agent's own.
        shared: How many of these stand on the list of another agent, too.
        forgets: The share of jobs that are begun without an announcement or claim.
        compaction: After how many minutes an agent loses what it has read; 0 for never.
        offline: The first and last minute in which the last clone has no network.
        minutes: The length of the run.
        seeds: The number of plans.
    """

    def __init__(
        self, title: str, *, clones: int = 3, agents: int = 2, jobs: int = 4, shared: int = 2, forgets: float = 0.0,
        compaction: int = 0, offline: tuple[int, int] = (0, 0), minutes: int = 360, seeds: int = 5,
    ) -> None:  # fmt: skip
        self.title = title
        self.clones = clones
        self.agents = agents
        self.jobs = jobs
        self.shared = shared
        self.forgets = forgets
        self.compaction = compaction
        self.offline = offline
        self.minutes = minutes
        self.seeds = seeds


class Plan:
    """What each agent does, the same in each run of a seed.

    Attributes:
        lists: The jobs of each agent, in its order.
        forgotten: Agent and job where the agent forgets to announce or claim.
        first: The minute of each agent's first turn.
    """

    def __init__(self, profile: Profile, history: Sequence[dict[str, Hunks]], seed: int) -> None:
        dice = random.Random(seed)
        count = profile.clones * profile.agents
        hot = hot_files(history)
        fit = [each for each in history if len(each) <= FILES_MAX and set(each) - hot]
        own = profile.jobs
        first = dice.randrange(max(1, len(fit) - own * count + 1))
        window = fit[first : first + own * count]  # commits that were made one after another
        dice.shuffle(window)
        chosen = [Job(f"JOB-{number:03d}", hunks, hot, dice) for number, hunks in enumerate(window)]
        self.lists = [chosen[number * own : (number + 1) * own] for number in range(count)]
        for number in range(count):
            others = [each for each in range(count) if each != number]
            for job in dice.sample(self.lists[number][:own], profile.shared):
                self.lists[dice.choice(others)].append(job)
        for jobs in self.lists:
            dice.shuffle(jobs)
        self.forgotten = {
            (number, job.name)
            for number, jobs in enumerate(self.lists)
            for job in jobs
            if dice.random() < profile.forgets
        }
        self.first = [dice.randrange(TURN) for _ in range(count)]

    @property
    def jobs(self) -> set[str]:
        """The names of all jobs."""
        return {job.name for jobs in self.lists for job in jobs}


def hot_files(history: Sequence[dict[str, Hunks]]) -> set[str]:
    """Return the files that more than `HOT_SHARE` of the commits change, such as a changelog."""
    often = Counter(path for hunks in history for path in hunks)
    return {path for path, count in often.items() if count > max(2, HOT_SHARE * len(history))}


def read_history(repository: str, commits: int = COMMITS) -> list[dict[str, Hunks]]:
    """Return the lines that each of the newest commits changed in files that still exist."""
    git = ["git", "-C", repository, "-c", "core.quotePath=false"]
    listed = subprocess.run([*git, "ls-tree", "-rz", "--name-only", "HEAD"], capture_output=True, check=True)
    exist = set(listed.stdout.decode("utf-8", "replace").split("\0"))
    options = ["--no-merges", f"-n{commits}", "-p", "--unified=0", "--no-renames", "--diff-filter=M"]
    log = subprocess.run(
        [*git, "log", *options, "--no-ext-diff", "--no-textconv", "--no-color", "--format=%x01"],
        capture_output=True, check=True,
    )  # fmt: skip
    entries = log.stdout.decode("utf-8", "replace").split("\x01\n")
    return [hunks for hunks in map(_hunks_of, entries) if hunks and hunks.keys() <= exist]


def _hunks_of(patch: str) -> dict[str, Hunks]:
    found: dict[str, Hunks] = {}
    for path, start, count in _changes(patch):
        hunks = found.setdefault(path, [])
        if len(hunks) < HUNKS_MAX:
            hunks.append((max(1, start), min(LINES_MAX, max(1, count))))
    return found


def _changes(patch: str) -> Iterator[tuple[str, int, int]]:
    path = ""
    for line in patch.splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif path and (found := _HUNK.match(line)):
            yield path, int(found[1]), int(found[2] or 1)


def edited(text: str, hunks: Hunks, mark: str) -> str:
    """Return a text whose lines in the hunks end with a mark; a hunk beyond its end marks the last line."""
    lines = text.splitlines(keepends=True) or ["\n"]
    for start, count in hunks:
        for place in range(start - 1, start - 1 + count):
            at = min(place, len(lines) - 1)
            if not lines[at].rstrip("\r\n").endswith(mark):
                body = lines[at].rstrip("\r\n")
                lines[at] = f"{body}  {mark}{lines[at][len(body) :]}"
    return "".join(lines)
