"""A ref as a loose file: read, and swapped under git's own lock.

Dulwich's `set_if_equals` parses the whole of packed-refs first (240 ms for
50,000 refs), overwrites where the old value is None, logs only branches, and
leaves its lock behind where the disk is full.
"""

from __future__ import annotations

import os
import time

from . import durable, queries
from .objects import ZERO
from .tip import loose_tip, packed_tip


def tip_of(common: str, ref: str) -> str | None:
    """The commit that a ref names now, or None. Git is asked only about an odd file."""
    oid = loose_tip(common, ref) or packed_tip(common, ref)
    if oid is None and os.path.isfile(os.path.join(common, ref)):
        return queries.tip_of(common, ref)  # symbolic, or damaged
    return oid


def swap(common: str, ref: str, old: str | None, new: str, why: str) -> bool:
    """Move a ref from `old` (None: it must not exist) to `new`, durably. False where the race was lost."""
    path = os.path.join(common, ref)
    lock = path + ".lock"
    try:
        durable.make_folder(os.path.dirname(path))
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except FileExistsError:
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
        _log(common, ref, old or ZERO, new, why)
        os.replace(lock, path)
        held = False
    except OSError as error:
        raise durable.failed(f"{ref} could not be moved", error) from error
    finally:
        if held:
            os.unlink(lock)
    durable.fsync_ref_dir(common, ref, created=old is None)
    return True


def _log(common: str, ref: str, old: str, new: str, why: str) -> None:
    """Add to the ref's reflog; the caller holds the ref's lock."""
    path = os.path.join(common, "logs", ref)
    line = f"{old} {new} gitmem <gitmem@localhost> {int(time.time())} +0000\t{' '.join(why.split())}\n"
    durable.make_folder(os.path.dirname(path))
    mode = 0o666 & os.stat(os.path.dirname(path)).st_mode
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    try:
        os.write(handle, line.encode("utf-8", "replace"))
    finally:
        os.close(handle)
