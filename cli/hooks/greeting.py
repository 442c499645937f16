"""One line for the agent: who it is to others, and how it speaks with them."""

from __future__ import annotations

from gitmem.errors import UsageError
from gitmem.operations.frame import PROGRAM
from gitmem.operations.quoting import quote
from gitmem.text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.caller import Caller

    from ..surroundings import Surroundings
    from .given import Given

# Clients that tell the commands of their agent which session they belong to, see `surroundings.HARNESSES`.
_TOLD = ("claude-code", "codex", "copilot", "opencode")

# Its start gives variables to the hooks that follow; whether the agent's shell has them is not known.
_APART = ("cursor",)


def you(at: Surroundings, call: Given, caller: Caller, *, exported: bool = False) -> str:
    """The line. It names the session where the agent's own commands would not know it.

    Args:
        exported: Whether the client puts GITMEM_SESSION into their environment.
    """
    about = f" on {sanitize_for_model(caller.wu_id)}" if caller.wu_id else ""
    line = (
        f"You are {sanitize_for_model(caller.name or caller.reader)} ({sanitize_for_model(caller.reader)}) to the other agents in this"
        f' repository{about}. `gitmem inbox` reads, `gitmem signal "TEXT" --to NAME` speaks,'
        " `gitmem roster` says who is here."
    )
    if _knows(at, call, caller, exported):
        return line
    return f"{line} Call it as `GITMEM_SESSION={caller.session_id} gitmem …`."


def via(at: Surroundings, call: Given, caller: Caller, *, exported: bool = False) -> str:
    """The program as the reply lines have it: with the session where the agent's own commands would not know it."""
    session = caller.session_id
    if session is None or (call.client not in _APART and _knows(at, call, caller, exported)):
        return PROGRAM
    return f"{PROGRAM} --as {quote(session)}"


def _knows(at: Surroundings, call: Given, caller: Caller, exported: bool) -> bool:
    try:
        told = call.client in _TOLD and not at.is_nested(call.session)
        return exported or told or caller.session_id in (None, at.session)
    except UsageError:  # a variable that is no text names nobody
        return False
