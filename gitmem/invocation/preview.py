"""Show what a call would do and hand over, without writing anything."""

from __future__ import annotations

from ..agents import addressing
from ..outcome import Outcome
from . import agent_lookup, bundle_encoding, received
from .agent_lookup import Callee
from .call import bundle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store
    from .bundle_content import Transfer
    from .call_tasks import CallOptions


class PreviewedAgent(Outcome):
    """An agent that would be called, and how its name was found."""

    def __init__(self, found: Callee) -> None:
        self.agent = found.address or ""
        self.name = found.name
        self.resolved_by = found.resolved_by


class CallPreview(Outcome):
    """What a call would do.

    Attributes:
        agents: Those that it would call.
        context: What each would get.
        transfer: Its counts and size, and what is left out; None if nothing was asked for.
        text: What a program or model that runs the task would read of it.
        recorded: False.
    """

    def __init__(self, agents: Sequence[Callee]) -> None:
        self.agents = [PreviewedAgent(each) for each in agents]
        self.context: Mapping[str, Any] = {}
        self.transfer: Transfer | None = None
        self.text = ""
        self.recorded = False
        self.next: list[str] = []


def preview(
    store: Store, caller: Caller, agents: str | Sequence[str], options: CallOptions, server: str | None = None
) -> CallPreview:
    """Return what a call would do; see `call_tasks.CallOptions`.

    Args:
        server: The identity of an A2A server, whose URL `agents` is. Nothing is sent there.

    Raises:
        UsageError: As the call itself.
    """
    with store.lock:
        named = [agents] if isinstance(agents, str) else agents
        if server is None:
            callees = agent_lookup.find(store, caller, named)
        else:
            callees = [Callee(named[0], addressing.from_addresses(store, [server]))]
            callees[0].name = named[0]
        found = CallPreview(callees)
        made = bundle_of(store, caller, options, lambda: callees)
        if made is not None:
            record = {"task_id": "task-dryrun", "sender_identity": caller.reader, "context": made.context}
            found.context, found.transfer = made.context, made.transfer
            is_sent = server is not None and made.context
            found.text = (
                bundle_encoding.shown(made.context) if is_sent else received.receive(store, record).text
            )
    return found
