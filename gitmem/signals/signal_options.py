"""What a writer may say in a signal beside its message, declared once for the library, the commands and the tools.

The options that set a field are declared with it in `records/kinds.py`; here are those that decide where a signal goes, or whether it is
recorded. `cli/commands/options.py` has their texts. A command that sends a signal does not import this module: for `send.py` it is a type.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (the types are evaluated for commands and tools)
from typing import NotRequired, get_type_hints

from ..records.option_types import ReplyFieldOptions, SignalFieldOptions


class ReplyOptions(ReplyFieldOptions):
    """The options of a reply. One that is missing, None or False is not given.

    Attributes:
        to: As typed, also comma lists. Default: `ReplyContext.members`; everybody if `broadcast` or without a thread.
        insist: Record even a decision under another identity than the session's own; `via` names the session.
    """

    to: NotRequired[Sequence[str] | None]
    insist: NotRequired[bool]


class SignalOptions(ReplyOptions, SignalFieldOptions):
    """The options of a signal; `wu`, `initiative` and `lane` of a reply are by default those of the answered signal.

    Attributes:
        broadcast: Send to everybody, also in a thread.
        reply_to: Signal id, or a prefix with at least six characters after the dash.
        thread: The id of a thread or of one of its signals, or the name of a thread; an unknown name begins one of this writer.
        allow_unseen: Accept an agent identity that is not in the log yet.
    """

    broadcast: NotRequired[bool]
    reply_to: NotRequired[str | None]
    thread: NotRequired[str | None]
    allow_unseen: NotRequired[bool]


TYPES = get_type_hints(SignalOptions)


def reject_unknown(options: SignalOptions) -> None:
    """Raise TypeError for an option that signals do not have, as a function does."""
    unknown = options.keys() - TYPES.keys()
    if unknown:
        raise TypeError(f"A signal has no option {', '.join(sorted(unknown))}; it has {', '.join(TYPES)}.")
