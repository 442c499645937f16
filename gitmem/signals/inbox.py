"""The inbox: a reader's unread signals, and the receipts for the displayed ones."""

from __future__ import annotations

from .. import moved_back
from ..agents import delivery, heartbeats, mailbox, presence
from ..errors import StoreError, check_limit
from ..log.lines import digest, format_at
from ..outcome import Outcome
from ..records.ids import unit_key
from ..sync import whereabouts
from ..text.shell_quote import command
from ..trust import sender_tables
from . import check_intent, has_conflict, message_frame, next_steps
from .inbox_answer import InboxResult
from .inbox_owner import InboxOwner, resolve_owner
from .inbox_page import PageBudget, PageContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .inbox_page import PageLine

LIMIT = 50
MAX_BYTES = 16 * 1024
FOLD_MAX_BYTES = 4 * 1024 * 1024  # about 8,000 signals


class Count(Outcome):
    """The number of unread signals of a reader."""

    def __init__(self, reader: str, unread: int) -> None:
        self.reader = reader
        self.unread = unread


def count(store: Store, caller: Caller | None, *, for_: str | None = None) -> Count:
    """Return the number of unread signals. Mark nothing as read."""
    whose = resolve_owner(store, caller, for_)
    return Count(whose.reader, len(_unread(store, store.db(), whose)))


def _unread(
    store: Store, db: sqlite3.Connection, whose: InboxOwner, *, directed: bool = False
) -> dict[str, list[str]]:
    """Return, for each unread signal id, the reader's addresses to which it was sent."""
    if whose.is_imported:
        return {signal_id: [] for signal_id in mailbox.imported_ids(db, whose.reader)}
    found: dict[str, list[str]] = {}
    for address, signal_id in mailbox.unread_ids(
        db, whose.reader, whose.session, whose.workspace, store.now(), directed=directed
    ):
        found.setdefault(signal_id, []).append(address)
    return found


def read(
    store: Store,
    caller: Caller | None,
    *,
    for_: str | None = None,
    whose: InboxOwner | None = None,
    wu: str | None = None,
    lane: str | None = None,
    thread: str | None = None,
    intent: Sequence[str] = (),
    from_: str | None = None,
    since: int | None = None,
    all: bool = False,
    limit: int = LIMIT,
    max_bytes: int = MAX_BYTES,
    directed: bool = False,
    again: bool = True,
    without: Iterable[str] = (),
    only: Collection[str] | None = None,
    max_text: int | None = None,
    measure: Callable[[ShownSignal], int] | None = None,
    via: str = message_frame.PROGRAM,
    fold_most: int = FOLD_MAX_BYTES,
) -> InboxResult:
    """Return a reader's unread signals, oldest first; the limits prefer priority to advisory signals. See `mark`.

    Args:
        whose: The inbox, if it was resolved before; then `for_` is ignored.
        since: Microseconds since the epoch.
        all: Include signals that were read before.
        limit: Maximum number of signals, at least 1.
        max_bytes: Maximum bytes of their lines; only a single longer message is cut.
        directed: Only signals that may interrupt: sent to this reader in particular, and not advisory.
        again: Include signals that were displayed before but could not be marked.
        without, only: Ids of signals to omit, and of those to return (None for all).
        max_text: Maximum bytes of the signals as displayed, by `measure`; only a single longer one is cut.
        measure: Returns the bytes of one signal as displayed.
        via: The program in the reply lines, see `message_frame.reply_line`.
        fold_most: Maximum bytes of lines of threads to fold; a signal of a thread beyond that gets a note.
    """
    check_limit(limit)
    db = store.db()
    whose = whose or resolve_owner(store, caller, for_)
    if caller is not None and caller.session_id is not None and (whose.peek is None or caller.who is None):
        heartbeats.touch(store, caller.session_id)
    unread = _unread(store, db, whose, directed=directed)
    outcome = InboxResult(whose, len(unread))
    ids = set(unread)
    if all and whose.is_imported:
        ids |= mailbox.imported_ids(db, whose.reader, all=True)
    elif all:
        ids |= {id for _, id in mailbox.all_ids(db, whose.reader, whose.session, whose.workspace)}
    shown = () if again else delivery.was_shown(store, whose.reader, whose.session)
    ids.difference_update(without, shown, () if only is None else ids.difference(only))
    wanted = _filtered(db, ids, wu, lane, thread, intent, from_, since)
    page = PageContext(db, whose, store.now(), via, fold_most)
    budget = PageBudget(max_bytes, max_text, measure)
    chosen = _fitting([(at, id) for _, at, id in sorted(wanted)[:limit]], unread, page, budget)
    outcome.more = len(wanted) - len(chosen)
    _report_forged(store, db, outcome, [(each.line, each.fields) for _, _, lines in chosen for each in lines])
    for _, signal_id, lines in sorted(chosen, key=lambda each: each[:2]):
        outcome.signals += [each.fields for each in lines]
        if whose.peek is None:
            outcome.to_mark += [
                (address, signal_id, digest(each.line)) for each in lines for address in each.addresses
            ]
    outcome.next = _next(outcome)
    _report_missing(store, outcome)
    return outcome


def _fitting(
    wanted: Iterable[tuple[str, str]],
    unread: Mapping[str, Sequence[str]],
    show: PageContext,
    budget: PageBudget,
) -> list[tuple[str, str, list[PageLine]]]:
    """Return the first of these (at, signal id) that fit the budget, with their lines."""
    chosen: list[tuple[str, str, list[PageLine]]] = []
    for at, signal_id in wanted:
        every = show.signal(signal_id, unread.get(signal_id, ()))
        taken = budget.fitting(every, first=not chosen)
        if taken:
            chosen.append((at, signal_id, taken))
        if len(taken) < len(every):
            break
    return chosen


def _report_missing(store: Store, outcome: InboxResult) -> None:
    """Report lines that the log lacks."""
    whereabouts.add_unread(store, outcome)
    moved_back.add_warning(store, outcome)


def _report_forged(
    store: Store,
    db: sqlite3.Connection,
    outcome: InboxResult,
    shown: Sequence[tuple[bytes, ShownSignal]],
) -> None:
    """Report forged lines: in the fields of each signal, and for all lines in this reader's name."""
    caller = outcome.target.caller
    names = (
        [
            caller.session_id or "",
            caller.reader,
            caller.record.get("harness_session", "") if caller.record else "",
        ]
        if caller
        else []
    )
    if not shown and not sender_tables.is_forged(db, names):
        return
    from ..agents import forgeries
    from ..agents.caller import own_person

    warning = forgeries.of_reader(db, names)
    outcome.warnings = [warning] if warning else []
    marks = forgeries.SenderWarnings(store, own_person(store))
    for line, fields in shown:
        marks.put(fields, line)


def _filtered(
    db: sqlite3.Connection,
    wanted: set[str],
    wu: str | None,
    lane: str | None,
    thread: str | None,
    intent: Sequence[str],
    from_: str | None,
    since: int | None,
) -> list[tuple[bool, str, str]]:
    """Return (is not priority, at, signal id) of the wanted signals that match the filters."""
    from ..index import resolve_id

    thread_id = resolve_id.thread_of(db, resolve_id.resolve(db, thread)) if thread else None
    intents = {check_intent(each) for part in intent for each in part.split(",") if each}
    oldest = format_at(max(since, 0)) if since is not None else ""
    senders = presence.readers_named(db, from_) | {from_} if from_ else set()
    found = []
    for signal_id in wanted:
        row = db.execute(
            "SELECT l.at, interrupt, wu_id, lane, thread, intent, sender, sender_session FROM signal s"
            " JOIN line l ON l.id = s.line WHERE signal_id = ? ORDER BY l.body LIMIT 1",
            (signal_id,),
        ).fetchone()
        at, interrupt, has_wu, has_lane, has_thread, has_intent, sender, session = row
        if (
            (wu is None or unit_key(wu) == has_wu)
            and (lane is None or lane == has_lane)
            and (thread_id is None or thread_id == has_thread)
            and (not intents or has_intent in intents)
            and at >= oldest
            and (not senders or sender in senders or session in senders)
        ):
            found.append((interrupt != "priority", at, signal_id))
    return found


def _next(outcome: InboxResult) -> list[str]:
    if not outcome.signals:
        return ["gitmem roster"]
    last = outcome.signals[-1]["signal_id"]
    conflicting = [each["signal_id"] for each in outcome.signals if has_conflict(each)]
    cut = [fields["signal_id"] for fields in outcome.signals if "message_cut" in fields]
    found = [command("gitmem", "show", cut[0])] if cut else []
    if outcome.peek:  # only the owner may answer
        return [*found, command("gitmem", "thread", last)]
    who = [] if outcome.target.caller else ["--as", outcome.reader]
    asked = next_steps.last_open_question(outcome.signals)
    if asked is not None:
        found += next_steps.decide(asked, *who)
    if conflicting:
        return [*found, *next_steps.compare(conflicting[-1])][:3]
    return found[:3] or [command("gitmem", "thread", last)]


def mark(store: Store, reading: InboxResult) -> int:
    """Record deferred `delivered` receipts for the displayed signals, and what goes with them; return the number of receipts.

    Call it after the output was flushed: what was not displayed must stay unread. An empty inbox, too: that removes an old flag.

    Raises:
        StoreError: They can't be recorded; hooks don't display those signals again.
    """
    whose = reading.target
    try:
        more = store.domain.cancellations(store, whose.caller, reading.signals)
        more += whose.caller.keepalive(store) if whose.caller is not None else []
        delivery.record_receipts(store, whose.reader, whose.caller, reading.to_mark, more)
    except StoreError:
        delivery.move_to_shown(
            store, whose.reader, whose.session, {signal_id for _, signal_id, _ in reading.to_mark}
        )
        raise
    finally:
        if reading.peek is None:
            delivery.clean_queues(store, whose.reader, whose.session)
    return len(reading.to_mark)
