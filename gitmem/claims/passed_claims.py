"""Claims of others on what somebody claims: they refuse it, or are passed for a reason that everybody can read.

Whoever can push can claim everything in any number of names. So no claim keeps anybody from another for good.
"""

from __future__ import annotations

from ..agents import audits
from ..commit_message import sanitize
from ..errors import GateError, UsageError
from ..text.sanitize import is_blank
from ..text.shell_quote import command
from .claim_answers import paths_text, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .standing_claims import StandingClaim

SHOWN, NAMED = 5, 10  # claims that are passed


def refuse(others: Sequence[StandingClaim], paths: Sequence[str]) -> None:
    """Raise GateError if somebody else has claimed the paths."""
    if others:
        more = f", and {len(others) - 1} more" if len(others) > 1 else ""
        raise GateError(
            f"Already claimed: {text_of(others[0])}{more}. Nothing was written.",
            hint=f"Ask {sanitize(others[0].who)}, wait, or claim other paths.",
            code="claimed",
            next=[
                command(
                    "gitmem",
                    "signal",
                    f"May I change {paths_text(paths)}?",
                    "--to",
                    others[0].claim.owner[0],
                ),
                "gitmem claim list",
                command("gitmem", "claim", "paths", *paths, "--anyway", "why"),
            ],
        )


def check(
    store: Store,
    caller: Caller,
    others: Sequence[StandingClaim],
    paths: Sequence[str],
    anyway: str | None,
    *,
    allow_secret: bool,
) -> audits.Audit | None:
    """Refuse a claim on what others have claimed, or return the audit of the reason, which is to be recorded with it.

    Args:
        others: Their claims, those known longest first.
        paths: What is to be claimed.
        anyway: The reason, if there is one.

    Returns:
        The audit; None if nobody else has claimed anything.

    Raises:
        GateError: There is no reason to pass them. Nothing was written.
        UsageError: The reason is empty or invalid. Nothing was written.
    """
    if anyway is None:
        refuse(others, paths)
        return None
    if is_blank(anyway):
        raise UsageError("--anyway is empty. Nothing was written.", code="no-reason")
    if not others:
        return None
    named = ", ".join(each.id for each in others[:NAMED])
    past = f"{others[0].who}'s claim on {paths_text(others[0].claim.record['paths'])}"
    return audits.prepare(
        store, caller, audits.CLAIM, past, f"{anyway} ({named})", wu=caller.wu_id, allow_secret=allow_secret
    )


def notes(others: Sequence[StandingClaim]) -> list[str]:
    """Return the first claims that were passed, and how many more there were."""
    more = [f"{len(others) - SHOWN} more claims: passed."] if others[SHOWN:] else []
    return [*(f"{text_of(each)}: passed." for each in others[:SHOWN]), *more]
