"""Make git's files durable, and break stale ref locks."""

from __future__ import annotations

import os

from ..errors import StoreError


def fsync_dir(path: str) -> None:
    """Sync a folder to make the names in it durable. Ignore folders that are missing or cannot be synced."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:  # some network file systems
        pass
    finally:
        os.close(handle)


def fsync_ref_dir(common: str, ref: str, *, created: bool) -> None:
    """Make the file name of a moved ref durable; a new ref's folder may itself be new."""
    tables = os.path.join(common, "reftable")
    if os.path.isdir(tables):
        fsync_dir(tables)
        return
    folder = os.path.dirname(os.path.join(common, ref))
    fsync_dir(folder)
    if created:
        fsync_dir(os.path.dirname(folder))


def break_stale_lock(common: str, ref: str, age_seconds: float) -> bool:
    """Remove the ref's `.lock` file if its time differs from now by more than `age_seconds`.

    Times in the future count as well: if the clock was set back, a stale lock must not stay until the clock has caught
    up. In a reftable all refs share one lock, which git holds as briefly as that of a file.

    Returns:
        Whether the lock was removed.
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
    """Return the error for a file of git's that could not be read or written."""
    return StoreError(
        f"{what}: {error.strerror or error}. Earlier records are kept.",
        hint="Check for a full disk, missing permissions or a read-only git folder.",
        code="store-files",
    )
