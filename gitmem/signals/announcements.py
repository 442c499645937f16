"""Signals that gitmem writes to everybody: notices, milestones of sessions, and completions.

A notice is a signal that any clone may send, and that is one signal however many do (`mailbox.NOTICES`). Its id, text and
fields are functions of a key, so two clones that send one before they sync make the same signal. The completion of a work
unit is one. Only an agent says that something is done; the end of a session alone says nothing.
"""

from __future__ import annotations

from ..agents import caller as callers
from ..agents import descriptions, mailbox, presence
from ..errors import GitmemError, UsageError
from ..order.content import ANNOUNCER, INTENTS, keyed_content, notice_text
from ..records.ids import keyed_id, unit_key
from . import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionResult
    from ..records.record_types import SignalFields
    from ..store import Store
    from .signal_options import SignalOptions


LINES_MAX = 1_000  # that are read of one id or thread


def notice_fields(store: Store, caller: Caller, kind: str, key: str) -> SignalFields:
    """Return the fields of a notice to everybody, as this caller would send it."""
    fields = send.addressed(store, caller, notice_text(kind, key), (), None, None)
    fields["signal_id"] = keyed_id("sig", ANNOUNCER, kind, key)
    fields["idempotency_key"] = f"{kind} {key}"
    fields["intent"] = INTENTS[0]
    fields["interrupt_class"] = "advisory"
    fields["workspace_id"] = None
    send.set_recorder(store, caller, fields, insist=False)
    return fields


def is_notice_recorded(store: Store, caller: Caller, fields: SignalFields) -> bool:
    """Return whether this clone has written the notice.

    Anybody can write the line of a notice beforehand: with an old time or another sender it would reach nobody, and with
    other words it would conflict. So only a line that was written here makes a second one unnecessary.
    """
    named = mailbox.signals_from_here(store.db(), fields["signal_id"], caller.ids, LINES_MAX)
    return any(keyed_content(record) == keyed_content(fields) for record, _ in named)


def record_notice(
    store: Store, caller: Caller, fields: SignalFields, resolved: Sequence[Resolved] = ()
) -> None:
    """Record a notice.

    Raises:
        UsageError: Its key is invalid, or looks like a secret. Nothing was written.
        StoreError: The signal can't be recorded.
    """
    fields["sender_headline"] = descriptions.headline_of_caller(store, store.db(), caller)
    stream, line = store.line("signal", fields)
    send.record_signal(store, caller, stream, line, resolved)


COMPLETION = "completion"


def unit_of(caller: Caller, wu: str | None = None) -> str:
    """Return the work unit that is done: the given one, else that of the caller's session.

    Raises:
        UsageError: `no-wu`: there is none.
    """
    unit = wu or caller.wu_id
    if not unit:
        raise UsageError(
            "Missing work unit: --done says that one is done, and your session has none. Nothing was written.",
            hint="Set it, such as `gitmem session set --wu WU-7`.",
            code="no-wu",
            next=["gitmem session set --wu WU-7"],
        )
    return unit


def end_session(
    store: Store,
    caller: Caller,
    *,
    summary: str | None = None,
    done: bool = False,
) -> SessionResult:
    """End the caller's session, see `lifecycle.end`.

    Args:
        summary: What the session did, for others.
        done: First tell everybody that the session's work unit is done.

    Raises:
        UsageError: As `lifecycle.end_line`, and `no-wu` with `done`. Nothing was written, and nobody was told.
    """
    from ..agents import lifecycle

    told = None
    if done:
        unit = unit_of(caller)
        lifecycle.end_line(store, caller, summary)  # refuses before anybody is told
        told = announce(store, caller, unit)
    ended = lifecycle.end(store, caller, summary=summary)
    if told is not None:
        ended.remark = " ".join(filter(None, (told, ended.remark)))
    return ended


def spelling(unit: str) -> str:
    """Return the one spelling of a work unit in notices, whose texts and ids must not depend on how it was typed."""
    key = unit_key(unit)
    name, _, number = key.rpartition("-")
    return key.upper() if name[:1].isalpha() and name.isalnum() and number.isdigit() else key


def announce(store: Store, caller: Caller, unit: str) -> str:
    """Broadcast that a work unit is done, unless this clone has done so; return a sentence that says so.

    Raises:
        UsageError: The work unit is invalid. Nothing was written.
        StoreError: The signal can't be recorded.
    """
    unit = spelling(unit)
    fields = notice_fields(store, caller, COMPLETION, unit)
    fields["wu_id"] = unit
    told = "Everybody was told before"
    if not is_notice_recorded(store, caller, fields):
        record_notice(store, caller, fields)
        told = "Everybody is told"
    return f"{told} that {unit} is done ({fields['signal_id']})."


def change_session(
    store: Store, caller: Caller, *, activity: str | None = None, milestone: bool = False, **fields: Any
) -> SessionResult:
    """Change the caller's session as `lifecycle.change` does, and send a note that is a milestone to everybody.

    Args:
        activity: The note, the current activity in one line; "" clears it.
        milestone: Send the note.
        fields: Other options of `lifecycle.change`.

    Raises:
        UsageError: As in `lifecycle.change`. Nothing was written.
        StoreError: The change can't be recorded.
    """
    from ..agents import lifecycle

    if activity is None:
        return lifecycle.change(store, caller, **fields)
    note = " ".join(activity.split())
    changed = lifecycle.change(store, caller, activity=note, **fields)
    told = None
    if not note:
        told = "Activity note cleared."
    elif milestone:
        told = _send_note(store, changed, note)
    changed.remark = " ".join(filter(None, (told, changed.remark))) or None
    return changed


def _send_note(store: Store, changed: SessionResult, note: str) -> str:
    """Broadcast the note of a session; return the result, also of a failure, in one sentence."""
    options: SignalOptions = {"broadcast": True, "wu": changed.wu_id}
    try:
        found = presence.get(store, changed.session_id)
        assert found is not None
        sent = send.send(store, callers.of_session(found, "session"), note, **options)
    except GitmemError as error:
        return f"The note is recorded, but nobody is told: {error.message} Send it again as a milestone."
    return f"Everybody is told ({sent.signal['signal_id']})."
