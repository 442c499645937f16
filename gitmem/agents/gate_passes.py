"""The signals that a caller passed at the gate, by its audit records."""

from __future__ import annotations

from .. import records
from ..trust import sender_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .caller import Caller


def passed_signals(store: Store, caller: Caller, wu: str | None) -> set[str]:
    """Return the signals on a work unit that the caller passed with a reason.

    For a session of this clone, only audits that were written here count.
    """
    found: set[str] = set()
    db = store.db()
    mac = store.keys.now().mac if any(sender_tables.is_own(db, name) for name in caller.ids) else None
    for (body,) in db.execute("SELECT body FROM line WHERE kind = 'audit'"):
        record = records.read_kind("audit", body.encode())
        if record is None:
            continue
        if mac is not None and not mac.is_valid(body.encode()):
            continue
        if record["reader_identity"] in caller.ids and record.get("wu_id") == wu:
            found.update(record.get("signal_ids") or ())
    return found
