"""The git port: objects, trees one level at a time, and a compare-and-swap on a ref.

Object ids are lower-case hex. Reads go through one `git cat-file` process that starts with the first read; `inprocess`
reads through dulwich. Each write is one pack (`packing`); `git update-ref` moves a ref.
"""

from __future__ import annotations

import time

from ..errors import StoreError
from . import durable, formats, queries, run
from .fork_point import HistoryWalk
from .objects import is_empty_tree, is_oid, parse_commit, parse_tree
from .project import Project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from subprocess import Popen

    from .port import Commit, Draft, Move, PathChanges, TreeEntry

CUT_SECONDS = 1.0
HEADS_AT_ONCE = 250  # queries and answers fit into the pipe buffers, so neither side blocks


class Git(Project):
    """One repository, by its common git folder, through git's own commands. Not thread-safe.

    Raises:
        StoreError: from every method, if git itself cannot be used.
        KeyError: from every method that reads an object, if it is missing, damaged or of another kind.
    """

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
            self._id_length = formats.id_length(self.common)
        return self._id_length

    def tip(self, ref: str) -> str | None:
        """Return the commit of a ref, or None."""
        return queries.tip_of(self.common, ref)

    def refs(self, prefix: str) -> dict[str, str]:
        """Return every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
        return queries.refs_below(self.common, prefix)

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
        """Return what `queries.rev_list` does. No commit is read into this process, whatever its size."""
        return queries.rev_list(self.common, tip, without, first_parents)

    def contains(self, tip: str, oid: str) -> bool:
        """Return whether `oid` is `tip` or an ancestor of it; a missing `oid` is not, a missing `tip` is a KeyError."""
        line = self._line(tip, [oid])
        if line is None:
            return queries.is_ancestor(self.common, oid, tip)
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
        from . import packing  # imports dulwich
        from .drafts import DraftObjects

        chain = DraftObjects(self, self.id_length)
        try:
            oids = chain.add(drafts, onto)
        except KeyError as error:
            raise StoreError(
                f"The object {error.args[0]} is missing or damaged; no ref was moved.", code="missing-object"
            ) from error
        name = packing.write(self.common, chain.objects, self.id_length)
        self._written[oids[-1]] = (lambda: packing.release(self.common, name), onto)
        return oids

    def swap(self, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, durably, with reflog message `why`.

        Args:
            also: Further moves (ref, old, new). Either all refs move or none.

        Returns:
            False if a ref does not have its old id or is locked by another process.
        """
        if not queries.update_ref(self.common, ref, old, new, why, also):
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
        done = run.run(git_dir or self.common, ["config", "-z", "--get-regexp", pattern], check=False)
        if done.code not in (0, 1):
            raise run.failure(["config"], done)
        rows = (row.partition("\n") for row in done.out.decode("utf-8", "replace").split("\0") if row)
        return {key: value if newline else "true" for key, newline, value in rows}

    def version(self) -> str:
        """Return the version of the git program, such as `2.39.5`; empty if git does not print it."""
        words = run.run(self.common, ["version"]).out.decode("ascii", "replace").split()
        return words[2] if len(words) > 2 else ""

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], PathChanges]:
        """Return the pairs of commit and path (a file or a folder) whose path has changed since the commit.

        That means: the path differs at `tip`, and commits changed it that `tip` reaches and the pair's commit does not.
        If the path did not exist in the pair's commit, the first of them added it and is not counted. Pairs with a
        missing commit are omitted.
        """
        from .path_history import behind

        return behind(self.common, tip, pairs)

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        """Remove the ref's `.lock` if it is older than `age_seconds`. The caller must hold our own lock."""
        return durable.break_stale_lock(self.common, ref, age_seconds)

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
            self._cut = formats.shallow_commits(self.common)
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
        run.run(self.common, ["rev-parse", "--git-dir"])  # raises if git cannot work here at all
        raise KeyError(oids[0])  # a damaged object ends git

    def _exchange(self, command: str, oids: Sequence[str]) -> list[tuple[list[bytes], bytes]]:
        """Send queries to the child process and read its answers.

        Raises:
            OSError: the child process died.
        """
        child = self._child
        if child is None:
            child = self._child = run.spawn(self.common, ["cat-file", "--batch-command"])
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
            run.close_pipes(child)
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
