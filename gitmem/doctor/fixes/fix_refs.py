"""Repair refs: move damaged files aside, remove stale locks, rename refs that conflict with gitmem's."""

from __future__ import annotations

import os
import time

from ...log import damaged_objects
from ...log.ref import STALE_LOCK_SECONDS
from ...sync import rebase
from ...sync import repair_log as logs
from .. import put_aside
from ..checks import clone_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import FixResult

CODES = ("damaged-ref", "ref-in-the-way", "stale-lock")


def fix(store: Store, done: FixResult) -> None:
    """Repair ref files and locks; run it first, because other steps read and move refs."""
    with rebase.take_lock(store.log) as lock:
        if not lock.is_held:
            done.fail("", "Another process writes all the time; run it again.")
            return
        _locks(store, done)
        for name in damaged_objects.damaged_refs(store.log):
            path = os.path.join(store.place.common, *name.split("/"))
            done.say("damaged-ref", name, f"Its file is {put_aside.put_aside(store, path)} now.")
        for name, oid in damaged_objects.blocking_refs(store.log).items():
            to = damaged_objects.rename_blocking_ref(store.log, name, oid)
            if to is not None:
                done.say(
                    "ref-in-the-way", name, f"It is {to} now." if to else "It was empty, and was removed."
                )


def _locks(store: Store, done: FixResult) -> None:
    for path, ours in clone_files.locks(store):
        # Check again: a lock that was recreated since belongs to a live process.
        if ours and time.time() - os.stat(path).st_mtime > STALE_LOCK_SECONDS:
            os.unlink(path)
            done.say("stale-lock", path, "It was removed.")


def put_away_damaged(store: Store, done: FixResult) -> None:
    """Move damaged object files aside, before repairs: a pack may have them whole, and a fetch can restore them."""
    for oid in damaged_objects.damaged_objects(store.log):
        where = damaged_objects.move_damaged_object(store.log, oid)
        if where is not None:
            done.say("missing-object", oid, f"Its damaged file is {where} now.")
    store.git.close()  # an open git process has read the old objects


def forget_damaged(store: Store, done: FixResult) -> None:
    """Delete unreadable copies of remote refs, after the log is whole: they would only obstruct a sync."""
    for name in logs.forget_damaged(store.log, None):
        done.say("damaged-copy", name, "It was forgotten; a sync brings it anew.")
