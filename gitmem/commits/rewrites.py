"""What commits that replace or repeat others were made of: by the reflog, and within one rebase by what it keeps."""

from __future__ import annotations

from ..git import commit_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..git.commit_facts import CommitFacts
    from ..git.reflog import Entry

STEPS_MAX = 200  # commits of one rebase that are compared by their patch ids


class Origin:
    """What a commit was made of.

    Attributes:
        action: How it was made: that of its entry, or what the commits say.
        sources: The commits that it replaces or repeats.
        parts: The patch ids of the changes that it combines.
    """

    def __init__(self, action: str) -> None:
        self.action = action
        self.sources: list[str] = []
        self.parts: list[str] = []


class Rewrites:
    """The origins of the commits of one reflog.

    Args:
        common: The common git folder.
        entries: The entries of the reflog, oldest first.
        facts: The facts of the commits in question, and of those before them.
        seconds: The limit of each run of git.
    """

    def __init__(
        self, common: str, entries: Sequence[Entry], facts: Mapping[str, CommitFacts], seconds: float
    ) -> None:
        self._common = common
        self._entries = entries
        self._facts = facts
        self._seconds = seconds
        self._ranges: dict[tuple[str, str], Mapping[str, CommitFacts]] = {}
        self._patches: dict[str, str] = {}

    def of(self, at: int) -> Origin:
        """Return the origin of the commit of an entry.

        Raises:
            StoreError: git failed, or did not end in time.
        """
        entry = self._entries[at]
        new, old = self._facts[entry.new], self._facts.get(entry.old or "")
        origin = Origin(entry.action)
        replaces = old is not None and entry.old not in new.parents and new.parents[:1] == old.parents[:1]
        if entry.action == "commit" and not new.is_fresh:
            origin.action = "rewrite"
        if entry.action == "amend" or (entry.action == "rebase" and replaces):
            self._replaced(origin, entry, old, new, at)
        elif entry.action == "rebase":
            origin.sources = self._same(self._range_of(at), new)
        return origin

    def _replaced(
        self, origin: Origin, entry: Entry, old: CommitFacts | None, new: CommitFacts, at: int
    ) -> None:
        """Set the origin of a commit that has taken the place of the one before it."""
        if old is None or entry.old is None:
            return
        origin.sources = [entry.old]
        step = (old.tree, new.tree)
        patch = commit_facts.step_ids(self._common, [step], self._seconds).get(step)
        if patch is None:
            return
        origin.parts = [patch]
        if entry.action == "rebase":
            origin.action = "squash"
            known = self._patch_ids(self._range_of(at))
            same = [oid for oid, each in known.items() if each == patch]
            origin.sources += same if len(same) == 1 else []

    def _range_of(self, at: int) -> Mapping[str, CommitFacts]:
        """Return the commits that the rebase of an entry has to repeat."""
        start = next((each for each in reversed(self._entries[:at]) if each.action == "start"), None)
        if start is None or start.old is None:
            return {}
        key = (start.new, start.old)
        if key not in self._ranges:
            self._ranges[key] = commit_facts.between(self._common, *key, self._seconds)
        return self._ranges[key]

    def _same(self, known: Mapping[str, CommitFacts], new: CommitFacts) -> list[str]:
        """Return the commit that a rebase has repeated, if exactly one of its commits can be meant: it keeps author and time."""
        found = [
            oid for oid, each in known.items() if (each.author, each.authored) == (new.author, new.authored)
        ]
        if len(found) > 1:
            found = [oid for oid in found if known[oid].subject == new.subject]
        return found if len(found) == 1 else []

    def _patch_ids(self, known: Mapping[str, CommitFacts]) -> Mapping[str, str]:
        missing = [oid for oid in list(known)[:STEPS_MAX] if oid not in self._patches]
        self._patches.update(commit_facts.patch_ids(self._common, missing, self._seconds))
        return {oid: self._patches[oid] for oid in known if oid in self._patches}
