"""A commit belongs to the task and work unit that its session had when it was made, not to those it has when the commit is found."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller
from gitmem.store import Store
from gitmem.work import new_task, task_work
from tests.sandbox import SECOND, Clock, acting

from .people import Somebody, git, install_hook, store_at

STEP = 50_000  # microseconds between two acts


class Bench:
    """An agent that works on tasks, in a worktree whose post-commit hook is installed.

    Git's commits and their files have the times of the test's clock.
    """

    def __init__(self, repo: Path) -> None:
        git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
        install_hook(repo)
        self.clock = Clock()
        self.clock.value = int(time.time()) * SECOND
        self.store: Store = store_at(repo, self.clock)
        self.one = Somebody("a", repo, self.store)

    @property
    def caller(self) -> Caller:
        return acting(self.store, self.one.session)

    def ask(self) -> str:
        made = new_task.create(self.store, self.caller, "Go on", target_role="implementer/test")
        return str(made.task["task_id"])

    def take(self, task: str) -> str:
        task_work.take(self.store, self.caller, task)
        self.clock.forward(STEP)
        return task

    def commit(self) -> str:
        self.one.env["GIT_COMMITTER_DATE"] = f"@{self.clock.value // SECOND} +0000"
        made = self.one.commit()
        at = self.clock.value * 1000
        os.utime(self.file(made), ns=(at, at))
        self.clock.forward(STEP)
        return made

    def file(self, commit: str) -> Path:
        """The file of a loose commit."""
        return Path(self.one.folder, ".git", "objects", commit[:2], commit[2:])

    def next_second(self) -> None:
        self.clock.forward(SECOND - self.clock.value % SECOND + STEP)

    def done(self, task: str) -> None:
        task_work.report(self.store, self.caller, task, "completed", "It is done.")

    def found(self, field: str) -> list[str | None]:
        """A field of the records about the commits, in their order."""
        self.one.look()
        rows = self.store.db().execute("SELECT body FROM line WHERE kind = 'commit'").fetchall()
        records = {found["commit"]: found.get(field) for found in (json.loads(body) for (body,) in rows)}
        return [records[oid] for oid in git(self.one.folder, "log", "--reverse", "--format=%H").split()[1:]]


@pytest.fixture
def bench(repo: Path) -> Iterator[Bench]:
    found = Bench(repo)
    yield found
    found.store.close()


def test_a_task_that_was_finished_before_the_commit_was_found_is_kept(bench: Bench) -> None:
    """And one that was taken meanwhile, or finished before the commit, is not the commit's."""
    first, second, third = (bench.ask() for _ in range(3))
    bench.commit()
    bench.take(first)
    bench.commit()
    bench.done(first)
    bench.clock.forward(STEP)
    bench.commit()
    bench.take(second)
    bench.commit()
    task_work.release(bench.store, bench.caller, second)
    bench.take(third)
    assert bench.found("task_id") == [None, first, None, second]


def test_the_work_unit_is_that_of_the_commit(bench: Bench) -> None:
    for unit in ("WU-1", "WU-2", None):
        bench.commit()
        if unit is not None:
            lifecycle.change(bench.store, bench.caller, wu=unit)
            bench.clock.forward(STEP)
    assert bench.found("wu_id") == [None, "WU-1", "WU-2"]


@pytest.mark.parametrize("hidden", ["packed", "touched"])
def test_without_the_time_of_its_file_a_commit_has_only_what_was_held_all_the_second(
    bench: Bench, hidden: str
) -> None:
    """Git tells the second. A take of the same second may have come after it."""

    def hide() -> None:
        if hidden == "packed":
            bench.one.git("repack", "-adq")
        else:
            os.utime(bench.file(bench.one.head()), (1, 1))

    first = bench.ask()
    bench.next_second()
    bench.take(first)
    bench.commit()
    hide()
    bench.next_second()
    bench.commit()
    hide()
    bench.next_second()
    bench.commit()
    hide()
    bench.done(first)
    assert bench.found("task_id") == [None, first, None]
