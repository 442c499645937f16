"""`gitmem role`."""

from __future__ import annotations

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import RoleName


def listing(at: Environment) -> None:
    """List the roles, who holds them, and the names that mean them."""
    from gitmem.agents import role_list

    from ..render import sessions

    output.answer(at.json, role_list.listing(at.store()), sessions.roles)


def show(
    at: Environment,
    role: RoleName,
) -> None:
    """Show what a role or alias means, and who holds it."""
    from gitmem.agents import role_list

    from ..render import sessions

    output.answer(at.json, role_list.show(at.store(), role), sessions.role)


def check(at: Environment) -> int:
    """Check `.gitmem/roles.toml`, the agent files of clients, and the roles of sessions; exit with 1 for a finding."""
    from gitmem.agents import role_list

    from ..render import sessions

    found = role_list.check(at.store())
    output.answer(at.json, found, sessions.role_checked)
    return 1 if found.problems or found.unknown else 0
