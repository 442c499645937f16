"""`gitmem view` and `gitmem stats`: the work of all agents at a glance."""

from __future__ import annotations

import os

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import OnlyAgent, Since, Wu


def view(
    at: Environment,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="File to write (default: in the repository's git folder)."
        ),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    since: Since = None,
    wu: Wu = None,
    agent: OnlyAgent = None,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve it on this machine until Ctrl-C, with what happens meanwhile."),
    ] = False,
    port: Annotated[
        str | None, typer.Option("--port", metavar="N", help="Port for --serve (default: a free one).")
    ] = None,
) -> None:
    """Write a page with the timeline of all agents, what is open, the memory and figures, for a browser."""
    from gitmem.page import view as pages

    from ..render import repository as render
    from ..values import parse_moment

    moment = parse_moment(since) if since is not None else None
    if serve or port is not None:
        _serve(at, out, port, serves=serve, opens=open, since=moment, wu=wu, agent=agent)
        return
    path = os.path.abspath(os.path.join(at.folder, out)) if out is not None else None
    found = pages.view(at.store(), path, since=moment, wu=wu, agent=agent)
    if open:
        from pathlib import Path

        found.opened = open_in_browser(Path(found.path).as_uri())
        if not found.opened:
            found.warnings.append("No browser was found: open the file with your own.")
    found.next = [] if found.opened else ["gitmem view --open"] if not open else []
    output.answer(at.json, found, render.view)


def _serve(
    at: Environment,
    out: str | None,
    port: str | None,
    *,
    serves: bool,
    opens: bool,
    since: int | None,
    wu: str | None,
    agent: str | None,
) -> None:
    """Serve the page, once it was collected: a filter with a mistake is reported at once."""
    from gitmem.errors import UsageError
    from gitmem.page.page_data import collect
    from gitmem.signals.many_threads import Selection

    from .. import page_serving

    if out is not None or not serves:
        wrong = "--out is for a file, and --serve writes none" if out is not None else "--port needs --serve"
        raise UsageError(f"{wrong}. Nothing was written.", next=["gitmem view --serve", "gitmem view"])
    Selection(at.store(), since=since, wu=wu, agent=agent)
    page_serving.run(
        at,
        lambda store: collect(store, since=since, wu=wu, agent=agent),
        port,
        open_in_browser if opens else None,
    )


def stats(at: Environment, since: Since = None, wu: Wu = None, agent: OnlyAgent = None) -> None:
    """Show signals a day, how long answers and agreements take, what is unread, and how tasks end."""
    from gitmem.history import figures

    from ..render import repository as render
    from ..values import parse_moment

    moment = parse_moment(since) if since is not None else None
    found = figures.stats(at.store(), since=moment, wu=wu, agent=agent)
    output.answer(at.json, found, render.stats)


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
