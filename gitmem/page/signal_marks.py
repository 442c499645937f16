"""Signals of the page, with their receipts."""

from __future__ import annotations

from .. import records
from .texts import millis_of, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..records.record_types import SignalRecord
    from .contract import SignalMark
    from .lanes import Lanes
    from .texts import TextBudget

SIGNALS_MAX = 20_000
_NEWEST = "SELECT min(l.body) FROM signal s JOIN line l ON l.id = s.line GROUP BY s.signal_id ORDER BY min(l.at) DESC LIMIT ?"


def marks(db: sqlite3.Connection, lanes: Lanes, texts: TextBudget) -> tuple[list[SignalMark], int]:
    """Return the newest signals, the oldest of them first, and how many older ones there are."""
    (total,) = db.execute("SELECT count(DISTINCT signal_id) FROM signal").fetchone()
    found = []
    for (body,) in db.execute(_NEWEST, (SIGNALS_MAX,)).fetchall():
        record = records.read_kind("signal", body.encode())
        if record is not None:
            found.append(_mark(record, lanes, texts))
    return found[::-1], max(0, total - len(found))


def _mark(record: SignalRecord, lanes: Lanes, texts: TextBudget) -> SignalMark:
    at = millis_of(record["at"])
    text, cut = texts.cut(record["message"])
    mark: SignalMark = {
        "id": record["signal_id"],
        "at": at,
        "from": lanes.of(record["sender_identity"], at, record.get("sender_name")),
        "to": lanes.all(record["recipients"]),
        "broadcast": not record["recipients"],
        "intent": record["intent"],
        "text": text,
        "thread": record.get("thread_id") or record["signal_id"],
        "ack": bool(record.get("requires_ack")),
        "receipts": [],
    }
    if cut:
        mark["cut"] = cut
    put(mark, "reply", record.get("reply_to"))
    put(mark, "wu", record.get("wu_id"))
    put(mark, "task", record.get("task_id"))
    return mark
