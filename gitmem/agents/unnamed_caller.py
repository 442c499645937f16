"""The choice of a caller without an option, a variable or a terminal that identifies it."""

from __future__ import annotations

from ..errors import UsageError
from ..text.shell_quote import command
from . import caller_identity, own_sessions, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store
    from .caller_identity import Caller, CallerClaims
    from .presence import Presence

CANDIDATES_MAX = 10


def choose(store: Store, who: CallerClaims) -> Caller:
    """Choose the caller by the sessions of this clone.

    The only session of this worktree in 24 hours is chosen, if all of them are known: one that started while the git
    folder was read-only, as in a sandbox, left no file there. If sessions are known and none can be chosen, this is an
    error: a silent agent must not act as the person. Without any session it is the person, unless a client's marker
    shows that an agent calls.

    Raises:
        UsageError: `which-session`, or `no-person` without a session and `user.email`.
    """
    here = [one for one in own_sessions.of_worktree(store) if _may_be(one, who.client)]
    unregistered = [one for one in own_sessions.unregistered_here(store) if _may_be(one, who.client)]
    if unregistered:
        what = (
            f"Cannot tell who you are: GITMEM_SESSION is not set, and {unregistered[0].session_id} of this worktree started"
            " while the git folder was read-only"
        )
        raise which_session_error(
            here + unregistered,
            what,
            ["gitmem roster", "gitmem session start"],
            caller_identity.own_person(store),
        )
    if len(here) == 1:
        caller = caller_identity.of_session(here[0], "worktree")
        caller.remark = f"You act as {caller.name}, the only session of this worktree in the last 24 hours."
        caller.next = [command("export", f"GITMEM_SESSION={caller.session_id}")]
        return caller
    if here:
        what = f"Cannot tell who you are: {len(here)} sessions are active in this worktree, and GITMEM_SESSION is not set"
        raise which_session_error(
            here, what, ["gitmem roster", "gitmem session start"], caller_identity.own_person(store)
        )
    known = own_sessions.possible_callers(store)
    if not known and who.client is None:
        return caller_identity.person(store, "nobody")
    what = (
        "Cannot tell who you are: standard input is not a terminal, and this worktree has no active session"
    )
    if who.client is not None:
        what = f"Cannot tell who you are: {who.client or 'an agent'} has no active session in this worktree"
    raise which_session_error(
        known, what, ["gitmem session start", "gitmem roster"], caller_identity.own_person(store)
    )


def only_session(store: Store, who: CallerClaims) -> Caller | None:
    """Return the only session of this worktree that the caller may be, or None if there is none or it is unclear."""
    here = [one for one in own_sessions.of_worktree(store) if _may_be(one, who.client)]
    if len(here) != 1 or any(_may_be(one, who.client) for one in own_sessions.unregistered_here(store)):
        return None
    return caller_identity.of_session(here[0], "worktree")


def _may_be(one: Presence, client: str | None) -> bool:
    """Return whether a session may belong to a client: its client is this one or unknown."""
    return not client or one.record.get("client") in (None, client)


def which_session_error(
    found: Sequence[Presence], what: str, next: list[str], person: str | None = None
) -> UsageError:
    """Return the error with the candidates. The commands in `next`, run unchanged, act as none of them."""
    latest = sorted(found, key=lambda one: (one.age, one.session_id))
    mine = "Select your session with `export GITMEM_SESSION=ID` or --as ID. " if latest else ""
    mine += (
        "If none is yours, run `gitmem session start`. "
        if latest
        else "Start one with `gitmem session start`. "
    )
    ending = "End a finished session of yours with `gitmem session end --as ID`." if latest else ""
    typed = f"As a person in a script, use `{command('--as', person)}`. " if person else ""
    return UsageError(
        f"{what}. Nothing was written.",
        hint=(mine + typed + ending).strip(),
        code="which-session",
        suggestions=[presence.describe(one, one.session_id) for one in latest[:CANDIDATES_MAX]],
        next=next,
    )
