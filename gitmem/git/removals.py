"""Find files that lost lines in a history. Git compares the trees, so its output is short."""

from __future__ import annotations

from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 5_000  # commits per git process
_COMPARE = ("diff-tree", "--stdin", "-r", "-m", "--numstat", "-z", "--no-renames", "--diff-filter=a")


def removals(common: str, commits: Sequence[str], at_once: int = AT_ONCE) -> list[tuple[str, str]] | None:
    """Return the commits that removed lines from files, each with the file's path, in the order of the commits.

    git does not count lines of binary files, so they are included whenever they changed. For every other changed or
    deleted file git reads both versions.

    Args:
        commits: Full object ids.
        at_once: The number of commits for one git process.

    Returns:
        Pairs of commit and path; None if git could not read an object.

    Raises:
        StoreError: git could not be started or timed out.
    """
    found: list[tuple[str, str]] = []
    for start in range(0, len(commits), at_once):
        given = "".join(f"{oid}\n" for oid in commits[start : start + at_once]).encode("ascii")
        done = run.run(common, [*run.SMALL_DELTA_CACHE, *_COMPARE], input=given, check=False)
        if done.code != 0:
            return None
        found += _parsed(done.out)
    return found


def _parsed(out: bytes) -> Iterator[tuple[str, str]]:
    """Yield commit and path of the rows `<added> TAB <removed> TAB <path>` whose removed count is not 0."""
    commit = ""
    for row in out.split(b"\0"):
        _, tab, rest = row.partition(b"\t")
        if not tab:
            commit = row.decode("ascii")
            continue
        removed, _, path = rest.partition(b"\t")
        if removed != b"0":
            yield commit, path.decode("utf-8", "surrogateescape")
