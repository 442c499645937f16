"""Options that commands share with the tools for models or with the library, each declared once.

Only typer's declarations and the MCP server import this module: commands name it in annotations. Defaults and allowed
values are those of the library, which knows no caller.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (nothing that must start fast imports this module)
from typing import Any

from gitmem.memory import context, listing, profile, search
from gitmem.memory.decay import DAY_MICROS, HALF_LIFE_MICROS
from gitmem.memory.node_fields import ALIASES, DEFAULT_TYPE, LIFECYCLES, PRIORITIES, TYPES
from gitmem.signals import INTENTS, inbox


class Option:
    """What people and models read of an option, and the values that it takes.

    Attributes:
        help: The description.
        default: The value of an option that is not given; None if other things decide it.
        values: The allowed texts; empty if others are allowed.
    """

    __slots__ = ("default", "help", "values")

    def __init__(self, help: str, *, default: Any = None, values: Sequence[str] = ()) -> None:
        self.help = help
        self.default = default
        self.values = tuple(values)


def _listed(values: Sequence[str], word: str = "or") -> str:
    return f"{', '.join(values[:-1])} {word} {values[-1]}"


WU = Option("The work unit, such as WU-123.")
LANE = Option("The lane.")
TO = Option("Recipients: names, identities, session ids.")
ANY_ID = Option("An id, or a unique prefix of it.")
THREAD = Option("A thread, or a signal of it.")
INTENT = Option(f"{_listed(INTENTS)}.", default=INTENTS[0], values=INTENTS)
REPLY_TO = Option("The signal that it answers.")
REQUIRES_ACK = Option("Ask for AGREE or REJECT.")
IDEMPOTENCY_KEY = Option("The same key and content again is the same signal.")
ALREADY_READ = Option("What was read before, too.")
INBOX_LIMIT = Option(f"Signals at most; {inbox.LIMIT}.", default=inbox.LIMIT)
INBOX_BYTES = Option(f"Bytes at most; {inbox.MAX_BYTES}.", default=inbox.MAX_BYTES)
STRICT = Option("Each AGREE must come after every proposal of the others.")
NAME = Option("A display name of your choice.")

NODE_WU = Option("The work unit, such as WU-123; your session's without it.")
ONLY_WU = Option("Only nodes of this work unit; or unlinked.")
NODE_TYPE = Option(
    f"{_listed(TYPES)}; {_listed(ALIASES, 'and')} are discoveries with that tag.", default=DEFAULT_TYPE
)
STORED_TYPE = Option(f"{_listed(TYPES)}.", values=TYPES)
LIFECYCLE = Option(f"{_listed(LIFECYCLES)}.", values=LIFECYCLES)
NEW_LIFECYCLE = Option(
    f"{_listed(LIFECYCLES)}; without it by type: note and checkpoint session, summary project, all others wu.",
    values=LIFECYCLES,
)
PRIORITY = Option(f"{PRIORITIES[0]} (most) to {PRIORITIES[-1]}.", values=PRIORITIES)
PATHS = Option("A file or folder that it is about.")
SEARCH_LIMIT = Option(f"Nodes at most; {search.LIMIT}.", default=search.LIMIT)
LIST_LIMIT = Option(f"Nodes at most; {listing.LIMIT}.", default=listing.LIMIT)
PROFILE_LIMIT = Option(f"Nodes at most; {profile.LIMIT}.", default=profile.LIMIT)
MAX_SIZE = Option(f"Bytes of UTF-8 at most, never exceeded; {context.MAX_SIZE}.", default=context.MAX_SIZE)
HALF_LIFE = Option(
    f"After so long unchanged a node counts about a third; {HALF_LIFE_MICROS // DAY_MICROS}d.",
    default=HALF_LIFE_MICROS,
)
