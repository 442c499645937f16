"""Make git's files durable, and break stale ref locks."""

from __future__ import annotations

import os

from ..errors import StoreError

KEPT = "Earlier records are kept."
# What gitmem and its git write to; the last two are folders of files.
_WRITTEN = (
    *("gitmem", "gitmem/key", "objects", "objects/pack", "refs", "logs", "logs/refs"),
    *("refs/gitmem", "logs/refs/gitmem"),
)


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


def left_by_another(common: str, outcome: str = "Nothing was recorded.") -> StoreError | None:
    """Return the error for what another user, such as root in a container, left to itself in this user's git folder; None if there is nothing.

    Args:
        outcome: The effect on the data, as a sentence.
    """
    from ..text.shell_quote import command

    found, me = os.stat(common), os.geteuid()
    paths = [os.path.join(common, *name.split("/")) for name in _WRITTEN if found.st_uid == me]
    refs, logs = paths[-2:] or ("", "")
    paths += [os.path.join(at, name) for at, folders, _ in os.walk(refs) for name in folders]
    paths += [os.path.join(at, name) for at, folders, files in os.walk(logs) for name in folders + files]
    for path in paths:
        if os.path.islink(path) or not os.path.exists(path):
            continue  # chown would follow a link
        if (owner := os.stat(path).st_uid) == me or os.access(path, os.W_OK):
            continue
        fix = command("sudo", "chown", "-R", f"{me}:{found.st_gid}", path)
        return StoreError(
            f"{path} belongs to user {owner}{' (root)' if not owner else ''}, and you ({me}) may not write there. {outcome}",
            hint=f"A command that this user ran has made it, perhaps in a container. Give it back: {fix}",
            code="read-only",
            next=[fix],
        )
    return None


def failed(what: str, error: OSError, common: str) -> StoreError:
    """Return the error for a file of git's in a git folder that could not be read or written."""
    denied = common and isinstance(error, PermissionError)
    return (left_by_another(common, KEPT) if denied else None) or StoreError(
        f"{what}: {error.strerror or error}. Earlier records are kept.",
        hint="Check for a full disk, missing permissions or a read-only git folder.",
        code="store-files",
    )
