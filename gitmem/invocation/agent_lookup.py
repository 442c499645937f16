"""Find the agent that a call names: exactly, in another spelling, by an alias, or not at all. Guesses are only suggested."""

from __future__ import annotations

from ..agents import addressing, presence, vocabulary
from ..commit_message import sanitize
from ..errors import UsageError
from ..text.name_matching import fold
from . import AGENTS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..store import Store

_SHOWN_MAX = 80  # characters of a text that names nobody
_SUGGESTED_MAX = 5
_PREFIX = "gitmem:worker:"


def identity_of(name: str) -> str:
    """Return the agent identity of a worker that is known by a name: an identity stays as it is."""
    return name if name.count(":") == 2 else f"{_PREFIX}{fold(name).replace(' ', '-')}"


class Callee:
    """Whom one name of a call means: an agent, or any one of those who hold a role.

    Attributes:
        address: The agent's; None for a role with several holders or none.
        role: The role that anybody of `signaled` may take the task for; None for an agent.
        resolved_by: `exact`, `folded`, `alias`, `role` or `prefix`.
        signaled: Who is told about the task.
    """

    def __init__(self, query: str, signaled: Sequence[Resolved], role: str | None = None) -> None:
        one = signaled[0] if role is None else None
        self.query = query
        self.address = one.address if one is not None else None
        self.role = role
        self.name = (
            (one.display_name or one.address) if one is not None else f"{addressing.ROLE_PREFIX}{role}"
        )
        self.resolved_by = signaled[0].resolved_by if signaled else addressing.ROLE
        self.signaled = signaled

    @property
    def key(self) -> str:
        """What differs from that of every other callee."""
        return self.address or f"{addressing.ROLE_PREFIX}{self.role}"


def typed(agents: Sequence[str]) -> list[str]:
    """Return the names of a call, as typed; at least an empty one."""
    return [part.strip() for text in agents for part in text.split(",")] or [""]


def find(store: Store, caller: Caller, agents: Sequence[str], *, waits: bool = True) -> list[Callee]:
    """Return whom a call names, each once.

    Args:
        waits: Whether the caller waits: then somebody must hold a role now.

    Raises:
        UsageError: `unknown-agent`, `ambiguous-agent`, `no-role-holder` or `too-many-agents`. Nothing was written.
    """
    found: dict[str, Callee] = {}
    for text in typed(agents):
        one = _find(store, caller, text, waits=waits)
        found.setdefault(one.key, one)
    if len(found) > AGENTS_MAX:
        raise UsageError(
            f"A call has {len(found)} agents; at most {AGENTS_MAX} are allowed. Nothing was written.",
            code="too-many-agents",
        )
    return list(found.values())


def _find(store: Store, caller: Caller, text: str, *, waits: bool) -> Callee:
    try:
        found = addressing.resolve(store, [text], caller=caller)
    except UsageError as error:
        if error.code == "no-role-holder":
            if not waits and (role := _known_role(store, text)):
                return Callee(text, (), role)
            raise
        if error.code == "ambiguous-recipient":
            raise _ambiguous(text, error.suggestions) from error
        if error.code not in ("unknown-recipient", "empty-recipient"):
            raise
        served = identity_of(text) if text else ""
        if served and served != text and presence.is_known_reader(store, served):  # a worker that is away
            one = addressing.from_addresses(store, [served])[0]
            one.query, one.resolved_by = text, "alias"
            return Callee(text, [one])
        raise _not_found(text, error) from error
    if len(found) > 1:
        roles = {each.role for each in found}
        role = roles.pop()
        if roles or role is None:
            raise _ambiguous(text, [each.display_name or each.address for each in found])
        return Callee(text, found, role)
    return Callee(text, found)


def _known_role(store: Store, text: str) -> str | None:
    """Return the role that a text names, if this work tree knows it."""
    typed = text[len(addressing.ROLE_PREFIX) :].strip() if addressing.is_role(text) else text
    found = vocabulary.find(vocabulary.read(store.repo.worktree).pack, typed)
    return found.role_id if found is not None else None


def _ambiguous(text: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        f"Agent '{_shown(text)}' is ambiguous. Nothing was written.",
        hint="Name one agent, by its identity or its session.",
        code="ambiguous-agent",
        suggestions=list(names)[:_SUGGESTED_MAX],
        next=["gitmem roster"],
    )


def _not_found(text: str, error: UsageError | None) -> UsageError:
    return UsageError(
        f"Agent '{_shown(text)}' not found. Nothing was written.",
        hint="An agent can be called once it has started a session, or `gitmem serve-agent` serves it.",
        code="unknown-agent",
        suggestions=error.suggestions if error is not None else (),
        next=[
            "gitmem roster",
            *(each for each in (error.next if error is not None else ()) if each == "gitmem sync"),
        ],
    )


def _shown(text: str) -> str:
    return sanitize(text)[:_SHOWN_MAX]
