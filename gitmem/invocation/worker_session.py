"""Start the session of a worker: its name is how callers find it."""

from __future__ import annotations

from ..agents import presence
from ..agents.caller import CallerClaims
from ..errors import UsageError
from ..sessions import lifecycle
from ..text.name_matching import fold
from ..text.shell_quote import command
from . import WORKER, agent_lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sessions.session_result import SessionStarted
    from ..store import Store


def start(store: Store, name: str, options: Sequence[str] = ()) -> SessionStarted:
    """Start the session of a worker; with a name of the pool if another worker of this agent has its name.

    Args:
        name: The name or identity of the agent to serve.
        options: Those of `gitmem serve-agent`, which the commands for other names keep.

    Raises:
        UsageError: `bad-name`, `bad-identity`, or `name-in-use` by another agent.
        StoreError: It can't be recorded.
    """
    identity = agent_lookup.identity_of(name)
    chosen = None if identity == name else name
    try:
        return lifecycle.start(store, CallerClaims(), agent_identity=identity, name=chosen, client=WORKER)
    except UsageError as error:
        if error.code == "bad-name":
            raise UsageError(
                error.message,
                hint="Use letters of one script, digits, dashes and spaces.",
                code=error.code,
                next=["gitmem roster"],
            ) from error
        holders = presence.of_name(store, fold(name)) if error.code == "name-in-use" else []
        others = [each for each in holders if each.agent_identity != identity]
        if error.code != "name-in-use":
            raise
        if others:
            free = error.suggestions
            raise UsageError(
                f"The name {name} is in use by {others[0].session_id}. Nothing was recorded.",
                hint=f"Free names: {', '.join(free)}.",
                code=error.code,
                suggestions=free,
                next=[command("gitmem", "serve-agent", other, *options) for other in free],
            ) from error
    return lifecycle.start(store, CallerClaims(), agent_identity=identity, client=WORKER)
