"""Forgotten lines: those of some trees whose texts their own writers, or who may write as them, have taken back, by records and attestations in these trees.

The index judges by the same rule. What replays a log puts the reduced form in the place of each such line that it would add.
"""

from __future__ import annotations

from functools import cached_property

from ..git.objects import Draft, TreeEntry
from . import ref, tree_union
from .attestations import read as read_attestation
from .lines import ATTESTS, SALT, is_attestation, line_hash, reduced, writer_of
from .union import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Any

    from .local_log import LocalLog
    from .tree_union import Changes

    Pair = tuple[bytes, str]  # the digest of a line, and the id of its writer

FOLDER = "forgets"  # the stream of the records that forget
TRUST = "trust"  # that of records by which a writer may write as another one


class Forgotten:
    """The lines that records of some trees forget. Without such records nothing but their folders is read.

    Args:
        trees: Trees of logs; the records of one may be attested in another.
    """

    def __init__(self, log: LocalLog, trees: Iterable[str]) -> None:
        self._log = log
        self._trees = list(dict.fromkeys(trees))
        self._said: dict[Pair, set[Pair]] = {}  # the lines that a record names
        self._named: set[bytes] = set()
        self._reached: dict[str, set[str]] = {}
        self._granted: dict[Pair, str] = {}  # whom a record lets write as its writer
        for line, record in self._records(FOLDER, "forget"):
            of, digests = record.get("of") or record["writer"], set(map(bytes.fromhex, record["lines"]))
            self._said[line_hash(line), record["writer"]] = {(digest, of) for digest in digests}
            self._named |= digests
        if any(of != writer for (_, writer), lines in self._said.items() for _, of in lines):
            for line, record in self._records(TRUST, "trust"):
                if record["event"] == "grant" and not record.get("words"):
                    self._granted[line_hash(line), record["writer"]] = record["other"]

    def _records(self, folder: str, kind: str) -> Iterator[tuple[bytes, Any]]:
        """Yield the lines of a kind that name a writer in a folder of the trees, and their records."""
        seen: set[str] = set()
        for tree in self._trees:
            entry = self._log.git.tree(tree).get(folder)
            for line in self._lines(entry.oid, seen) if entry is not None and entry.is_tree else ():
                record = self._log.read(line)
                if record is not None and record["kind"] == kind and record.get("writer"):
                    yield line, record

    def __bool__(self) -> bool:
        return bool(self._said)

    def _lines(self, tree: str, seen: set[str], having: bytes = b"") -> Iterator[bytes]:
        """Yield the lines of the segments of a tree whose content has these bytes; skip objects that were seen."""
        for path, entry in tree_union.walk(self._log.git, tree, seen=seen):
            if tree_union.is_plain_segment(path, entry) and not path.startswith("projects/"):
                content = self._log.git.blob(entry.oid)
                if having in content:
                    yield from tree_union.lines_of(content)

    @property
    def said(self) -> set[Pair]:
        """The digests of all records that forget, each with its writer, attested or not."""
        return set(self._said)

    @cached_property
    def records(self) -> set[Pair]:
        """The records that count: attested, and of at least one line that their writer has attested."""
        return {each for each in self._said if each in self._attested and self._covered(each)}

    @cached_property
    def _pairs(self) -> set[Pair]:
        return {pair for each in self.records for pair in self._covered(each)}

    def _covered(self, record: Pair) -> set[Pair]:
        lines = self._said[record] & self._attested
        return {line for line in lines if line[1] == record[1] or record[1] in self._allowed(line[1])}

    def _allowed(self, giver: str) -> set[str]:
        """Return the writers that may write as all addresses of a writer."""
        if giver not in self._reached:
            others: dict[str, list[str]] = {}
            for each in self._granted.keys() & self._attested:
                others.setdefault(each[1], []).append(self._granted[each])
            found, todo = {giver}, [giver]
            while todo:
                new = set(others.get(todo.pop(), ())) - found
                found |= new
                todo += new
            self._reached[giver] = found
        return self._reached[giver]

    @cached_property
    def _attested(self) -> set[Pair]:
        """Those of the records and of the lines that they name which are attested, each with the writer that did it."""
        spoken = self._said.keys() | self._granted.keys()
        wanted = self._named | {digest for digest, _ in spoken}
        writers = {
            writer for _, writer in (*spoken, *(line for lines in self._said.values() for line in lines))
        }
        found: set[Pair] = set()
        seen: set[str] = set()
        for tree in self._trees:
            for line in self._lines(tree, seen, ATTESTS):
                if is_attestation(line) and writer_of(line) in writers:
                    attestation = read_attestation(line, wanted=wanted)
                    if attestation is not None:
                        found |= {(digest, attestation.writer) for digest in wanted & attestation.digests}
        return found

    def covers(self, line: bytes) -> bool:
        """Return whether a whole line is forgotten."""
        if not self._named or SALT not in line:
            return False
        digest = line_hash(line)
        record = self._log.read(line) if digest in self._named else None
        return record is not None and (digest, record.get("writer")) in self._pairs

    def left_of(self, lines: Iterable[bytes]) -> set[bytes]:
        """Return lines, of those that are forgotten the reduced forms."""
        return {reduced(line) if self.covers(line) else line for line in lines}

    def cut(self, content: bytes, old: Collection[bytes] = ()) -> bytes:
        """Return the content of a segment in canonical form, without forgotten texts; the same bytes if it has none.

        Args:
            old: Lines that stay as they are.
        """
        if not self or SALT not in content:
            return content
        fresh = set(tree_union.lines_of(content)).difference(old)
        if not any(map(self.covers, fresh)):
            return content
        return canonical(b"\n".join([*self.left_of(fresh), *old]))

    def filtered(self, tree: str, changes: Changes) -> Changes:
        """Return the changes of a tree without those forgotten texts that the tree does not have."""
        if not self:
            return changes
        found: Changes = {}
        for path, change in changes.items():
            if isinstance(change, TreeEntry) and change.is_tree:
                found[path] = change
                inner = tree_union.walk(self._log.git, change.oid)
                for name, entry in inner:
                    if not entry.is_tree:
                        self._filter(tree, f"{path}/{name}", entry, found, is_inner=True)
            else:
                self._filter(tree, path, change, found)
        return found

    def _filter(
        self,
        tree: str,
        path: str,
        change: bytes | TreeEntry | None,
        found: Changes,
        *,
        is_inner: bool = False,
    ) -> None:
        content = None
        if isinstance(change, bytes):
            content = change
        elif change is not None and tree_union.is_plain_segment(path, change):
            content = self._log.git.blob(change.oid)
        if content is None or not tree_union.is_segment(path):
            found.update({} if is_inner else {path: change})
            return
        there = ref.content_at(self._log.git, tree, path)
        left = self.cut(content, tree_union.lines_of(there))
        if left == content:
            found.update({} if is_inner else {path: change})
        elif left != there or is_inner:
            found[path] = left

    def without(self, base: str, top: str) -> str:
        """Return a commit that adds to `base` what `top` adds, which is built on it, without forgotten texts: `top`, if it has none.

        Messages of commits quote texts, so the new one says only that lines were added.
        """
        if not self or base == top:
            return top
        git = self._log.git
        old, new = git.commit(base).tree, git.commit(top).tree
        changes: Changes = {path: entry for path, entry, _ in tree_union.differing(git, new, [old])}
        left = self.filtered(old, changes)
        if left == changes:
            return top
        cut = {path: left.get(path, ref.lookup(git, old, path)) for path in changes}
        who = self._log.signature()
        return git.write(
            [Draft(cut, who, who, "Add lines without texts that were forgotten\n", tree=new)], base
        )[0]

    def dropped(self, before: str, tree: str) -> list[bytes]:
        """Return the forgotten lines that a tree had before."""
        if not self:
            return []
        fresh = tree_union.fresh_lines(self._log.git, before, [tree])
        return sorted(line for lines in fresh for line in lines if self.covers(line))
