"""The brake on two agents that answer each other without end.

Their signals are never lost: from some length on they are advisory, so that they wake nobody, and the
writer is told. Only a repository that says so refuses them.
"""

from __future__ import annotations

from ..errors import UsageError
from ..log.lines import format_at
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agents.caller import Caller
    from ..store import Store
    from .causality import Said

TURNS_MAX = 12
WINDOW_MICROS = 10 * 60 * 1_000_000
SETTING = "gitmem.looplimit"  # in small letters, as `settings` has it
ENDS = ("AGREE", "REJECT")


def brake(store: Store, caller: Caller, said: Mapping[str, Said], fields: dict[str, object]) -> str | None:
    """Make a signal advisory that is one of a long loop; what its writer should know of that, else None.

    A decision is never held up: it is how a chain ends.

    Args:
        said: The signals of its thread.
        fields: The signal that is about to be written.

    Raises: UsageError `loop` beyond the limit that git config sets.
    """
    if not said or caller.is_person or (fields.get("intent") in ENDS and fields.get("reply_to")):
        return None
    turns, other = _turns(store.now(), caller, said, fields.get("wu_id"))
    limit = _limit(store)
    if limit is not None and turns > limit:
        raise _refused(turns, limit, other, fields)
    if turns <= TURNS_MAX:
        return None
    fields["interrupt_class"] = "advisory"
    return (
        f"This is turn {turns} between you and {other} in this thread within {WINDOW_MICROS // 60_000_000} minutes, "
        "with no word of a person and no new work unit in between, so it goes as advisory and interrupts nobody. "
        "End it with --agree or --reject, or ask a person."
    )


def _turns(now: int, caller: Caller, said: Mapping[str, Said], wu: object) -> tuple[int, str]:
    """How many turns two agents took, with the one that begins or goes on now, and how the other one is called.

    Several signals of one in a row are one turn. A third one's word, a person's, another work unit or ten
    minutes end the run.
    """
    us, oldest = caller.reader, format_at(max(0, now - WINDOW_MICROS))
    turns, last, other, name = 1, us, "", ""
    for each in sorted(said.values(), key=lambda one: one.line, reverse=True):
        sender = each.text("sender_identity") or ""
        if any(each.is_by(id) for id in caller.ids):
            sender = us
        if str(each.record["at"]) < oldest or each.text("wu_id") != (wu or None):
            break
        if sender.startswith("human:") or (sender != us and other and sender != other):
            break
        if sender != us:
            other, name = sender, name or each.text("sender_name") or sender
        turns += sender != last
        last = sender
    return (turns, sanitize_for_model(name)) if other else (1, "")


def _limit(store: Store) -> int | None:
    """The number of turns from git config; None where there is none, or where it is no number above 0."""
    text = store.settings().get(SETTING, "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _refused(turns: int, limit: int, other: str, fields: Mapping[str, object]) -> UsageError:
    answers = fields.get("reply_to")
    ends = [command("gitmem", "reply", str(answers), "agreed", "--agree")] if answers else []
    return UsageError(
        f"This would be turn {turns} between you and {other} in this thread within "
        f"{WINDOW_MICROS // 60_000_000} minutes, and gitmem.loopLimit is {limit}; nothing was written.",
        hint="End it with --agree or --reject, which are never refused, or ask a person: their word begins a new run.",
        code="loop",
        next=[*ends, command("gitmem", "thread", str(fields.get("thread_id")))],
    )
