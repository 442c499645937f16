"""The port on the git program: cheap to import, for commands that make one append and end.

Reads go through one `git cat-file --batch` that starts with the first of them;
an append is one `git fast-import`.
"""

from __future__ import annotations

from ..errors import StoreError
from . import durable, queries, run
from .objects import ZERO, parse_tree
from .repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .child import Child
    from .port import Draft, Entry


class PlumbingGit(Repository):
    """One repository through git's own commands. Not for several threads at once."""

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._reader: Child | None = None

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names now, or None."""
        return queries.tip_of(self.common, ref)

    def tree(self, oid: str) -> dict[str, Entry]:
        """One level of a tree. KeyError where the object is missing."""
        return parse_tree(self._typed(oid, b"tree"))

    def history(self, tip: str, without: Iterable[str] = ()) -> list[str]:
        """Commits that `tip` reaches and none of `without` does, parents before children.

        KeyError where `tip` is missing; what is missing of `without` excludes nothing.
        """
        return queries.rev_list(self.common, tip, without)

    def contains(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it. KeyError where `tip` is missing."""
        return queries.is_ancestor(self.common, oid, tip)

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Write a chain of commits, the first on `onto` (None: a root). No ref moves."""
        if not drafts:
            return []
        import os

        from .fast_import import stream

        # Fast-import needs a ref to write on; the final reset takes it back before it would be made.
        scratch = "refs/gitmem/scratch-" + os.urandom(8).hex()
        done = self._import([*stream(scratch, drafts, onto), f"reset {scratch}\nfrom {ZERO}\n\n".encode()])
        if done.code != 0:
            raise run.failure(["fast-import"], done)
        oids = done.out.decode("ascii").split()
        if len(oids) != len(drafts):
            raise StoreError(
                f"git fast-import named {len(oids)} of {len(drafts)} commits.", code="git-failed"
            )
        return oids

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it: its oid, or None where the race was lost.

        The reflog says `fast-import` rather than `why`.
        """
        from .fast_import import stream

        if self.tip(ref) != old:
            return None
        try:
            done = self._import(stream(ref, [draft], old))
        except StoreError:
            if self.tip(ref) != old:
                return None  # it was stopped after it had moved the ref: the next look finds the lines
            raise
        if done.code != 0:
            if queries.lost_race(done.err) or self.tip(ref) != old:
                return None
            raise run.failure(["fast-import"], done)
        durable.fsync_ref_dir(self.common, ref, created=False)
        oid = done.out.decode("ascii").strip()
        now = self.tip(ref)
        if now != oid and (now is None or not self.contains(now, oid)):
            return None  # somebody took the commit off again: to write it once more is safe
        return oid

    def swap(self, ref: str, old: str | None, new: str, why: str) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, and say `why` in its reflog."""
        return queries.update_ref(self.common, ref, old, new, why)

    def close(self) -> None:
        """End the reading child. A later read starts another."""
        child, self._reader = self._reader, None
        if child is not None:
            child.close_pipes()
            child.wait()

    def _import(self, chunks: Iterable[bytes]) -> run.Result:
        from .fast_import import feed

        return feed(self.common, queries.DURABLE, chunks, queries.REFLOG_IDENTITY)

    def _object(self, oid: str) -> tuple[bytes, bytes]:
        """Kind and content of an object, from the child; from a new one where it died."""
        if len(oid) != 40 or not oid.isalnum():
            raise KeyError(oid)  # never a name that git would look up, such as HEAD
        for _ in range(2):
            try:
                return self._ask(oid)
            except OSError:
                self.close()
        run.run(self.common, ["rev-parse", "--git-dir"])  # raises where git can't work here at all
        raise KeyError(oid)  # git dies of a damaged object

    def _ask(self, oid: str) -> tuple[bytes, bytes]:
        """OSError where the child died."""
        child = self._reader
        if child is None:
            child = self._reader = run.spawn(self.common, ["cat-file", "--batch"])
        assert child.stdin is not None
        try:
            child.stdin.write(oid.encode("ascii") + b"\n")
            child.stdin.flush()
            head = child.stdout.readline().split()
            if len(head) == 2 and head[1] == b"missing":
                raise KeyError(oid)
            if len(head) != 3:
                raise OSError("git cat-file ended")
            size = int(head[2])
            data = child.stdout.read(size + 1)
        except (KeyError, OSError):
            raise
        except BaseException:  # Ctrl-C in the middle of an answer: the next one would be misread
            self.close()
            raise
        if len(data) != size + 1:
            raise OSError("git cat-file ended")
        return head[1], data[:size]
