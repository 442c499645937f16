"""Repair operations beyond the port: reflogs, damaged objects, and damaged or conflicting refs."""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import local_files
from ..repo import read_small
from . import plumbing, processes
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class RefMove(NamedTuple):
    """A reflog entry: from `old` (None: the ref was created) to `new`, with the reason `why`."""

    old: str | None
    new: str
    why: str


def reflog(common: str, ref: str) -> list[RefMove]:
    """Return a ref's reflog, oldest first, without incomplete entries. A deleted ref has none."""
    if os.path.isdir(os.path.join(common, "reftable")):
        return _asked(common, ref)
    rows = read_small(os.path.join(common, "logs", ref)).decode("utf-8", "replace").split("\n")
    found = []
    for row in rows:
        head, _, why = row.partition("\t")
        old, new = [*head.split(" ")[:2], "", ""][:2]
        if is_oid(old) and is_oid(new) and new.strip("0"):
            found.append(RefMove(old if old.strip("0") else None, new, why))
    return found


def _asked(common: str, ref: str) -> list[RefMove]:
    args = ["log", "--walk-reflogs", "--format=%H%x09%gs", "--end-of-options", ref, "--"]
    done = processes.run(common, args, check=False)
    found: list[RefMove] = []
    for row in reversed(done.out.decode("utf-8", "replace").splitlines() if done.code == 0 else []):
        new, _, why = row.partition("\t")
        found.append(RefMove(found[-1].new if found else None, new, why))
    return found


def expire_broken(common: str, ref: str) -> bool:
    """Remove reflog entries whose commits lack objects: git's gc fails at them. Return whether git succeeded."""
    args = ["reflog", "expire", "--stale-fix", "--expire=never", "--expire-unreachable=never", ref]
    done = processes.run(common, args, check=False)
    local_files.give_back(common)
    return done.code == 0


def damaged_refs(common: str, prefix: str) -> Iterator[str]:
    """Yield the names of refs below `prefix` (without a trailing slash) whose loose files are invalid."""
    for path in _files(os.path.join(common, prefix)):
        if path.endswith(".lock"):
            continue
        try:
            with open(path, "rb") as file:
                text = file.read(1000).decode("ascii", "replace")
        except OSError:
            continue
        if not is_oid(text.rstrip("\r\n")) and not text.startswith("ref: "):
            yield os.path.relpath(path, common).replace(os.sep, "/")


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            yield os.path.join(folder, name)


def delete(common: str, ref: str, oid: str) -> bool:
    """Delete a ref that still has the given id. Return False if it has moved or is locked."""
    done = processes.run(common, [*plumbing.DURABLE, "update-ref", "--no-deref", "-d", ref, oid], check=False)
    local_files.give_back(common)
    return done.code == 0


def rename(common: str, ref: str, oid: str, to: str) -> bool:
    """Rename a conflicting ref. Return False on failure; the ref then has one or both names."""
    made = plumbing.update_ref(common, to, None, oid, "out of the way") or plumbing.tip_of(common, to) == oid
    return made and delete(common, ref, oid)
