"""Which files lost lines in the course of a history: git compares the trees, and only a few names come back."""

from __future__ import annotations

from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 5_000  # commits for one git
_COMPARE = ("diff-tree", "--stdin", "-r", "-m", "--numstat", "-z", "--no-renames", "--diff-filter=a")


def removals(common: str, commits: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return the commits that took lines out of files, each with the path of such a file, in the order of the commits.

    git counts no lines of a binary file, so such a file is named whenever it changed. Of every other file that a commit
    changed or deleted, git reads both versions.

    Args:
        commits: Whole object ids.

    Returns: None where git could not read something.

    Raises: StoreError where git could not be run or took too long.
    """
    found: list[tuple[str, str]] = []
    for start in range(0, len(commits), AT_ONCE):
        given = "".join(f"{oid}\n" for oid in commits[start : start + AT_ONCE]).encode("ascii")
        done = run.run(common, [*run.SMALL_CACHE, *_COMPARE], input=given, check=False)
        if done.code != 0:
            return None
        found += _parsed(done.out)
    return found


def _parsed(out: bytes) -> Iterator[tuple[str, str]]:
    """Return commit and path of the rows `<added> TAB <removed> TAB <path>` that do not say that nothing was removed."""
    commit = ""
    for row in out.split(b"\0"):
        _, tab, rest = row.partition(b"\t")
        if not tab:
            commit = row.decode("ascii")
            continue
        removed, _, path = rest.partition(b"\t")
        if removed != b"0":
            yield commit, path.decode("utf-8", "surrogateescape")
