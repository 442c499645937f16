"""Send signals: resolve the recipients and record the signal."""

from __future__ import annotations

from .. import commit_message, records
from ..agents import addressing, descriptions, heartbeats, presence
from ..errors import UsageError
from ..index import index_file
from ..log.lines import digest
from ..order.content import ASKS, DECISIONS, INTENTS, asks, check_intent
from ..outcome import Outcome, command
from ..records import ids
from ..records.table import OPTIONS
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from typing import Any, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..log.local_log import Appended
    from ..order.thread import ThreadSignal
    from ..records.record_types import ShownSignal, SignalFields, SignalRecord
    from ..store import Store
    from .reply import ReplyContext
    from .signal_options import SignalOptions

# What an answer takes over from the answered signal, unless its writer says something else.
INHERITED = ("wu_id", "initiative_id", "lane")
# Options of answers, which need the latest signals.
_EXACT = ("broadcast", "reply_to", "thread", "idempotency_key")


class Sent(Outcome):
    """A recorded signal; `commit` is None while it waits for a commit."""

    def __init__(self, signal: ShownSignal, commit: str | None, resolved: Sequence[Resolved]) -> None:
        self.signal = signal
        self.commit = commit
        self.recorded = True
        self.pushed = False
        self.resolved = [
            {"query": each.query, "address": each.address, "resolved_by": each.resolved_by,
             "display_name": each.display_name}
            for each in resolved
        ]  # fmt: skip
        self.warnings: list[str] = []
        self.next: list[str] = []


def send(store: Store, caller: Caller, message: str, **options: Unpack[SignalOptions]) -> Sent:
    """Record a signal.

    Args:
        options: See `SignalOptions`.

    Raises:
        UsageError: Invalid input (also RecordError, SecretError, `loop`); nothing was written.
        StoreError: The signal can't be recorded.
    """
    _check(message, options)
    db = store.db()
    key = options.get("idempotency_key")
    context = _context(store, options.get("reply_to"), options.get("thread"))
    resolved, vetoes = _asked(store, caller, context, options)
    fields = addressed(store, caller, message, resolved, context, key)
    answered = context.parent if context else None
    _set_fields(fields, options, answered.record if answered else None)
    fields["veto"] = vetoes
    fields["target_role"] = fields.get("target_role") or _role_of(resolved)
    fields.setdefault("interrupt_class", "priority" if resolved else "advisory")
    if context:
        context.refuse_conflicting(fields["intent"])
        fields["after"] = context.seen_by(caller)
    set_recorder(store, caller, fields, insist=bool(options.get("insist")))
    if key:
        before = find_by_key(db, fields)
        if before is not None:
            return _already_recorded(store, before, resolved)
    if caller.workspace is not None:
        refuse_other_workspaces(store, caller.workspace, resolved)
    loop_warning = context.limit_loop(store, caller, fields) if context else None
    if context:
        context.answer_task(store, caller, fields)
    fields["sender_headline"] = descriptions.headline_of_caller(store, db, caller)
    unit_remark = _unit_remark(store, caller, options.get("wu"))
    stream, line = store.line("signal", fields)
    changed = context.task.lines if context else ()
    record, appended = record_signal(store, caller, stream, line, resolved, changed)
    sent = Sent(records.shown(record), appended.commit, resolved)
    said_of = [caller.remark, loop_warning, unit_remark, *(each.remark for each in resolved)]
    sent.warnings = [*filter(None, said_of), *(context.task.warnings if context else ()), *remarks(record)]
    if context:
        sent.warnings += context.remarks(db, caller, record, line)
    sent.warnings += addressing.not_sent(store, record["signal_id"], resolved)
    counts = not context or not context.signals or context.is_party(caller)
    instead = context.next_instead(record, line, caller) if context else None
    sent.next = [
        *(context.task.next if context else ()),
        *(instead or ()),
        *after(store, sent.signal, resolved, counts=counts and instead is None),
    ]
    return sent


def send_with_one_snapshot(
    store: Store, find_caller: Callable[[], Caller], message: str, **options: Unpack[SignalOptions]
) -> Sent:
    """Record a signal as `send` does, with one snapshot of the index for the caller and the recipients.

    Only a signal to names that answers and guesses nothing does without the latest signals.

    Args:
        options: Those of `send`.
    """
    is_exact = not options.get("to") or any(options.get(name) for name in _EXACT)
    return store.with_one_snapshot(lambda: send(store, find_caller(), message, **options), exact=is_exact)


def _check(message: str, options: SignalOptions) -> None:
    """Raise UsageError for a blank message, and for an option that is invalid or contradicts another one."""
    check_message(message)
    if options.get("broadcast") and options.get("to"):
        raise UsageError("--broadcast and --to are mutually exclusive. Nothing was written.", code="usage")
    # An unset variable of a script must not cause a broadcast.
    if "" in (options.get("reply_to"), options.get("thread"), options.get("idempotency_key")):
        raise UsageError(
            "--reply-to, --thread and --idempotency-key must not be empty. Nothing was written.",
            hint="Check whether a shell variable in the command is unset.",
            code="empty-id",
            next=["gitmem inbox"],
        )
    _intent_of(options)


def check_message(message: str) -> None:
    """Raise UsageError for the text of a signal or task that has only white space; the record refuses an empty one."""
    if message and not message.strip():
        raise UsageError("The message has only white space. Nothing was written.", code="empty-message")


def _intent_of(options: SignalOptions) -> str:
    """Return the intent in upper case, if it is valid."""
    return check_intent(options.get("intent") or INTENTS[0])


def _set_fields(fields: SignalFields, options: SignalOptions, answered: SignalRecord | None) -> None:
    """Set the fields of a new signal that its options name.

    Args:
        fields: The fields of the new signal; modified.
        options: Those that `_check` accepts.
        answered: The signal that it answers.
    """
    record: Any = fields
    for name, value in options.items():
        if name in OPTIONS and value:
            record[OPTIONS[name][0]] = str(value) if type(value) is int else value
    record["intent"] = _intent_of(options)
    if answered is not None:
        inherited: Any = answered
        record.update({name: inherited.get(name) for name in INHERITED if not record.get(name)})


def _role_of(resolved: Sequence[Resolved]) -> str | None:
    """Return the role that all recipients were resolved by, or None."""
    roles = {each.role for each in resolved}
    return roles.pop() if len(roles) == 1 else None


def _context(store: Store, reply_to: str | None, thread: str | None) -> ReplyContext | None:
    """Return the context of an answer, or None for a new thread."""
    if not reply_to and not thread:
        return None
    from . import reply

    return reply.find(store, reply_to, thread)


def _asked(
    store: Store, caller: Caller, context: ReplyContext | None, options: SignalOptions
) -> tuple[Sequence[Resolved], list[str]]:
    """Return the recipients, and the addresses of those who may veto."""
    if options.get("need") is None and not options.get("veto"):
        return _recipients(store, caller, context, options), []
    from . import quorum

    quorum.check(options, _intent_of(options), begins=not (context and context.parent))
    return quorum.with_vetoes(store, caller, _recipients(store, caller, context, options), options)


def _recipients(
    store: Store, caller: Caller, context: ReplyContext | None, options: SignalOptions
) -> Sequence[Resolved]:
    """Return the recipients: those that the options name, or the default of an answer; none for a broadcast."""
    if options.get("broadcast"):
        if context:
            context.refuse_broadcast(caller, _intent_of(options))
        return ()
    to = options.get("to")
    named = addressing.resolve(
        store, to, caller=caller,
        allow_unseen=bool(options.get("allow_unseen")),
    ) if to else ()  # fmt: skip
    return context.members(store, caller, _intent_of(options), named) if context else named


def _unit_remark(store: Store, caller: Caller, wu: str | None) -> str | None:
    """Return a sentence if no record names the work unit yet: it may be a typing error."""
    if not wu or ids.unit_key(wu) == ids.unit_key(caller.wu_id):
        return None
    from ..agents import session_view

    return session_view.unit_remark(store, wu)


def remarks(record: SignalRecord) -> list[str]:
    """Return sentences about likely mistakes in a signal, as recorded."""
    intent, answers = record["intent"], record.get("reply_to")
    own = (record["sender_identity"], record.get("sender_session"))
    asks_nobody = all(each in own for each in record["recipients"])
    found = []
    if not answers and asks_nobody and asks(record):
        found.append("This signal asks nobody, so the thread cannot converge; ask somebody with --to NAME.")
    if not answers and intent in DECISIONS:
        flag = f"--{intent.lower()}"
        found.append(f"This {intent} does not answer a signal; use `gitmem reply ID 'your words' {flag}`.")
    return found


def refuse_other_workspaces(store: Store, workspace: str, resolved: Sequence[Resolved]) -> None:
    """Raise UsageError for recipients whose inbox never shows signals of this workspace."""
    for each in resolved:
        if theirs := presence.other_workspaces(store, each.address, workspace):
            name = sanitize(each.display_name or each.address)
            others = ", ".join(map(sanitize, theirs))
            raise UsageError(
                f"{name} is in workspace {others} and never sees signals of workspace {sanitize(workspace)}, yours. "
                "Nothing was written.",
                hint="A workspace is a routing label of inboxes, not a border of access. "
                "Send from a session without a workspace, or from one of theirs: `git config gitmem.workspace NAME` is for new sessions.",
                code="other-workspace",
                next=["gitmem roster --json"],
            )


def after(
    store: Store, signal: ShownSignal, resolved: Sequence[Resolved], *, counts: bool = True
) -> list[str]:
    """Return the commands after a signal: sync it, wait for answers, display the thread.

    Args:
        counts: Whether its sender may propose and decide in its thread.
    """
    found = []
    thread_id = signal.get("thread_id")
    if any(each.elsewhere for each in resolved) or (not resolved and is_unpublished(store)):
        from ..sync import autosync, consent

        if consent.unpublished(store.repo) is not None:
            found.append(consent.BY_SYNC)
        elif autosync.interval(store.repo) is None:
            found.append("gitmem sync")
    senders = (signal["sender_identity"], signal.get("sender_session"))
    asks_others = not resolved or any(each.address not in senders for each in resolved)
    if not counts:
        pass
    elif thread_id and signal["intent"] in ASKS and asks_others:
        found.append(command("gitmem", "converged", signal["signal_id"], "--wait", "60s"))
    elif signal["intent"] == "AGREE" and (answered := signal.get("reply_to")):
        found.append(command("gitmem", "converged", answered))
    return [*found, command("gitmem", "thread", thread_id or signal["signal_id"])]


def is_unpublished(store: Store) -> bool:
    """Return whether a remote to which this log is published may lack lines of this clone."""
    if not store.has_remote():
        return False
    from ..log import ref

    return store.git.tip(ref.PUBLISHED_REF) not in (None, store.git.tip(ref.LOG_REF))


def addressed(
    store: Store,
    caller: Caller,
    message: str,
    resolved: Sequence[Resolved],
    context: ReplyContext | None,
    key: str | None,
) -> SignalFields:
    """Return the fields for the ids, the sender, the message, the recipients and the answered signal."""
    signal_id = store.own_id("sig", caller.reader, key) if key else store.new_id("sig")
    answered, thread_id = (context.parent, context.thread_id) if context else (None, None)
    if thread_id is None and resolved:
        thread_id = f"thread-{signal_id[4:]}"
    recipients = [each.address for each in resolved]
    typed = [each for each in resolved if each.resolved_by != "thread"]
    return {
        "signal_id": signal_id,
        "message": message,
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
        "sender_role": caller.role,
        "recipients": recipients,
        "target_agent": recipients[0] if recipients else None,
        "requested_to": [each.query for each in typed],
        "resolved_by": [each.resolved_by for each in typed],
        "workspace_id": caller.workspace,
        "thread_id": thread_id,
        "reply_to": answered.id if answered else None,
        "answers_digest": digest(answered.line) if answered else None,
        "origin": "local",
    }


def set_recorder(store: Store, caller: Caller, fields: SignalFields, *, insist: bool) -> None:
    """Name the session that records the signal, if that is not the sender."""
    if caller.who is not None:
        from ..agents import caller as callers

        intent = fields["intent"]
        may = insist or intent not in DECISIONS
        fields["via"] = callers.recorded_by(store, caller, intent, may=may)


def find_by_key(db: sqlite3.Connection, fields: SignalFields) -> ThreadSignal | None:
    """Return the recorded signal with this idempotency key, or None."""
    from ..agents import mailbox

    if not mailbox.digests_of(db, [fields["signal_id"]]):
        return None
    from . import history

    return history.of_same_key(db, fields)


def _already_recorded(store: Store, before: ThreadSignal, resolved: Sequence[Resolved]) -> Sent:
    from . import history

    commit = history.commit_of(store, before.line)
    sent = Sent(records.shown(before.record), commit, resolved)
    sent.warnings = ["This signal is already recorded. Nothing was written."]
    sent.next = after(store, sent.signal, resolved)
    return sent


def record_signal(
    store: Store,
    caller: Caller,
    stream: str,
    line: bytes,
    resolved: Sequence[Resolved],
    more: Sequence[tuple[str, bytes]] = (),
) -> tuple[SignalRecord, Appended]:
    """Record the line of a signal and more lines, raise the flags of its recipients; return the record and its place."""
    record = records.read_kind("signal", line)
    assert record is not None  # it was checked as it was made
    names = [each.display_name or each.address for each in resolved]
    entry_message = commit_message.of_signal(caller.author, caller.name or caller.reader, names, record)
    lines = [(stream, line), *more, *caller.keepalive(store)]
    caller.touch(store)
    appended = store.record(lines, entry_message)
    announce(store, record, resolved)
    return record, appended


def announce(store: Store, record: SignalRecord, resolved: Sequence[Resolved]) -> None:
    """Raise the flags of the recipients of a signal that was just recorded, and pin their names."""
    if store.snapshot is not None and not _raise_flags(store, store.snapshot.db, record):
        store.refresh()
    addressing.pin_names(store, resolved)


def _raise_flags(store: Store, db: sqlite3.Connection, signal: SignalRecord) -> bool:
    """Raise the flags of this clone's sessions that a signal goes to. When the index has read the signal, they are raised by that.

    Args:
        db: The index before the signal.
        signal: The signal.

    Returns:
        False if this is not enough: the index has to catch up and raise flags.
    """
    state, recipients = store.repo.state, signal["recipients"]
    if not recipients:
        return False
    # Without a folder there must be no signal in the index yet: else it was removed, or not filled from it.
    if not heartbeats.has_flags(state) and index_file.mark(db, *heartbeats.FLAGS_MARK)[1] is not None:
        return False
    urgent = signal["interrupt_class"] != "advisory"
    senders = (signal["sender_identity"], signal.get("sender_session"))
    try:
        for address in recipients:
            for session_id in presence.open_ids(db, address) if address not in senders else ():
                if heartbeats.is_here(store, session_id):
                    names = heartbeats.flag_names(session_id, heartbeats.client_of(store, session_id))
                    heartbeats.raise_flags(state, names, urgent=urgent)
    except OSError:
        return False
    return True
