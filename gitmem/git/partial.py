"""A partial clone (`git clone --filter`): it has left files with the remotes that promised to keep them.

Git would bring one when it is read, from the network. Recording and reading never do that; a sync brings
those of the log beforehand. They come as git brings them, so a gc keeps them; no setting is changed.
"""

from __future__ import annotations

from . import formats, queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROUNDS_MAX = 4  # folders may be missing too, and what is in them is known only then


def missing(common: str, commits: Iterable[str]) -> list[str]:
    """What is not here of the trees of commits: folders and files, as far as it is known."""
    wanted = "".join(f"{oid}\n" for oid in commits)
    if not wanted:
        return []
    args = ["rev-list", "--objects", "--no-walk=unsorted", "--quiet", "--missing=print", "--stdin"]
    out = run.run(common, args, input=wanted.encode("ascii")).out.decode("ascii", "replace")
    return [row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")]


def lacks(common: str, commit: str) -> bool:
    """Whether this is a partial clone that does not have all files of a commit."""
    return bool(formats.promisors(common) and missing(common, [commit]))


def promised(common: str, commit: str) -> set[str]:
    """What is not here of a commit's history, where all of it was left with a remote; empty where more is missing."""
    if not formats.promisors(common):
        return set()
    args = ["rev-list", "--objects", "--quiet"]
    if run.run(common, [*args, "--missing=allow-promisor", commit, "--"], check=False).code != 0:
        return set()
    out = run.run(common, [*args, "--missing=print", commit, "--"]).out.decode("ascii", "replace")
    return {row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")}


def bring(common: str, prefix: str, online: Callable[[str, list[str], bytes], object]) -> None:
    """Bring what a remote's logs lack here, where this is a partial clone.

    Args:
        prefix: Where the copies of a remote's refs are.
        online: Runs git on the network: the remote, the arguments, and what to give it.
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
                # Of this run alone: a clone without trees gets whole folders, and any clone whole files.
                *("-c", f"remote.{name}.partialclonefilter=blob:none"),
                *("-c", "fetch.negotiationAlgorithm=noop", *queries.DURABLE, "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune"),
                *("--refmap=", "--stdin", "--", name),
            ]
            online(name, args, "".join(f"{oid}\n" for oid in wanted).encode("ascii"))
