"""The port on the git program: cheap to import, for commands that make one append and end.

Reads go through one `git cat-file --batch` that starts with the first of them;
an append is one `git fast-import`.
"""

from __future__ import annotations

import os

from ..errors import StoreError
from . import durable, formats, held, loose_ref, queries, run
from .objects import is_empty_tree, is_oid
from .repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .child import Child
    from .port import Draft, Entry

WRITES_MAX = 5
_PACKED = ("-c", "fastimport.unpackLimit=0")


class PlumbingGit(Repository):
    """One repository through git's own commands. Not for several threads at once."""

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._objects = os.path.join(common, "objects")
        self._reader: Child | None = None

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names now, or None."""
        return queries.tip_of(self.common, ref)

    def tree(self, oid: str) -> dict[str, Entry]:
        """One level of a tree. KeyError where the object is missing."""
        return self._parsed_tree(oid)

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
        from .fast_import import UNPACK_LIMIT, feed, stream, touched, written

        # Fast-import needs a ref to write on; the final reset takes it back before it would be made.
        scratch = "refs/gitmem/scratch-" + os.urandom(8).hex()
        forget = f"reset {scratch}\nfrom {'0' * self.id_length}\n\n".encode()
        packed = _PACKED if held.gc_runs(self._objects) else ()
        many = bool(packed) or sum(1 + len(touched(draft)) for draft in drafts) >= UNPACK_LIMIT
        for _ in range(WRITES_MAX):
            with held.Edges(self._objects, many) as edges:
                chunks = [*stream(scratch, drafts, onto), forget]
                config = [*packed, *queries.DURABLE]
                done = feed(self.common, config, chunks, queries.REFLOG_IDENTITY, edges.options)
                packs = edges.packs()
            if done.code != 0:
                if held.put_right(self._objects, done.err):
                    continue
                break
            oids, others = written(done.out)
            if len(oids) != len(drafts):
                raise StoreError(
                    f"git fast-import named {len(oids)} of {len(drafts)} commits.", code="git-failed"
                )
            if held.hold_packs(self._objects, packs) if packs else self._hold([*others, *oids]):
                return oids
        raise run.failure(["fast-import"], done)

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it: its oid, or None where the race was lost."""
        if self.tip(ref) != old:
            return None
        if not held.gc_runs(self._objects):
            (new,) = self.write([draft], old)
            if not held.gc_runs(self._objects):
                moved = loose_ref.swap(self.common, ref, old, new, why)
                held.look_after(self._objects)
                return new if moved else None
        return self._advance_during_gc(ref, old, draft)

    def _advance_during_gc(self, ref: str, old: str, draft: Draft) -> str | None:
        """The same in one run of fast-import: a gc leaves its pack alone until the ref is there."""
        from .fast_import import feed, stream, written

        with held.Edges(self._objects, True) as edges:
            config, chunks = [*_PACKED, *queries.DURABLE], stream(ref, [draft], old)
            try:
                done = feed(self.common, config, chunks, queries.REFLOG_IDENTITY, edges.options)
            except StoreError:
                if self.tip(ref) != old:
                    return None  # it was stopped after it had moved the ref: the next look finds the lines
                raise
            try:
                held.hold_packs(self._objects, edges.packs())
            except OSError:
                pass  # the ref has moved: what is in the log can't have failed
        if done.code != 0:
            known = held.put_right(self._objects, done.err) or queries.lost_race(done.err)
            if not known and self.tip(ref) == old:
                raise run.failure(["fast-import"], done)
        durable.fsync_ref_dir(self.common, ref, created=False)
        now = self.tip(ref)
        for oid in written(done.out)[0] if done.code == 0 else ():
            if now == oid or (now is not None and self.contains(now, oid)):
                return oid
        return None  # lost, or somebody took the commit off again: to write it once more is safe

    def swap(self, ref: str, old: str | None, new: str, why: str) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, and say `why` in its reflog."""
        moved = queries.update_ref(self.common, ref, old, new, why)
        held.look_after(self._objects)
        return moved

    def _hold(self, oids: Sequence[str]) -> bool:
        """Give what was just written its second names. False where something of it is gone already."""
        for oid in oids:
            if held.hold(self._objects, oid) or is_empty_tree(oid):
                continue
            from . import loose

            try:  # it was in a pack, which may go
                kind, content = self._object(oid)
            except KeyError:
                return False
            loose.write(self._objects, kind, content, formats.ALGORITHMS[self.id_length])
        return True

    def close(self) -> None:
        """End the reading child. A later read starts another."""
        child, self._reader = self._reader, None
        if child is not None:
            child.close_pipes()
            child.wait()

    def _object(self, oid: str) -> tuple[bytes, bytes]:
        """Kind and content of an object, from the child; from a new one where it died."""
        if not is_oid(oid):
            raise KeyError(oid)  # never a name that git would look up, such as HEAD
        for _ in range(2):
            try:
                return self._ask(oid)
            except OSError:
                self.close()
        run.run(self.common, ["rev-parse", "--git-dir"])  # raises where git can't work here at all
        raise KeyError(oid)  # git dies of a damaged object

    def _ask(self, oid: str, *, again: bool = True) -> tuple[bytes, bytes]:
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
                if again and held.give_back(self._objects, oid):
                    return self._ask(oid, again=False)
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
