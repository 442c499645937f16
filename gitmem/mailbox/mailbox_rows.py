"""Conversion of signals and receipts to mailbox rows, in any order of arrival."""

from __future__ import annotations

from ..digests import hash_function_for
from ..log.lines import content_without_time
from ..records.ids import unit_key
from . import broadcasts, receipts
from .content import content_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..index.rows import NewLines, Rows
    from ..records.record_types import SignalRecord

_NEW = (
    # An empty text is bound four times as fast as None.
    "INSERT INTO signal VALUES (?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, ?)"
)
_UNREAD = (
    "INSERT OR IGNORE INTO mail SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM receipt r"
    f" WHERE r.signal_id = ?2 AND r.reader = ?1 AND {receipts.is_for('?4')})"
)
# A line with the content of another line, read before it arrived.
_SAME = (
    # A content has one workspace, which precedes it in the key.
    "DELETE FROM mail WHERE reader = ?1 AND signal_id = ?2 AND workspace = ?3 AND content = ?4 AND EXISTS (SELECT 1 FROM receipt r"
    f" WHERE r.signal_id = ?2 AND r.reader = ?1 AND {receipts.is_for('?4')})"
)
_WANTS = ("PROPOSE", "COUNTER")  # these intents ask for a decision


def add(db: sqlite3.Connection, rows: Rows) -> set[str]:
    """Add signals, receipts and the first lines of readers, in any order of arrival.

    Returns:
        The readers that may have read more broadcasts now.
    """
    signals = rows.of("signal")
    hashed = hash_function_for(len(signals))
    digests = [hashed(content_without_time(line)).digest() for line in signals.lines]
    contents = digests
    if any(signals.column("idempotency_key")):
        contents = [content_of(record, of) for record, of in zip(signals.records, digests, strict=True)]
    _add_signals(db, signals, digests, contents)
    behind = broadcasts.add_readers(db, rows)
    given = receipts.of(rows)
    receipts.add(db, given)
    _add_mail(db, signals, digests, contents, {receipt[:3] for receipt in given})
    behind.update(reader for _, reader, *_ in given)
    return behind


def _add_signals(
    db: sqlite3.Connection, signals: NewLines, digests: Sequence[bytes], contents: Sequence[bytes]
) -> None:
    ids = signals.column("signal_id")
    empty = ("sender_session", "interrupt_class", "wu_id", "lane")
    sessions, interrupts, work_units, lanes = (
        [each or "" for each in signals.column(name)] for name in empty
    )
    values = zip(
        signals.ids,
        ids,
        [thread or id for thread, id in zip(signals.column("thread_id"), ids, strict=True)],
        signals.column("sender_identity"),
        sessions,
        [intent or "INFO" for intent in signals.column("intent")],
        interrupts,
        map(unit_key, work_units),
        lanes,
        [0 if to else 1 for to in signals.column("recipients")],
        map(bytearray, digests),
        map(bytearray, contents),
        strict=True,
    )
    db.executemany(_NEW, values)


def _add_mail(
    db: sqlite3.Connection,
    signals: NewLines,
    digests: Sequence[bytes],
    contents: Sequence[bytes],
    read: Collection[tuple[str, str, bytes]],
) -> None:
    """Add unread rows for the recipients of signals, or broadcasts for everybody.

    Args:
        read: Signal, reader and digest of what is known to be read.
    """
    mail, keyed, asked, to_all = [], [], set(), []
    for row, digest, content in zip(signals, digests, contents, strict=True):
        record: SignalRecord = row.record
        id, recipients = record["signal_id"], record["recipients"]
        if not recipients:
            to_all.append((row, content))
            continue
        own = (record["sender_identity"], record.get("sender_session"))
        workspace = record.get("workspace_id") or ""
        asks = record.get("requires_ack") or record["intent"] in _WANTS
        if asks and not all(to in own for to in recipients):
            asked.add((own[0], id, workspace, record.get("task_id") or ""))
        for to in recipients:
            if to in own:
                continue
            if asks:
                asked.add((to, id, workspace, record.get("task_id") or ""))
            if content is not digest:
                keyed.append((to, id, workspace, content))
            if (id, to, digest) not in read:
                mail.append((to, id, workspace, bytearray(content)))
    db.executemany(_UNREAD, mail)
    db.executemany(_SAME, keyed)
    db.executemany("INSERT OR IGNORE INTO asked VALUES (?, ?, ?, ?)", sorted(asked))
    broadcasts.add(db, to_all)
