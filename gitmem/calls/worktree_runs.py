"""Run each task in a git work tree of its own, outside of the user's work trees: `gitmem serve-agent --worktree`.

A lock file beside each work tree says whether its worker lives; the kernel releases it when the worker dies. Each worker keeps what killed
ones have left, when it starts and before each task.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time

from .. import local_files
from ..errors import GitmemError, StoreError
from ..git import processes as git
from ..log.lock import Lock
from ..log.ref import NOBODY
from ..log.write_ahead import is_private
from ..outcome import Struct
from ..repo import read_small
from ..text.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..repo import Repo
    from .served_task import Run, RunEnd, ServedTask


FOLDER = "worktrees"  # in the user's state folder
LOCK_SECONDS = 10.0  # until a worker that has lost its task has ended its run
_PAUSE_SECONDS = 0.05
_TASK = re.compile(r"task-[0-9a-z]{4,32}")

UNCOMMITTED = "-uncommitted"  # the end of the name of the branch with what was not committed
GIT_SECONDS = 600.0  # for a checkout of a large repository, and for adding large files
_NAMES_MAX = 100  # branches of one task
_ROLES = ("AUTHOR", "COMMITTER")
_AUTHOR = {f"GIT_{each}_NAME": NOBODY[0] for each in _ROLES} | {
    f"GIT_{each}_EMAIL": NOBODY[1] for each in _ROLES
}
_HEADS = "refs/heads/"
_GITLINK = "160000"
# The note of a work tree has its branch, the commit where that began, and the commit with what was restored; only the first two while nothing
# has run in it; or this word, once it could not be removed.
_STAYS = "stays"
_PREPARING, _PREPARED = 2, 3
_PAYLOAD = ("branch", "commit", "uncommitted", "worktree")


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


class _WorktreeRun(Struct):
    """A run in a work tree, which is closed with it."""

    _runs: WorktreeRuns
    _lock: Lock
    _worktree: TaskWorktree
    _run: Run
    _left: Mapping[str, Any] | None = None

    def poll(self, seconds: float) -> RunEnd | None:
        return self._run.poll(seconds)

    def end(self) -> Mapping[str, Any]:
        if self._left is None:
            self._run.end()
            self._left = self._runs.close(self._lock, self._worktree)
        return self._left


class Kept:
    """What is left of a run.

    Attributes:
        branch: The branch with what it has committed; None if it has committed nothing.
        commit: The last commit on that branch.
        uncommitted: The branch with what it has not committed; None if there is nothing.
        worktree: The work tree if it could not be removed; None if it has been.
        error: Why not; None if it has something that no branch can have.
        unused: Where the branch of the task begins, if it has nothing else.
    """

    def __init__(self) -> None:
        self.branch: str | None = None
        self.commit: str | None = None
        self.uncommitted: str | None = None
        self.worktree: str | None = None
        self.error: str | None = None
        self.unused: str | None = None

    @property
    def payload(self) -> dict[str, str]:
        """Its fields in the payload of the end of the run."""
        return {name: value for name in _PAYLOAD if (value := getattr(self, name)) is not None}

    @property
    def sentence(self) -> str:
        """A sentence for whoever watches the worker; empty if nothing is left."""
        parts = []
        if self.branch:
            parts.append(f"its commits are on branch {self.branch}")
        if self.uncommitted:
            parts.append(f"what it has not committed is on branch {self.uncommitted}")
        if self.worktree:
            parts.append(
                f"the work tree {self.worktree} stays, because {self.error or 'no branch can have all that is in it'}"
            )
        return ", ".join(parts)


class TaskWorktree:
    """A work tree of a task.

    Args:
        repo: The repository, as the worker has it.
        folder: Where the work tree is, named as the task.
        note: A file of its own for what has to be known after its worker was killed; it exists.
    """

    def __init__(self, repo: Repo, folder: str, note: str) -> None:
        self.repo = repo
        self.folder = folder
        self.note = note
        self.task_id = os.path.basename(folder)

    def prepare(self) -> None:
        """Make it on the branch of an earlier run of the task, with what that has not committed; otherwise from HEAD.

        Raises:
            GitmemError: Git refuses, such as because HEAD has no commit.
        """
        earlier = [name for name in self._names("") if self._commit(_HEADS + name) is not None]
        base = "" if earlier else self._commit("HEAD", of=self.repo.git_dir)
        if base is None:
            raise StoreError(
                "HEAD has no commit for a work tree to begin at. Commit something first.", code="no-commit"
            )
        self._write(self.task_id, base)
        if earlier:
            self._add_to(earlier[-1])
        else:
            self._git("worktree", "add", "--quiet", "--lock", "-b", self.task_id, self.folder, base)
        left = self._commit(_HEADS + self.task_id + UNCOMMITTED)
        if left is not None and self._commit(f"{left}^") == self._commit("HEAD", of=self._admin):
            env = {"GIT_WORK_TREE": self.folder}
            self._git("restore", f"--source={left}", "--worktree", "--", ":/", of=self._admin, env=env)
        else:
            left = None
        self._write(
            self._branch() or self.task_id, base, left or ""
        )  # from here on something in it may be worth keeping

    def _add_to(self, branch: str) -> None:
        """Make it on a branch, or on a new one from there if another work tree has that checked out."""
        add = ("worktree", "add", "--quiet", "--lock")
        try:
            self._git(*add, self.folder, branch)
        except GitmemError as error:
            if "already" not in error.message:
                raise
            free = next(name for name in self._names("") if self._commit(_HEADS + name) is None)
            self._git(*add, "-b", free, self.folder, branch)

    def close(self) -> Kept:
        """Keep on branches what is in it, and remove it; if that is not possible, leave it where it is."""
        kept = Kept()
        try:
            said = local_files.load(self.note).decode().split("\n")
            if said == [_STAYS] and os.path.lexists(self.folder):
                return kept
            if len(said) == _PREPARING:
                kept.unused = said[1]
            elif len(said) == _PREPARED:
                is_whole = not os.path.lexists(self.folder) or self._keep_uncommitted(kept, said[2])
                self._keep_commits(kept, said[0], said[1])
                kept.worktree = None if is_whole else self.folder
        except (GitmemError, OSError) as error:
            kept.error = getattr(error, "message", None) or str(error)
            kept.worktree = self.folder
        if kept.worktree is None and not self.remove():
            kept.worktree = self.folder
        if kept.worktree is not None:
            self._write(_STAYS)
        elif kept.unused:
            self._git("update-ref", "-d", _HEADS + self.task_id, kept.unused, check=False)
        return kept

    def _write(self, *lines: str) -> None:
        handle = local_files.open_file(self.note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))

    def _keep_uncommitted(self, kept: Kept, restored: str) -> bool:
        """Commit to the second branch what is not committed; return whether all of it could be."""
        head = self._commit("HEAD", of=self._admin)
        index = f"{self.note}.index"
        env = {"GIT_INDEX_FILE": index, "GIT_WORK_TREE": self.folder, **_AUTHOR}
        try:
            own = os.path.join(self._admin, "index")
            if os.path.exists(own):  # sparse checkouts mark files there
                shutil.copyfile(own, index)
            self._git("add", "--all", "--", ":/", of=self._admin, env=env)
            tree = self._git("write-tree", of=self._admin, env=env)
            against = head or self._git("hash-object", "-t", "tree", "--stdin")
            changes = self._git("diff-tree", "-r", "--no-renames", "--raw", against, tree)
            if changes:
                parents = ("-p", head) if head else ()
                message = f"Uncommitted changes of {self.task_id}"
                commit = self._git("commit-tree", tree, *parents, "-m", message, env=_AUTHOR)
                kept.uncommitted = self._create(UNCOMMITTED, commit, replaces=restored)
            elif restored:  # the run has committed or undone it
                self._git("update-ref", "-d", _HEADS + self.task_id + UNCOMMITTED, restored)
        finally:
            for path in (index, f"{index}.lock"):
                if os.path.exists(path):
                    os.unlink(path)
        is_nested = any(line.split(" ")[1] == _GITLINK for line in changes.splitlines())
        return not is_nested and not os.path.isdir(os.path.join(self._admin, "modules"))

    def _keep_commits(self, kept: Kept, branch: str, base: str) -> None:
        """Name the branch with the commits of the run, and create one for those that are on none."""
        known = self._find_admin() is not None
        head, current = (self._commit("HEAD", of=self._admin), self._branch()) if known else (None, None)
        tip = self._commit(_HEADS + branch)
        if current not in (None, branch) and head not in (None, base):
            branch, tip = str(current), head  # a branch that the run has made
        elif current is None and head is not None and tip is not None and not self._is_ancestor(head, tip):
            if self._is_ancestor(tip, head):
                self._git("update-ref", _HEADS + branch, head, tip)
            else:
                branch = self._create("", head)
            tip = head
        if tip is not None and tip != base:
            kept.branch, kept.commit = branch, tip
        kept.unused = base if base and self._commit(_HEADS + self.task_id) == base else None

    def remove(self) -> bool:
        """Remove it with git's notes about it; return whether that was possible."""
        remove = ("worktree", "remove", "--force", "--force", self.folder)
        self._git(*remove, check=False)
        if os.path.lexists(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._find_admin() is not None:
            self._git(*remove, check=False)
        return not os.path.lexists(self.folder)

    @property
    def _admin(self) -> str:
        found = self._find_admin()
        if found is None:
            raise StoreError(f"Git no longer knows the work tree {self.folder}.", code="worktree-unknown")
        return found

    def _find_admin(self) -> str | None:
        """Return git's folder for this work tree. What runs in it may have changed its file `.git`, which is not read."""
        parent = os.path.join(self.repo.common, "worktrees")
        wanted = os.path.join(self.folder, ".git")
        for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else ():
            if os.fsdecode(read_small(os.path.join(parent, name, "gitdir"))).rstrip("\n") == wanted:
                return os.path.join(parent, name)
        return None

    def _create(self, end: str, commit: str, replaces: str = "") -> str:
        """Create a branch that does not exist yet, or move the one that has the commit `replaces`; return its name."""
        for name in self._names(end):
            old = self._commit(_HEADS + name)
            if old is None or old == replaces:
                self._git("update-ref", _HEADS + name, commit, old or "0" * len(commit))
                return name
        raise StoreError(f"{self.task_id} has too many branches; delete some.", code="worktree-branches")

    def _names(self, end: str) -> list[str]:
        return [f"{self.task_id}{f'-{number}' if number > 1 else ''}{end}" for number in range(1, _NAMES_MAX)]

    def _branch(self) -> str | None:
        found = self._git("symbolic-ref", "-q", "HEAD", of=self._admin, check=False)
        return found.removeprefix(_HEADS) if found.startswith(_HEADS) else None

    def _commit(self, name: str, of: str | None = None) -> str | None:
        """Return the commit of a full ref name or HEAD; None if there is none."""
        return (
            self._git(
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                f"{name}^{{commit}}",
                of=of,
                check=False,
            )
            or None
        )

    def _is_ancestor(self, old: str, new: str) -> bool:
        return self._git("merge-base", old, new, check=False) == old

    def _git(
        self, *args: str, of: str | None = None, env: Mapping[str, str] | None = None, check: bool = True
    ) -> str:
        done = git.run(
            of or self.repo.common, args, env_extra=env, timeout=GIT_SECONDS, check=check, online=True,
            cwd=self.folder if env and "GIT_WORK_TREE" in env else None,
        )  # fmt: skip
        return done.out.decode("utf-8", "surrogateescape").strip("\n") if done.code == 0 else ""
