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
from functools import partial

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
    from .worker import Run, RunEnd, ServedTask


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
_MOVES_MAX = 1_000  # entries of a reflog
_MOVED = re.compile(r"checkout: moving from ([0-9a-f]{40,64}) to ")
_OID = re.compile("[0-9a-f]{40,64}")
_REBASES = ("rebase-merge", "rebase-apply")  # of which git notes where HEAD was, until they end
_HEADS = "refs/heads/"
_GITLINK = "160000"
# The note of a work tree is one of these words, until something has run in it; then the commit with what was restored, if any.
_PREPARING, _STAYS = "preparing", "stays"


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
        for name in sorted(local_files.names_in(self.folder)):
            id = name.removesuffix(".lock")
            if name == id or _TASK.fullmatch(id) is None:
                continue
            lock = self._claim(id, 0)
            if lock is not None:
                self.close(lock, self._worktree(id))

    def close(self, lock: Lock, worktree: TaskWorktree) -> Mapping[str, Any]:
        """Keep on branches what is in a work tree, remove it, and give its lock back; return what is left for the payload."""
        kept, why = worktree.close()
        with self._all():
            if not os.path.lexists(worktree.folder):
                with contextlib.suppress(OSError):
                    os.unlink(lock.path)
            lock.release()
        told = [said.format(kept[name], why) for name, said in _SAYS.items() if name in kept]
        if told:
            self.report(f"{worktree.task_id}: {', '.join(told)}")
        return kept

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


_SAYS = {
    "branch": "its commits are on branch {}",
    "uncommitted": "what it has not committed is on branch {}",
    "worktree": "the work tree {} stays, because {}",
}


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
        """Make it, detached, where an earlier run of the task has ended, with what that has not committed; otherwise at HEAD.

        Raises:
            GitmemError: Git refuses, such as because HEAD has no commit.
        """
        known = self._branches()
        earlier = [known[name] for name in self._names("") if name in known]
        base = earlier[-1] if earlier else self._commit("HEAD", of=self.repo.git_dir)
        if base is None:
            raise StoreError(
                "HEAD has no commit for a work tree to begin at. Commit something first.", code="no-commit"
            )
        self._write(_PREPARING)
        self._git("worktree", "add", "--quiet", "--lock", "--detach", self.folder, base)
        left = known.get(self.task_id + UNCOMMITTED, "")
        if left and self._commit(f"{left}^") == base:
            env = {"GIT_WORK_TREE": self.folder}
            self._git("restore", f"--source={left}", "--worktree", "--", ":/", of=self._admin, env=env)
        else:
            left = ""
        self._write(left)  # from here on something in it may be worth keeping

    def close(self) -> tuple[dict[str, str], str]:
        """Keep on branches what is in it, and remove it; if that is not possible, leave it where it is.

        Returns:
            What is left, as fields for the payload of the end of the run: `branch` and `commit`, `uncommitted` (a branch) and
            `worktree`; and why the work tree stays.
        """
        kept: dict[str, str] = {}
        why = ""
        try:
            said = local_files.load(self.note).decode()
            is_there = os.path.lexists(self.folder)
            if said == _STAYS and is_there:
                return kept, why
            if said not in (_PREPARING, _STAYS):
                if is_there and not self._keep_uncommitted(kept, said):
                    why = "no branch can have all that is in it"
                if self._find_admin() is not None:
                    self._keep_commits(kept)
        except (GitmemError, OSError) as error:
            why = getattr(error, "message", None) or str(error)
        if why or not self.remove():
            kept["worktree"] = self.folder
            self._write(_STAYS)
        return kept, why

    def _write(self, said: str) -> None:
        handle = local_files.open_file(self.note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(said)

    def _keep_uncommitted(self, kept: dict[str, str], restored: str) -> bool:
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
                kept["uncommitted"] = self._keep(UNCOMMITTED, commit, lambda old: old == restored)
            elif restored:  # the run has committed or undone it
                self._git("update-ref", "-d", _HEADS + self.task_id + UNCOMMITTED, restored)
        finally:
            for path in (index, f"{index}.lock"):
                if os.path.exists(path):
                    os.unlink(path)
        is_nested = any(line.split(" ")[1] == _GITLINK for line in changes.splitlines())
        return not is_nested and not os.path.isdir(os.path.join(self._admin, "modules"))

    def _keep_commits(self, kept: dict[str, str]) -> None:
        """Name the branch with the commits of the run, and create one for those that are on none."""
        head, branch = self._commit("HEAD", of=self._admin), self._branch()
        of_user = self._commit("HEAD", of=self.repo.git_dir)
        for left in self._left_behind():
            if head is None or not self._is_ancestor(left, head):
                kept["branch"], kept["commit"] = (
                    self._keep("", left, partial(self._is_ancestor, new=left)),
                    left,
                )
        if head is None or (of_user is not None and self._is_ancestor(head, of_user)):
            return
        if branch is None:  # else the run has made it
            branch = self._keep("", head, lambda old: self._is_ancestor(old, head))
        kept["branch"], kept["commit"] = branch, head

    def _left_behind(self) -> list[str]:
        """Return the commits on no branch from which the run went elsewhere, as its reflog says, and that of an unfinished rebase."""
        said = self._git("log", "--walk-reflogs", "--no-show-signature", f"--max-count={_MOVES_MAX}", "--format=%gs", "HEAD", of=self._admin, check=False)  # fmt: skip
        found = [match[1] for each in said.splitlines() if (match := _MOVED.match(each))]
        rebased = [
            os.fsdecode(read_small(os.path.join(self._admin, name, "orig-head"), 99)) for name in _REBASES
        ]
        found = [*found[::-1], *(oid.strip() for oid in rebased if _OID.fullmatch(oid.strip()))]
        contains = ("for-each-ref", "--count=1", "--contains")
        return [oid for oid in dict.fromkeys(found) if self._commit(oid) and not self._git(*contains, oid)]

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
        for name in sorted(local_files.names_in(parent)):
            if os.fsdecode(read_small(os.path.join(parent, name, "gitdir"))).rstrip("\n") == wanted:
                return os.path.join(parent, name)
        return None

    def _keep(self, end: str, commit: str, replaces: Callable[[str], bool]) -> str:
        """Return the first branch of the task that has the commit, does not exist yet, or may be moved there: not one that is checked out."""
        known = self._branches()
        for name in self._names(end):
            old = known.get(name)
            if old != commit and (old is None or replaces(old)):
                self._git("branch", "--force", "--no-track", name, commit, check=False)
                old = self._commit(_HEADS + name)
            if old == commit:
                return name
        raise StoreError(f"{self.task_id} has too many branches; delete some.", code="worktree-branches")

    def _branches(self) -> dict[str, str]:
        """Return the branches whose names begin with that of the task, with their commits."""
        patterns = (f"{_HEADS}{self.task_id}", f"{_HEADS}{self.task_id}-*")
        said = self._git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *patterns)
        return dict(line.split(" ") for line in said.splitlines())

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
