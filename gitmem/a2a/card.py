"""The card of an agent: what clients learn of it before they send anything."""

from __future__ import annotations

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import TransportProtocol

from . import PROTOCOL
from .incoming import DATA_TYPE, INPUT_MODES, TEXT_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

REST = "/rest"
_SCHEME = "token"


class ServedAgent:
    """An agent that a gateway serves.

    Attributes:
        name: The name on its card and in its path.
        address: Whom its tasks are for.
        description: What it does.
        tags: Its role, responsibilities and capabilities, in this order.
    """

    def __init__(
        self, name: str, address: str, description: str | None = None, tags: Collection[str] = ()
    ) -> None:
        self.name = name
        self.address = address
        self.description = description or f"The agent {name} of this repository."
        self.tags = list(tags) or ["agent"]


def card_of(
    agent: ServedAgent, url: str, version: str, *, tenants: Collection[str], token: bool, push: bool
) -> AgentCard:
    """Return the card of an agent.

    Args:
        url: Where its JSON-RPC is; its REST is below that.
        version: That of gitmem.
        tenants: The tenants; that of "" is named by no field.
        token: Whether requests need a token.
        push: Whether it notifies.
    """
    bindings = ((url, TransportProtocol.JSONRPC), (url.rstrip("/") + REST, TransportProtocol.HTTP_JSON))
    card = AgentCard(
        name=agent.name,
        description=agent.description,
        version=version,
        supported_interfaces=[
            AgentInterface(url=where, protocol_binding=binding.value, protocol_version=PROTOCOL, tenant=tenant)
            for tenant in tenants
            for where, binding in bindings
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=push, extended_agent_card=True),
        default_input_modes=list(INPUT_MODES),
        default_output_modes=[TEXT_TYPE, DATA_TYPE],
        skills=[AgentSkill(id=agent.name, name=agent.name, description=agent.description, tags=agent.tags)],
    )  # fmt: skip
    if token:
        scheme = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
        card.security_schemes[_SCHEME].CopyFrom(scheme)
        card.security_requirements.append(SecurityRequirement(schemes={_SCHEME: StringList()}))
    return card
