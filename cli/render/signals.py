"""Signals, inboxes, threads, the gate and the history as text."""

from __future__ import annotations

from gitmem.records import ID_FIELDS
from gitmem.signals import message_frame
from gitmem.text.sanitize import first_of, part, title, within

from .output import NOTHING, paint, program, record_position, sanitize, terminal, with_options
from .text import (
    ID_SHOWN,
    SEPARATOR,
    WIDE,
    block,
    facts,
    format_ago,
    framed,
    lines_of_work,
    notes,
    paint_intent,
    plain,
    plural,
    rest,
    sender_text,
    shown_frame,
    table,
    wrapped,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gitmem.history.forget import Forgotten
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.gate import BlockingSignal, Gate, GateUnchecked
    from gitmem.signals.history import LogPage, ReceiptList, RecordDetail, Stages
    from gitmem.signals.inbox import Count, InboxResult
    from gitmem.signals.merge_gate import MergeGate
    from gitmem.signals.threads import Converged, Party, Proposal, Standing, Thread
    from gitmem.signals.watch import WatchOwner


def count(found: Count) -> list[str]:
    """Return the number of unread signals, alone on its line for scripts."""
    return [str(found.unread)]


def inbox(found: InboxResult) -> list[str]:
    """Return the signals of an inbox in their frames, below a heading with the unread count."""
    lines = block(found.peek and sanitize(found.peek), notes(found.warnings))
    work = lines_of_work(found.work, {id for each in found.signals if (id := each.get("task_id"))})
    if not found.signals:
        nothing = NOTHING.format(plain(found.reader))
        if found.unread:
            nothing = f"No signals match; {found.unread} unread for {plain(found.reader)}"
        return [*lines, nothing, *work]
    lines += wrapped(f"{found.unread} unread for {plain(found.reader)}. {message_frame.PEERS}")
    return block(
        [*lines, ""],
        signals_only(found),
        (found.more or work or inbox_next(found)) and [""],
        rest(found.more, then=""),
        work,
    )


def inbox_next(found: InboxResult) -> list[str]:
    """Return the commands after an inbox as text: those that neither a reply line nor a line about work has."""
    replies = {each["signal_id"] for each in found.signals if each.get("reply_line")}
    work = found.work.lines(via=program()) if found.work is not None else []
    return [
        each
        for each in found.next
        if not (each.startswith("gitmem reply ") and each.split()[2] in replies)
        and not any(line.endswith(f"next: {each}") for line in work)
    ]


def signals_only(found: InboxResult) -> list[str]:
    """Return the signals of an inbox in their frames, with a blank line between two."""
    lines: list[str] = []
    for signal in found.signals:
        lines += [""] if lines else []
        lines += framed(signal, note=_note(signal), line=signal.get("reply_line"))
    return lines


def _note(signal: ShownSignal) -> str:
    """Return what the head of a signal in an inbox ends with: whether it is a broadcast, and how the reader has answered."""
    everybody = not signal.get("recipients") and signal.get("origin") == "local"
    return facts(everybody and "to everybody", YOURS.get(signal.get("delivery_state") or ""))


RECIPIENTS = 30  # of a thread, by name; the others are counted
# What a state of delivery says of the reader of an inbox, and of others.
YOURS = {"acked": "you agreed", "rejected": "you rejected"}
THEIRS = {"delivered": "seen by", "acked": "agreed by", "rejected": "rejected by"}


def thread(found: Thread) -> list[str]:
    """Return the signals of a thread in their frames, and the decision of each recipient."""
    more = ["", rest(found.more)] if found.more else []
    lines = [thread_head(found)]
    for place, signal in enumerate(found.signals):
        lines += [*(more if place == 1 else []), "", *signal_of_thread(signal, found)]
    return [*lines, "", *(more[1:] if len(found.signals) < 2 else []), *standing(found)]


def thread_head(found: Thread) -> str:
    """Return what a thread is: its id, how many signals it has, and on what it is."""
    return facts(found.thread_id, plural(len(found.signals) + found.more, "signal"), unit_of(found))


def unit_of(found: Thread) -> str | None:
    """Return the work unit of a thread: the first that a signal names."""
    return next((wu for each in found.signals if (wu := each.get("wu_id"))), None)


def signal_of_thread(signal: ShownSignal, found: Thread) -> list[str]:
    """Return a signal of a thread in its frame, with its delivery."""
    names = {each.identity: each.display_name or each.identity for each in found.recipients}
    shown: ShownSignal = {**signal, "wu_id": None} if signal.get("wu_id") == unit_of(found) else signal
    return framed(shown, note=_delivery(signal, names))


def standing(found: Thread) -> list[str]:
    """Return what a thread says now: the proposal in force, where each party stands, and warnings."""
    said = [_in_force(found)] if found.asks or found.agreed_on is not None else []
    return said + _parties(found) + _ambiguous(found.ambiguous) + notes(found.warnings)


def _in_force(found: Standing) -> str:
    proposals = " and ".join(map(_proposal, found.in_force))
    count = f" ({_quorum(found)})" if found.quorum is not None and len(found.in_force) == 1 else ""
    if found.agreed_on is not None:
        return f"{paint('agreed on', 'good')} {proposals}{count}"
    if found.settled:
        return f"{sanitize(found.settled)}: {proposals}"
    return f"{'these conflict' if len(found.in_force) > 1 else 'in force'}: {proposals or 'nothing, all was withdrawn'}{count}"


def _quorum(found: Standing) -> str:
    """Return how many agree of how many who have to, and who stops it or has to answer in any case; "" if all have to."""
    quorum = found.quorum
    if quorum is None:
        return ""
    names = {
        each: f"{plain(name or each)}{' (veto)' if each in quorum.veto else ''}"
        for each, name in ((one.identity, one.display_name) for one in found.recipients)
    }
    rejecting = [each.identity for each in found.recipients if each.decision == "reject"]
    are_few = quorum.of - len(rejecting) < quorum.need  # then whoever rejects stops it, not only a veto
    said = {
        "rejected by": [each for each in rejecting if are_few or each in quorum.waits_for],
        "waits for": [each for each in quorum.waits_for if each not in rejecting],
    }
    whom = [
        f"{what} {first_of([names.get(each, plain(each)) for each in who], RECIPIENTS)}"
        for what, who in said.items()
        if who
    ]
    return "; ".join([quorum.count_text, *whom])


def _proposal(each: Proposal) -> str:
    text = f'"{each.text}" ' if each.text else ""
    return f"{text}({plain(each.by_name or each.by)}, {each.signal_id})"


def _delivery(signal: ShownSignal, names: Mapping[str, str]) -> str:
    if "counts" in signal:
        return "answers a signal that is missing from this log"
    by_state: dict[str, list[str]] = {}
    for reader, state in signal["delivery"].items():
        by_state.setdefault(THEIRS[state], []).append(part(names.get(reader, reader)))
    return SEPARATOR.join(f"{state} {first_of(every, RECIPIENTS)}" for state, every in by_state.items())


DECISIONS = {
    "agree": "agrees", "reject": "rejects", "counter": "proposes it", "pending": "has not answered",
}  # fmt: skip


def _parties(found: Standing) -> list[str]:
    """Return a table of the parties. Of too many, those with a decision come first, and the others are counted."""
    every, in_force = found.recipients, [each.signal_id for each in found.in_force]
    decided = [each for each in every if each.decision != "pending"]
    others = [each for each in every if each.decision == "pending"]
    shown = every if len(every) <= RECIPIENTS else [*decided, *others][:RECIPIENTS]
    rows = [_party(each, in_force, asks=found.asks) for each in shown]
    screen = terminal()
    room = PARTY_COLUMNS - (screen is not None and 0 < screen.columns < WIDE)  # without the address
    kept = [at for at in range(room) if any(row[at] for row in rows)]
    styles = [["head", each.decision, *["quiet"] * (PARTY_COLUMNS - 2)] for each in shown]
    lines = table(
        [[row[at] for at in kept] for row in rows],
        shortened=[kept.index(at) for at in (PARTY_COLUMNS - 1, 3) if at in kept],
        painted=lambda row, column, cell: paint(cell, styles[row][kept[column]]),
    )
    if len(shown) == len(every):
        return lines
    pending = min(len(others) - max(0, len(shown) - len(decided)), len(every) - len(shown))
    return [*lines, f"{len(every) - len(shown)} more recipients not shown, {pending} of them pending"]


PARTY_COLUMNS = 6


def _party(each: Party, in_force: Sequence[str], *, asks: bool) -> list[str]:
    """Return a row: who, the decision, since when, on what if not on what is in force, by which signal, and the address."""
    word = DECISIONS[each.decision] if asks or each.signal_id else ""
    age = format_ago(each.decided_at) if each.decided_at else ""
    note = "has seen it" if each.delivery_state == "delivered" else ""
    if each.signal_id and each.proposal not in in_force:
        is_its_own = each.signal_id == each.proposal
        note = "proposed an earlier one" if is_its_own else f"answered {(each.proposal or '')[:ID_SHOWN]}"
    elif each.signal_id == each.proposal and each.signal_id:
        word, note = "proposed it", ""
    elif each.signal_id:
        note = ""
    name = each.display_name or each.identity
    cells = (
        name,
        word,
        age,
        note,
        (each.signal_id or "")[:ID_SHOWN],
        each.identity if name != each.identity else "",
    )
    return ["  " + plain(cells[0]), *map(plain, cells[1:])]


def _ambiguous(ids: Sequence[str]) -> list[str]:
    return [f"ambiguous: more than one record with id {', '.join(ids)}"] if ids else []


def converged(found: Converged) -> list[str]:
    """Return whether a thread has converged, and where each party stands."""
    word = paint("converged", "good") if found.converged else paint("not converged", "bad")
    unsigned = "" if found.verified else " (unverified)"
    return [f"{word}{unsigned}: {found.thread_id}: {_agreement(found)}", *_parties(found),
            *_ambiguous(found.ambiguous), *notes(found.warnings)]  # fmt: skip


def _agreement(found: Converged) -> str:
    """Return what was agreed, or why nothing is."""
    total = len(found.recipients)
    proposals = " and ".join(map(_proposal, found.in_force))
    # Without a counter the root's sender is not listed.
    is_first = [each.signal_id for each in found.in_force] == [found.root] and found.in_force[0].by not in {
        each.identity for each in found.recipients
    }
    parties = plural(total, "recipient") if is_first else "1 party" if total == 1 else f"{total} parties"
    if found.withdrawn and found.proposal is not None:
        now = f"in force now: {proposals}" if proposals else "nothing is in force"
        return f"{found.proposal.signal_id} was withdrawn by {plain(found.proposal.by_name or found.proposal.by)}; {now}"
    if not found.in_force:
        return "all proposals were withdrawn; nothing is in force"
    if found.replaced and found.proposal is not None:
        return f"{found.proposal.signal_id} was replaced by {proposals}; ask about that"
    if found.settled and not found.converged:
        return f"{sanitize(found.settled)}, so nobody is asked any more: {proposals}"
    if not total:
        return "nobody was asked, so nobody can agree"
    if found.quorum is not None and found.converged:
        return f"{found.quorum.agreed} of {found.quorum.of} agreed on {proposals}, as needed"
    if found.converged:
        return f"{'all' if total > 1 else 'the'} {parties} agreed on {proposals}"
    if found.ambiguous:
        count = len(found.ambiguous)
        return f"{plural(count, 'signal')} of the thread {'has' if count == 1 else 'have'} several contents"
    if len(found.in_force) > 1:
        return f"these conflict: {proposals}; agree to one of them all, or counter"
    return (
        f"{_quorum(found)}: {proposals}"
        if found.quorum
        else f"{len(found.agreed)} of {parties} agreed on {proposals}"
    )


def format_history(found: LogPage) -> list[str]:
    """Return records of the log as a table: age, id and description."""
    from gitmem.commit_message import describe

    def listed(entries: Sequence[Mapping[str, Any]]) -> list[str]:
        rows = [(format_ago(entry["created_at"]), _id_of(entry), describe(entry)) for entry in entries]
        intents = [entry.get("intent", "") for entry in entries]
        painted: Callable[[int, int, str], str] = lambda row, _, cell: paint_intent(cell, intents[row])  # noqa: E731
        return table(rows, shortened=(2, 0), painted=painted)

    ahead = ["Dated more than a day ahead, so not in order:", *listed(found.ahead)] if found.ahead else []
    return [*ahead, *(listed(found.entries) if found.entries else ["No records match."])]


def _id_of(entry: Mapping[str, Any]) -> str:
    return plain(str(entry[ID_FIELDS[entry["kind"]]]))


def receipts(found: ReceiptList) -> list[str]:
    """Return receipts as a table: age, signal, state, reader and idempotency key."""
    rows = [
        (format_ago(each.read_at), each.signal_id, each.delivery_state, sender_text(each.reader_name, each.reader_identity),
         f"key {plain(each.idempotency_key)}" if each.idempotency_key else "")
        for each in found.receipts
    ]  # fmt: skip
    older = found.more and f"{found.more} older not shown"
    return block(
        older,
        table(rows) or "No receipts match.",
        [_stages(each) for each in found.stages],
        notes(found.warnings),
    )


def _stages(each: Stages) -> str:
    """Return how far a signal has come to one recipient, such as `Curie: stored 2 min ago · woken 2 min ago · not shown yet`."""
    said = [f"stored {format_ago(each.stored_at)}"]
    said += [f"woken {format_ago(each.woken_at)}"] if each.woken_at else []
    said += [f"shown {format_ago(each.shown_at)}" if each.shown_at else "not shown yet"]
    said += [f"answered ({each.answered})"] if each.answered else []
    return f"{each.signal_id} to {sender_text(each.reader_name, each.reader_identity)}: {' · '.join(said)}"


def forgotten(found: Forgotten) -> list[str]:
    """Return what was forgotten, and where the text still is."""
    return block(
        found.lines
        and facts(
            f"forgotten: {found.id}",
            plural(found.lines, "line"),
            *found.records,
            record_position(found.commit),
        ),
        found.asked and f"asked: {', '.join(found.asked)}",
        found.quoted and f"still quoted by: {', '.join(map(plain, found.quoted))}",
        [f"still in, or cannot be read: {plain(path)}" for path in found.copies],
        notes(found.warnings),
    )


def one(found: RecordDetail) -> list[str]:
    """Return one record in full."""
    from .text import value_text

    record: Any = found.record
    where = f"commit {found.commit}" if found.commit else "in no commit yet"
    ambiguous = ["ambiguous: more than one record with this id"] if found.ambiguous else []
    if found.kind == "signal":
        return [*framed(record), where, *ambiguous]
    fields = [f"{plain(key)}: {plain(value_text(value))}" for key, value in record.items()]
    return [facts(found.kind, format_ago(record["created_at"]), where), *fields, *ambiguous]


def gate(found: Gate) -> list[str]:
    """Return whether the gate is open, closed or passed, and the signals that close it."""
    from gitmem.signals.gate import count_text

    about = f"on {plain(found.about)} for {plain(found.reader)}"
    if found.open and not found.passed:
        head = f"{paint('gate open', 'good')}: no unread or unanswered signals {about}"
        return [head, *notes(found.warnings)]
    word = paint("gate passed", "careful") if found.passed else paint("gate closed", "bad")
    recorded = found.passed and found.recorded and record_position(found.commit)
    return block(
        SEPARATOR.join(
            block(f"{word}: {count_text(found)} {about}", found.passed and found.audit_id, recorded)
        ),
        [line for signal in found.signals for line in _delay_reason(signal)],
        rest(found.more, then=""),
        notes(found.warnings),
    )


def merge_gate(found: MergeGate) -> list[str]:
    """Return whether the merge gate is open, and the proposals."""
    waiting = len(found.waiting)
    word = paint("merge gate open", "good") if found.open else paint("merge gate closed", "bad")
    about = f" on {', '.join(map(plain, found.wu_ids))}" if found.wu_ids else ""
    return block(
        f"{word}: {plural(waiting, 'open proposal') if waiting else 'no open proposal'}{about}",
        [line for each in found.proposals for line in converged(each)],
        [
            f"not counted: {_proposal(each)}: {plain(found.target)} does not name its writer for {plain(each.by)} in .gitmem/signers"
            for each in found.uncounted
        ],
        rest(found.more, "proposal that does not count", then=""),
        notes(found.warnings),
    )


def unchecked(found: GateUnchecked) -> list[str]:
    """Return why a gate was not checked."""
    about = f"on {plain(found.wu_id)}" if found.wu_id else "for this push"
    return [f"gate: not checked {about}: {sanitize(found.reason)}", *notes(found.warnings)]


def _delay_reason(signal: BlockingSignal) -> list[str]:
    head = facts(
        signal["signal_id"],
        signal["intent"],
        f"from {sender_text(signal['sender_name'], signal['sender_identity'])}",
        signal["wu_id"] or signal["initiative_id"],
        format_ago(signal["created_at"]),
        signal["why"],
        signal["requires_ack"] and "needs AGREE or REJECT",
    )
    return [paint_intent(head, signal["intent"]), *(f"  {sanitize(each)}" for each in signal["commands"])]


def watched(fields: ShownSignal, of: WatchOwner, *, age: str) -> str:
    """Return a signal that a watch shows, in its frame."""
    reader = None if of.peek else of.reader
    return message_frame.signal_text(fields, reader=reader, workspace=of.workspace, age=age, via=program())


def watched_together(signals: Sequence[ShownSignal], of: WatchOwner) -> str:
    """Return signals that arrive together, below one heading."""
    shown = [
        "\n".join(shown_frame(watched(fields, of, age=format_ago(fields["created_at"])), fields["intent"]))
        for fields in signals
    ]
    return message_frame.injection(shown, via=program()) + "\n"


NOTIFIED_MAX, NOTIFIED_COLUMNS = 3, 120


def notification(signals: Sequence[ShownSignal]) -> tuple[str, str] | None:
    """Return title and text of a notification about signals that name the reader, each one line; None without any."""
    said = [
        (within(plain(each.get("sender_name") or each["sender_identity"]), NOTIFIED_COLUMNS), each["intent"], title(each["message"]))
        for each in signals
        if each.get("recipients")
    ]  # fmt: skip
    if not said:
        return None
    if len(said) == 1:
        ((name, intent, text),) = said
        return f"gitmem: {name}{SEPARATOR}{intent}", text
    lines = [f"{name}: {text}" for name, _, text in said]
    return f"gitmem: {plural(len(said), 'signal')}", first_of(lines, NOTIFIED_MAX, joint=SEPARATOR)


def watched_event(fields: ShownSignal, of: WatchOwner) -> str:
    """Return a signal that a watch shows, as one line of JSON."""
    from gitmem.signals import watch

    from .output import as_json, plain_values

    reader = None if of.peek else of.reader
    known = {key: value for key, value in fields.items() if key not in ("event", "reader", "next")}
    reply_line = message_frame.reply_line(fields, reader=reader, workspace=of.workspace, via=program())
    answer = {"event": "signal:received", "reader": of.reader, **known, "reply_line": reply_line}
    return as_json(plain_values({**answer, "next": with_options(watch.steps(fields, of))}))
