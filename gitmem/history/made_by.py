"""Who has made what a commit contains: by the records about it, about the commits that it was made of, and about equal ones."""

from __future__ import annotations

import os

from ..git import history
from ..log.lines import format_at
from ..order.task import micros
from ..outcome import Struct
from . import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from ..repo import Repo
    from .rows import CommitLine


MADE = ("commit", "merge", "revert")
EXACT = ("environment", "output")
ALONE, NONE = "alone", "none"
STEPS_MAX = 200  # commits that are looked at for one answer
SECOND = 1_000_000
SOURCES_MAX = 16  # that are looked at of one line
WORKTREES_MAX = 20  # whose reflogs are read, this worktree's first


class MadeHere(Struct):
    """The commits that were made in this clone, as the reflogs of its worktrees tell: what other clones say of these is false.

    The reflogs are read when somebody asks.
    """

    _repo: Repo
    _known: dict[str, list[history.ReflogEntry]] | None = None

    def action(self, commit: str, committed: int | None) -> str:
        """Return how a commit was made here, see `reflog.Entry`; "" if it was not, or nobody knows.

        Args:
            committed: The time of its committer, in seconds. An entry of another time has only moved HEAD to it.
        """
        found = self._read().get(commit, ())
        return next((each.action for each in found if committed in (None, each.seconds)), "")

    def has_second(self, seconds: int) -> bool:
        """Return whether a commit, merge or revert was made here in a second; cherry-picks, rebases and amends do not count."""
        return any(
            each.seconds == seconds and each.action in MADE for some in self._read().values() for each in some
        )

    def _read(self) -> dict[str, list[history.ReflogEntry]]:
        if self._known is None:
            self._known = {}
            for folder in self._folders():
                for entry in history.read_reflog(folder):
                    if entry.action not in ("", "start"):
                        self._known.setdefault(entry.new, []).append(entry)
        return self._known

    def _folders(self) -> list[str]:
        common = self._repo.common
        try:
            names = sorted(os.listdir(os.path.join(common, "worktrees")))
        except OSError:
            names = []
        found = [self._repo.git_dir, common, *(os.path.join(common, "worktrees", name) for name in names)]
        return list(dict.fromkeys(found))[:WORKTREES_MAX]


class Makers(Struct):
    """Who has made a commit.

    Attributes:
        made: A line for each session that has made something of it; several from other clones may contradict each other.
        rewrote: The lines of sessions that have only rewritten it, the last one first.
        is_whole: Whether all of it has makers, as far as records tell.
    """

    made: dict[str, CommitLine] = {}
    rewrote: dict[str, CommitLine] = {}
    is_whole: bool = True

    @property
    def is_inferred(self) -> bool:
        """Whether any of it is inferred."""
        return any(line.record["evidence"] == ALONE for line in self.made.values())


def find(
    db: sqlite3.Connection,
    commit: str,
    *,
    patch_id: str | None = None,
    authored: int | None = None,
    committed: int | None = None,
    inferred: bool = True,
    here: MadeHere | None = None,
) -> Makers:
    """Return who has made a commit.

    Lines of other clones count only for commits that were not made here, and for sessions that were open then.

    Args:
        commit: Its id.
        patch_id: The patch id of its changes, for a commit that no record names.
        authored, committed: The times of its author and committer, in seconds since the epoch.
        inferred: Whether inferred records count.
        here: The commits that were made in this clone.
    """
    search = _Search(db, inferred=inferred, here=here)
    search.of(commit, committed)
    if search.found.made or search.found.rewrote or patch_id is None or authored is None:
        return search.found
    if not rows.of_patch(db, patch_id):
        return search.found
    if here is not None and authored == committed and here.action(commit, committed) in MADE:
        return search.found  # it repeats none
    search.is_first, search.found.is_whole = False, True
    search.of_patch(patch_id, format_at(authored * SECOND))
    return search.found


class _Search:
    def __init__(self, db: sqlite3.Connection, *, inferred: bool, here: MadeHere | None) -> None:
        self._db = db
        self._here = here
        self._valid = (*EXACT, ALONE) if inferred else EXACT
        self._seen: set[str] = set()
        self.found = Makers()
        self.is_first = True

    def of(self, commit: str, committed: int | None = None) -> None:
        """Add the makers of a commit."""
        if commit in self._seen:
            return
        self._seen.add(commit)
        if len(self._seen) > STEPS_MAX:
            self.found.is_whole = False
            return
        lines = self._lines(commit, committed)
        made = [each for each in lines if each.record["action"] in MADE and each.record["evidence"] != NONE]
        if made:
            self._add(self.found.made, made)
        elif lines:
            self._rewritten(lines)
        else:
            self.found.is_whole = False

    def _lines(self, commit: str, committed: int | None) -> list[CommitLine]:
        """Return the valid lines about a commit; only those of this clone, if it has any: others can claim any commit."""
        lines = [
            each
            for each in rows.of_commit(self._db, commit)
            if each.record["evidence"] in (*self._valid, NONE)
        ]
        own = [each for each in lines if each.is_own]
        if own or not lines or (self._here is not None and self._here.action(commit, committed)):
            return own
        return [each for each in lines if committed is None or self._was_open(each, committed)]

    def _was_open(self, line: CommitLine, committed: int) -> bool:
        """Return whether another clone's session was open when a commit was made; also if it is not known."""
        span = rows.session_span(self._db, line.record.get("sender_session"))
        if span is None or line.record["evidence"] == NONE:
            return True
        started, ended = span
        return bool(started // SECOND <= committed and (ended is None or committed <= ended // SECOND))

    def _rewritten(self, lines: list[CommitLine]) -> None:
        """Add the makers of what a commit replaces or repeats."""
        known = [each for each in lines if each.record["evidence"] != NONE]
        if self.is_first:
            self.is_first = False
            self._add(self.found.rewrote, known)
        changed = [each for each in lines if each.record["action"] == "amend" and each.record.get("parts")]
        amended = [each for each in changed if each.record["evidence"] != NONE]
        self._add(self.found.made, amended)
        sources = dict.fromkeys(source for each in lines for source in each.record.get("sources", ()))
        if any(each.record["action"] == "cherry-pick" for each in lines):
            self._picked(lines, sources)
            return
        for source in list(sources)[:SOURCES_MAX]:
            self.of(source)
        if any(each.record["action"] == "squash" for each in lines) and len(sources) < 2:
            self.found.is_whole = False  # what was added is of no known commit
        if changed and not amended:
            self.found.is_whole = False  # somebody without a session has changed it
        if not sources and not amended:
            self._repeated(lines)

    def _picked(self, lines: list[CommitLine], sources: Collection[str]) -> None:
        """Add the makers of what was picked: by its changes; after a conflict, whichever of the sources it was.

        Anybody can write a commit that looks like another one. So of several sources, records must name one maker for all.
        """
        before, is_whole = dict(self.found.made), self.found.is_whole
        self._repeated(lines)
        if self.found.made != before or not sources:
            return
        self.found.is_whole = is_whole
        for source in sources:
            self.of(source)
        is_one = self.found.is_whole and len(self.found.made) == len(before) + 1
        if len(sources) > 1 and not is_one:
            self.found.made, self.found.is_whole = before, False

    def _repeated(self, lines: list[CommitLine]) -> None:
        """Add the makers of the commits with the same changes, author's time and other ids."""
        patches = {(each.record.get("patch_id"), each.record.get("authored_at")) for each in lines}
        for patch_id, authored in patches:
            if patch_id is not None and authored is not None:
                self.of_patch(patch_id, authored)

    def of_patch(self, patch_id: str, authored_at: str) -> None:
        """Add the makers of commits with a patch id and a time of the author: a repeated commit keeps both."""
        same = [
            each
            for each in rows.of_patch(self._db, patch_id)
            if each.record.get("authored_at") == authored_at and each.record["commit"] not in self._seen
        ]
        own = [each for each in same if each.is_own]
        if own or (same and self._here is not None and self._here.has_second(micros(authored_at) // SECOND)):
            same = own
        if not same:
            self.found.is_whole = False
        for each in same:
            self.of(each.record["commit"])

    def _add(self, to: dict[str, CommitLine], lines: list[CommitLine]) -> None:
        for each in lines:
            to.setdefault(each.record.get("sender_session") or each.record["sender_identity"], each)
