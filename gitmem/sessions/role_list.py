"""`gitmem role`: the roles that are known here, who holds them, and what is wrong with the files that name them."""

from __future__ import annotations

from .. import strict_json
from ..agents import presence, role_holders
from ..index.engine import StepLimit
from ..outcome import Outcome
from ..records.ids import role_id
from ..roles import client_agents, lookup, mismatch, roles_file, scope
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..agents.presence import Presence
    from ..agents.serialize import SessionRow
    from ..roles.client_agents import ClientAgent
    from ..roles.pack import Alias, Problem
    from ..roles.roles_file import Roles
    from ..store import Store

HOLDERS_MAX = 200


class RoleEntry(Outcome):
    """A role: its holders, the aliases that mean it, and the agents of clients that have such a name.

    Attributes:
        is_known: Whether the vocabulary of this work tree has it.
        aliases: Those that are offered, and a legacy one while a holder has it.
    """

    def __init__(self, lifecycle_role: str, specialty_profile: str, *, is_known: bool) -> None:
        self.role = role_id(lifecycle_role, specialty_profile)
        self.lifecycle_role = lifecycle_role
        self.specialty_profile = specialty_profile
        self.is_known = is_known
        self.holders: list[SessionRow] = []
        self.aliases: list[str] = []
        self.agents: list[ClientAgent] = []


class RoleList(Outcome):
    """The roles that somebody holds, or that a name stands for; and the words that any role is made of.

    Attributes:
        unassigned: The agents of clients whose names mean no role.
        remark: What is wrong with the file of roles, and whether holders are left out; or None.
    """

    def __init__(self, roles: Sequence[RoleEntry], found: Roles, unassigned: Sequence[ClientAgent]) -> None:
        self.roles = list(roles)
        self.lifecycle_roles = list(found.pack.lifecycle_roles)
        self.specialty_profiles = list(found.pack.specialty_profiles)
        self.unassigned = list(unassigned)
        self.pack = found.pack.name
        self.remark = found.warning
        self.next: list[str] = []


class RoleShown(Outcome):
    """What a text means as a role, and who holds it.

    Attributes:
        responsibility_kinds: Those of a scope that states none.
    """

    def __init__(self, query: str, role: lookup.Role, kinds: Sequence[str], entry: RoleEntry) -> None:
        self.query = query
        self.resolved_by = role.resolved_by
        self.role_alias = role.role_alias
        self.capabilities = role.capabilities
        self.responsibility_kinds = list(kinds)
        self.entry = entry
        self.remark: str | None = None
        self.next = [command("gitmem", "session", "set", "--role", entry.role or query)]


class RoleCheck(Outcome):
    """What is wrong with the files that name roles, and which sessions have roles that are not known here.

    Attributes:
        path: The file of roles; None without one.
        problems: Entries and files that do not count.
        unknown: Sentences about sessions with unknown roles, or whose alias now means another role; and whether some were left out.
    """

    def __init__(self, path: str | None, problems: Sequence[Problem], unknown: Sequence[str]) -> None:
        self.path = path
        self.problems = list(problems)
        self.unknown = list(unknown)
        self.next = ["gitmem role list"]


def listing(store: Store) -> RoleList:
    """Return the roles that are held, and those that the aliases of the pack stand for."""
    roles = roles_file.read(store.repo.worktree)
    agents, _ = client_agents.read(store.repo.worktree)
    holders, left_out = _holders(store)
    entries = _entries(store, roles, holders, roles.pack.offered(), agents)
    unassigned = [each for each in agents if fold(each.name) not in roles.pack.aliases]
    found = RoleList(sorted(entries, key=lambda each: (not each.holders, each.role or "")), roles, unassigned)
    found.remark = " ".join(filter(None, (found.remark, left_out))) or None
    return found


def show(store: Store, text: str) -> RoleShown:
    """Return what a text means as a role.

    Raises:
        UsageError: `unknown-role`, `ambiguous-role` or `bad-role`: it means none, and nobody holds it.
    """
    roles = roles_file.read(store.repo.worktree)
    holders, left_out = _holders(store)
    is_held = fold(text) in {one.role for one in holders}
    role = lookup.resolve(roles, text, policy=lookup.WARN if is_held else lookup.KNOWN, writing=False)
    agents, _ = client_agents.read(store.repo.worktree)
    key = (role.lifecycle_role, role.specialty_profile or "")
    entries = _entries(store, roles, holders, roles.pack.offered(), agents)
    entry = next((each for each in entries if (each.lifecycle_role, each.specialty_profile) == key), None)
    if entry is None:
        entry = RoleEntry(*key, is_known=roles.pack.knows(*key))
    if role.role_alias and role.role_alias not in entry.aliases:
        entry.aliases.append(role.role_alias)  # a legacy one, which is not offered
    shown = RoleShown(text, role, roles.pack.lifecycle_roles.get(role.lifecycle_role, ()), entry)
    shown.remark = (
        " ".join(filter(None, (lookup.warning(roles, role, text), roles.warning, left_out))) or None
    )
    return shown


def check(store: Store) -> RoleCheck:
    """Return what is wrong with the files of roles and agents, and with the roles of sessions."""
    roles = roles_file.read(store.repo.worktree)
    _, problems = client_agents.read(store.repo.worktree)
    holders, left_out = _holders(store)
    unknown = [*unknown_roles(roles, holders), *filter(None, [left_out])]
    return RoleCheck(roles.path, [*roles.problems, *problems], unknown)


def unknown_roles(roles: Roles, holders: Iterable[Presence]) -> list[str]:
    """Return a sentence about each session whose role is unknown here, or differs from what its alias now means."""
    found = []
    for one in holders:
        name, pack = sanitize(one.name), roles.pack
        lifecycle, specialty = one.record.get("lifecycle_role"), one.record.get("specialty_profile")
        if not pack.knows(lifecycle, specialty):
            found.append(f"{name} has the role {sanitize(one.role or '')}, which is not known here.")
        stated = one.record.get("actual_ownership_scope")
        kept = scope.read(strict_json.read(stated)) if stated else None
        kinds = scope.unknown_kinds(kept, pack) if kept is not None else []
        if kinds:
            found.append(
                f"{name} has the responsibility {sanitize(', '.join(kinds))}, which is not known here."
            )
        alias = pack.aliases.get(fold(one.record.get("role_alias", "")))
        if alias is None:
            continue
        meant = {"lifecycle_role": alias.lifecycle_role, "specialty_profile": alias.specialty_profile}
        if mismatch.compare(meant, one.record).role_mismatch:
            now = role_id(alias.lifecycle_role, alias.specialty_profile)
            found.append(f"{name} is {one.role} by the alias {alias.name}, which now means {now}.")
    return found


def _holders(store: Store) -> tuple[list[Presence], str | None]:
    """Return the sessions that hold a role, last seen first, and a sentence if there are more."""
    now = store.now()
    found = [
        one
        for one in presence.shown(store, stating="lifecycle_role").values()
        if role_holders.is_held(one, now)
    ]
    left_out = (
        f"More than {HOLDERS_MAX} sessions hold roles: the others are not listed."
        if len(found) > HOLDERS_MAX
        else None
    )
    return sorted(found[:HOLDERS_MAX], key=lambda one: (-one.last_seen, one.session_id)), left_out


def _entries(
    store: Store,
    roles: Roles,
    holders: Iterable[Presence],
    aliases: Iterable[Alias],
    agents: Iterable[ClientAgent],
) -> list[RoleEntry]:
    found: dict[tuple[str, str], RoleEntry] = {}
    db = store.db()
    steps = StepLimit(db, roster.UNREAD_STEPS)

    def entry(lifecycle_role: str, specialty_profile: str) -> RoleEntry:
        is_known = roles.pack.knows(lifecycle_role, specialty_profile or None)
        new = RoleEntry(lifecycle_role, specialty_profile, is_known=is_known)
        return found.setdefault((lifecycle_role, specialty_profile), new)

    for alias in aliases:
        entry(alias.lifecycle_role, alias.specialty_profile).aliases.append(alias.name)
    for one in holders:
        of = entry(one.record["lifecycle_role"], one.record.get("specialty_profile", ""))
        of.holders.append(roster.session_row(store, db, steps, one))
        stated = one.record.get("role_alias")
        if stated and stated not in of.aliases:
            of.aliases.append(stated)
    for agent in agents:
        known = roles.pack.aliases.get(fold(agent.name))
        if known is not None:
            entry(known.lifecycle_role, known.specialty_profile).agents.append(agent)
    return list(found.values())
