"""`gitmem signal` and its short form `gitmem reply`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.signals.send import Sent

    from .options import (
        AllowSecret,
        Initiative,
        Insist,
        Intent,
        Key,
        Lane,
        Message,
        Quiet,
        ReplyTo,
        RequiresAck,
        SignalId,
        SyncToo,
        Thread,
        To,
        Wu,
    )


def signal(
    at: Environment,
    message: Message,
    to: To = None,
    broadcast: Annotated[
        bool, typer.Option("--broadcast", help="Send to everybody, also in a thread.")
    ] = False,
    wu: Wu = None,
    initiative: Initiative = None,
    lane: Lane = None,
    intent: Intent = None,
    requires_ack: RequiresAck = False,
    reply_to: ReplyTo = None,
    thread: Thread = None,
    interrupt: Annotated[
        str | None, typer.Option("--interrupt", metavar="CLASS", help="Urgency: advisory or priority.")
    ] = None,
    artifact: Annotated[
        str | None, typer.Option("--artifact", metavar="PATH", help="File that the signal refers to.")
    ] = None,
    idempotency_key: Key = None,
    sync: SyncToo = False,
    allow_unseen: Annotated[
        bool, typer.Option("--allow-unseen", help="Accept an agent identity that is not in the log yet.")
    ] = False,
    fuzzy: Annotated[
        bool, typer.Option("--fuzzy", help="Accept the nearest name if it is unambiguous.")
    ] = False,
    allow_secret: AllowSecret = False,
    insist: Insist = False,
    quiet: Quiet = False,
) -> None:
    """Send a signal to agents (--to), to a thread, or to everybody. It is on disk before the command returns."""
    from gitmem.signals import send as signals

    if message == "-":
        from .. import stdin

        message = stdin.text("message")
    sent = signals.send_with_one_snapshot(
        at.store(), at.caller, message, to=to or (), broadcast=broadcast, wu=wu, initiative=initiative, lane=lane,
        intent=intent, requires_ack=requires_ack, reply_to=reply_to, thread=thread, interrupt=interrupt,
        artifact=artifact, idempotency_key=idempotency_key, allow_unseen=allow_unseen, fuzzy=fuzzy,
        allow_secret=allow_secret, insist=insist,
    )  # fmt: skip
    if sync:
        _publish(at, sent)
    if sent.commit is None:
        sent.warnings += where_waiting(at)
    if quiet and not at.json:
        output.write_lines([sent.signal["signal_id"]])
    else:
        output.answer(at.json, sent, lines_of)


def reply(
    at: Environment,
    id: SignalId,
    message: Message,
    agree: Annotated[bool, typer.Option("--agree", help="Agree.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject.")] = False,
    counter: Annotated[bool, typer.Option("--counter", help="Make a counter-proposal.")] = False,
    to: To = None,
    requires_ack: RequiresAck = False,
    idempotency_key: Key = None,
    sync: SyncToo = False,
    allow_secret: AllowSecret = False,
    insist: Insist = False,
    quiet: Quiet = False,
) -> None:
    """Answer a signal: send to its sender, in its thread."""
    decisions = [
        name for name, wanted in (("AGREE", agree), ("REJECT", reject), ("COUNTER", counter)) if wanted
    ]
    if len(decisions) > 1:
        raise UsageError("--agree, --reject and --counter are mutually exclusive. Nothing was written.")
    signal(
        at, message, reply_to=id, intent=decisions[0] if decisions else None, to=to, requires_ack=requires_ack,
        idempotency_key=idempotency_key, sync=sync, allow_secret=allow_secret, insist=insist, quiet=quiet,
    )  # fmt: skip


def _publish(at: Environment, sent: Sent) -> None:
    """Sync after a signal. A failed sync becomes a warning, because the signal is recorded nevertheless."""
    from gitmem.signals import history

    from ..syncing import sync_after_command

    failures, sent.pushed, again = sync_after_command(at)
    sent.warnings += failures
    sent.next = [command for command in sent.next if command != "gitmem sync"]
    if sent.pushed:
        one = history.show(at.store(), sent.signal["signal_id"])
        sent.commit = one.commit
    elif again:
        sent.next.insert(0, again)


def lines_of(found: Sent) -> list[str]:
    """Return a recorded signal as text."""
    from gitmem.signals.message_frame import SEPARATOR, sender_text

    signal = found.signal
    people = [sender_text(each["display_name"], each["address"]) for each in found.resolved]
    to = ", ".join(people) or ("everybody" if not signal.get("recipients") else "")
    lines = [
        SEPARATOR.join(
            (signal["signal_id"], signal["intent"], f"to {to}", output.record_position(found.commit))
        )
    ]
    if signal.get("thread_id"):
        lines.append(f"thread: {signal['thread_id']}")
    if found.pushed:
        lines.append("pushed")
    lines += [f"note: {output.sanitize(line)}" for line in found.warnings]
    return lines


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
