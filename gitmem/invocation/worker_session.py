"""Start the session of a worker: its name is how callers find it."""

from __future__ import annotations

from ..agents import lifecycle, presence
from ..agents.caller import CallerClaims
from ..errors import UsageError
from ..outcome import command
from ..text.name_matching import fold
from . import WORKER, agent_lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.lifecycle import SessionStarted
    from ..store import Store


def start(
    store: Store, agent: str, options: Sequence[str] = (), *, name: str | None = None
) -> SessionStarted:
    """Start the session of a worker; with a name of the pool if another worker of this agent has its name.

    Args:
        agent: The name or identity of the agent to serve.
        name: The session's name if it is free and valid; by default the agent's, else one of the pool.
        options: Those of `gitmem serve-agent`, which the commands for other names keep.

    Raises:
        UsageError: `bad-name`, `bad-identity`, or `name-in-use` by another agent.
        StoreError: It can't be recorded.
    """
    identity = agent_lookup.identity_of(agent)
    is_wished, name = name is not None, name or (None if identity == agent else agent)
    try:
        return lifecycle.start(store, CallerClaims(), agent_identity=identity, name=name, client=WORKER)
    except UsageError as error:
        if error.code == "bad-name" and not is_wished:
            raise UsageError(
                error.message,
                hint="Use letters of one script, digits, dashes and spaces.",
                code=error.code,
                next=["gitmem roster"],
            ) from error
        holders = presence.of_name(store, fold(name or "")) if error.code == "name-in-use" else []
        others = [each for each in holders if each.agent_identity != identity]
        if error.code != "name-in-use" and not (is_wished and error.code == "bad-name"):
            raise
        if others and not is_wished:
            free = error.suggestions
            raise UsageError(
                f"The name {name} is in use by {others[0].session_id}. Nothing was recorded.",
                hint=f"Free names: {', '.join(free)}.",
                code=error.code,
                suggestions=free,
                next=[command("gitmem", "serve-agent", other, *options) for other in free],
            ) from error
    return lifecycle.start(store, CallerClaims(), agent_identity=identity, client=WORKER)
