"""Notices: signals that any clone may send, and that are one signal however many do (`mailbox.content.NOTICES`).

Their id, text and fields are functions of a key, so two clones that send one before they sync make the same signal.
"""

from __future__ import annotations

from .. import records
from ..agents import descriptions
from ..agents.mailbox import ANNOUNCER, keyed_content, notice_text
from ..records.ids import keyed_id
from . import INTENTS, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..records.record_types import SignalFields
    from ..store import Store

LINES_MAX = 1_000  # of one id, which peers can write


def fields_of(store: Store, caller: Caller, kind: str, key: str) -> SignalFields:
    """Return the fields of a notice to everybody, as this caller would send it."""
    fields = send.addressed(store, caller, notice_text(kind, key), (), None, None)
    fields["signal_id"] = keyed_id("sig", ANNOUNCER, kind, key)
    fields["idempotency_key"] = f"{kind} {key}"
    fields["intent"] = INTENTS[0]
    fields["interrupt_class"] = "advisory"
    fields["workspace_id"] = None
    send.set_recorder(store, caller, fields, insist=False)
    return fields


def is_recorded(store: Store, caller: Caller, fields: SignalFields) -> bool:
    """Return whether this clone has written the notice; without a session, whose lines are signed, whether the caller has.

    Anybody can write the line of a notice beforehand: with an old time or another sender it would reach nobody, and with
    other words it would conflict. So only a line that was written here makes a second one unnecessary.
    """
    rows = store.db().execute(
        "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? LIMIT ?",
        (fields["signal_id"], LINES_MAX),
    )
    for (body,) in rows:
        line = body.encode()
        is_own = is_own_line(store, line)
        if not is_own and caller.session_id is not None:
            continue
        record = records.read_kind("signal", line)
        if record is None or not (is_own or record["sender_identity"] in caller.ids):
            continue
        if keyed_content(record) == keyed_content(fields):
            return True
    return False


def is_own_line(store: Store, line: bytes) -> bool:
    """Return whether a session of this clone wrote a line."""
    mac = store.keys.now().mac
    return mac is not None and mac.is_valid(line)


def record(store: Store, caller: Caller, fields: SignalFields, resolved: Sequence[Resolved] = ()) -> None:
    """Record a notice.

    Raises:
        UsageError: Its key is invalid, or looks like a secret. Nothing was written.
        StoreError: The signal can't be recorded.
    """
    fields["sender_headline"] = descriptions.headline_of_caller(store, store.db(), caller)
    stream, line = store.line("signal", fields)
    send.record_signal(store, caller, stream, line, resolved)
