"""Find and remove damage: refs, copies and objects of gitmem that are unreadable or block a name."""

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
    """Return the copies of remote refs, and the published ref, whose commits are unreadable.

    Args:
        whole: Commits of the log that were already read completely.
    """
    sound = recovery.CompletenessCheck(log, whole)
    found = []
    for name, oid in log.git.refs("refs/gitmem/").items():
        copied = name == ref.PUBLISHED_REF or _is_copy(name)
        if copied and sound.end(oid) != recovery.OTHER and not sound.commit(oid):
            found.append(name)
    return found


def _is_copy(name: str) -> bool:
    known = log_refs.is_synced_ref(name) or name.endswith("/accepted")
    return known and name.startswith(ref.REMOTES_PREFIX)


def damaged_refs(log: LocalLog) -> list[str]:
    """Return gitmem's refs whose files are damaged."""
    return list(repair.damaged_refs(log.repo.common, "refs/gitmem"))


def blocking_refs(log: LocalLog) -> dict[str, str]:
    """Find the refs that block the name of a gitmem ref (a file in place of a folder, or the reverse).

    Returns:
        Their tips by name. A folder without refs ends in `/` and has the tip "".
    """
    own = (ref.LOG_REF, ref.PUBLISHED_REF)
    inside = tuple(f"{name}/" for name in own)
    found = {name: oid for name, oid in log.git.refs("refs/gitmem/").items() if name.startswith(inside)}
    if os.path.isfile(os.path.join(log.repo.common, "refs", "gitmem")):
        oid = log.git.tip("refs/gitmem")
        if oid is not None:
            found["refs/gitmem"] = oid
    for folder in inside:
        if os.path.isdir(os.path.join(log.repo.common, folder)) and not any(
            name.startswith(folder) for name in found
        ):
            found[folder] = ""
    return found


def rename_blocking_ref(log: LocalLog, name: str, oid: str) -> str | None:
    """Rename a blocking ref, or remove an empty folder.

    Returns:
        The new name, "" for a folder, or None if renaming is impossible.
    """
    if not oid:
        for folder, _, _ in os.walk(os.path.join(log.repo.common, name), topdown=False):
            os.rmdir(folder)
        return ""
    to = ASIDE + name.removeprefix("refs/").replace("/", "-")
    return to if repair.rename(log.repo.common, name, oid, to) else None


def damaged_objects(log: LocalLog) -> list[str]:
    """Return the unreadable objects of all known tips of the log's ref and of remotes, and of their histories."""
    git, seen, damaged = log.git, set[str](), list[str]()

    def new(oids: Iterable[str]) -> list[str]:
        found = [oid for oid in dict.fromkeys(oids) if oid not in seen]
        seen.update(found)
        return found

    commits = new([*recovery.past_tips(log), *git.refs("refs/gitmem/").values()])
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


def move_damaged_object(log: LocalLog, oid: str) -> str | None:
    """Move a damaged object out of the object store.

    Returns:
        The new path of its file, or None if no file of gitmem's has it.

    Raises:
        OSError: The file cannot be moved.
        StoreError: Its pack cannot be replaced.
    """
    return repair.move_aside(log.repo.common, oid, os.path.join(log.repo.state, "aside", "objects"))


def delete_ref(log: LocalLog, name: str, oid: str) -> bool:
    """Delete a gitmem ref that the next sync creates again or that is not needed."""
    return repair.delete(log.repo.common, name, oid)


def repair_reflog(log: LocalLog) -> bool:
    """Remove incomplete rows from the log's reflog."""
    return repair.expire_broken(log.repo.common, ref.LOG_REF)
