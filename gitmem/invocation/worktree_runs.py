"""Run each task in a git work tree of its own, outside of the user's work trees: `gitmem serve-agent --worktree`.

A lock file beside each work tree says whether its worker lives; the kernel releases it when the worker dies. Each worker keeps what killed
ones have left, when it starts and before each task.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

from ..digests import sha256
from ..errors import GitmemError
from ..log.lock import Lock
from ..log.wal_files import is_private
from .task_worktree import TaskWorktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..repo import Repo
    from .runs import Run, RunEnd
    from .served_task import ServedTask

FOLDER = "worktrees"  # in the user's state folder
LOCK_SECONDS = 10.0  # until a worker that has lost its task has ended its run
_PAUSE_SECONDS = 0.05
_TASK = re.compile(r"task-[0-9a-z]{4,32}")


class WorktreeRuns:
    """Starts tasks in work trees.

    Args:
        repo: The repository, as the worker has it.
        state: The user's state folder.
        start: Starts a task in a folder.
        report: Called with a sentence about what a run has left.
    """

    def __init__(
        self,
        repo: Repo,
        state: str,
        start: Callable[[ServedTask, str], Run],
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self.repo = repo
        clone = sha256(os.fsencode(os.path.realpath(repo.common))).hexdigest()[:16]
        self.folder = os.path.join(state, FOLDER, clone)
        self._start = start
        self.report = report

    def __call__(self, task: ServedTask) -> Run:
        """Start a task in a new work tree.

        Raises:
            OSError: The work tree can't be made, or the task not be started; nothing of it is left.
        """
        id = task.task_id
        if _TASK.fullmatch(id) is None:
            raise ValueError("The id of the task can't name a folder.")
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not is_private(self.folder):
                raise OSError(f"Other users could write to {self.folder}. Run: chmod 700 {self.folder}")
            self.clean()
            lock = self._claim(id, LOCK_SECONDS)
            if lock is None:
                raise OSError("Another worker still runs it in its work tree.")
            made = self._worktree(id)
            try:
                if os.path.lexists(made.folder):
                    raise OSError(
                        f"An earlier run has left {made.folder}. Save what you need of it, and delete it."
                    )
                try:
                    made.prepare()
                except BaseException:
                    made.remove()
                    raise
                return _WorktreeRun(self, lock, made, self._start(task, made.folder))
            except BaseException:
                self.close(lock, made)
                raise
        except GitmemError as error:
            raise OSError(error.message) from error

    def clean(self) -> None:
        """Keep what killed workers have left, and remove their work trees."""
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return
        for name in names:
            id = name.removesuffix(".lock")
            if name == id or _TASK.fullmatch(id) is None:
                continue
            lock = self._claim(id, 0)
            if lock is not None:
                self.close(lock, self._worktree(id))

    def close(self, lock: Lock, worktree: TaskWorktree) -> Mapping[str, Any]:
        """Keep on branches what is in a work tree, remove it, and give its lock back; return what is left for the payload."""
        kept = worktree.close()
        with self._all():
            if not os.path.lexists(worktree.folder):
                with contextlib.suppress(OSError):
                    os.unlink(lock.path)
            lock.release()
        if kept.sentence:
            self.report(f"{worktree.task_id}: {kept.sentence}")
        return kept.payload

    def _worktree(self, id: str) -> TaskWorktree:
        return TaskWorktree(self.repo, os.path.join(self.folder, id), os.path.join(self.folder, f"{id}.lock"))

    def _claim(self, id: str, seconds: float) -> Lock | None:
        """Take the lock of a work tree; None if its worker lives for this long."""
        end = time.monotonic() + seconds
        while True:
            with self._all():
                lock = Lock(os.path.join(self.folder, f"{id}.lock"))
                if lock.take():
                    return lock
            if time.monotonic() >= end:
                return None
            time.sleep(_PAUSE_SECONDS)

    @contextlib.contextmanager
    def _all(self) -> Iterator[None]:
        """Hold the lock under which others are taken and deleted: nobody then holds a deleted one. It is never held for long."""
        lock = Lock(os.path.join(self.folder, "lock"))
        while not lock.take():
            time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            lock.release()


class _WorktreeRun:
    """A run in a work tree, which is closed with it."""

    def __init__(self, runs: WorktreeRuns, lock: Lock, worktree: TaskWorktree, run: Run) -> None:
        self._runs = runs
        self._lock = lock
        self._worktree = worktree
        self._run = run
        self._left: Mapping[str, Any] | None = None

    def poll(self, seconds: float) -> RunEnd | None:
        return self._run.poll(seconds)

    def end(self) -> Mapping[str, Any]:
        if self._left is None:
            self._run.end()
            self._left = self._runs.close(self._lock, self._worktree)
        return self._left
