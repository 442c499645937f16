"""Slow down two agents that answer each other without end.

Their signals are not lost: after some turns they become advisory, so they interrupt nobody, and the writer gets a
warning. They are rejected only if git config sets a limit.
"""

from __future__ import annotations

from ..errors import UsageError
from ..log.lines import format_at
from ..records.ids import unit_key
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agents.caller import Caller
    from ..records.record_types import SignalFields
    from ..store import Store
    from .causality import ThreadSignal

TURNS_MAX = 12
WINDOW_MICROS = 10 * 60 * 1_000_000
SETTING = "gitmem.looplimit"  # in lower case, as in `settings`
ENDS = ("AGREE", "REJECT")


def limit_loop(
    store: Store, caller: Caller, thread: Mapping[str, ThreadSignal], fields: SignalFields
) -> str | None:
    """Make a signal of a long loop advisory; return a warning for its writer, else None.

    An AGREE or REJECT of a signal is never affected: it ends the loop.

    Args:
        thread: The signals of its thread.
        fields: The signal to be written; modified.

    Raises:
        UsageError: `loop` beyond the limit in git config.
    """
    if not thread or caller.is_person or (fields.get("intent") in ENDS and fields.get("reply_to")):
        return None
    turns, other = _count_turns(store.now(), caller, thread, fields.get("wu_id"))
    limit = _limit(store)
    if limit is not None and turns > limit:
        raise _refused(turns, limit, other, fields)
    if turns <= TURNS_MAX:
        return None
    fields["interrupt_class"] = "advisory"
    return (
        f"This is turn {turns} between you and {other} in this thread within {WINDOW_MICROS // 60_000_000} minutes, "
        "without a message from a person or a new work unit, so it is sent as advisory and interrupts nobody. "
        "End it with --agree or --reject, or ask a person."
    )


def _count_turns(
    now: int, caller: Caller, thread: Mapping[str, ThreadSignal], wu: str | None
) -> tuple[int, str]:
    """Return the number of turns of two agents, including the current one, and the name of the other agent.

    Consecutive signals of one agent are one turn. A signal of a third agent or of a person, another work unit, or an
    age of ten minutes ends the run.
    """
    us, oldest = caller.reader, format_at(max(0, now - WINDOW_MICROS))
    turns, last, other, name = 1, us, "", ""
    for each in sorted(thread.values(), key=lambda one: one.line, reverse=True):
        sender = each.record["sender_identity"]
        if any(each.is_by(id) for id in caller.ids):
            sender = us
        if each.record["at"] < oldest or unit_key(each.record.get("wu_id")) != unit_key(wu):
            break
        if sender.startswith("human:") or (sender != us and other and sender != other):
            break
        if sender != us:
            other, name = sender, name or each.record.get("sender_name") or sender
        turns += sender != last
        last = sender
    return (turns, sanitize_for_model(name)) if other else (1, "")


def _limit(store: Store) -> int | None:
    """Return the number of turns from git config, or None if it is missing or not a number above 0."""
    text = store.settings().get(SETTING, "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _refused(turns: int, limit: int, other: str, fields: SignalFields) -> UsageError:
    answers = fields.get("reply_to")
    ends = [command("gitmem", "reply", answers, "agreed", "--agree")] if answers else []
    return UsageError(
        f"This would be turn {turns} between you and {other} in this thread within "
        f"{WINDOW_MICROS // 60_000_000} minutes; the limit gitmem.loopLimit is {limit}. Nothing was written.",
        hint="End it with --agree or --reject, which are always accepted, or ask a person: a message from a person resets the count.",
        code="loop",
        next=[*ends, command("gitmem", "thread", fields["thread_id"] or "")],
    )
