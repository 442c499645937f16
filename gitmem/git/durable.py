"""Files of git's: made to last, and locks of the dead broken."""

from __future__ import annotations

import os

from ..errors import StoreError


def fsync_dir(path: str) -> None:
    """Make the names in a folder durable. A folder that is missing or can't be synced is left."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:  # some network file systems
        pass
    finally:
        os.close(handle)


def fsync_ref_dir(common: str, ref: str, *, created: bool) -> None:
    """Make a moved ref's name durable; a new ref's folder may itself be new."""
    tables = os.path.join(common, "reftable")
    if os.path.isdir(tables):
        fsync_dir(tables)
        return
    folder = os.path.dirname(os.path.join(common, ref))
    fsync_dir(folder)
    if created:
        fsync_dir(os.path.dirname(folder))


def break_stale_lock(common: str, ref: str, age_seconds: float) -> bool:
    """Remove the ref's `.lock` file if it was last written longer ago than that, or as far in the future.

    In a reftable all refs have one lock; git holds it as briefly as that of a file.

    A clock that was set back must not keep a lock of the dead for as long as it was ahead.
    """
    import time

    tables = os.path.join(common, "reftable", "tables.list")
    path = (tables if os.path.exists(tables) else os.path.join(common, ref)) + ".lock"
    try:
        if abs(time.time() - os.stat(path).st_mtime) <= age_seconds:
            return False
        os.unlink(path)
    except OSError:
        return False
    return True


def failed(what: str, error: OSError) -> StoreError:
    """The error for a file of git's that could not be read or written."""
    return StoreError(
        f"{what}: {error.strerror or error}; what was recorded before is untouched.",
        hint="Look for a full disk, missing permissions or a read-only git folder.",
        code="store-files",
    )
