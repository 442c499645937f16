"""The result of reading a whole log, for later checks, and the search for lines that its history dropped."""

from __future__ import annotations

from ..git.removals import removals
from . import ledger, ref, tree_union
from . import lines as form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..git.plumbing import Git
    from ..git.port import TreeEntry
    from .local_log import LocalLog


class LogReadResult:
    """The result of reading a whole log.

    Attributes:
        keys: `ledger.key` of every line that the tip has or that was reported as missing there.
        commits: Commits of the tip's history whose lines are all in `keys` and whose objects are all readable.
    """

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.commits: Collection[str] = ()


def walk(
    git: Git, commit: str, missing: Callable[[str, str, bool], None] | None = None, *, first: str = ""
) -> Iterator[tuple[str, TreeEntry, bytes]]:
    """Yield path, entry and content of every folder and file of a commit's tree. The path of a folder ends in a slash.

    Args:
        missing: Called for each unreadable object with its id, its path, and whether it is a folder.
        first: The name of a folder to visit before the others.

    Raises:
        KeyError: The commit is unreadable, or, without `missing`, any object is.
    """
    for path, entry in tree_union.walk(git, git.commit(commit).tree, missing, first=first):
        content = b""
        try:
            if not entry.is_tree and entry.mode != "160000":  # a submodule's commit is not in this repository
                content = git.blob(entry.oid)
        except KeyError:
            if missing is None:
                raise
            missing(entry.oid, path, False)
            continue
        yield path, entry, content


class DroppedLines:
    """Lines that a commit had in a file and the tip has nowhere; `number` is that of the first, counted from 1."""

    def __init__(self, commit: str, path: str, lines: list[bytes], number: int) -> None:
        self.commit = commit
        self.path = path
        self.lines = lines
        self.number = number


class History:
    """The history of a log, read once to find dropped lines.

    Args:
        commits: Parents before children.
        left: Objects that this partial clone does not have because the remote keeps them.

    Attributes:
        is_whole: Whether all of it was readable; final after the last line was yielded.
    """

    def __init__(self, log: LocalLog, commits: Sequence[str], left: Collection[str] = ()) -> None:
        self.is_whole = not left
        self._git: Git = log.git
        self._common = log.repo.common
        self._commits = commits
        self._seen = set(left)

    def dropped(
        self, keys: set[bytes], missing: Callable[[str, str, str], None] = lambda *_: None
    ) -> Iterator[DroppedLines]:
        """Yield the valid lines that are not in `keys`, newest commits first, and add theirs to `keys`.

        Args:
            keys: `ledger.key` of the lines of the tip.
            missing: Called for each unreadable object with its id, its position, and its expected kind.
        """
        known = removals(self._common, self._commits[::-1]) if self.is_whole else None
        self.is_whole = known is not None
        files = self._every(missing) if known is None else self._before(known)
        for commit, path, oid in files:
            try:
                content = self._git.blob(oid)
            except KeyError:
                self.is_whole = False
                missing(oid, f"{commit[:12]}:{path}", "an older file")
                continue
            if not tree_union.is_segment(path):
                continue
            gone = [line for line in tree_union.lines_of(content) if ledger.key(line) not in keys]
            gone = [line for line in gone if form.validation_error(line) is None]
            if gone:
                keys.update(map(ledger.key, gone))  # each line is reported once
                number = [line.rstrip(b"\r") for line in content.split(b"\n")].index(gone[0]) + 1
                yield DroppedLines(commit, path, gone, number)

    def _before(self, changed: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
        """Yield commit, path and id of the files as they were before commits removed lines from them.

        Also yield the entries at the tip that are not plain files, because readers of the log skip those.
        """
        tip = self._commits[-1]
        for path, entry in tree_union.walk(self._git, self._git.commit(tip).tree):
            if not entry.mode.startswith("100") and self._is_new_file(entry):
                yield tip, path, entry.oid
        for commit, path in changed:
            for parent in self._git.commit(commit).parents:
                found = ref.lookup(self._git, self._git.commit(parent).tree, path)
                if found is not None and self._is_new_file(found):
                    yield parent, path, found.oid

    def _is_new_file(self, entry: TreeEntry) -> bool:
        if entry.is_tree or entry.mode == "160000" or entry.oid in self._seen:
            return False
        self._seen.add(entry.oid)
        return True

    def _every(self, missing: Callable[[str, str, str], None]) -> Iterator[tuple[str, str, str]]:
        """Yield commit, path and id of every file of any commit, and report unreadable objects."""
        for commit in reversed(self._commits):
            try:
                tree = self._git.commit(commit).tree
            except KeyError:
                missing(commit, commit[:12], "a commit")
                continue

            def report(oid: str, path: str, _: bool, commit: str = commit) -> None:
                missing(oid, f"{commit[:12]}:{path}", "an older folder")

            for path, entry in tree_union.walk(self._git, tree, report, seen=self._seen):
                if not entry.is_tree and entry.mode != "160000":
                    yield commit, path, entry.oid
