"""`gitmem thread` and `gitmem show`."""

from __future__ import annotations

from ..render import mail, out
from ..surroundings import Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import AnyId


def thread(at: Surroundings, id: AnyId) -> None:
    """Show a conversation, and where each recipient stands. Marks nothing."""
    from gitmem.operations import threads

    at.store().asks_once = True
    out.answer(at.json, threads.thread(at.store(), id, at.caller_if_any()), mail.thread)


def show(at: Surroundings, id: AnyId) -> None:
    """Show one record whole, and the commit that it is in. Marks nothing."""
    from gitmem.operations import history

    out.answer(at.json, history.show(at.store(), id), mail.one)
