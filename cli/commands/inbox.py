"""`gitmem inbox`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import frequent
from ..options import From, Lane, Thread, Wu
from ..surroundings import Surroundings


def inbox(
    at: Surroundings,
    for_: Annotated[str | None, typer.Option("--for", metavar="READER", help="Whose inbox.")] = None,
    wu: Wu = None,
    lane: Lane = None,
    thread: Thread = None,
    intent: Annotated[
        list[str] | None, typer.Option("--intent", metavar="A,B", help="Only these intents.")
    ] = None,
    from_: From = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="1h|ISO", help="Only what is younger.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="What was read before, too.")] = False,
    no_mark: Annotated[bool, typer.Option("--no-mark", help="Leave it unread.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Only the number.")] = False,
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Signals at most; 50.")] = None,
    max_bytes: Annotated[
        str | None, typer.Option("--max-bytes", metavar="N", help="Bytes at most; 16384.")
    ] = None,
) -> int:
    """Show what you have not read yet, and mark it as delivered."""
    return frequent.inbox(
        at, for_=for_, wu=wu, lane=lane, thread=thread, intent=intent or (), from_=from_, since=since, all=all,
        no_mark=no_mark, count=count, limit=limit, max_bytes=max_bytes,
    )  # fmt: skip
