"""The views that the index keeps for these operations."""

from __future__ import annotations

from ..agents import known_senders
from . import mail, tenure
from .memory import view as memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.clone_key import Keys
    from ..index.schema import View

VIEWS = (mail.VIEW, tenure.VIEW, memory.VIEW, known_senders.VIEW)


def checked(keys: Keys) -> tuple[View, ...]:
    """Return the views of an index that this clone's key checks the lines of; in shape they are `VIEWS`."""
    return (*VIEWS[:-1], known_senders.view(keys.now))
