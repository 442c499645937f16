"""Signals that an importer brought for addresses of another tool, such as `agent-1`.

No session here has such an address. These signals are history: `lumenflow:agent-1` names their inbox, which everybody
may read and nothing marks as read (decision 108). The names of sessions never contain a colon, and identities have
three parts, so the origin before the address makes it another name than theirs.
"""

from __future__ import annotations

from ..text.name_matching import is_identity
from ..text.shell_quote import command
from ..trust.sender_tables import IMPORTED_ORIGIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

PREFIX = f"{IMPORTED_ORIGIN}:"
_ALL = (
    "SELECT DISTINCT s.signal_id FROM signal s JOIN line l ON l.id = s.line WHERE NOT s.broadcast"
    " AND json_extract(l.body, '$.origin') = :origin AND EXISTS"
    " (SELECT 1 FROM json_each(json_extract(l.body, '$.recipients')) j WHERE j.value = :address)"
)
_UNREAD = (
    "SELECT DISTINCT m.signal_id FROM mail m JOIN signal s ON s.signal_id = m.signal_id JOIN line l ON l.id = s.line"
    " WHERE m.reader = :address AND json_extract(l.body, '$.origin') = :origin"
)


def address_in(text: str) -> str | None:
    """Return the imported address that a text names, or None."""
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) and not is_identity(text) else None


def signal_ids(db: sqlite3.Connection, address: str, *, all: bool = False) -> set[str]:
    """Return the ids of the imported signals that were sent to an address.

    Args:
        all: Include those with a receipt of that address.
    """
    values = {"address": address, "origin": IMPORTED_ORIGIN}
    found = db.execute(_UNREAD, values).fetchall()
    if all:
        found += db.execute(_ALL, values).fetchall()
    return {str(signal_id) for (signal_id,) in found}


def inbox_command(address: str) -> str:
    """Return the command that shows the imported signals to an address."""
    return command("gitmem", "inbox", "--for", PREFIX + address)
