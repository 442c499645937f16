"""Find the agent that a call names: exactly, in another spelling, by an alias, or not at all. Guesses are only suggested."""

from __future__ import annotations

from ..agents import addressing, presence
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
_PREFIX = "gitmem:worker:"


def identity_of(name: str) -> str:
    """Return the agent identity of a worker that is known by a name: an identity stays as it is."""
    return name if name.count(":") == 2 else f"{_PREFIX}{fold(name).replace(' ', '-')}"


def find(store: Store, caller: Caller, agents: Sequence[str]) -> list[Resolved]:
    """Return the agents that a call names, each once.

    Raises:
        UsageError: `unknown-agent`, `ambiguous-agent` or `too-many-agents`. Nothing was written.
    """
    typed = [part.strip() for text in agents for part in text.split(",")]
    found: dict[str, Resolved] = {}
    for text in typed:
        one = _find(store, caller, text)
        found.setdefault(one.address, one)
    if len(found) > AGENTS_MAX:
        raise UsageError(
            f"A call has {len(found)} agents; at most {AGENTS_MAX} are allowed. Nothing was written.",
            code="too-many-agents",
        )
    return list(found.values())


def _find(store: Store, caller: Caller, text: str) -> Resolved:
    try:
        found = addressing.resolve(store, [text], caller=caller)
    except UsageError as error:
        if error.code not in ("unknown-recipient", "empty-recipient", "no-role-holder"):
            raise
        served = identity_of(text) if text else ""
        if served and served != text and presence.is_known_reader(store, served):  # a worker that is away
            one = addressing.from_addresses(store, [served])[0]
            one.query, one.resolved_by = text, "alias"
            return one
        raise _not_found(text, error) from error
    if len(found) > 1:
        raise UsageError(
            f"Agent '{_shown(text)}' is ambiguous: {len(found)} agents match. Nothing was written.",
            hint="Name one of them.",
            code="ambiguous-agent",
            suggestions=[each.display_name or each.address for each in found[:5]],
            next=["gitmem roster"],
        )
    if found[0].resolved_by == "prefix":
        raise _not_found(text, None)
    return found[0]


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
