"""The session of ours that belongs to a client's session, and the text that introduces it to the agent."""

from __future__ import annotations

from gitmem.agents import caller as callers
from gitmem.agents import heartbeats, presence
from gitmem.clients.events import SHARED_ENVIRONMENT
from gitmem.errors import UsageError
from gitmem.outcome import quote
from gitmem.signals.message_frame import PROGRAM
from gitmem.text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.agents.caller import Caller
    from gitmem.agents.presence import Presence
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_call import HookInput

# Clients that pass their session id to their agent's commands, see `environment.SESSION_VARIABLES`.
_PASS_SESSION_ID = ("claude-code", "codex", "copilot", "opencode")
# Clients whose start gives variables to later hooks; whether the agent's shell gets them is unknown.
_SHELL_UNKNOWN = ("cursor",)


def caller(at: Environment, call: HookInput) -> Caller | None:
    """Return the reader, or None for a client's session without one of ours."""
    found = session(at, call)
    return callers.of_session(found, "harness") if found is not None else None


def session(at: Environment, call: HookInput) -> Presence | None:
    """Return the session that was started under the client's id, otherwise one that the user has named.

    An agent that starts another agent passes GITMEM_SESSION on. A session of one client must never be used by another,
    so the variable counts only if no client has started that session.
    """
    found = presence.of_client(at.store(), call.session) if call.session else None
    return found or named(at.store(), at.session, call.client, call.session)


def named(store: Store, name: str | None, client: str, own: str | None) -> Presence | None:
    """Return the session that GITMEM_SESSION names, if it has not ended and does not belong to another client's session.

    Args:
        own: The client's id of its session.
    """
    if not name or client in SHARED_ENVIRONMENT:
        return None
    found = presence.get(store, name)
    if found is None or found.ended is not None or found.harness_session is not None:
        return None
    return found if heartbeats.client_of(store, found.session_id) in ("", own) else None


def introduction(at: Environment, call: HookInput, caller: Caller, *, exported: bool = False) -> str:
    """Return the introduction. It has the session id if the agent's own commands would not know it.

    Args:
        exported: Whether the client exports GITMEM_SESSION to these commands.
    """
    about = f" on {sanitize_for_model(caller.wu_id)}" if caller.wu_id else ""
    line = (
        f"You are {sanitize_for_model(caller.name or caller.reader)} ({sanitize_for_model(caller.reader)}) to the other agents in this"
        f" repository{about}. `gitmem inbox` shows your messages, `gitmem signal 'TEXT' --to NAME` sends one,"
        " `gitmem roster` lists the agents."
    )
    if _knows_session(at, call, caller, exported):
        return line
    return f"{line} Run it as `GITMEM_SESSION={caller.session_id} gitmem …`."


def offer_identity(store: Store, caller: Caller) -> str:
    """Return the line that offers an agent without an identity that of the last agent of this worktree, or ""."""
    from gitmem.agents import lifecycle

    former = lifecycle.former_agent(store, caller)
    if former is None:
        return ""
    name, where = (sanitize_for_model(each) for each in (former.name, former.worktree or ""))
    take = sanitize_for_model(lifecycle.take_identity(store, former))
    ago = presence.format_age(former.age)
    waits = lifecycle.unread_in_words(store, former)
    gives = "gives you" if former.agent_identity else "shows"
    return f"{name} worked in {where}, {ago}{waits}. If you are {name}, `{take}` {gives} its messages."


def reply_program(at: Environment, call: HookInput, caller: Caller, *, exported: bool = False) -> str:
    """Return the program of reply lines, with the session id if the agent's own commands would not know it."""
    session = caller.session_id
    if session is None or (call.client not in _SHELL_UNKNOWN and _knows_session(at, call, caller, exported)):
        return PROGRAM
    return f"{PROGRAM} --as {quote(session)}"


def _knows_session(at: Environment, call: HookInput, caller: Caller, exported: bool) -> bool:
    try:
        passes_id = call.client in _PASS_SESSION_ID and not at.is_nested(call.session)
        return exported or passes_id or caller.session_id in (None, at.session)
    except UsageError:  # a variable that is not text names no session
        return False
