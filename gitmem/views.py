"""The views of the index that the domain packages define."""

from __future__ import annotations

from .agents import session_view
from .mailbox import mailbox_view
from .memory import node_view as memory
from .trust import sender_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .index.index_file import View
    from .trust.clone_key import CloneKeyReader

VIEWS = (mailbox_view.VIEW, session_view.VIEW, memory.VIEW, sender_view.VIEW)


def checked(keys: CloneKeyReader) -> tuple[View, ...]:
    """Return the views of an index whose lines are checked with this clone's key; same tables as `VIEWS`."""
    return (*VIEWS[:-1], sender_view.view(keys.now))
