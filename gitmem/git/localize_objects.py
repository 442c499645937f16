"""Objects of the log that git takes to be somebody else's to keep, made this repository's own.

What is borrowed (alternates) may be lost where it is borrowed from, and a gc here drops copies of it. In a
partial clone a gc drops what a promised commit names, also what was written here: the remote has that by then.
Git leaves both to the user. The log is read and written without the network, so its objects get a `.keep`.
"""

from __future__ import annotations

import os

from .. import atomic_write, shared_mode
from ..repo import read_small
from . import durable, formats, queries, run

PACKS_MAX = 10  # more are made one
DEPTH_MAX = 5  # as git's: an alternate may have alternates


def make_own(common: str, tip: str) -> None:
    """See that all that a commit and our refs reach lies in packs of this repository that no gc takes.

    What a partial clone has left with a remote stays there. Costs two looks where a gc takes nothing.

    Raises: StoreError where an object is gone already.
    """
    objects = os.path.join(common, "objects")
    if not alternates(objects) and not formats.promisors(common):
        return
    state = os.path.join(common, "gitmem", "own")  # the commits up to which it has been done; the packs
    known, packs = [*_words(state), [], []][:2]
    tips = sorted({tip, *queries.refs_below(common, queries.OURS).values()})
    if set(tips) <= set(known):
        return
    stale: list[str] = []
    if len(packs) >= PACKS_MAX:
        known, packs, stale = [], [], packs
    oids = _reached(common, tips, known)
    pack = os.path.join(objects, "pack", "pack")
    if oids:
        args = [*queries.DURABLE, "pack-objects", "--quiet", "--delta-base-offset", pack]
        packs.append(run.run(common, args, input=b"\n".join(oids) + b"\n").out.decode("ascii").strip())
    try:
        if oids:
            keep = f"{pack}-{packs[-1]}.keep"
            with open(keep, "w") as file:
                file.write("gitmem: the log's objects, which a gc here would leave to others\n")
            shared_mode.adjust(keep)
        atomic_write.replace(state, f"{' '.join(tips)}\n{' '.join(packs)}\n".encode("ascii"))
    except OSError as error:
        raise durable.failed("The log's objects could not be made this repository's own", error) from error
    for name in set(stale) - set(packs):
        atomic_write.drop(f"{pack}-{name}.keep")  # the next gc takes the pack


def _reached(common: str, tips: list[str], known: list[str]) -> list[bytes]:
    """The objects that commits reach, without those of the ones that are known already."""
    args = ["rev-list", "--objects", "--missing=allow-promisor", "--stdin"]
    wanted = "".join(f"{oid}\n" for oid in tips)
    without = "".join(f"^{oid}\n" for oid in known)
    done = run.run(common, args, input=(wanted + without).encode("ascii"), check=False)
    if done.code != 0:  # a known one may be no more
        done = run.run(common, args, input=wanted.encode("ascii"))
    return [row.split(b" ")[0] for row in done.out.splitlines()]


def _words(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return [line.split() for line in file]
    except OSError:
        return []


def alternates(objects: str) -> list[str]:
    """The object folders that an object folder borrows from, in git's order."""
    found: dict[str, None] = {}
    _collect(objects, found, DEPTH_MAX)
    found.pop(os.path.realpath(objects), None)  # two may borrow from each other
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
    """A path that git has quoted as in C, because it begins with a quote or a newline is in it."""
    if not (row.startswith(b'"') and row.endswith(b'"') and len(row) > 1):
        return row
    return row[1:-1].decode("unicode_escape").encode("latin-1")
