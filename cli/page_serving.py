"""`gitmem view --serve`: the page on this machine until Ctrl-C."""

from __future__ import annotations

import os

from gitmem import atomic_write

from . import gateway
from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmem.page.contract import PageData
    from gitmem.store import Store

    from .environment import Environment

WHAT = "gitmem view --serve"
LISTEN = gateway.LOOPBACK[0]
ENTRY_FILE = "view-open.html"
_ENTRY = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">gitmem</a>'


def run(
    at: Environment,
    collect: Callable[[Store], PageData],
    port: str | None,
    show: Callable[[str], bool] | None,
) -> None:
    """Serve until a signal ends it.

    Args:
        at: The environment.
        collect: Collects the data of the page.
        port: The port as typed; None for a free one.
        show: Opens an address in a browser; None to open none.

    Raises:
        UsageError: The port is invalid or in use, or the extra is not installed.
    """
    with gateway.needs_sdk(WHAT):
        from gitmem.a2a import server
        from gitmem.page_server.live_page import LivePage

    bound = gateway.bind(LISTEN, gateway.port_of(port) if port is not None else 0)
    entry_file = os.path.join(at.store().repo.state, ENTRY_FILE)
    log = gateway.log(at, push=False, allow_private=False)
    page = LivePage(log, lambda: collect(log.store))
    number = bound.getsockname()[1]
    url = f"http://{LISTEN}:{number}{page.entry}"

    def started() -> None:
        if at.json:
            output.write_json({"url": url, "next": []})
        else:
            output.write_lines([f"{url}", "note: this link lets a browser in; press Ctrl-C to end"])
        if show is not None and not _open(entry_file, url, show):
            gateway.note("no browser was found: open the link with your own")

    try:  # an open page always waits for an event: who presses Ctrl-C should not wait for that
        app = page.application(gateway.hosts(LISTEN, number, None))
        server.server_of(app, started, end_seconds=0).run(sockets=[bound])
    finally:
        bound.close()
        atomic_write.remove_quietly(entry_file)


def _open(path: str, url: str, show: Callable[[str], bool]) -> bool:
    """Open an address by a file that only this user reads: other users see the arguments of processes."""
    from pathlib import Path

    written = atomic_write.try_replace(
        path, _ENTRY.format(url=url).encode("ascii"), folders=True, private=True
    )
    return written and show(Path(path).as_uri())
