"""Ranges of commits whose changes together are those of one commit, which has squashed or repeated them; found by patch ids."""

from __future__ import annotations

import time
from typing import NamedTuple

from ..git import history
from ..log.ref import LOG_REF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ..git.history import CommitFacts


TIPS_MAX, LENGTH_MAX, COMPARED_MAX, FOUND_MAX = 200, 100, 200, 4
SEEN_MAX = 500
SQUASHED = "Squashed commit of the following:"  # what git proposes as the subject


class Range(NamedTuple):
    """Commits one after the other.

    Attributes:
        tip: The last one.
        base: The commit before the first one.
        commits: All of them, the last one first.
    """

    tip: str
    base: str
    commits: tuple[str, ...]


def find(
    git_dir: str,
    commit: str,
    facts: CommitFacts,
    patch_id: str,
    seen: Iterable[str],
    seconds: float,
    *,
    later: Collection[str] = (),
    begun: bool = False,
    wanted: Callable[[Collection[str]], set[str]] | None = None,
    sources: Collection[str] = (),
) -> list[Range]:
    """Return the ranges of commits that a commit has squashed or repeated, as far as their changes tell.

    Not reachable from the commit before it, and committed no later. One commit of another author or time is a range only if git had begun a
    merge, or the subject or a record says so: anybody may type the same small change.

    Args:
        git_dir: The git folder of the worktree.
        seen: Commits that perhaps no branch has any more.
        later: Commits that were made after it.
        begun: Whether git had begun a merge at the commit before.
        wanted: Returns which of some commits matter; ranges without such a commit are left out.
        sources: Commits that records name as such.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    if len(facts.parents) != 1:
        return []
    until = time.monotonic() + seconds
    tips = [f"^{facts.parents[0]}", f"^{LOG_REF}", *list(seen)[:SEEN_MAX]]
    options = ("--branches", "--remotes", "--tags", f"--min-age={facts.committed}")
    known = history.facts_between(git_dir, tips, seconds, *options)
    for oid in (commit, *later):
        known.pop(oid, None)
    matters = set(known) if wanted is None else wanted(known)
    if not matters:
        return []
    found: dict[tuple[str, str], Range] = {}
    for tip in list(known)[:TIPS_MAX]:
        for each in _ending(tip, known, facts):
            if not matters.isdisjoint(each.commits) and _is_sure(
                each, known, facts, begun=begun or tip in sources
            ):
                found.setdefault((each.tip, each.base), each)
    left = max(0.1, until - time.monotonic())
    patches = history.step_ids(git_dir, list(found)[:COMPARED_MAX], left)
    return [found[pair] for pair, patch in patches.items() if patch == patch_id][:FOUND_MAX]


def _ending(tip: str, known: Mapping[str, CommitFacts], facts: CommitFacts) -> Iterator[Range]:
    """Yield the ranges that end with a commit: all since its branch began or last merged, and from one with the same author and time on."""
    commits: list[str] = []
    base, at = "", tip
    while at in known and len(commits) < LENGTH_MAX:
        each = known[at]
        commits.append(at)
        if each.parents and _is_same(each, facts):
            yield Range(tip, each.parents[0], tuple(commits))
        outside = [parent for parent in each.parents if parent not in known]
        base = base or (outside[-1] if outside else "")
        at = each.parents[0] if each.parents else ""
    if base:
        yield Range(tip, base, tuple(commits))


def _is_same(one: CommitFacts, other: CommitFacts) -> bool:
    return (one.author, one.authored) == (other.author, other.authored)


def _is_sure(one: Range, known: Mapping[str, CommitFacts], facts: CommitFacts, *, begun: bool) -> bool:
    """Return whether the same changes show that a commit has taken them from a range."""
    first = known[one.commits[-1]]
    if len(one.commits) > 1 or begun or _is_same(first, facts) or facts.subject == SQUASHED:
        return True
    return bool(first.subject) and f"{facts.subject} (".startswith(f"{first.subject} (")
