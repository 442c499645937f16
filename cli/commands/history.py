"""`gitmem thread`, `gitmem show` and `gitmem log`."""

from __future__ import annotations

from ..render import mail, out
from ..surroundings import Surroundings
from ..values import number
from .inbox import note_stranger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AnyId, From, Thread, Wu

ENTRIES = 20


def thread(at: Surroundings, id: AnyId) -> None:
    """Show a conversation, and where each recipient stands. Marks nothing."""
    from gitmem.operations import threads

    at.store().asks_once = True
    out.answer(at.json, threads.thread(at.store(), id, at.caller_if_any()), mail.thread)


def show(at: Surroundings, id: AnyId) -> None:
    """Show one record whole, and the commit that it is in. Marks nothing."""
    from gitmem.operations import history

    out.answer(at.json, history.show(at.store(), id), mail.one)


def log(
    at: Surroundings,
    n: Annotated[str | None, typer.Option("-n", metavar="N", help="Entries at most; 20.")] = None,
    wu: Wu = None,
    thread: Thread = None,
    from_: From = None,
    receipts: Annotated[bool, typer.Option("--receipts", help="Who read what, too.")] = False,
) -> None:
    """The story so far, newest last."""
    from gitmem.operations import committing, history

    most = number("-n", n, ENTRIES)
    committing.commit_first(at.store())  # so that git tells the same story
    found = history.log(at.store(), n=most, wu=wu, thread=thread, from_=from_, receipts=receipts)
    note_stranger(at, from_)
    out.answer(at.json, found, mail.story)
