"""Copy objects of the log that git may drop into packs of this repository.

Borrowed objects (alternates) may be lost in the repository that lends them, and a gc here drops copies of them. In a
partial clone a gc drops promised objects, including those written here, because the remote has them by then. Git leaves
both cases to the user. But the log must be readable and writable without the network, so its objects are packed with a
`.keep`.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..repo import read_small
from . import durable, formats, queries, run

PACKS_MAX = 10  # with more, one new pack replaces them
DEPTH_MAX = 5  # as in git: an alternate may have alternates


def localize(common: str, tip: str) -> None:
    """Ensure that all objects of a commit and of our refs are in packs of this repository that no gc removes.

    Objects that a partial clone has left with a remote stay there. In repositories without alternates and promisors
    this costs two file reads.

    Raises:
        StoreError: an object is already lost.
    """
    objects = os.path.join(common, "objects")
    if not alternates(objects) and not formats.promisors(common):
        return
    state = os.path.join(common, "gitmem", "own")  # line 1: the tips of the last run; line 2: its packs
    known, packs = [*_words(state), [], []][:2]
    tips = sorted({tip, *queries.refs_below(common, queries.OURS).values()})
    if set(tips) <= set(known):
        return
    stale: list[str] = []
    if len(packs) >= PACKS_MAX:
        known, packs, stale = [], [], packs
    oids = _reachable_objects(common, tips, known)
    pack = os.path.join(objects, "pack", "pack")
    if oids:
        args = [*queries.DURABLE, "pack-objects", "--quiet", "--delta-base-offset", pack]
        packs.append(run.run(common, args, input=b"\n".join(oids) + b"\n").out.decode("ascii").strip())
    try:
        if oids:
            keep = f"{pack}-{packs[-1]}.keep"
            with open(state_files.open_file(keep, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
                file.write("gitmem: the log's objects, which a gc here would leave to others\n")
        atomic_write.replace(state, f"{' '.join(tips)}\n{' '.join(packs)}\n".encode("ascii"))
    except OSError as error:
        raise durable.failed(
            "The log's objects could not be made this repository's own", error, common
        ) from error
    for name in set(stale) - set(packs):
        atomic_write.remove_quietly(f"{pack}-{name}.keep")  # the next gc removes the pack


def _reachable_objects(common: str, tips: list[str], known: list[str]) -> list[bytes]:
    """Return the objects reachable from commits, without those reachable from known commits."""
    args = ["rev-list", "--objects", "--missing=allow-promisor", "--stdin"]
    wanted = "".join(f"{oid}\n" for oid in tips)
    without = "".join(f"^{oid}\n" for oid in known)
    done = run.run(common, args, input=(wanted + without).encode("ascii"), check=False)
    if done.code != 0:  # a known commit may have been removed
        done = run.run(common, args, input=wanted.encode("ascii"))
    return [row.split(b" ")[0] for row in done.out.splitlines()]


def _words(path: str) -> list[list[str]]:
    return [line.split() for line in state_files.read(path).decode("ascii", "replace").splitlines()]


def alternates(objects: str) -> list[str]:
    """Return the object folders that an object folder borrows from, in git's order."""
    found: dict[str, None] = {}
    _collect(objects, found, DEPTH_MAX)
    found.pop(os.path.realpath(objects), None)  # two folders may borrow from each other
    return list(found)


def _collect(objects: str, found: dict[str, None], depth: int) -> None:
    for row in read_small(os.path.join(objects, "info", "alternates")).split(b"\n"):
        if not row or row.startswith(b"#"):
            continue
        folder = os.path.realpath(os.path.join(objects, os.fsdecode(_unquoted(row))))
        if folder not in found and os.path.isdir(folder):
            found[folder] = None
            if depth:
                _collect(folder, found, depth - 1)


def _unquoted(row: bytes) -> bytes:
    """Return a path without C-style quotes. Git quotes paths with a leading quote or a newline."""
    if not (row.startswith(b'"') and row.endswith(b'"') and len(row) > 1):
        return row
    return row[1:-1].decode("unicode_escape").encode("latin-1")
