"""`gitmem top`."""

from __future__ import annotations

import os

from gitmem.errors import UsageError

from ..environment import Environment
from ..missing_extra import needs_extra
from ..render import output
from ..render.terminal import is_everywhere

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
