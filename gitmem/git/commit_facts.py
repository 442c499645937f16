"""Who made commits and when, and the patch ids of their changes, for many commits in few runs of git."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from . import run, user_history
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Pair = tuple[str, str]

PATCHES_AT_ONCE = 50
PATCHES_BYTES_MAX = 32 * 1024 * 1024
FACTS_BYTES_MAX = 16 * 1024 * 1024
RANGE_MAX = 2_000
PERSON_COLUMNS, SUBJECT_COLUMNS, PARENTS_MAX = (
    200,
    500,
    100,
)  # of a commit; texts are cut, as others wrote them
_PERSON = f"%<({PERSON_COLUMNS},trunc)%an%x00%<({PERSON_COLUMNS},trunc)%ae"
_FORMAT = f"--format=%H%x00%P%x00%T%x00{_PERSON}%x00%at%x00%ct%x00%<({SUBJECT_COLUMNS},trunc)%s"
# What the user has configured must not change the ids: they are compared with those of other clones.
_DIFF = (
    "diff-tree", "--stdin", "-r", "-p", "--root", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "-U3",
    "--diff-algorithm=myers", "--no-indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none",
    "-O/dev/null",
)  # fmt: skip


class CommitFacts(NamedTuple):
    """A commit: its first parents, its tree, and who made it, with times in seconds since the epoch. Long texts are cut."""

    parents: tuple[str, ...]
    tree: str
    author: str
    authored: int
    committed: int
    subject: str

    @property
    def is_fresh(self) -> bool:
        """Whether it was authored when it was committed: its changes were not made in another commit before."""
        return self.authored == self.committed


def of_commits(
    common: str, oids: Iterable[str], seconds: float, *, out_max: int = FACTS_BYTES_MAX
) -> dict[str, CommitFacts]:
    """Return the facts of commits; those that are missing here, and those that are too large, are left out.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    asked = [oid for oid in dict.fromkeys(oids) if is_oid(oid)]
    until = time.monotonic() + seconds
    waiting, found = [asked] if asked else [], {}
    while waiting:
        some = waiting.pop(0)
        try:
            found.update(_facts(common, ["--no-walk=unsorted"], some, until - time.monotonic(), out_max))
        except run.GitOutputError:  # one with millions of parents must not hide the others
            if len(some) > 1:
                waiting[:0] = [some[: len(some) // 2], some[len(some) // 2 :]]
    return found


def written_at(common: str, oid: str) -> int | None:
    """Return when the file of a commit was written, in microseconds since the epoch; None if it is in a pack or elsewhere."""
    if not is_oid(oid):
        return None
    try:
        return os.lstat(os.path.join(common, "objects", oid[:2], oid[2:])).st_mtime_ns // 1000
    except OSError:
        return None


def between(common: str, revisions: Sequence[str], seconds: float, *options: str) -> dict[str, CommitFacts]:
    """Return the facts of the commits that revisions and options of `git rev-list` select, at most 2,000.

    Args:
        revisions: Object ids and names of refs, with `^` for those whose history is left out; missing ones are ignored.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    return _facts(common, [f"--max-count={RANGE_MAX}", *options], revisions, seconds)


def _facts(
    common: str,
    options: Sequence[str],
    revisions: Sequence[str],
    seconds: float,
    out_max: int = FACTS_BYTES_MAX,
) -> dict[str, CommitFacts]:
    given = "".join(f"{each}\n" for each in revisions).encode("ascii")
    done = run.run(
        common,
        ["rev-list", "--ignore-missing", *options, "--stdin", _FORMAT],
        input=given,
        timeout=max(0.1, seconds),
        out_max=out_max,
    )
    found = {}
    for line in done.out.decode("utf-8", "replace").split("\n"):
        words = line.split("\0")
        if len(words) == 8:
            oid, parents, tree, name, mail, authored, committed, subject = words
            author = f"{name.rstrip()} <{mail.rstrip()}>"
            first = tuple(parents.split(" ", PARENTS_MAX)[:PARENTS_MAX]) if parents else ()
            found[oid] = CommitFacts(first, tree, author, _time(authored), _time(committed), subject.rstrip())
    return found


def _time(text: str) -> int:
    """Return a time that can be shown, in seconds: a commit may have any number, or none."""
    return min(int(text), user_history.SECONDS_MAX) if text.isdecimal() else 0


def patch_ids(common: str, oids: Iterable[str], seconds: float) -> dict[str, str]:
    """Return the patch ids of commits. Merges, commits without changes and those that take too long are left out."""
    return {
        oid: found for (oid, _), found in _patch_ids(common, [(oid, "") for oid in oids], seconds).items()
    }


def step_ids(common: str, trees: Iterable[Pair], seconds: float) -> dict[Pair, str]:
    """Return the patch ids of what changes one tree into another, for pairs of trees."""
    found: dict[Pair, str] = {}
    until = time.monotonic() + seconds
    waiting = [pair for pair in dict.fromkeys(trees) if pair[0] != pair[1]]
    while waiting:  # git names only the first tree in its answer: one pair of each first tree at a time
        some = {pair[0]: pair for pair in waiting}
        found.update(_patch_ids(common, list(some.values()), until - time.monotonic()))
        waiting = [pair for pair in waiting if some[pair[0]] != pair]
    return found


def _patch_ids(common: str, asked: Sequence[Pair], seconds: float) -> dict[Pair, str]:
    until = time.monotonic() + seconds
    pairs = [pair for pair in dict.fromkeys(asked) if is_oid(pair[0]) and (not pair[1] or is_oid(pair[1]))]
    waiting = [pairs[at : at + PATCHES_AT_ONCE] for at in range(0, len(pairs), PATCHES_AT_ONCE)]
    found: dict[Pair, str] = {}
    while waiting and (left := until - time.monotonic()) > 0:
        group = waiting.pop(0)
        given = "".join(f"{' '.join(filter(None, pair))}\n" for pair in group).encode("ascii")
        try:
            diff = run.run(
                common, list(_DIFF), input=given, timeout=left, out_max=PATCHES_BYTES_MAX, check=False
            ).out
            left = max(0.1, until - time.monotonic())
            done = (
                run.run(common, ["patch-id", "--stable"], input=diff, timeout=left, check=False)
                if diff
                else None
            )
        except (run.GitTimeoutError, run.GitOutputError):
            if len(group) > 1:  # one commit may be enough to stop all others
                middle = len(group) // 2
                waiting[:0] = [group[:middle], group[middle:]]
            continue
        first = {pair[0]: pair for pair in group}
        for line in done.out.decode("ascii", "replace").splitlines() if done is not None else ():
            patch, _, oid = line.partition(" ")
            if oid in first and is_oid(patch):
                found[first[oid]] = patch
    return found
