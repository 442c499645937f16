"""Errors for unknown recipients and callers, and remarks about recipients whose sessions have ended."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..text.name_matching import fold, is_identity, is_reserved, is_word
from ..text.shell_quote import command
from . import own_recipients, presence
from . import suggestions as suggest
from .presence import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store
    from .presence import Presence

DID_YOU_MEAN = "Did you mean one of these? Check who it is, not only the spelling."


def error(store: Store, text: str, option: str) -> UsageError:
    """Return the error for an unknown recipient.

    Args:
        store: The open store.
        text: The text as typed.
        option: The option of the text, such as `--to`.
    """
    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    forged = own_recipients.warning(store, former.session_id) if former is not None else None
    if former is not None and forged is not None:
        return UsageError(
            f"{option}: {sanitize(text)[:80]} is not the name of {former.session_id} by its own records. "
            "Nothing was written.",
            hint=forged,
            code="unknown-recipient",
            suggestions=[former.session_id],
            next=["gitmem doctor", "gitmem roster"],
        )
    if former is not None:
        return _former_name(store, text, option, former)
    suggestions = suggest.suggestions(store, text)
    hint = DID_YOU_MEAN if suggestions else ""
    next_commands = [
        command("gitmem", "roster", text) if text.isprintable() and 0 < len(text) <= 80 else "gitmem roster"
    ]
    if _has_never_synced(store):
        hint = f"{hint} This clone has never synced: `gitmem sync` fetches the other agents.".strip()
        next_commands.insert(0, "gitmem sync")
    elif is_word(text):
        hint = "This word is reserved and cannot be a name. To reach everybody, use --broadcast."
    elif is_identity(text):
        hint = f"{hint} To send to an identity that is not in the log yet, use --allow-unseen.".strip()
    return UsageError(
        f"{option}: unknown recipient: {sanitize(text)[:80] or '(empty)'}. Nothing was written.",
        hint=hint or "`gitmem roster` lists the agents.",
        code="unknown-recipient",
        suggestions=suggestions,
        next=next_commands,
    )


def caller_error(store: Store, text: str) -> UsageError:
    """Return the error for a `--as` that names nobody. It only suggests sessions of this clone, and never guesses."""
    shown = sanitize(text)[:80] or "(empty)"
    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    what = f"; {_why_former(store, text, former)}" if former is not None else ""
    suggestions = suggest.suggestions(store, text, here=True) if text else []
    return UsageError(
        f"--as: unknown session, identity or name: {shown}{what}. Nothing was written.",
        hint=DID_YOU_MEAN
        if suggestions
        else "Give an exact session id, an agent identity or the name of an active session; "
        "an identity becomes known when its first session starts.",
        code="unknown-session",
        suggestions=suggestions,
        next=["gitmem roster --all", "gitmem session start"],
    )


def ambiguous_id(text: str, found: Sequence[Presence]) -> UsageError:
    """Return the error for a text that is the beginning of several session ids.

    Args:
        text: The text as typed.
        found: The sessions.
    """
    return UsageError(
        f"Ambiguous session id: {sanitize(text)} is the beginning of several. Nothing was written.",
        hint="Use a full id or a longer prefix.",
        code="ambiguous-recipient",
        suggestions=[presence.describe(one, one.session_id) for one in found[:3]],
        next=["gitmem roster --all"],
    )


def _former_name(store: Store, text: str, option: str, former: Presence) -> UsageError:
    """Return the error for a name that a session had and no longer has."""
    shown, what = sanitize(text)[:80], _why_former(store, text, former)
    to = sanitize(former.reader)
    if former.agent_identity is not None and former.ended is not None:
        hint = f"To reach the next session of the same agent, send to its identity: --to {to}."
    elif former.ended is not None and former.harness_session is not None:
        hint = f"Its conversation reads it if it is resumed: --to {to}. The roster has the agents at work."
    elif former.ended is not None:
        hint = (
            "It has no agent identity, so no later session reads its signals. Send to an agent in the roster."
        )
    else:
        hint = f"To reach it anyway, send to {to}."
    return UsageError(
        f"{option}: unknown recipient: {shown}; {what}. Nothing was written.",
        hint=hint,
        code="unknown-recipient",
        suggestions=suggest.suggestions(store, text),
        next=["gitmem roster"],
    )


def _why_former(store: Store, text: str, former: Presence) -> str:
    """Return what became of the session that had a name."""
    session = f"the session of that name, {former.session_id},"
    if former.ended is not None:
        return f"{session} ended {format_age(store.now() - former.ended)}"
    if fold(former.name) != fold(text):
        return f"{session} is now called {sanitize(former.name)}"
    return f"{session} was last seen {format_age(former.age)}, and the name is free"


def ended_session(session: Presence, now: int) -> str:
    """Return the remark for signals to the id of an ended session.

    Args:
        session: The session; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"{sanitize(session.name)} ({session.session_id}) ended {format_age(now - (session.ended or now))}"
    if session.agent_identity is not None:
        return f"{when}; this is sent to its identity {sanitize(session.agent_identity)}, whose sessions all read it."
    if session.harness_session is not None:
        return f"{when} and has no agent identity: only its conversation reads this, if it is resumed. `gitmem roster` lists active agents."
    return f"{when} and has no agent identity, so no later session reads this. `gitmem roster` lists active agents."


def ended_identity(identity: str, latest: Presence, now: int) -> str:
    """Return the remark for signals to an identity whose sessions have all ended.

    Args:
        identity: The agent identity.
        latest: Its session that was seen last; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"the last one, {sanitize(latest.name)}, {format_age(now - (latest.ended or now))}"
    return f"All sessions of {sanitize(identity)} have ended ({when}); its next session reads this."


def unheld_identity(identity: str) -> str:
    """Return the remark for signals to a known identity that no session has."""
    return f"No session has the identity {sanitize(identity)} now: the signal is read when one takes it."


def _has_never_synced(store: Store) -> bool:
    from ..log.ref import REMOTES_PREFIX

    return not store.git.refs(REMOTES_PREFIX) and store.has_remote()
