"""Show what a call would do and hand over, without writing anything."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.shell_quote import command
from . import agent_lookup, received
from .call import bundle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store
    from .agent_lookup import Callee
    from .bundle_content import Transfer
    from .call_tasks import CallOptions


class PreviewedAgent(Outcome):
    """An agent that would be called, and how its name was found."""

    __slots__ = ("agent", "name", "resolved_by")

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

    __slots__ = ("agents", "context", "transfer", "text", "recorded", "next")

    def __init__(self, agents: Sequence[Callee]) -> None:
        self.agents = [PreviewedAgent(each) for each in agents]
        self.context: Mapping[str, Any] = {}
        self.transfer: Transfer | None = None
        self.text = ""
        self.recorded = False
        self.next = [command("gitmem", "call", ",".join(each.name for each in self.agents), "your task")]


def preview(store: Store, caller: Caller, agents: str | Sequence[str], options: CallOptions) -> CallPreview:
    """Return what a call would do; see `call_tasks.CallOptions`.

    Raises:
        UsageError: As the call itself.
    """
    with store.lock:
        found = CallPreview(agent_lookup.find(store, caller, [agents] if isinstance(agents, str) else agents))
        made = bundle_of(store, caller, options)
        if made is not None:
            record = {"task_id": "task-dryrun", "sender_identity": caller.reader, "context": made.context}
            found.context, found.transfer = made.context, made.transfer
            found.text = received.receive(store, record).text
    return found
