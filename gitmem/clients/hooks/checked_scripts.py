"""Checked copies of a project's hook scripts: `<state>/hook-scripts/<sha256>.sh`.

A client's command line (see `clients`) makes the copy under the umask of the client's user. This module gives a copy
the mode that the repository asks for, and removes it when no settings name it.
"""

from __future__ import annotations

import os
import re
import stat

from ... import atomic_write, state_files
from ...repo import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clients import ClientFolders

FOLDER = "hook-scripts"
_NAMED = re.compile(rb"/hook-scripts/([0-9a-f]{64})\.sh")
_OTHERS_MAY_WRITE = 0o022


def share(state: str) -> None:
    """Let the users of a shared repository (`core.sharedRepository`) read the copies, but not write to them."""
    folder = os.path.join(state, FOLDER)
    try:
        state_files.adjust(folder)
        state_files.refuse_link(folder)
        for entry in os.scandir(folder):
            state_files.adjust(entry.path)
            mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
            if mode & _OTHERS_MAY_WRITE and entry.is_file(follow_symlinks=False):
                os.chmod(entry.path, mode & ~_OTHERS_MAY_WRITE)
    except OSError:
        return  # no copies, or no permission: then the script is checked at each run


def unused(folders: ClientFolders) -> list[str]:
    """Return the copies that no client's settings in a worktree of this clone name."""
    if folders.state is None:
        return []
    folder = os.path.join(folders.state, FOLDER)
    names = sorted(atomic_write.names_in(folder))
    named = {digest for top in _worktrees(folders) for digest in _named_in(top)} if names else set()
    return [os.path.join(folder, name) for name in names if name.partition(".")[0] not in named]


def remove_unused(folders: ClientFolders) -> list[str]:
    """Remove the unused copies, and the folder once it is empty; return the removed paths."""
    removed = []
    for path in unused(folders):
        try:
            state_files.refuse_link(os.path.dirname(path))
            os.unlink(path)
            removed.append(path)
        except OSError:
            continue
    if removed:
        try:
            os.rmdir(os.path.dirname(removed[0]))
        except OSError:
            pass  # other copies are still in use
    return removed


def _worktrees(folders: ClientFolders) -> list[str]:
    """Return the tops of this clone's known worktrees."""
    found = [each for each in (folders.worktree, folders.main) if each is not None]
    linked = os.path.join(os.path.dirname(folders.state or ""), "worktrees")
    try:
        for name in os.listdir(linked):
            git_file = read_small(os.path.join(linked, name, "gitdir")).rstrip(b"\n")
            found.append(os.path.dirname(os.fsdecode(git_file)))
    except OSError:
        pass  # no linked worktrees
    return list(dict.fromkeys(each for each in found if each))


def _named_in(top: str) -> set[str]:
    """Return the digests in the settings of clients in a worktree."""
    from .clients import CLIENTS  # not for the hook that runs `share`

    found: set[str] = set()
    for client in CLIENTS.values():
        if client.settings:
            path = os.path.join(top, *client.base.split("/"), *client.settings.split("/"))
            found.update(each.decode() for each in _NAMED.findall(read_small(path)))
    return found
