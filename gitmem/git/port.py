"""The git port: objects, trees one level at a time, the user's history and worktrees, and a compare-and-swap on a ref.

Reads go through one `git cat-file` process that starts with the first read, or in long-lived processes through dulwich,
cached; objects that dulwich does not find or cannot read are read by the git program. Each write is one pack (`packs`);
`git update-ref` moves a ref.
"""

from __future__ import annotations

import os
import time

from ..errors import StoreError
from ..repo import read_small
from . import files, plumbing, processes
from .files import loose_tip, packed_tip
from .objects import EMPTY_TREES, WorkTree, is_empty_tree, is_oid, parse_commit, parse_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from subprocess import Popen
    from typing import Any

    from dulwich.object_store import DiskObjectStore

    from .objects import Commit, Draft, Move, ObjectReads, PathChanges, TreeEntry


STEPS_MIN = 32
STEPS_MAX = 256  # for more commits git is faster


class HistoryWalk:
    """The history of some commits, walked only as far back as needed."""

    def __init__(self, git: ObjectReads, *tips: str) -> None:
        self.git = git
        self._reached: set[str] = set()
        self._ends = list(tips)

    def above(
        self, oid: str, *, most: int | None = None, read: Callable[[str], Commit] | None = None
    ) -> list[str] | None:
        """Return the commits from the trunk up to `oid`, parents first; None if they are not a linear history.

        Args:
            most: Maximum number of commits to walk; `STEPS_MAX` by default.
            read: Reads a commit that may not belong to the trunk.

        Raises:
            KeyError: an object is missing.
        """
        read = read or self.git.commit
        steps = STEPS_MIN
        while steps <= (STEPS_MAX if most is None else most):
            self._walk(steps)
            line: list[str] = []
            at = oid
            while at not in self._reached and len(line) < steps:
                parents = read(at).parents
                if len(parents) > 1:
                    return None
                line.append(at)
                if not parents:
                    break  # the trunk may reach further back than walked so far
                at = parents[0]
            if at in self._reached:
                return line[::-1]
            steps *= 8
        return None

    def is_near(self, oid: str) -> bool:
        """Return whether a commit is one of the last few of this history.

        Raises:
            KeyError: an object is missing.
        """
        self._walk(STEPS_MIN)
        return oid in self._reached

    def _walk(self, steps: int) -> None:
        while self._ends and len(self._reached) < steps:
            ends = [oid for oid in self._ends if oid not in self._reached]
            self._reached.update(ends)
            self._ends = [parent for oid in ends for parent in self.git.commit(oid).parents]


WORK_TREE_SECONDS = 30.0
ARGUMENT_BYTES = 64 * 1024  # with longer names the whole tree is compared, which may add lines with count 0
STAT_LINES = 40
_BRANCHES = "refs/heads/"
REFTABLE = ".invalid"  # branch name in the HEAD file of a repository with a reftable
_STAT = (
    "--stat=80,56", "--stat-graph-width=16", f"--stat-count={STAT_LINES}", "--no-renames", "--no-ext-diff",
    "--no-textconv", "--no-color", "--ignore-submodules=dirty",
)  # fmt: skip


class Project:
    """The port's queries about the user's own history and worktrees. `common` is the common git folder."""

    common: str

    def head(self, git_dir: str) -> tuple[str | None, str | None]:
        """Return the commit of a worktree's HEAD and its branch such as `main`; None for each that does not exist.

        Args:
            git_dir: The worktree's own git folder.
        """
        text = _head_file(git_dir)
        if not text.startswith("ref: "):
            return loose_tip(git_dir, "HEAD"), None
        ref = text.removeprefix("ref: ")
        in_tables = branch_of(text) == REFTABLE
        oid = None if in_tables else loose_tip(self.common, ref) or packed_tip(self.common, ref)
        if oid is None:  # an unborn branch, or refs in a reftable
            args = [f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
            oid = processes.run(self.common, args, check=False).out.decode("ascii", "replace").strip() or None
        return oid, _branch_in_tables(git_dir) if in_tables else branch_of(text)

    def branch(self, git_dir: str) -> str | None:
        """Return the branch of a worktree, see `branch`."""
        return branch(git_dir)

    def find_commit(self, git_dir: str, text: str) -> str | None:
        """Return the commit that a revision such as `HEAD~3` names in that worktree, or None."""
        if not text or "\0" in text or text.startswith("-"):
            return None
        args = [f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", "--end-of-options"]
        oid = (
            processes.run(self.common, [*args, text + "^{commit}"], check=False)
            .out.decode("ascii", "replace")
            .strip()
        )
        return oid if is_oid(oid) else None

    def commits_since(self, old: str, new: str) -> list[tuple[str, str]]:
        """Return id and subject of the commits that `new` reaches and `old` does not, newest first.

        Raises:
            KeyError: one of both is missing.
        """
        form = "--format=%H %s"
        args = ["-c", "log.showSignature=false", "log", "-z", "--no-color", "--encoding=UTF-8", form,
                f"{_checked(old)}..{_checked(new)}", "--"]  # fmt: skip
        out = _asked(self.common, args, old, new).decode("utf-8", "replace")
        rows = (row.strip("\n").partition(" ") for row in out.split("\0") if row.strip("\n"))
        return [(oid, subject) for oid, _, subject in rows]

    def files_between(self, old: str, new: str) -> list[str]:
        """Return the files that differ between two commits.

        Raises:
            KeyError: one of the commits is missing.
        """
        args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv",
                "--ignore-submodules=none", _checked(old), _checked(new), "--"]  # fmt: skip
        return [os.fsdecode(name) for name in _asked(self.common, args, old, new).split(b"\0") if name]

    def work_tree(self, git_dir: str, folder: str, *, seconds: float = WORK_TREE_SECONDS) -> WorkTree:
        """Return the changes of a worktree against its HEAD, without ignored files.

        `git diff` would update the user's index with refreshed stat data, even with optional locks disabled. So `git
        status`, which respects that setting, lists the changed files, and `git diff-index` counts the lines of those
        files alone.

        Args:
            git_dir: The worktree's own git folder.
            folder: Its top folder.
            seconds: The limit of each of the two git processes.
        """
        place = [f"--git-dir={git_dir}", f"--work-tree={folder}", "-c", "diff.orderFile=/dev/null"]
        args = [*place, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty",
                "--no-renames", "--no-ahead-behind"]  # fmt: skip
        out = processes.run(self.common, args, cwd=folder, timeout=seconds).out
        changed, untracked = _status(out)
        if not changed:
            return WorkTree("", 0, untracked)
        tree = self.head(git_dir)[0] or EMPTY_TREES[files.id_length(self.common)]
        named = changed if sum(map(len, changed)) <= ARGUMENT_BYTES else []
        args = [*place, "-c", "core.quotePath=false", "--literal-pathspecs", "diff-index", *_STAT, tree, "--"]
        out = processes.run(self.common, [*args, *named], cwd=folder, timeout=seconds).out
        return WorkTree(out.decode("utf-8", "replace").rstrip("\n"), len(changed), untracked)


def branch(git_dir: str) -> str | None:
    """Return the branch of a worktree from its HEAD file, or None. git is asked only in a reftable."""
    found = branch_of(_head_file(git_dir))
    return _branch_in_tables(git_dir) if found == REFTABLE else found


def _branch_in_tables(git_dir: str) -> str | None:
    done = processes.run(git_dir, ["symbolic-ref", "--quiet", "HEAD"], check=False)
    found = branch_of("ref: " + done.out.decode("utf-8", "surrogateescape").rstrip("\n"))
    return None if found == REFTABLE else found


def branch_of(text: str) -> str | None:
    """Return the branch that the content of a HEAD file names."""
    ref = text.removeprefix("ref: ")
    return ref.removeprefix(_BRANCHES) if ref != text and ref.startswith(_BRANCHES) else None


def _head_file(git_dir: str) -> str:
    return read_small(os.path.join(git_dir, "HEAD"), 4096).decode("utf-8", "surrogateescape").strip()


def _status(out: bytes) -> tuple[list[str], int]:
    """Return the tracked files that differ from HEAD, and the number of untracked files."""
    changed = []
    untracked = 0
    for row in out.split(b"\0"):
        kind = row[:2]
        if kind == b"? ":
            untracked += 1
        elif kind == b"1 ":
            changed.append(os.fsdecode(row.split(b" ", 8)[8]))
        elif kind == b"u ":
            changed.append(os.fsdecode(row.split(b" ", 10)[10]))
    return changed, untracked


def _checked(oid: str) -> str:
    if not is_oid(oid):
        raise KeyError(oid)  # not a name that git would resolve, nor an option
    return oid


def _asked(common: str, args: list[str], *oids: str) -> bytes:
    done = processes.run(common, args, check=False)
    if done.code == 0:
        return done.out
    for oid in oids:
        if processes.run(common, ["cat-file", "-e", oid + "^{commit}"], check=False).code != 0:
            raise KeyError(oid)
    raise processes.failure(args, done)


CUT_SECONDS = 1.0
HEADS_AT_ONCE = 250  # queries and answers fit into the pipe buffers, so neither side blocks


class Git(Project):
    """One repository, by its common git folder, through git's own commands. Not thread-safe.

    Raises:
        StoreError: from every method, if git itself cannot be used.
        KeyError: from every method that reads an object, if it is missing, damaged or of another kind.
    """

    is_long_lived = False  # whether it keeps what it has read, for a process that reads often

    def __init__(self, common: str) -> None:
        self.common = common
        self._child: Popen[bytes] | None = None
        self._id_length = 0
        self._cut: frozenset[str] = frozenset()
        self._cut_until = 0.0
        # Packs that no ref reaches yet: last commit -> what lets a gc have the pack, and the parent of its first commit.
        self._written: dict[str, tuple[Callable[[], None], str | None]] = {}

    @property
    def id_length(self) -> int:
        """The number of hex digits of an object id: 40 with sha1, 64 with sha256."""
        if not self._id_length:
            self._id_length = files.id_length(self.common)
        return self._id_length

    def tip(self, ref: str) -> str | None:
        """Return the commit of a ref, or None."""
        return plumbing.tip_of(self.common, ref)

    def remote_branch(self, remote: str, branch: str) -> str | None:
        """Return the commit that a branch of a remote had at the last fetch; None without one, or if nothing can have that name."""
        ref = f"refs/remotes/{remote}/{branch}"
        is_name = processes.run(self.common, ["check-ref-format", ref], check=False).code == 0
        return self.tip(ref) if is_name else None

    def refs(self, prefix: str) -> dict[str, str]:
        """Return every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
        return plumbing.refs_below(self.common, prefix)

    def has(self, oid: str) -> bool:
        """Return whether the object exists and can be read."""
        try:
            self.read(oid)
        except KeyError:
            return False
        return True

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """Return one level of a tree."""
        return parse_tree(self._typed(oid, b"tree"), self.id_length)

    def raw_tree(self, oid: str) -> bytes:
        """Return one level of a tree in git's binary format."""
        return b"" if is_empty_tree(oid) else self._typed(oid, b"tree")

    def heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return kind (`blob`, `tree`, `commit`) and size of objects without reading them; omit missing ones."""
        wanted = [oid for oid in dict.fromkeys(oids) if self._is_id(oid)]
        found: dict[str, tuple[str, int]] = {}
        for start in range(0, len(wanted), HEADS_AT_ONCE):
            for head, _ in self._ask("info", wanted[start : start + HEADS_AT_ONCE]):
                if len(head) == 3:
                    found[head[0].decode("ascii")] = (head[1].decode("ascii"), int(head[2]))
        return found

    def blob(self, oid: str) -> bytes:
        """Return the content of a file."""
        return self._typed(oid, b"blob")

    def commit(self, oid: str) -> Commit:
        """Return a commit. At the boundary of a shallow clone it has no parents."""
        try:
            found = parse_commit(self._typed(oid, b"commit"))
        except ValueError:
            raise KeyError(oid) from None
        if found.parents and self._is_cut(oid):
            found.parents = []
        return found

    def history(self, tip: str, without: Iterable[str] = ()) -> list[str]:
        """Return the commits reachable from `tip` and from none of `without`, parents before children.

        A missing `tip` is a KeyError; missing commits of `without` are ignored.
        """
        hidden = list(without)
        line = self._line(tip, hidden)
        return self.unread_history(tip, hidden) if line is None else line

    def unread_history(self, tip: str, without: Iterable[str] = (), *, first_parents: int = 0) -> list[str]:
        """Return what `plumbing.rev_list` does. No commit is read into this process, whatever its size."""
        return plumbing.rev_list(self.common, tip, without, first_parents)

    def contains(self, tip: str, oid: str) -> bool:
        """Return whether `oid` is `tip` or an ancestor of it; a missing `oid` is not, a missing `tip` is a KeyError."""
        line = self._line(tip, [oid])
        if line is None:
            return plumbing.is_ancestor(self.common, oid, tip)
        return self.commit(line[0]).parents == [oid] if line else tip == oid

    def _line(self, tip: str, bases: Sequence[str]) -> list[str] | None:
        """Return the commits from the history of `bases` up to `tip`, parents first; None if git must be asked."""
        try:
            return HistoryWalk(self, *bases).above(tip) if bases else None
        except KeyError:
            return None

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Write a chain of commits, the first on `onto` (None: a root), and return their ids. No ref moves.

        All objects are in one pack, synced before this returns. No gc removes it until a ref has moved to the last
        commit or the port is closed.
        """
        if not drafts:
            return []
        from . import packs  # imports dulwich
        from .packs import DraftObjects

        chain = DraftObjects(self, self.id_length)
        try:
            oids = chain.add(drafts, onto)
        except KeyError as error:
            raise StoreError(
                f"The object {error.args[0]} is missing or damaged; no ref was moved.", code="missing-object"
            ) from error
        name = packs.write(self.common, chain.objects, self.id_length)
        self._written[oids[-1]] = (lambda: packs.release(self.common, name), onto)
        return oids

    def swap(self, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, durably, with reflog message `why`.

        Args:
            also: Further moves (ref, old, new). Either all refs move or none.

        Returns:
            False if a ref does not have its old id or is locked by another process.
        """
        if not plumbing.update_ref(self.common, ref, old, new, why, also):
            return False
        for target in (new, *(each for _, _, each in also)):
            reached: str | None = target
            while reached in self._written:
                release, reached = self._written.pop(reached)
                release()
        return True

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it.

        Returns:
            The commit id, or None if the race was lost. If not None, the ref has moved and still reaches `old`.
        """
        if self.tip(ref) != old:
            return None
        (new,) = self.write([draft], old)
        if self.swap(ref, old, new, why):
            return new
        # Don't remove it: a concurrent gc may have omitted these objects from its pack, and the winner may need them.
        self._written.pop(new)[0]()
        return None

    def config(self, pattern: str, git_dir: str | None = None) -> dict[str, str]:
        """Return the last value of every config key that matches an extended regular expression, in all scopes.

        Keys are as `git config --get-regexp` prints them. A linked worktree may have values of its own: give its `git_dir`.
        """
        done = processes.run(git_dir or self.common, ["config", "-z", "--get-regexp", pattern], check=False)
        if done.code not in (0, 1):
            raise processes.failure(["config"], done)
        rows = (row.partition("\n") for row in done.out.decode("utf-8", "replace").split("\0") if row)
        return {key: value if newline else "true" for key, newline, value in rows}

    def version(self) -> str:
        """Return the version of the git program, such as `2.39.5`; empty if git does not print it."""
        words = processes.run(self.common, ["version"]).out.decode("ascii", "replace").split()
        return words[2] if len(words) > 2 else ""

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], PathChanges]:
        """Return the pairs of commit and path (a file or a folder) whose path has changed since the commit.

        That means: the path differs at `tip`, and commits changed it that `tip` reaches and the pair's commit does not.
        If the path did not exist in the pair's commit, the first of them added it and is not counted. Pairs with a
        missing commit are omitted.
        """
        from .branches import behind

        return behind(self.common, tip, pairs)

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        """Remove the ref's `.lock` if it is older than `age_seconds`. The caller must hold our own lock."""
        return plumbing.break_stale_lock(self.common, ref, age_seconds)

    def close(self) -> None:
        """End the child process, and release unreached packs. A later read starts a new process."""
        for release, _ in self._written.values():
            release()
        self._written = {}
        self._end_child()

    def _is_cut(self, oid: str) -> bool:
        """Return whether a commit is at the boundary of a shallow clone.

        Only the user's own fetch changes the boundary, so it is read again at most every `CUT_SECONDS`.
        """
        now = time.monotonic()
        if now >= self._cut_until:
            self._cut = files.shallow_commits(self.common)
            self._cut_until = now + CUT_SECONDS
        return oid in self._cut

    def _is_id(self, oid: str) -> bool:
        """Return whether a text is an object id of this repository, not a name that git would resolve, such as HEAD."""
        return len(oid) == self.id_length and is_oid(oid)

    def _typed(self, oid: str, kind: bytes) -> bytes:
        found, data = self.read(oid)
        if found != kind:
            raise KeyError(oid)
        return data

    def read(self, oid: str) -> tuple[bytes, bytes]:
        """Return an object's kind and content."""
        if not self._is_id(oid):
            raise KeyError(oid)
        ((head, content),) = self._ask("contents", [oid])
        if len(head) < 3:
            raise KeyError(oid)
        return head[1], content

    def _ask(self, command: str, oids: Sequence[str]) -> list[tuple[list[bytes], bytes]]:
        """Return the child's answers about objects, with content for `contents`; restart the child once if it died."""
        for _ in range(2):
            try:
                return self._exchange(command, oids)
            except OSError:
                self._end_child()
        processes.run(self.common, ["rev-parse", "--git-dir"])  # raises if git cannot work here at all
        raise KeyError(oids[0])  # a damaged object ends git

    def _exchange(self, command: str, oids: Sequence[str]) -> list[tuple[list[bytes], bytes]]:
        """Send queries to the child process and read its answers.

        Raises:
            OSError: the child process died.
        """
        child = self._child
        if child is None:
            child = self._child = processes.spawn(self.common, ["cat-file", "--batch-command"])
        assert child.stdin is not None
        try:
            child.stdin.write("".join(f"{command} {oid}\n" for oid in oids).encode("ascii"))
            child.stdin.flush()
            return [_answer(child, command == "contents") for _ in oids]
        except OSError:
            raise
        except BaseException:  # Ctrl-C within an answer: the rest would be read as the next answer
            self._end_child()
            raise

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            processes.close_pipes(child)
            child.wait()


def _answer(child: Popen[bytes], has_content: bool) -> tuple[list[bytes], bytes]:
    """Read one answer: id, kind and size (or two words if missing), and the content."""
    assert child.stdout is not None
    head = child.stdout.readline().split()
    if len(head) == 2 and head[1] == b"missing":
        return head, b""
    if len(head) != 3:
        raise OSError("git cat-file ended")
    if not has_content:
        return head, b""
    size = int(head[2])
    data = child.stdout.read(size + 1)
    if len(data) != size + 1:
        raise OSError("git cat-file ended")
    return head, data[:size]


class Kept:
    """The values that were added last, by object id, up to a total size."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self.values: dict[str, tuple[Any, int]] = {}

    def get(self, oid: str) -> Any:
        """Return a value, or None."""
        return self.values.get(oid, (None, 0))[0]

    def add(self, oid: str, value: object, size: int) -> None:
        """Keep a value, and drop the oldest ones if all are too large."""
        self.values[oid] = (value, size)
        self.size += size
        while self.size > self.most:
            self.size -= self.values.pop(next(iter(self.values)))[1]


_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
TREES_KEPT_MAX = 1_024
COMMIT_BYTES = 4_096  # of a commit without its message
COMMITS_BYTES_MAX = 16 * 1024 * 1024
OBJECTS_BYTES_MAX = 8 * 1024 * 1024


class DulwichGit(Git):
    """One repository, read in process. Not thread-safe. A sync reads the same few trees, commits and files repeatedly."""

    is_long_lived = True

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._store: DiskObjectStore | None = None
        self.kept_trees = Kept(TREES_KEPT_MAX)
        self.kept_commits = Kept(COMMITS_BYTES_MAX)
        self.kept_objects = Kept(OBJECTS_BYTES_MAX)

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """Return one level of a tree, cached."""
        entries: dict[str, TreeEntry] | None = self.kept_trees.get(oid)
        if entries is None:
            entries = {} if is_empty_tree(oid) else super().tree(oid)
            self.kept_trees.add(oid, entries, 1)
        return dict(entries)

    def commit(self, oid: str) -> Commit:
        """Return a commit, cached."""
        found: Commit | None = self.kept_commits.get(oid)
        if found is None:
            found = super().commit(oid)
            if found.parents:  # else it may be the boundary of a shallow clone, which can move
                self.kept_commits.add(oid, found, COMMIT_BYTES + len(found.message))
        return found

    def close(self) -> None:
        """Close the packs too. A later read opens them again."""
        self.kept_objects = Kept(self.kept_objects.most)
        store, self._store = self._store, None
        if store is not None:
            store.close()
        super().close()

    def read(self, oid: str) -> tuple[bytes, bytes]:
        """Return an object's kind and content, cached.

        Raises:
            KeyError: the object is missing or damaged.
        """
        found: tuple[bytes, bytes] | None = self.kept_objects.get(oid)
        if found is None:
            found = self._read(oid)
            self.kept_objects.add(oid, found, len(found[1]))
        return found

    def has(self, oid: str) -> bool:
        """Return whether the object exists now; the cache is not used."""
        try:
            self._read(oid)
        except KeyError:
            return False
        return True

    def _read(self, oid: str) -> tuple[bytes, bytes]:
        if not self._is_id(oid):
            raise KeyError(oid)
        if self._store is None:
            self._store = _open_store(self.common, self.id_length)
        try:
            number, content = self._store.get_raw(oid.encode("ascii"))  # type: ignore[arg-type]
            return _KINDS[number], content
        except Exception:  # damaged, with perhaps an intact copy elsewhere; in an alternate; or missing
            return super().read(oid)


def _open_store(common: str, id_length: int) -> DiskObjectStore:
    """Open the objects of a repository."""
    from dulwich.object_format import get_object_format
    from dulwich.object_store import DiskObjectStore

    class Store(DiskObjectStore):
        # Dulwich reads alternates as sha1, and loops forever if two folders are alternates of each other.
        alternates = ()  # type: ignore[assignment]

    form = get_object_format(files.ALGORITHMS[id_length])
    return Store(os.path.join(common, "objects"), object_format=form)
