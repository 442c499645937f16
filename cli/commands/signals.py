"""`gitmem signal`, its short form `gitmem reply`, and `gitmem inbox`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment, external_wals, machine
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Unpack

    from gitmem.signals.inbox import InboxResult
    from gitmem.signals.send import Sent

    from .options import (
        PLAIN,
        AlreadyRead,
        Flag,
        For,
        From,
        InboxLimit,
        Insist,
        Intents,
        Message,
        NoMark,
        Quiet,
        SignalId,
        SignalOptions,
        SyncToo,
        Thread,
        Wu,
    )


def signal(
    at: Environment,
    message: Message,
    *,
    sync: SyncToo = False,
    quiet: Quiet = False,
    **options: Unpack[SignalOptions],
) -> None:
    """Send a signal to agents (--to), to a thread, or to everybody. It is on disk before the command returns."""
    from gitmem.signals import send as signals

    if message == "-":
        from .. import values

        message = values.stdin_text("message")
    sent = signals.send_with_one_snapshot(at.store(), at.caller, message, **options)
    if sync:
        _publish(at, sent)
    if sent.commit is None:
        sent.warnings += where_waiting(at)
    at.answer(sent, lines_of, only=[sent.signal["signal_id"]] if quiet else None)


def reply(
    at: Environment,
    id: SignalId,
    message: Message,
    agree: Annotated[bool, Flag("--agree", "Agree."), PLAIN] = False,
    reject: Annotated[bool, Flag("--reject", "Reject."), PLAIN] = False,
    counter: Annotated[bool, Flag("--counter", "Make a counter-proposal."), PLAIN] = False,
    insist: Insist = False,
    sync: SyncToo = False,
    quiet: Quiet = False,
) -> None:
    """Answer a signal: send to its sender, in its thread."""
    decisions = [
        name for name, wanted in (("AGREE", agree), ("REJECT", reject), ("COUNTER", counter)) if wanted
    ]
    if len(decisions) > 1:
        raise UsageError("--agree, --reject and --counter are mutually exclusive. Nothing was written.")
    intent = decisions[0] if decisions else None
    signal(at, message, reply_to=id, intent=intent, insist=insist, sync=sync, quiet=quiet)


def _publish(at: Environment, sent: Sent) -> None:
    """Sync after a signal. A failed sync becomes a warning, because the signal is recorded nevertheless."""
    from gitmem.signals import history, threads
    from gitmem.sync import whereabouts

    from ..syncing import sync_after_command

    failures, sent.pushed, again = sync_after_command(at)
    sent.warnings = [each for each in sent.warnings if not each.startswith(whereabouts.UNSENT)]
    sent.warnings += threads.away(at.store(), sent.signal["signal_id"], sent.signal.get("recipients") or ())
    sent.warnings += failures
    sent.next = [command for command in sent.next if command not in output.SYNCS]
    if sent.pushed:
        one = history.show(at.store(), sent.signal["signal_id"])
        sent.commit = one.commit
    elif again:
        sent.next.insert(0, again)


def lines_of(found: Sent) -> list[str]:
    """Return a recorded signal as text."""
    from gitmem.text.sanitize import sender_text

    from ..render.text import notes, spread

    signal = found.signal
    people = [sender_text(each["display_name"], each["address"]) for each in found.resolved]
    to = ", ".join(people) or ("everybody" if not signal.get("recipients") else "")
    workspace = signal.get("workspace_id")
    if workspace and not people:  # agents of other workspaces never see it
        to += f" in workspace {output.sanitize(workspace, keep='')}"
    sender = sender_text(signal.get("sender_name") or signal["sender_identity"], None)
    lines = spread(
        (signal["signal_id"], "quiet"),
        (signal["intent"], signal["intent"]),
        (f"from {sender}", ""),
        (f"to {to}", ""),
        (output.record_position(found.commit), "quiet"),
    )
    if signal.get("thread_id"):
        lines.append(f"thread: {signal['thread_id']}")
    if found.pushed:
        lines.append("pushed")
    return lines + notes(found.warnings)


def where_waiting(at: Environment) -> list[str]:
    """Return where lines wait outside the repository for their commit, and why a commit failed, as sentences."""
    outside = (*at.store().log.elsewhere, *at.store().log.others)
    folders = [wal.folder for wal in outside if any(file.size for file in wal.files())]
    where = " or ".join(folders)
    failed = at.store().commit_failed
    found = (
        [f"Not committed yet: waiting in {where} for a command that can write to the git folder."]
        if where
        else []
    )
    return [*found, *([f"Recorded, not committed yet: {failed.message}"] if failed else [])]


def inbox(
    at: Environment,
    for_: For = None,
    wu: Wu = None,
    thread: Annotated[Thread, PLAIN] = None,
    intent: Intents = None,
    from_: From = None,
    all: AlreadyRead = False,
    no_mark: NoMark = False,
    count: Annotated[bool, Flag("--count", "Print only the number of unread signals.")] = False,
    limit: InboxLimit = None,
) -> None:
    """Show your unread signals and mark them as delivered."""
    filtered = bool(wu or thread or intent or from_ or all)
    if not (filtered or for_ is not None or no_mark or limit is not None) and _is_empty(at, count=count):
        return
    from gitmem.agents import delivery
    from gitmem.outcome import command
    from gitmem.signals import inbox as operation
    from gitmem.signals.inbox import resolve_owner

    from ..render import signals
    from ..values import number, words

    most = number("--limit", limit, operation.LIMIT)
    store = at.store()
    store.asks_once = True
    caller = at.caller() if for_ is None else at.caller_if_any()
    at.reads_signals = caller is not None and caller.session_id is not None
    if count and not filtered:
        at.answer(operation.count(store, caller, for_=for_), signals.count)
        return
    whose = resolve_owner(store, caller, for_)
    marks = not (count or no_mark or whose.peek)
    seconds = delivery.WAIT_SECONDS if marks else None
    with delivery.delivery_lock(store, whose.reader, wait_seconds=seconds), store.one_look():
        reading = operation.read(
            store, caller, whose=whose, wu=wu, thread=thread, intent=intent or (), from_=from_, all=all, limit=most,
            max_bytes=operation.MAX_BYTES if limit is None else ASKED_BYTES, via=output.program(),
        )  # fmt: skip
        if wu:
            from gitmem.agents import session_view

            reading.warnings += filter(None, [session_view.unit_remark(store, wu)])
        if count:
            fitting = operation.Count(reading.reader, len(reading.signals) + reading.more)
            at.answer(fitting, signals.count)
            return
        if reading.more:
            if no_mark or all or not reading.to_mark:  # the same would be shown again
                limit = str(len(reading.signals) + reading.more)
            again = {"--for": for_, "--wu": wu, "--thread": thread, "--intent": intent, "--from": from_, "--all": all,
                     "--no-mark": no_mark, "--limit": limit}  # fmt: skip
            reading.next.insert(0, command("gitmem", "inbox", *words(again)))
        note_unknown_sender(at, from_)
        if _show(at, reading, filtered=filtered) and not no_mark:
            operation.mark(store, reading)


ASKED_BYTES = 1 << 40  # whoever gives a number of signals wants all of them


def _show(at: Environment, reading: InboxResult, *, filtered: bool) -> bool:
    """Print an inbox; return False if the output is closed.

    Args:
        filtered: Print only signals.
    """
    from ..render import signals

    if reading.peek is None and not filtered:
        reading.add_work(at.store(), reading.target.caller)
        reading.add_namesake(at.store())
    return at.answer(reading, signals.inbox, text_next=signals.inbox_next)


def _is_empty(at: Environment, *, count: bool) -> bool:
    """Answer without opening the store if nothing is unread; return False if nothing was printed.

    Args:
        at: The environment.
        count: Whether to print only the number.
    """
    client_id = at.client_session[1] if at.client_session else None
    if at.as_ is not None or not (at.session or client_id) or len(at.clients) > 1:
        return False
    from gitmem.signals import empty_inbox
    from gitmem.text.addresses import words_of

    elsewhere = [folder for folders in external_wals(at.repo) for folder in folders]
    reader = empty_inbox.reader(
        at.repo, machine(), session=at.session, client_id=client_id, elsewhere=elsewhere, quiet=count,
    )  # fmt: skip
    if reader is None:
        return False
    at.reads_signals = True
    reader = words_of(reader)  # a session of this clone
    if not count:
        values = {"reader": reader, "unread": 0, "signals": [], "more": 0, "work": None, "warnings": []}
        nothing = output.NOTHING.format(output.sanitize(reader, keep=""))
        output.answer_values(at.json, values, [nothing], [])
    elif at.json:
        output.write_json({"reader": reader, "unread": 0})
    else:
        output.write("0")
    return True


def note_unknown_sender(at: Environment, name: str | None) -> None:
    """Print a note if the name of --from is unknown, because the empty result does not show that."""
    if not name:
        return
    from gitmem.agents import names

    if not names.is_known(at.store(), name):
        output.note([f"Unknown sender: {name}. `gitmem roster --all` lists all agents."])
