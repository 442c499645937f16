"""Who wrote lines: the sessions that records name, else what other tools say. What a commit has squashed or repeated is of those who wrote that."""

from __future__ import annotations

import time

from ..errors import StoreError
from ..git import files, history
from ..outcome import Struct
from . import commits, ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..git.history import CommitFacts
    from ..store import Store
    from .commits import CommitLine, MadeHere, Makers
    from .other_tools import OtherTools, Word
    from .ranges import Range


DEPTH_MAX = 3  # of what was rewritten again
SEARCHES_MAX = 20  # in one answer
RUNS_MAX = 500  # of lines that git blames at once
WHOLE = 0  # stands for all lines of a commit


class Author(Struct):
    """Who wrote a line.

    Attributes:
        made: The records of the sessions, one for each.
        words: What other tools say.
        is_certain: Whether each has written it; otherwise one of them, or somebody unknown.
    """

    made: dict[str, CommitLine] = {}
    words: list[Word] = []
    is_certain: bool = True


class LineAuthors:
    """Finds who wrote lines, for one answer.

    Attributes:
        remarks: What was not looked at.
    """

    def __init__(self, store: Store, here: MadeHere, tools: OtherTools, seconds: float) -> None:
        self.remarks: list[str] = []
        self._store = store
        self._here = here
        self._tools = tools
        self._until = time.monotonic() + seconds
        self._searches = 0
        self._known: dict[str, list[Range]] = {}

    def of(
        self,
        commit: str,
        facts: CommitFacts,
        patch_id: str | None,
        path: str | None,
        numbers: Sequence[int],
        depth: int = 0,
    ) -> tuple[Makers, dict[int, Author]]:
        """Return who has made a commit, and who wrote lines of a file in it.

        Args:
            patch_id: The patch id of its changes, if no record names it.
            path: The file; None for the whole commit, whose only line is `WHOLE`.
            numbers: The lines, in ascending order.
        """
        makers = commits.find_makers(
            self._store.db(), commit, self._here, committed=facts.committed, authored=facts.authored, patch_id=patch_id
        )  # fmt: skip
        words = self._tools.words(commit, path, numbers) if self._tools else {}
        is_mixed = makers.is_rewrite and (len(makers.made) > 1 or not makers.is_whole)
        found = dict.fromkeys(numbers, Author(makers.made, is_certain=not is_mixed))
        found |= {number: Author(makers.made, some, not is_mixed) for number, some in words.items()}
        left = [number for number, each in found.items() if is_mixed or not (each.made or each.words)]
        some: dict[int, list[Author]] = {}
        for each in (
            self._ranges(commit, facts, patch_id, makers.sources) if left and depth < DEPTH_MAX else ()
        ):
            for number, author in self._in_range(each, commit, path, left, depth).items():
                some.setdefault(number, []).append(author)
        for number, authors in some.items():
            one = _agreed(authors)
            if one is not None and (not is_mixed or one.made.keys() <= makers.made.keys()):
                found[number] = one
        return makers, found

    def _ranges(
        self, commit: str, facts: CommitFacts, patch_id: str | None, sources: set[str]
    ) -> list[Range]:
        """Return what a commit has squashed or repeated."""
        if commit not in self._known:
            self._known[commit] = []
            if self._searches < SEARCHES_MAX and len(facts.parents) == 1 and self._has_any():
                self._searches += 1
                self._known[commit] = self._search(commit, facts, patch_id, sources)
        return self._known[commit]

    def _search(
        self, commit: str, facts: CommitFacts, patch_id: str | None, sources: set[str]
    ) -> list[Range]:
        repo = self._store.repo
        try:
            patch = patch_id or history.patch_ids(repo.common, [commit], self._left()).get(commit)
            if patch is None:
                return []
            begun = files.loose_tip(repo.git_dir, "ORIG_HEAD") == facts.parents[0]
            seen = [*sources, *self._here.until(facts.committed)]
            return ranges.find(
                repo.git_dir,
                commit,
                facts,
                patch,
                seen,
                self._left(),
                begun=begun,
                wanted=self._of_interest,
                sources=sources,
            )
        except StoreError:
            self._remark_time(commit)
            return []

    def _has_any(self) -> bool:
        """Return whether anything is known of any commit."""
        return bool(self._tools) or commits.has_any(self._store.db())

    def _of_interest(self, some: Collection[str]) -> set[str]:
        found = {commit for commit, _ in commits.recorded(self._store.db(), some)}
        return found | {each for each in some if each not in found and self._tools.knows(each)}

    def _in_range(
        self, each: Range, commit: str, path: str | None, numbers: Sequence[int], depth: int
    ) -> dict[int, Author]:
        """Return who wrote lines of a commit, by those of a range of commits with the same changes."""
        try:
            places = self._places(each, commit, path, numbers)
            oids = list(dict.fromkeys(oid for oid, _ in places if oid != commit))
            common = self._store.repo.common
            facts = history.facts_of(common, oids, self._left())
            recorded = {oid for oid, _ in commits.recorded(self._store.db(), oids)}
            patches = history.patch_ids(common, [oid for oid in oids if oid not in recorded], self._left())
        except (StoreError, history.NotInHistoryError, history.TooFewLinesError, history.IgnoreRevsError):
            self._remark_time(commit)
            return {}
        found: dict[int, Author] = {}
        for (oid, name), lines in places.items():
            if oid not in facts:
                continue
            _, authors = self.of(oid, facts[oid], patches.get(oid), name, sorted(lines), depth + 1)
            for number, author in authors.items():
                mine = found.setdefault(lines[number], Author())
                mine.made.update(author.made)
                mine.words += [word for word in author.words if word not in mine.words]
        return found

    def _places(
        self, each: Range, commit: str, path: str | None, numbers: Sequence[int]
    ) -> Mapping[tuple[str, str | None], dict[int, int]]:
        """Return where lines of a commit come from in a range: by commit and path the number there, and that of the line."""
        if path is None:
            return {(oid, None): {WHOLE: WHOLE} for oid in each.commits}
        repo = self._store.repo
        pairs = [(commit, ""), (each.tip, each.base)]
        added = history.added_lines(repo.common, pairs, path, self._left())
        mine, theirs = added.get(commit, []), added.get(each.tip, [])
        if len(mine) != len(theirs):
            return {}
        there, wanted = dict(zip(theirs, mine, strict=True)), set(numbers)
        asked = runs([number for number in theirs if there[number] in wanted])[:RUNS_MAX]
        found: dict[tuple[str, str | None], dict[int, int]] = {}
        blamed = history.blame(
            repo.common, repo.git_dir, repo.worktree or repo.common, path, asked, revision=each.tip, seconds=self._left()
        ) if asked else []  # fmt: skip
        for lines in blamed:
            for at in range(lines.length):
                key = (lines.commit or "", lines.path)
                found.setdefault(key, {})[lines.was + at] = there[lines.first + at]
        return found

    def _left(self) -> float:
        return max(0.1, self._until - time.monotonic())

    def _remark_time(self, commit: str) -> None:
        self.remarks.append(
            f"What {commit[:12]} has squashed or repeated is not known: git did not tell in time."
        )


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs of ascending numbers, each as its first and last one."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def _agreed(authors: Sequence[Author]) -> Author | None:
    """Return the author that all of several sources of a line have, who may be nobody; None if they differ: anybody can repeat changes."""
    made, told = [each for each in authors if each.made], [each for each in authors if each.words]
    some = made or told or authors
    who = {
        (frozenset(each.made), frozenset(word._replace(commit="") for word in each.words if not each.made))
        for each in some
    }
    return some[0] if len(who) == 1 else None
