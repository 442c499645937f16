"""What a writer may say in a signal beside its message, declared once for the library, the commands and the tools.

`cli/shared_options.py` has the texts of these options; commands and tools get their parameters from both. A command that
sends a signal does not import this module: for `send.py` it is a type.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (the types are evaluated for commands and tools)
from typing import NotRequired, TypedDict, get_type_hints


class ReplyOptions(TypedDict):
    """The options of a reply. One that is missing, None or False is not given.

    Attributes:
        to: As typed, also comma lists. Default: `ReplyContext.members`; everybody if `broadcast` or without a thread.
        requires_ack: The sender waits for AGREE or REJECT.
        idempotency_key: The same key with the same content is the same signal, on all clones.
        allow_secret: Record text that looks like a secret.
        insist: Record even a decision under another identity than the session's own; `via` names the session.
    """

    to: NotRequired[Sequence[str] | None]
    requires_ack: NotRequired[bool]
    idempotency_key: NotRequired[str | None]
    allow_secret: NotRequired[bool]
    insist: NotRequired[bool]


class SignalOptions(ReplyOptions):
    """The options of a signal.

    Attributes:
        broadcast: Send to everybody, also in a thread.
        intent: INFO (default), PROPOSE, COUNTER, AGREE or REJECT, in upper or lower case.
        reply_to: Signal id, or a prefix with at least six characters after the dash.
        thread: The id of a thread or of one of its signals; an unknown id begins a thread.
        wu: Work unit. Default for a reply: that of the answered signal.
        initiative: Initiative. Default: as of `wu`.
        lane: Lane. Default: as of `wu`.
        interrupt: `priority` (default if there are recipients) or `advisory`.
        target_role: The role that it is meant for. It selects no recipients.
        delegation_id: The delegation that it belongs to.
        artifact: The file that the signal refers to.
        allow_unseen: Accept an agent identity that is not in the log yet.
        fuzzy: Accept the nearest name if it is unambiguous.
    """

    broadcast: NotRequired[bool]
    intent: NotRequired[str | None]
    reply_to: NotRequired[str | None]
    thread: NotRequired[str | None]
    wu: NotRequired[str | None]
    initiative: NotRequired[str | None]
    lane: NotRequired[str | None]
    interrupt: NotRequired[str | None]
    target_role: NotRequired[str | None]
    delegation_id: NotRequired[str | None]
    artifact: NotRequired[str | None]
    allow_unseen: NotRequired[bool]
    fuzzy: NotRequired[bool]


TYPES = get_type_hints(SignalOptions)


def reject_unknown(options: SignalOptions) -> None:
    """Raise TypeError for an option that signals do not have, as a function does."""
    unknown = options.keys() - TYPES.keys()
    if unknown:
        raise TypeError(f"A signal has no option {', '.join(sorted(unknown))}; it has {', '.join(TYPES)}.")
