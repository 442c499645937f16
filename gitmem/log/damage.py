"""Damage: refs, copies and objects of ours that can't be read or are in the way, and how they are put away."""

from __future__ import annotations

import os

from ..git import repair
from . import log_refs, recovery, ref, tree_union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from .local_log import LocalLog

ASIDE = "refs/gitmem-aside/"


def damaged_copies(log: LocalLog, whole: Collection[str] = ()) -> list[str]:
    """Our copies of what remotes have, and the mark of what was published, that can't be read.

    Args:
        whole: Commits of the log that were read with all that they lead to.
    """
    sound = recovery.Sound(log, whole)
    found = []
    for name, oid in log.git.refs("refs/gitmem/").items():
        copied = name == ref.PUBLISHED_REF or _is_copy(name)
        if copied and sound.end(oid) != recovery.OTHER and not sound.commit(oid):
            found.append(name)
    return found


def _is_copy(name: str) -> bool:
    known = log_refs.is_place(name) or name.endswith("/accepted")
    return known and name.startswith(ref.REMOTES_PREFIX)


def damaged_refs(log: LocalLog) -> list[str]:
    """Refs of ours whose files are damaged."""
    return list(repair.damaged(log.place.common, "refs/gitmem"))


def in_the_way(log: LocalLog) -> dict[str, str]:
    """Refs whose names can't stand beside those of ours, with their tips; a folder without refs ends in `/` and has none."""
    own = (ref.LOG_REF, ref.PUBLISHED_REF)
    inside = tuple(f"{name}/" for name in own)
    found = {name: oid for name, oid in log.git.refs("refs/gitmem/").items() if name.startswith(inside)}
    if os.path.isfile(os.path.join(log.place.common, "refs", "gitmem")):
        oid = log.git.tip("refs/gitmem")
        if oid is not None:
            found["refs/gitmem"] = oid
    for folder in inside:
        if os.path.isdir(os.path.join(log.place.common, folder)) and not any(
            name.startswith(folder) for name in found
        ):
            found[folder] = ""
    return found


def move_out_of_the_way(log: LocalLog, name: str, oid: str) -> str | None:
    """Give such a ref another name: that, or None where it can't be done. An empty folder is removed ("")."""
    if not oid:
        for folder, _, _ in os.walk(os.path.join(log.place.common, name), topdown=False):
            os.rmdir(folder)
        return ""
    to = ASIDE + name.removeprefix("refs/").replace("/", "-")
    return to if repair.rename(log.place.common, name, oid, to) else None


def damaged_objects(log: LocalLog) -> list[str]:
    """What can't be read of all that the log's ref was at, and of what a remote had."""
    git, seen, damaged = log.git, set[str](), list[str]()

    def new(oids: Iterable[str]) -> list[str]:
        found = [oid for oid in dict.fromkeys(oids) if oid not in seen]
        seen.update(found)
        return found

    commits = new([*recovery.been_at(log), *git.refs("refs/gitmem/").values()])
    roots: list[str] = []
    while commits:
        oid = commits.pop()
        try:
            commit = git.commit(oid)
        except KeyError:
            damaged.append(oid)
            continue
        commits += new(commit.parents)
        roots.append(commit.tree)
    for root in roots:
        for _, entry in tree_union.walk(git, root, lambda oid, *_: damaged.append(oid), seen=seen):
            if not entry.is_tree and entry.mode != "160000" and not git.has(entry.oid):
                damaged.append(entry.oid)
    return damaged


def put_away(log: LocalLog, oid: str) -> str | None:
    """Move the file of a damaged object aside: where it is then, or None where there is none of ours. Raises: as `repair`."""
    return repair.put_away(log.place.common, oid, os.path.join(log.place.state, "aside", "objects"))


def forget(log: LocalLog, name: str, oid: str) -> bool:
    """Delete a ref of ours that the next sync makes anew, or that nobody needs."""
    return repair.delete(log.place.common, name, oid)


def forget_broken(log: LocalLog) -> bool:
    """Take out of the log's reflog what is not whole."""
    return repair.forget_broken(log.place.common, ref.LOG_REF)
