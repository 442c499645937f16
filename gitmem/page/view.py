"""Write the page into a file."""

from __future__ import annotations

import errno
import os
import stat

from .. import atomic_write, state_files
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome
from . import page_data
from .page_file import Assets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .contract import PageData

FILE = "view.html"


class View(Outcome):
    """A page that was written.

    Attributes:
        path: The file.
        bytes: Its size.
        counts: How many entries of each kind it has.
        omitted: How many the limits left out.
        opened: Whether a browser was started; None if nobody asked for one.
        warnings: Sentences on what the page lacks.
    """

    def __init__(self, path: str, size: int, data: PageData) -> None:
        self.path = path
        self.bytes = size
        self.counts = {
            "agents": len(data["agents"]),
            "sessions": len(data["sessions"]),
            "signals": len(data["signals"]),
            "threads": len(data["threads"]),
            "tasks": len(data["tasks"]),
            "claims": len(data["claims"]),
            "commits": len(data["commits"]),
            "nodes": len(data["nodes"]),
        }
        self.omitted = data["omitted"]
        self.opened: bool | None = None
        self.warnings = list(data["notes"])
        self.next: list[str] = []


def view(
    store: Store,
    out: str | None = None,
    *,
    since: int | None = None,
    wu: str | None = None,
    agent: str | None = None,
) -> View:
    """Write the page, for this user alone to read: it has everybody's messages.

    Args:
        store: The log that it is about.
        out: The file; by default one in the clone's folder of gitmem, which the next page replaces.
        since: As for `signals.many_threads.Selection`; so `wu` and `agent`.

    Raises:
        UsageError: `not-writable`: the file can't be written, or the name is that of something else than a file; `unknown-agent`.
    """
    path = out if out is not None else os.path.join(store.repo.state, FILE)
    try:
        _refuse_others(path)
    except OSError as error:
        raise _not_writable(path, error) from error
    data = page_data.collect(store, since=since, wu=wu, agent=agent)
    content = Assets().page(data)
    try:
        if out is None:
            state_files.make_dirs(store.repo.state)
        atomic_write.replace(path, content, private=True)
    except OSError as error:
        raise _not_writable(path, error) from error
    return View(path, len(content), data)


def _refuse_others(path: str) -> None:
    """Refuse a name that is not free and not that of a file, before anything is collected.

    Replacing it would remove a device or a link: as root `--out /dev/null` would make a file of it for the whole machine.

    Raises:
        OSError: The name is that of a folder, a link, a pipe, a socket or a device.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = (
            "a folder"
            if os.path.isdir(path)
            else "a symbolic link"
            if stat.S_ISLNK(mode)
            else "not a regular file"
        )
        raise OSError(errno.EEXIST, f"it is {kind}")


def _not_writable(path: str, error: OSError) -> UsageError:
    return UsageError(
        f"Cannot write {sanitize(path)} ({error.strerror}). Nothing was written.",
        hint="Name a file in a folder that you may write to with --out.",
        code="not-writable",
    )
