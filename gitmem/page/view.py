"""Write the page into a file."""

from __future__ import annotations

import os

from .. import atomic_write, shared_mode
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome
from ..text.shell_quote import command
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

    __slots__ = ("path", "bytes", "counts", "omitted", "opened", "warnings", "next")

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
        UsageError: `not-writable`: the file can't be written; `unknown-agent`.
    """
    data = page_data.collect(store, since=since, wu=wu, agent=agent)
    content = Assets().page(data)
    path = out if out is not None else os.path.join(store.repo.state, FILE)
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "it is a folder")
        if out is None:
            shared_mode.make_dirs(store.repo.state)
        atomic_write.replace(path, content, private=True)
    except OSError as error:
        raise UsageError(
            f"Cannot write {sanitize(path)} ({error.strerror}). Nothing was written.",
            hint="Name a file in a folder that you may write to with --out.",
            code="not-writable",
            next=[command("gitmem", "view", "--out", "FILE.html")],
        ) from error
    return View(path, len(content), data)
