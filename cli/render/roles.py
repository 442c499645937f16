"""Roles as text."""

from __future__ import annotations

from .output import paint
from .sessions import plain
from .text import SEPARATOR, format_ago, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.agents.serialize import SessionRow
    from gitmem.roles.client_agents import ClientAgent
    from gitmem.sessions.role_list import RoleCheck, RoleEntry, RoleList, RoleShown

HOLDERS_SHOWN = 3
NOBODY = "nobody"


def listing(found: RoleList) -> list[str]:
    """Return a line for each role, and the words that any role is made of."""
    rows = [("ROLE", "HELD BY", "NAMES"), *map(_row, found.roles)]
    lines = table(rows, shortened=(2, 1), painted=lambda row, _, cell: cell if row else paint(cell, "head"))
    lines.append(plain(f"lifecycle roles: {', '.join(found.lifecycle_roles)}"))
    lines.append(plain(f"profiles: {', '.join(found.specialty_profiles)}"))
    if found.unassigned:
        lines.append(plain(f"agents without a role: {_agents(found.unassigned)}"))
    return [*lines, *([plain(found.remark)] if found.remark else [])]


def shown(found: RoleShown) -> list[str]:
    """Return what a role means and who holds it."""
    entry = found.entry
    lines = [f"{entry.role}{SEPARATOR}{found.resolved_by}"]
    if found.responsibility_kinds:
        lines.append(f"responsible to: {', '.join(found.responsibility_kinds)}")
    if found.capabilities:
        lines.append(f"can: {', '.join(found.capabilities)}")
    if entry.aliases:
        lines.append(f"aliases: {', '.join(entry.aliases)}")
    lines += [f"agent of {each.client}: {each.path}{_model(each)}" for each in entry.agents]
    lines += [f"held by {_holder(each)}, {format_ago(each['last_seen'])}" for each in entry.holders]
    if not entry.holders:
        lines.append(f"held by {NOBODY}")
    lines += [found.remark] if found.remark else []
    return list(map(plain, lines))


def checked(found: RoleCheck) -> list[str]:
    """Return each finding in a line."""
    lines = [problem.text for problem in found.problems] + found.unknown
    where = found.path or "the built-in roles"
    return list(map(plain, lines)) or [f"No problems: {where} and the agent files of clients"]


def _row(entry: RoleEntry) -> tuple[str, ...]:
    shown = [_holder(each) for each in entry.holders[:HOLDERS_SHOWN]]
    more = len(entry.holders) - len(shown)
    held = ", ".join([*shown, *([f"{more} more"] if more else [])]) or NOBODY
    names = [f"alias: {', '.join(entry.aliases)}"] if entry.aliases else []
    names += [_agents(entry.agents)] if entry.agents else []
    unknown = "" if entry.is_known else " (unknown here)"
    return plain(f"{entry.role}{unknown}"), plain(held), plain(SEPARATOR.join(names))


def _holder(one: SessionRow) -> str:
    identity = f" ({one['agent_identity']})" if one["agent_identity"] else ""
    return f"{one['display_name']}{identity}{SEPARATOR}{one['status']}"


def _agents(found: Sequence[ClientAgent]) -> str:
    return ", ".join(each.path for each in found)


def _model(agent: ClientAgent) -> str:
    return f"{SEPARATOR}{agent.model}" if agent.model else ""
