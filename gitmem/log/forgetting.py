"""Forgetting: which lines have no texts any more, epochs of the log without them, and what a clone lets go of.

*Forgotten lines* are those of some trees whose texts their own writers, or who may write as them, have taken back, by records
and attestations in these trees. The index judges by the same rule. What replays a log puts the reduced form in the place of
each such line that it would add.

An *epoch* is how often the log was written anew, without its history, so that git lets go of forgotten texts. A log of a later
epoch has a history of its own, from the first commit of every log on. Everybody puts their lines on it, so it takes nothing
away. Its number cannot be greater than that of the records that forget: so nobody can run ahead of all others.
"""

from __future__ import annotations

import os
from functools import cached_property, partial

from .. import local_files
from ..errors import StoreError
from ..git import plumbing
from ..git.config import encode_remote
from ..git.files import shallow_commits
from ..git.objects import Draft, TreeEntry
from . import log_refs, ref, tree_union
from .attestations import read as read_attestation
from .lines import ATTESTS, SALT, is_attestation, line_hash, reduced, writer_of
from .union import canonical
from .write_ahead import READ_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

    from .local_log import LocalLog
    from .log_refs import LogTip
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

    def union_changes(self, base: str, others: Iterable[str]) -> Changes:
        """Return the changes that turn a tree into the union with others, with the reduced forms of forgotten lines."""
        return self.filtered(base, tree_union.union_changes(self._log.git, base, others))

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


def epoch_of(log: LocalLog, oid: str | None) -> int | None:
    """Return the epoch of a commit; None if it is not that of a log."""
    try:
        form = ref.read_format(log.git, log.git.tree(log.git.commit(oid).tree)) if oid is not None else None
    except (KeyError, StoreError):
        return None
    return form.epoch if form is not None else None


def is_earlier(log: LocalLog, oid: str, epoch: int) -> bool:
    """Return whether a commit is of a log of an earlier epoch."""
    found = epoch_of(log, oid)
    return found is not None and found < epoch


def first_commit(log: LocalLog, oid: str) -> str | None:
    """Return the commit after the first one of every log, where a history begins; in a shallow clone the oldest one."""
    return next(iter(log.git.unread_history(oid, [ref.genesis(oid)])), None)


def epoch_problem(log: LocalLog, tip: LogTip, known: Iterable[str], *, count: bool = True) -> str:
    """Return why the epoch of a log is not valid, as the rest of a sentence; "" if it is.

    Args:
        known: Commits of valid logs. A log that contains one goes on with it.
        count: Whether to count the records that forget, which may read all lines.

    Raises:
        KeyError: An object is missing.
    """
    git, epoch = log.git, tip.format.epoch
    epochs = {
        oid: found
        for oid in dict.fromkeys(known)
        if git.has(oid) and (found := epoch_of(log, oid)) is not None
    }
    if not epoch and not any(epochs.values()):
        return ""
    base = next((oid for oid in epochs if git.contains(tip.oid, oid)), None)
    if base is None and not epoch:
        return ""
    # Each history that it has begins in its epoch: a merge with one of an earlier epoch would bring the texts back.
    genesis = ref.genesis(tip.oid)
    new = git.history(tip.oid, [base or genesis])
    begun = {epoch_of(log, oid) for oid in new if not set(git.commit(oid).parents) - {genesis}}
    wrong = (begun | {epochs.get(base or "")}) - {epoch, None}
    if wrong:
        return f"epoch is {str(epoch)[:24]}; only {max(each for each in wrong if each is not None)} is valid"
    if base is not None:
        return ""
    most = len(Forgotten(log, [tip.tree]).records) if epoch > 0 and count else 0
    if 0 <= epoch <= most or (epoch > 0 and not count):
        return ""
    return f"epoch is {str(epoch)[:24]}; only {f'0 to {most} are' if most else '0 is'} valid"


def may_begin_epoch(log: LocalLog) -> bool:
    """Return whether this clone's log has a record that forgets for one more epoch."""
    tree = log.git.commit(str(log.git.tip(ref.LOG_REF))).tree
    form = ref.read_format(log.git, log.git.tree(tree))
    return form is not None and len(Forgotten(log, [tree]).records) > form.epoch


def is_epoch_due(log: LocalLog, tip: LogTip) -> bool:
    """Return whether a log has records that forget and that its epoch did not begin with."""
    records = Forgotten(log, [tip.tree]).records
    if len(records) <= tip.format.epoch:
        return False
    begun = first_commit(log, tip.oid)
    if begun is None or begun in shallow_commits(log.repo.common):
        return True
    return not records <= Forgotten(log, [log.git.commit(begun).tree]).said or has_texts(log, tip.tree)


def has_texts(log: LocalLog, tree: str) -> bool:
    """Return whether a tree has a forgotten line as a whole, which somebody has put back."""
    git, forgotten = log.git, Forgotten(log, [tree])
    for path, entry in tree_union.walk(git, tree) if forgotten else ():
        if tree_union.is_plain_segment(path, entry):
            content = git.blob(entry.oid)
            if forgotten.cut(content) != content:
                return True
    return False


def begin_epoch(log: LocalLog, tip: LogTip) -> str:
    """Write the lines of a log, without forgotten texts, as the first commit of the next epoch; return it. No ref moves."""
    git = log.git
    forgotten = Forgotten(log, [tip.tree])
    form = tip.format
    changes: Changes = {
        "format": ref.Format.make(epoch=form.epoch + 1, turn=form.turn, publish=form.publish).content
    }
    for path, entry in tree_union.walk(git, tip.tree):
        if tree_union.is_plain_segment(path, entry):
            content = git.blob(entry.oid)
            left = forgotten.cut(content)
            if left != content:
                changes[path] = left
    who = log.signature()
    message = f"Begin epoch {form.epoch + 1}: the log without forgotten texts, and without its history\n"
    return git.write([ref.genesis_draft(), Draft(changes, who, who, message, tree=tip.tree)], None)[1]


def cut_files(log: LocalLog, lines: Sequence[bytes], texts: Sequence[str] = ()) -> list[str]:
    """Put reduced lines in the place of these in the files that gitmem has put aside.

    Args:
        texts: What to look for besides.

    Returns:
        Files that have, or may have, one of the texts.
    """
    cut = {line: reduced(line) for line in lines}
    if not cut:
        return []
    wanted = [text.encode() for text in texts]
    found = []
    for path in _files(log):
        try:
            content = local_files.load_whole(path, READ_BYTES_MAX)
            is_private = not os.stat(path).st_mode & 0o077
        except OSError:
            found.append(path)
            continue
        left = content
        for line, short in cut.items():
            left = left.replace(line, short)
        if left != content and not local_files.try_replace(path, left, private=is_private):
            left = content
        if any(text in left for text in wanted):
            found.append(path)
    return found


def _files(log: LocalLog) -> Iterator[str]:
    """Yield the files of this clone's state that may have lines, except the index and the entries that wait."""
    waiting = {file.path for wal in log.wals for file in wal.files()}
    for top in dict.fromkeys([log.repo.state, *(wal.folder for wal in log.wals)]):
        for folder, _, names in os.walk(top):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if path not in waiting and not name.startswith("index-") and local_files.is_file(path):
                    yield path


def drop_earlier_epochs(log: LocalLog) -> None:
    """Delete gitmem's refs at logs of earlier epochs than this clone's, and what reflogs have of these logs.

    A ref with lines that this clone's log lacks stays. Copies of a remote whose accepted log is of an earlier epoch stay, as it has nothing else: without them each fetch would
    bring all of it again. A remote's branch that git fetched moves to where the last sync found it.
    """
    git, own = log.git, epoch_of(log, log.git.tip(ref.LOG_REF))
    if not own:
        return
    has_all = partial(_has_all, log, git.commit(str(git.tip(ref.LOG_REF))).tree)
    every = {**git.refs("refs/gitmem/"), **log_refs.fetched_branches(log)}
    for name, oid in every.items():
        if name == ref.LOG_REF or not is_earlier(log, oid, own):
            continue
        if name.startswith("refs/remotes/"):
            there = git.tip(_prefix(name.split("/")[2]) + "heads/gitmem")
            if there is not None and not is_earlier(log, there, own):
                git.swap(name, oid, there, "sync")
        elif (log_refs.is_outbox(name) or not _lags(log, name, own)) and has_all(oid):
            plumbing.delete_ref(log.repo.common, name, oid)
    stale = [name for name in sorted(every) if not log_refs.is_outbox(name) and _remembers(log, name, own)]
    if stale:
        plumbing.expire_unreachable(log.repo.common, stale)


def _has_all(log: LocalLog, tree: str, oid: str) -> bool:
    """Return whether a tree has each line of a log that is not forgotten."""
    try:
        return not Forgotten(log, [tree]).union_changes(tree, [log.git.commit(oid).tree])
    except KeyError:
        return False


def _remembers(log: LocalLog, name: str, own: int) -> bool:
    """Return whether the reflog of a ref begins in an earlier epoch."""
    first = next(iter(plumbing.reflog(log.repo.common, name)), None)
    return first is not None and any(
        oid is not None and is_earlier(log, oid, own) for oid in (first.old, first.new)
    )


def _prefix(remote: str) -> str:
    return f"{ref.REMOTES_PREFIX}{encode_remote(remote)}/"


def _lags(log: LocalLog, name: str, own: int) -> bool:
    """Return whether a ref is a copy of one of a remote that has never had this clone's epoch."""
    if not name.startswith(ref.REMOTES_PREFIX):
        return False
    remote = name.removeprefix(ref.REMOTES_PREFIX).partition("/")[0]
    accepted = log.git.tip(f"{ref.REMOTES_PREFIX}{remote}/accepted")
    return accepted is not None and is_earlier(log, accepted, own)
