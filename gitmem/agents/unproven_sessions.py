"""Sessions that falsely claim to have been started in this clone."""

from __future__ import annotations

from . import heartbeats, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .presence import Presence

_UNPROVEN = (
    "SELECT session_id FROM session WHERE clone_id = ? AND ended IS NULL"
    " AND session_id NOT IN (SELECT name FROM own) ORDER BY session_id"
)


def list_unproven(store: Store) -> list[Presence]:
    """Return the open sessions of the last 30 days with this clone's id but without a valid MAC or a local file.

    A session of gitmem 0.1 has no MAC, but a file while it is open. Without a clone key nothing can be checked.
    """
    if store.keys.now().mac is None:
        return []
    oldest = store.now() - heartbeats.FORGOTTEN_MICROS
    rows = store.db().execute(_UNPROVEN, (store.log.clone_id(),)).fetchall()
    found = [presence.get(store, str(id)) for (id,) in rows if not heartbeats.is_here(store, str(id))]
    return [one for one in found if one is not None and one.record_at > oldest]


def warning(store: Store) -> str | None:
    """Return the roster's warning about such sessions, or None."""
    found = list_unproven(store)
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"FORGED: {found[0].session_id}{more} claims to have been started in this clone, which is not true. `gitmem doctor` "
        "lists forged records."
    )
