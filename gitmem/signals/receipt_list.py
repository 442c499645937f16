"""The receipts of signals in the contract's shape: who has received a signal, when, and what became of it."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, names, presence, signal_rows
from ..errors import UsageError, check_limit
from ..index import resolve_id
from ..log.lines import digest, format_at
from ..outcome import Outcome, command
from ..text.sanitize import sanitize
from . import threads
from .inbox import FOLD_MAX_BYTES
from .threads import ThreadCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..order.thread import FoldedThread
    from ..store import Store

LIMIT = 50
_AT = 27


class EffectiveReceipt(Outcome, kw_only=True):
    """The one effective receipt of a reader for a signal, with the contract's names.

    Attributes:
        read_at: When the signal was first displayed to the reader or answered by it.
        delivery_state: delivered, acked or rejected.
        answers_digest: The digest of the line that was read; None for an imported reply without one.
        idempotency_key: The key of an importing adapter, or None.
        reader_name: The reader's display name, or None.
    """

    signal_id: str
    reader_identity: str
    read_at: str
    delivery_state: str = "delivered"
    answers_digest: str | None
    idempotency_key: str | None = None
    reader_name: str | None = None


class ReceiptList(Outcome):
    """Receipts, oldest first.

    Attributes:
        more: The number of older matching receipts that are not in `receipts`.
    """

    receipts: Sequence[EffectiveReceipt]
    more: int
    warnings: list[str] = []
    next: list[str] = []


def receipt_list(
    store: Store,
    signal: str | None = None,
    *,
    reader: str | None = None,
    since: int | None = None,
    limit: int = LIMIT,
    fold_most: int = FOLD_MAX_BYTES,
) -> ReceiptList:
    """Return the newest effective receipts. Mark nothing as read.

    Args:
        signal: Only receipts of this signal, by its id or a prefix. They include those of recipients that decided
            without a receipt or an answer for this signal itself.
        reader: Only receipts of this reader: a name, an agent identity, a session id or a person.
        since: Only receipts from this time on, microseconds since the epoch.
        limit: Maximum number of receipts.
        fold_most: Maximum bytes of lines of threads to fold. The state of a receipt beyond that is as recorded.

    Raises:
        UsageError: The log has no such signal, or the limit is below 1.
    """
    check_limit(limit)
    db = store.db()
    signal_id = _signal(db, signal) if signal else None
    readers = presence.readers_named(db, reader) | {reader} if reader else None
    oldest = format_at(max(since, 0)) if since is not None else ""
    found, total = _recorded(db, signal_id, readers, oldest, limit)
    cache = ThreadCache(db, fold_most)
    large = _set_states(db, found, cache)
    if signal_id is not None:
        implied = _implied(db, signal_id, cache)
        added = [
            each
            for each in implied
            if (readers is None or each.reader_identity in readers) and each.read_at >= oldest
        ]
        found = sorted([*found, *added], key=_newest)[-limit:]
        total += len(added)
        answered = {each.reader_identity for each in implied}
        folded = _thread_of(db, signal_id, cache)[1]
        is_settled = folded is not None and bool(folded.signals[signal_id].settled)
        waits = [each for each in _recipients(db, signal_id) if not is_settled and each not in answered]
        away = threads.away(store, signal_id, [each for each in waits if readers is None or each in readers])
    else:
        away = []
    _set_keys(db, found)
    names = presence.names_by_reader(db)
    for each in found:
        each.reader_name = names.get(each.reader_identity)
    outcome = ReceiptList(found, total - len(found))
    outcome.warnings = [
        *_unknown(store, reader),
        *(
            f"{sanitize(id)} is too large to evaluate here; states of its receipts are as recorded."
            for id in large
        ),
        *away,
    ]
    filters = {"--reader": reader, "--since": oldest or None}
    outcome.next = _next(outcome, signal, filters, limit)
    return outcome


def _signal(db: sqlite3.Connection, text: str) -> str:
    id = resolve_id.resolve(db, text)
    if mailbox.digests_of(db, [id]):
        return id
    raise UsageError(
        f"{id} is a thread id; receipts need the id of a signal.",
        hint="`gitmem thread` lists its signals.",
        code="not-a-signal",
        next=[command("gitmem", "thread", id)],
    )


def _recipients(db: sqlite3.Connection, signal_id: str) -> list[str]:
    """Return the recipients that any line of a signal names."""
    found = mailbox.signals(db, "s.signal_id = ?", (signal_id,))
    return list(dict.fromkeys(name for record, _ in found for name in record["recipients"]))


def _unknown(store: Store, reader: str | None) -> list[str]:
    """Return a sentence if the name of the reader is unknown, because an empty list does not show that."""
    if not reader or names.is_known(store, reader):
        return []
    return [f"Unknown reader: {sanitize(reader)}. `gitmem roster --all` lists all agents."]


def _newest(each: EffectiveReceipt) -> tuple[str, str, str]:
    return each.read_at, each.signal_id, each.reader_identity


def _recorded(
    db: sqlite3.Connection, signal_id: str | None, readers: set[str] | None, since: str, limit: int
) -> tuple[list[EffectiveReceipt], int]:
    """Return the newest receipts with a line of their own, oldest first, and the number of all."""
    rows, total = signal_rows.receipts(db, signal_id, readers, since, limit)
    found = [
        EffectiveReceipt(signal_id=id, reader_identity=who, read_at=at[:_AT], answers_digest=at[_AT:] or None)
        for id, who, at in rows
    ]
    return sorted(found, key=_newest), total


def _thread_of(db: sqlite3.Connection, signal_id: str, cache: ThreadCache) -> tuple[str, FoldedThread | None]:
    thread_id = resolve_id.thread_of(db, signal_id)
    return thread_id, cache.of(thread_id)


def _set_states(db: sqlite3.Connection, found: Sequence[EffectiveReceipt], cache: ThreadCache) -> list[str]:
    """Set the states; return the ids of the threads that are too large."""
    large: dict[str, None] = {}
    for each in found:
        recorded = mailbox.delivery_state(db, each.signal_id, each.reader_identity)
        thread_id, folded = _thread_of(db, each.signal_id, cache)
        said = folded.signals.get(each.signal_id) if folded else None
        state: str | None = recorded
        if folded is None:
            large[thread_id] = None
        elif said is not None:
            state = threads.delivery_state(each.reader_identity, said, folded, recorded)
        each.delivery_state = state or "delivered"
    return list(large)


def _implied(db: sqlite3.Connection, signal_id: str, cache: ThreadCache) -> list[EffectiveReceipt]:
    """Return the receipts of recipients that decided in the thread, and have no receipt or answer for the signal."""
    _, folded = _thread_of(db, signal_id, cache)
    said = folded.signals.get(signal_id) if folded else None
    if folded is None or said is None:
        return []
    found = []
    for reader in dict.fromkeys(said.record["recipients"]):
        standing = folded.answer(reader, signal_id)
        if (
            standing is None
            or standing is said
            or mailbox.delivery_state(db, signal_id, reader, counts=signal_rows.RECEIPT_COUNTS) is not None
        ):
            continue
        one = EffectiveReceipt(
            signal_id=signal_id,
            reader_identity=reader,
            read_at=standing.line[7:34].decode(),
            answers_digest=digest(said.line),
        )
        one.delivery_state = threads.STATES.get(standing.intent, "delivered")
        found.append(one)
    return found


def _set_keys(db: sqlite3.Connection, found: Sequence[EffectiveReceipt]) -> None:
    """Set the idempotency keys: those of the lines with the reader, the time and the digest of the receipt."""
    wanted = {
        (each.signal_id, each.reader_identity, each.read_at, each.answers_digest): each for each in found
    }
    ids, times = {id for id, *_ in wanted}, {at for _, _, at, _ in wanted}
    for line in signal_rows.keyed_receipts(db, ids, times):
        record = records.read_kind("receipt", line)
        if record is None:
            continue
        key = (record["signal_id"], record["reader_identity"], line[7:34].decode(), record["answers_digest"])
        if key in wanted:
            wanted[key].idempotency_key = record.get("idempotency_key")


def _next(
    outcome: ReceiptList, signal: str | None, filters: Mapping[str, str | None], limit: int
) -> list[str]:
    found = []
    if outcome.more:
        typed = [signal] if signal else []
        typed += [word for option, value in filters.items() if value for word in (option, value)]
        found.append(command("gitmem", "receipts", *typed, "--limit", str(limit + outcome.more)))
    if outcome.receipts:
        found.append(command("gitmem", "thread", outcome.receipts[-1].signal_id))
    return found
