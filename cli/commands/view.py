"""`gitmem view`."""

from __future__ import annotations

import os

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import Since, Wu


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
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Only what this agent did, or was asked for: a name, identity or session id.",
        ),
    ] = None,
) -> None:
    """Write a page with the timeline of all agents, what is open, the memory and figures, for a browser."""
    from gitmem.page import view as pages
    from gitmem.page.page_data import PageFilter

    from ..render import pages as render
    from ..values import parse_moment

    only = PageFilter(since=parse_moment(since) if since is not None else None, wu=wu, agent=agent)
    path = os.path.abspath(os.path.join(at.folder, out)) if out is not None else None
    found = pages.view(at.store(), path, only=only)
    if open:
        from pathlib import Path

        found.opened = open_in_browser(Path(found.path).as_uri())
        if not found.opened:
            found.warnings.append("No browser was found: open the file with your own.")
    found.next = [] if found.opened else ["gitmem view --open"] if not open else []
    output.answer(at.json, found, render.view)


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
