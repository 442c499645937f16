"""Display threads, the decision of each recipient, and convergence."""

from __future__ import annotations

from .. import moved_back, records
from ..agents import addressing, forgeries, presence
from ..agents.caller import own_person
from ..agents.caller_identity import other_workspaces
from ..agents.serialize import sender_name_from
from ..errors import UsageError, check_limit
from ..index.resolve_id import resolve, thread_of
from ..mailbox import mailbox_view, receipts
from ..mailbox.content import content_of, digest_bytes
from ..text.shell_quote import command
from . import ASKS, causality, conflicts, has_conflict, next_steps
from .causality import FoldedThread as FoldedThread
from .causality import ThreadSignal
from .task_records import TaskRecords
from .thread_lines import ThreadLines
from .thread_outcomes import Converged as Converged
from .thread_outcomes import Recipient as Recipient
from .thread_outcomes import Thread as Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..records.record_types import SignalRecord
    from ..records.shown_types import ShownSignal
    from ..store import Store

LIMIT = 50  # signals of a page for a person
LOOKED_UP_MAX = 100  # recipients to look up for the next command
STATES = {"AGREE": "acked", "REJECT": "rejected"}
UNMATCHED_MAX = 20  # sentences of an answer


def load(db: sqlite3.Connection, thread_id: str) -> dict[str, ThreadSignal]:
    """Return all signals of a thread with the lines of each id."""
    return ThreadLines(db).load(thread_id) or {}


def contents(signal: ThreadSignal) -> set[bytes]:
    """Return the contents of the lines of an id; more than one means that a text was replaced."""
    return {content_of(records.read_kind("signal", line), digest_bytes(line)) for line in signal.lines}


def ambiguous(thread: Mapping[str, ThreadSignal]) -> list[str]:
    """Return the ids of a thread with several contents."""
    return sorted(id for id, signal in thread.items() if is_conflicting(signal))


def is_conflicting(signal: ThreadSignal) -> bool:
    """Return whether the lines of an id have different contents."""
    return len(signal.lines) > 1 and len(contents(signal)) > 1


def unmatched(db: sqlite3.Connection, thread: Mapping[str, ThreadSignal]) -> list[str]:
    """Return sentences about answers and receipts for lines that are not in this log."""
    found = [
        f"{signal.id} answers a version of {signal.record.get('reply_to')} that is missing from this log: it has no effect."
        for signal in thread.values()
        if not signal.counts
    ]
    for id in thread:
        rows = db.execute(
            "SELECT DISTINCT reader FROM receipt r WHERE signal_id = ? AND state <> 'replied'"
            f" AND NOT {receipts.HAS_LINE} ORDER BY reader LIMIT 4",
            (id,),
        ).fetchall()
        if rows:
            readers = ", ".join(str(reader) for (reader,) in rows[:3]) + (" and others" if rows[3:] else "")
            found.append(
                f"A receipt of {readers} is for a version of {id} that is missing from this log: it has no effect."
            )
    return sorted(found)[:UNMATCHED_MAX]


def delivery_state(
    reader: str, signal: ThreadSignal, found: FoldedThread, recorded: str | None
) -> str | None:
    """Return a reader's receipt state for a signal; a recipient's decision overrides it."""
    standing = None
    if signal is found.root and found.asks(reader):
        standing = found.decision(reader)
    elif found.asks(reader) or signal.is_for(reader):
        standing = found.answer(reader, signal.id)
    if standing is None:
        return recorded
    return STATES.get(standing.intent, "delivered")


def _recipients(db: sqlite3.Connection, found: FoldedThread, root: ThreadSignal) -> list[Recipient]:
    names, recorded = presence.names_by_reader(db), receipts.states(db, root.id)
    return recipients(found, root, names, recorded)


def recipients(
    found: FoldedThread, root: ThreadSignal, names: ShownNames | None, recorded: Mapping[str, str]
) -> list[Recipient]:
    """Return where each recipient of a thread's root stands.

    Args:
        names: The names of readers; None to leave names out.
        recorded: The recorded delivery state of the root by reader.
    """
    readers = list(dict.fromkeys(root.record["recipients"]))
    decided = {reader: standing for reader in readers if (standing := found.decision(reader)) is not None}
    stale = found.stale({reader: signal for reader, signal in decided.items() if signal.intent == "AGREE"})
    outcomes = []
    for identity in readers:
        each = Recipient(identity, names.get(identity) if names is not None else None)
        standing = decided.get(identity)
        if standing is not None:
            each.decision = standing.intent.lower()
            each.signal_id = standing.id
            each.stale = identity in stale
            if each.stale:
                each.unseen, was_sent = stale[identity]
                each.unsent = not was_sent
        each.delivery_state = delivery_state(identity, root, found, recorded.get(identity))
        outcomes.append(each)
    return outcomes


def asks_for_decision(found: FoldedThread) -> bool:
    """Return whether the root of a thread asks its recipients for a decision, or a later proposal does."""
    root = found.root
    if root is None or not root.record["recipients"]:
        return False
    return bool(root.record.get("requires_ack")) or any(
        each.intent in ASKS for each in found.signals.values()
    )


def _open(store: Store, id: str) -> tuple[sqlite3.Connection, str, FoldedThread, ThreadSignal]:
    db = store.db()
    thread_id = thread_of(db, resolve(db, id))
    found = FoldedThread(load(db, thread_id))
    if found.root is None:
        raise UsageError(
            f"No readable signals in thread {thread_id}.", code="unknown-id", next=["gitmem doctor"]
        )
    return db, thread_id, found, found.root


def thread(store: Store, id: str, caller: Caller | None = None, *, limit: int | None = None) -> Thread:
    """Return the thread with this id or with this signal. Mark nothing as read.

    Args:
        caller: The caller, if known: commands that answer a question to it come first in `next`.
        limit: The maximum number of signals to return, the first and the last ones; None for all.

    Raises:
        UsageError: The log has no such id, or the limit is below 1.
    """
    check_limit(limit)
    db, thread_id, found, root = _open(store, id)
    outcome = Thread(thread_id, root.id, _recipients(db, found, root))
    outcome.ambiguous = ambiguous(found.signals)
    outcome.warnings = [*forgeries.in_thread(db, found.signals), *unmatched(db, found.signals)]
    theirs = other_workspaces(caller, (each.record.get("workspace_id") for each in found.signals.values()))
    outcome.warnings += [theirs] if theirs else []
    marks, names = forgeries.SenderWarnings(store, own_person(store)), presence.names_by_session(db)
    tasks = TaskRecords(db)
    every = list(causality.in_order(found.signals, found.edges))
    outcome.more = 0 if limit is None else max(0, len(every) - limit)
    for signal in (every[0], *every[outcome.more + 1 :]):
        fields = records.shown(signal.record)
        fields["sender_name"] = sender_name_from(names, signal.record)
        mailbox_view.put_settled(db, fields)
        tasks.put(fields, signal.record)
        marks.put(fields, signal.line)
        recorded = receipts.states(db, signal.id)
        states = {
            reader: delivery_state(reader, signal, found, recorded.get(reader))
            for reader in signal.record["recipients"]
        }
        if not signal.counts:
            fields["counts"] = False
        if signal.void:
            fields["decides"] = False
        fields["delivery"] = {reader: state for reader, state in states.items() if state}
        outcome.signals += _versions(db, names, fields) if signal.id in outcome.ambiguous else [fields]
    asked = _open_question(db, found, every, outcome.ambiguous, caller) if caller is not None else None
    outcome.next = _next(outcome, asked)
    return outcome


def _versions(db: sqlite3.Connection, names: ShownNames, fields: ShownSignal) -> list[ShownSignal]:
    """Return the displayed fields of each conflicting line of an id."""
    id = fields["signal_id"]
    every = conflicts.versions(db, id)
    found = []
    for each in conflicts.chosen(every, ()):
        record = records.read_kind("signal", each.line)
        if record is not None:
            one = records.shown(record)
            one["sender_name"] = sender_name_from(names, record)
            one["delivery"] = receipts.states(db, id, each.content)
            if "counts" in fields:
                one["counts"] = False
            found.append(one)
    conflicts.mark(db, found, len(every))
    return found


def _next(outcome: Thread, asked: SignalRecord | None) -> list[str]:
    plain = [each["signal_id"] for each in outcome.signals if not has_conflict(each)]
    found = ["gitmem doctor"] if outcome.ambiguous else []
    if asked or plain:
        found += next_steps.decide(asked) if asked else [command("gitmem", "reply", plain[-1], "your reply")]
    if outcome.recipients:
        found.append(command("gitmem", "converged", outcome.thread_id))
    if outcome.more:
        total = len({each["signal_id"] for each in outcome.signals}) + outcome.more
        found.append(command("gitmem", "thread", outcome.thread_id, "--limit", str(total)))
    return found


def _open_question(
    db: sqlite3.Connection,
    found: FoldedThread,
    every: Sequence[ThreadSignal],
    conflicting: Sequence[str],
    caller: Caller,
) -> SignalRecord | None:
    """Return the last signal of the whole thread that asks the caller for a decision and has none, or None."""
    for signal in reversed(every):
        addressed = [reader for reader in caller.ids if reader in signal.record["recipients"]]
        if not addressed or signal.id in conflicting or not next_steps.asks_for_decision(signal.record):
            continue
        if mailbox_view.settled(db, signal.record.get("task_id")):
            continue
        recorded = receipts.states(db, signal.id)
        states = (delivery_state(reader, signal, found, recorded.get(reader)) for reader in addressed)
        if next(filter(None, states), "unread") not in next_steps.ANSWERED:
            return signal.record
    return None


def converged(store: Store, id: str, *, strict: bool = False, caller: Caller | None = None) -> Converged:
    """Return whether the latest decision of every recipient of the thread's root is AGREE.

    Args:
        strict: Each AGREE must also come after every PROPOSE and COUNTER of others.
        caller: The caller, if known: `next` has no command that waits for the caller's own answer.

    Raises:
        UsageError: The thread is unknown or its root has no recipients.
    """
    db, thread_id, found, root = _open(store, id)
    if not root.record["recipients"]:
        raise UsageError(
            f"The root of {thread_id} is a broadcast without recipients, so the thread cannot converge.",
            hint="Propose with --to NAME to ask specific recipients.",
            code="no-recipients",
            next=[command("gitmem", "thread", thread_id)],
        )
    outcome = Converged(thread_id, root.id, _recipients(db, found, root), strict=strict)
    outcome.ambiguous = ambiguous(found.signals)
    outcome.converged = outcome.converged and not outcome.ambiguous
    outcome.warnings = [*forgeries.in_thread(db, found.signals), *unmatched(db, found.signals)]
    outcome.commit = store.index.tip
    others = [each for each in outcome.pending if caller is None or each not in caller.ids]
    outcome.next = _next_of(store, outcome, others, strict)
    proposals = [signal.id for signal in found.signals.values() if signal.intent in ASKS]
    if len(others) < len(outcome.pending) and not outcome.ambiguous and proposals in ([], [root.id]):
        outcome.next = [*next_steps.decide(root.record), *outcome.next]
    moved_back.add_warning(store, outcome)
    return outcome


def _next_of(store: Store, outcome: Converged, others: Sequence[str], strict: bool) -> list[str]:
    """Return the commands that wait for missing answers of others and that display the thread."""
    look = command("gitmem", "thread", outcome.thread_id)
    if outcome.ambiguous:
        return ["gitmem doctor", look]
    if outcome.converged or outcome.rejected or outcome.countered or not others:
        return [look]
    away = any(each.elsewhere for each in addressing.from_addresses(store, others[:LOOKED_UP_MAX]))
    options = [*(["--strict"] if strict else []), "--wait", "60s", *(["--sync"] if away else [])]
    return [command("gitmem", "converged", outcome.thread_id, *options), look]
