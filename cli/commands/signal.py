"""`gitmem signal` and its short form `gitmem reply`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Unpack

    import typer

    from gitmem.signals.send import Sent

    from .options import Message, Quiet, ReplyOptions, SignalId, SignalOptions, SyncToo


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
        from .. import stdin

        message = stdin.text("message")
    sent = signals.send_with_one_snapshot(at.store(), at.caller, message, **options)
    if sync:
        _publish(at, sent)
    if sent.commit is None:
        sent.warnings += where_waiting(at)
    output.answer(at.json, sent, lines_of, only=[sent.signal["signal_id"]] if quiet else None)


def reply(
    at: Environment,
    id: SignalId,
    message: Message,
    agree: Annotated[bool, typer.Option("--agree", help="Agree.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject.")] = False,
    counter: Annotated[bool, typer.Option("--counter", help="Make a counter-proposal.")] = False,
    *,
    sync: SyncToo = False,
    quiet: Quiet = False,
    **options: Unpack[ReplyOptions],
) -> None:
    """Answer a signal: send to its sender, in its thread."""
    decisions = [
        name for name, wanted in (("AGREE", agree), ("REJECT", reject), ("COUNTER", counter)) if wanted
    ]
    if len(decisions) > 1:
        raise UsageError("--agree, --reject and --counter are mutually exclusive. Nothing was written.")
    intent = decisions[0] if decisions else None
    signal(at, message, reply_to=id, intent=intent, sync=sync, quiet=quiet, **options)


def _publish(at: Environment, sent: Sent) -> None:
    """Sync after a signal. A failed sync becomes a warning, because the signal is recorded nevertheless."""
    from gitmem.signals import history, threads
    from gitmem.sync import whereabouts

    from ..syncing import sync_after_command

    failures, sent.pushed, again = sync_after_command(at)
    sent.warnings = [each for each in sent.warnings if not each.startswith(whereabouts.UNSENT)]
    sent.warnings += threads.away(at.store(), sent.signal["signal_id"], sent.signal.get("recipients") or ())
    sent.warnings += failures
    sent.next = [command for command in sent.next if command != "gitmem sync"]
    if sent.pushed:
        one = history.show(at.store(), sent.signal["signal_id"])
        sent.commit = one.commit
    elif again:
        sent.next.insert(0, again)


def lines_of(found: Sent) -> list[str]:
    """Return a recorded signal as text."""
    from gitmem.signals.message_frame import sender_text
    from gitmem.text.sanitize import SEPARATOR

    signal = found.signal
    people = [sender_text(each["display_name"], each["address"]) for each in found.resolved]
    to = ", ".join(people) or ("everybody" if not signal.get("recipients") else "")
    workspace = signal.get("workspace_id")
    if workspace and not people:  # agents of other workspaces never see it
        to += f" in workspace {output.sanitize(workspace, keep='')}"
    lines = [
        SEPARATOR.join(
            (
                signal["signal_id"],
                output.paint(signal["intent"]),
                f"from {sender_text(signal.get('sender_name') or signal['sender_identity'], None)}",
                f"to {to}",
                output.record_position(found.commit),
            )
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
