"""`gitmem view` and `top`: the work of all agents at a glance, as a page, as figures and on a screen."""

from __future__ import annotations

import os

from gitmem import local_files
from gitmem.errors import UsageError

from .. import a2a
from ..environment import Environment
from ..failure import needs_extra
from ..render import output
from ..render.terminal import is_everywhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from .options import Flag, OnlyAgent, Option, Since, Wu


def view(
    at: Environment,
    out: Annotated[
        str | None, Option("--out", "FILE", "File to write (default: in the repository's git folder).")
    ] = None,
    open: Annotated[bool, Flag("--open", "Open it in the browser.")] = False,
    since: Since = None,
    wu: Wu = None,
    agent: OnlyAgent = None,
    serve: Annotated[
        bool, Flag("--serve", "Serve it on this machine until Ctrl-C, with what happens meanwhile.")
    ] = False,
    stats: Annotated[
        bool,
        Flag("--stats", "Print the figures alone: signals a day, how long answers take, what is unread."),
    ] = False,
) -> None:
    """Write a page with the timeline of all agents, what is open, the memory and figures, for a browser."""
    from ..render import repository as render
    from ..values import parse_moment

    moment = parse_moment(since) if since is not None else None
    if stats:
        if serve or open or out is not None:
            raise UsageError(
                "--stats prints, and makes no page. Nothing was written.", next=["gitmem view --stats"]
            )
        from gitmem.history import figures

        at.answer(figures.stats(at.store(), since=moment, wu=wu, agent=agent), render.stats)
        return
    from gitmem.page import page_file as pages

    if serve:
        if out is not None:
            raise UsageError(
                "--out is for a file, and --serve writes none. Nothing was written.",
                next=["gitmem view --serve", "gitmem view"],
            )
        _serve(at, opens=open, since=moment, wu=wu, agent=agent)
        return
    path = os.path.abspath(os.path.join(at.folder, out)) if out is not None else None
    found = pages.view(at.store(), path, since=moment, wu=wu, agent=agent, who=at.who())
    if open:
        from pathlib import Path

        found.opened = open_in_browser(Path(found.path).as_uri())
        if not found.opened:
            found.warnings.append("No browser was found: open the file with your own.")
    found.next = [] if found.opened else ["gitmem view --open"] if not open else []
    at.answer(found, render.view)


def open_in_browser(url: str) -> bool:
    """Return whether a browser was started.

    One that runs in the terminal is started only if BROWSER names it: the page needs scripts.

    Args:
        url: A `file:` or `http:` address.
    """
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    in_terminal = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    if in_terminal and not os.environ.get("BROWSER"):
        return False
    try:
        return bool(browser.open(url))
    except (webbrowser.Error, OSError):
        return False


PACKAGES = ("textual", "rich")


def top(at: Environment) -> None:
    """Show a live screen of agents, threads, tasks and claims; read, reply, agree, reject and answer there. Only signals that were on the screen are marked as delivered."""
    if at.json:
        raise UsageError(
            "--json: gitmem top is a screen for people.",
            hint="`gitmem roster`, `gitmem inbox`, `gitmem task list` and `gitmem claim list` answer in JSON.",
            next=["gitmem roster --json", "gitmem inbox --json"],
        )
    term = os.environ.get("TERM") or "dumb"
    if not is_everywhere() or term in ("dumb", "unknown"):
        what = f"TERM is {term}" if is_everywhere() else "standard input, output and error must be one"
        raise UsageError(
            f"gitmem top needs a terminal that can move its cursor: {what}.",
            hint="`gitmem watch` shows signals as they arrive in any output.",
            code="no-terminal",
            next=["gitmem watch", "gitmem roster"],
        )
    with needs_extra(
        "top", PACKAGES, "'textual>=8'", "no-textual", "Textual is not installed; gitmem top needs it."
    ):
        from ..top import app
    store = at.store()
    at.caller()  # whoever cannot act is told so here
    store.db()  # a log that cannot be read is reported here; a long one shows its progress
    output.end_progress()
    store.progress = None
    with app.restoring_terminal():
        app.TopApp(at).run()


WHAT = "gitmem view --serve"
LISTEN = a2a.LOOPBACK[0]
ENTRY_FILE = "view-open.html"
_ENTRY = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">gitmem</a>'


def _serve(at: Environment, *, opens: bool, since: int | None, wu: str | None, agent: str | None) -> None:
    """Serve the page until a signal ends it, once it was collected: a filter with a mistake is reported at once.

    Raises:
        UsageError: The extra is not installed.
    """
    from gitmem.page.page_data import collect
    from gitmem.signals.thread_list import Selection

    Selection(at.store(), since=since, wu=wu, agent=agent)
    with a2a.needs_sdk(WHAT):
        from gitmem.calls import http_guard
        from gitmem.page.live_page import LivePage

    bound = a2a.bind(LISTEN, 0)
    entry_file = os.path.join(at.store().repo.state, ENTRY_FILE)
    log = a2a.served_log(at)
    page = LivePage(log, lambda: collect(log.store, since=since, wu=wu, agent=agent, who=at.who()), at.who())
    number = bound.getsockname()[1]
    url = f"http://{LISTEN}:{number}{page.entry}"

    def started() -> None:
        if at.json:
            output.write_json({"url": url, "next": []})
        else:
            output.write_lines([f"{url}", "note: this link lets a browser in; press Ctrl-C to end"])
        if opens and not _open(entry_file, url):
            output.tell("no browser was found: open the link with your own")

    try:  # an open page always waits for an event: who presses Ctrl-C should not wait for that
        app = page.application(a2a.hosts(LISTEN, number, None))
        http_guard.server_of(app, started, end_seconds=0).run(sockets=[bound])
    finally:
        bound.close()
        local_files.remove_quietly(entry_file)


def _open(path: str, url: str) -> bool:
    """Open an address by a file that only this user reads: other users see the arguments of processes."""
    from pathlib import Path

    written = local_files.try_replace(
        path, _ENTRY.format(url=url).encode("ascii"), folders=True, private=True
    )
    return written and open_in_browser(Path(path).as_uri())
