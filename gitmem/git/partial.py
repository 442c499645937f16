"""Missing objects of a partial clone (`git clone --filter`), which promisor remotes keep.

Git would fetch such an object when it is read. Recording and reading never use the network; a sync fetches the log's
objects beforehand. They are fetched by git's own mechanism, so a gc keeps them, and no setting is changed.
"""

from __future__ import annotations

from . import formats, queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROUNDS_MAX = 4  # missing folders hide further missing objects


def missing(common: str, commits: Iterable[str]) -> list[str]:
    """Return the missing objects of the commits' trees: folders and files, as far as known."""
    wanted = "".join(f"{oid}\n" for oid in commits)
    if not wanted:
        return []
    args = ["rev-list", "--objects", "--no-walk=unsorted", "--quiet", "--missing=print", "--stdin"]
    out = run.run(common, args, input=wanted.encode("ascii")).out.decode("ascii", "replace")
    return [row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")]


def is_incomplete(common: str, commit: str) -> bool:
    """Return whether this is a partial clone that lacks files of a commit."""
    return bool(formats.promisors(common) and missing(common, [commit]))


def promised(common: str, commit: str) -> set[str]:
    """Return the missing objects of a commit's history if all are promised; empty if others are missing too."""
    if not formats.promisors(common):
        return set()
    args = ["rev-list", "--objects", "--quiet"]
    if run.run(common, [*args, "--missing=allow-promisor", commit, "--"], check=False).code != 0:
        return set()
    out = run.run(common, [*args, "--missing=print", commit, "--"]).out.decode("ascii", "replace")
    return {row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")}


def fetch_missing(common: str, prefix: str, online: Callable[[str, list[str], bytes], object]) -> None:
    """Fetch the missing objects of a remote's logs, in a partial clone.

    Args:
        prefix: Prefix of the local copies of the remote's refs.
        online: Runs git with network access: remote, arguments, standard input.
    """
    names = formats.promisors(common)
    if not names:
        return
    args = ["for-each-ref", "--format=%(objecttype) %(objectname)", prefix]
    rows = run.run(common, args).out.split(b"\n")
    tips = {row[7:].decode("ascii") for row in rows if row.startswith(b"commit ")}
    for name in names:
        for _ in range(ROUNDS_MAX):
            wanted = missing(common, sorted(tips))
            if not wanted:
                return
            args = [
                # Filter of this run alone: a treeless clone gets whole folders, and any clone whole files.
                *("-c", f"remote.{name}.partialclonefilter=blob:none"),
                *("-c", "fetch.negotiationAlgorithm=noop", *queries.DURABLE, "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune"),
                *("--refmap=", "--stdin", "--", name),
            ]
            online(name, args, "".join(f"{oid}\n" for oid in wanted).encode("ascii"))
