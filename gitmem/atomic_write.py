"""Replace small files atomically.

Content is written to a temporary file, which is renamed. Readers see the old or the new content, never a partial file.
"""

from __future__ import annotations

import os

from . import state_files
from .state_files import names_in as names_in

TEMPORARY = ".tmp-"


def replace(
    path: str, content: bytes, *, durable: bool = False, private: bool | str = False, keep: bool = False
) -> None:
    """Replace the content of a file atomically.

    Args:
        durable: Sync the file to disk; the caller syncs its folder. Without it the file may be empty or old after a
            power loss.
        private: Let only this user read and write the file, even in a repository that several users share;
            `state_files.OWN` also as root.
        keep: Leave a file that exists, also one that another process creates meanwhile if the file system has links.

    Raises:
        OSError: the file is unchanged, and the temporary file is removed.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f"{TEMPORARY}{name}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if private:
        remove_quietly(temporary)
        flags |= os.O_EXCL  # else another user who may write to the folder could have opened it before
    try:
        handle = state_files.open_file(temporary, flags, 0o600 if private else 0o666, private=private)
        try:
            while content:
                content = content[os.write(handle, content) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        (_rename_unless_taken if keep else os.replace)(temporary, path)
    except OSError:
        remove_quietly(temporary)
        raise


def try_replace(
    path: str, content: bytes, *, folders: bool = False, private: bool | str = False, keep: bool = False
) -> bool:
    """Replace a file that gitmem can do without, as `replace` does. Return whether it was replaced; never raise an error.

    Args:
        folders: Create its missing folders, too.
        private, keep: As for `replace`.
    """
    try:
        if folders:
            state_files.make_dirs(os.path.dirname(path))
        replace(path, content, private=private, keep=keep)
    except OSError:
        return False
    return True


def record_choice(state: str, path: str, content: bytes, what: str, *, private: bool | str = False) -> None:
    """Record a choice of the user in a file of the state folder.

    Args:
        what: What is recorded, for the error.
        private: As for `replace`.

    Raises:
        StoreError: `read-only`; nothing was changed.
    """
    try:
        state_files.make_dirs(os.path.dirname(path))
        replace(path, content, private=private)
    except OSError as error:
        from .errors import StoreError

        raise StoreError(
            f"Cannot record {what} in {state}: {error.strerror}. Nothing was changed.",
            hint="Correct its permissions, then run the command again.",
            code="read-only",
            next=["gitmem doctor"],
        ) from None


def _rename_unless_taken(temporary: str, path: str) -> None:
    """Rename a file, or remove it if another file has the name."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not os.path.lexists(path):
            os.replace(temporary, path)
            return
    os.unlink(temporary)


def remove_quietly(path: str) -> None:
    """Remove a file; ignore errors. Behind a link in place of a folder of ours nothing is removed."""
    try:
        state_files.refuse_link(os.path.dirname(path))
        os.unlink(path)
    except OSError:
        return


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
