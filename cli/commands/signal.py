"""`gitmem signal` and its short form `gitmem reply`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import frequent
from ..options import (
    AllowSecret,
    Initiative,
    Key,
    Lane,
    Message,
    Quiet,
    RequiresAck,
    SignalId,
    SyncToo,
    Thread,
    To,
    Wu,
)
from ..surroundings import Surroundings

Broadcast = Annotated[bool, typer.Option("--broadcast", help="To everybody, also in a thread.")]
Intent = Annotated[
    str | None, typer.Option("--intent", metavar="INTENT", help="INFO, PROPOSE, COUNTER, AGREE or REJECT.")
]
ReplyTo = Annotated[str | None, typer.Option("--reply-to", metavar="ID", help="The signal that it answers.")]
Interrupt = Annotated[str | None, typer.Option("--interrupt", metavar="CLASS", help="advisory or priority.")]
Artifact = Annotated[str | None, typer.Option("--artifact", metavar="PATH", help="A file that it points to.")]
AllowUnseen = Annotated[
    bool, typer.Option("--allow-unseen", help="Accept an identity that this log has never seen.")
]
Insist = Annotated[
    bool,
    typer.Option(
        "--insist", help="Record a decision under --as though your session is another; it is named."
    ),
]
Fuzzy = Annotated[bool, typer.Option("--fuzzy", help="Take the one name that is clearly nearest.")]


def signal(
    at: Surroundings,
    message: Message,
    to: To = None,
    broadcast: Broadcast = False,
    wu: Wu = None,
    initiative: Initiative = None,
    lane: Lane = None,
    intent: Intent = None,
    requires_ack: RequiresAck = False,
    reply_to: ReplyTo = None,
    thread: Thread = None,
    interrupt: Interrupt = None,
    artifact: Artifact = None,
    idempotency_key: Key = None,
    sync: SyncToo = False,
    allow_unseen: AllowUnseen = False,
    fuzzy: Fuzzy = False,
    allow_secret: AllowSecret = False,
    insist: Insist = False,
    quiet: Quiet = False,
) -> int:
    """Say something to somebody (--to), to a thread, or to everybody. It is committed before this returns."""
    return frequent.signal(
        at, message, to=to or (), broadcast=broadcast, wu=wu, initiative=initiative, lane=lane, intent=intent,
        requires_ack=requires_ack, reply_to=reply_to, thread=thread, interrupt=interrupt, artifact=artifact,
        idempotency_key=idempotency_key, sync=sync, allow_unseen=allow_unseen, fuzzy=fuzzy,
        allow_secret=allow_secret, insist=insist, quiet=quiet,
    )  # fmt: skip


def reply(
    at: Surroundings,
    id: SignalId,
    message: Message,
    agree: Annotated[bool, typer.Option("--agree", help="Agree.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject.")] = False,
    counter: Annotated[bool, typer.Option("--counter", help="Propose something else.")] = False,
    to: To = None,
    requires_ack: RequiresAck = False,
    idempotency_key: Key = None,
    sync: SyncToo = False,
    allow_secret: AllowSecret = False,
    insist: Insist = False,
    quiet: Quiet = False,
) -> int:
    """Answer a signal; it goes to whoever wrote it, in its thread."""
    return frequent.reply(
        at, id, message, agree=agree, reject=reject, counter=counter, to=to or (), requires_ack=requires_ack,
        idempotency_key=idempotency_key, sync=sync, allow_secret=allow_secret, insist=insist, quiet=quiet,
    )  # fmt: skip
