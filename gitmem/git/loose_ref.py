"""A ref as a loose file: read, and swapped under git's own lock.

Dulwich's `set_if_equals` parses the whole of packed-refs first (240 ms for
50,000 refs), overwrites where the old value is None, logs only branches, and
leaves its lock behind where the disk is full.
"""

from __future__ import annotations

import os
import time

from .. import shared_mode
from ..place import read_small
from . import durable, queries
from .objects import zero
from .tip import loose_tip, packed_tip, tables


def tip_of(common: str, ref: str) -> str | None:
    """The commit that a ref names now, or None. Git is asked only about an odd file."""
    if tables(common) is not None:
        return queries.tip_of(common, ref)
    oid = loose_tip(common, ref) or packed_tip(common, ref)
    if oid is None and os.path.isfile(os.path.join(common, ref)):
        return queries.tip_of(common, ref)  # symbolic, or damaged
    return oid


def refs_below(common: str, prefix: str) -> dict[str, str] | None:
    """Every ref whose full name starts with `prefix` (which ends in `/`); None where its files don't plainly say it."""
    if tables(common) is not None:
        return None
    found: dict[str, str] = {}
    for folder, _, files in os.walk(os.path.join(common, prefix)):
        below = os.path.relpath(folder, common).replace(os.sep, "/")
        for name in files:
            if name.endswith(".lock"):
                continue
            oid = loose_tip(common, f"{below}/{name}")
            if oid is None:
                oid = _target(common, f"{below}/{name}")
            if oid is None:
                return None  # damaged, deleted just now, or odd
            found[f"{below}/{name}"] = oid
    found = {**_packed_below(common, prefix), **found}  # read last: git may be packing the loose ones
    if not found and not os.path.isdir(os.path.join(common, "refs")):
        return None
    return dict(sorted(found.items()))  # as git gives them: what is folded first must not hang on the disk


def _packed_below(common: str, prefix: str) -> dict[str, str]:
    data = read_small(os.path.join(common, "packed-refs"))
    start = b" " + os.fsencode(prefix)
    rows = [line.partition(b" ") for line in data.split(b"\n")] if start in data else []
    below = [(full, oid) for oid, _, full in rows if full.startswith(start[1:])]
    return {os.fsdecode(full): oid.decode("ascii", "replace") for full, oid in below}


def _target(common: str, ref: str) -> str | None:
    """What a symbolic ref leads to, in one step."""
    try:
        with open(os.path.join(common, ref), "rb") as file:
            word, _, name = os.fsdecode(file.read(1000)).rstrip("\n").partition(": ")
    except OSError:
        return None
    return loose_tip(common, name) or packed_tip(common, name) if word == "ref" else None


def swap(common: str, ref: str, old: str | None, new: str, why: str) -> bool:
    """Move a ref from `old` (None: it must not exist) to `new`, durably. False where the race was lost."""
    if tables(common) is not None:
        return queries.update_ref(common, ref, old, new, why)
    path = os.path.join(common, ref)
    lock = path + ".lock"
    try:
        durable.make_folder(os.path.dirname(path))
        handle = shared_mode.open_file(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except (FileExistsError, FileNotFoundError):  # git removes folders of refs that are empty
        return False
    except OSError as error:
        raise durable.failed(f"{ref} could not be locked", error) from error
    held = True
    try:
        try:
            if tip_of(common, ref) != old:
                return False
            os.write(handle, new.encode("ascii") + b"\n")  # so few bytes are written whole or not at all
            os.fsync(handle)
        finally:
            os.close(handle)
        logged = _log(common, ref, old or zero(new), new, why)
        try:
            os.replace(lock, path)
        except OSError:
            _unlog(common, ref, logged)
            raise
        held = False
    except OSError as error:
        raise durable.failed(f"{ref} could not be moved", error) from error
    finally:
        if held:
            os.unlink(lock)
    durable.fsync_ref_dir(common, ref, created=old is None)
    return True


def _log(common: str, ref: str, old: str, new: str, why: str) -> int:
    """Add to the ref's reflog; the caller holds the ref's lock. How many bytes it had."""
    path = os.path.join(common, "logs", ref)
    line = f"{old} {new} gitmem <gitmem@localhost> {int(time.time())} +0000\t{' '.join(why.split())}\n"
    durable.make_folder(os.path.dirname(path))
    mode = 0o666 & os.stat(os.path.dirname(path)).st_mode
    handle = shared_mode.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    try:
        size = os.fstat(handle).st_size
        os.write(handle, line.encode("utf-8", "replace"))
    finally:
        os.close(handle)
    return size


def _unlog(common: str, ref: str, size: int) -> None:
    """Take back what was added: a recovery would take it for a place that the ref has been."""
    try:
        os.truncate(os.path.join(common, "logs", ref), size)
    except OSError:
        return
