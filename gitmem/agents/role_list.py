"""`gitmem role`: the roles that are known here, who holds them, and what is wrong with the files that name them.

Agents that clients have files of in a work tree; these files are read and never written:

| client | files | format |
|---|---|---|
| Claude Code | `.claude/agents/**.md` | Markdown with a YAML head |
| Gemini CLI | `.gemini/agents/*.md` | the same |
| GitHub Copilot | `.github/agents/*.agent.md` | the same |
| OpenCode | `.opencode/agent/*.md`, `.opencode/agents/*.md` | the same |
| Codex CLI | `.codex/agents/*.toml` | TOML |

The role is not in these files, because a client may refuse a key that it does not know. It comes from the name, by the
aliases of the pack.
"""

from __future__ import annotations

import time

from ..git import work_tree_files
from ..index.index_file import StepLimit
from ..outcome import Outcome, command
from ..records.ids import role_id
from ..settings import WARN
from ..text import strict_json
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from . import addressing, descriptors, presence, roster, vocabulary
from .vocabulary import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..store import Store
    from .descriptions import SessionRow
    from .presence import Presence
    from .vocabulary import Alias, Roles


# Client, folder, suffix of the names, and how many levels of folders are entered.
PLACES = (
    ("claude-code", ".claude/agents", ".md", 4),
    ("gemini", ".gemini/agents", ".md", 0),
    ("copilot", ".github/agents", ".agent.md", 0),
    ("opencode", ".opencode/agent", ".md", 0),
    ("opencode", ".opencode/agents", ".md", 0),
    ("codex", ".codex/agents", ".toml", 0),
)
FILES_MAX = 200
ENTRIES_MAX = 5_000
FILE_BYTES_MAX = 64 * 1024
SECONDS_MAX = 2.0
_TEXT_MAX = 1_000  # characters of a description
_NAME_MAX = 100
_TOOLS_MAX = 50


class ClientAgent(Outcome):
    """An agent by the file of a client. `model` and `description` are None if the file does not say them."""

    name: str
    client: str
    path: str
    description: str | None = None
    model: str | None = None
    tools: list[str] = []


def read_client_agents(
    top: str | None, *, clock: Callable[[], float] = time.monotonic
) -> tuple[list[ClientAgent], list[Problem]]:
    """Return the agents of all clients in a work tree, and the files that could not be read.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has none.
        clock: Seconds; reading ends after `SECONDS_MAX`.
    """
    found: list[ClientAgent] = []
    problems: list[Problem] = []
    if top is None:
        return found, problems
    until = clock() + SECONDS_MAX
    search = work_tree_files.FileSearch(top, ENTRIES_MAX, lambda: clock() > until)
    for client, path, suffix in _files(search, problems):
        if len(found) + len(problems) >= FILES_MAX:
            search.cut = f"there are more than {FILES_MAX} agent files"
        elif clock() > until:
            search.cut = "reading takes too long"
        if search.cut:
            break
        try:
            found.append(_agent(top, client, path, suffix))
        except vocabulary.FormatError as error:
            problems.append(Problem(path, error.line, error.reason))
        except (OSError, ValueError) as error:
            problems.append(Problem(path, None, _reason(error)))
    if search.cut:
        problems.append(Problem("agent files", None, f"{search.cut}; the rest is not read"))
    return found, problems


def _files(search: work_tree_files.FileSearch, problems: list[Problem]) -> Iterator[tuple[str, str, str]]:
    """Yield client, path and suffix of each file; folders that cannot be read are added to the problems."""
    for client, folder, suffix, depth in PLACES:
        try:
            paths = search.find(folder, suffix, depth)
        except (OSError, ValueError) as error:
            problems.append(Problem(folder, None, _reason(error)))
            continue
        for path in paths:
            yield client, path, suffix


def _agent(top: str, client: str, path: str, suffix: str) -> ClientAgent:
    """Return the agent of one file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has another form; the message has the reason.
    """
    real = work_tree_files.resolve(top, path)
    if real is None:
        raise ValueError("it is gone")
    text = work_tree_files.read_text(real, FILE_BYTES_MAX)
    values = vocabulary.read_toml(text) if suffix == ".toml" else vocabulary.read_frontmatter(text)
    stem = path.rpartition("/")[2].removesuffix(suffix)
    agent = ClientAgent(_line(values.get("name"), _NAME_MAX) or stem[:_NAME_MAX], client, path)
    agent.description = _line(values.get("description"), _TEXT_MAX)
    agent.model = _line(values.get("model"), _NAME_MAX)
    tools = values.get("tools")
    words = tools.split(",") if isinstance(tools, str) else tools if isinstance(tools, list) else []
    lines = (_line(each, _NAME_MAX) for each in words[:_TOOLS_MAX])
    agent.tools = [each for each in lines if each]
    return agent


def _line(value: object, most: int) -> str | None:
    """Return a text as one line of at most so many characters; None for anything else, and for an empty one."""
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return words[:most] or None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    return str(error) or "it cannot be read"


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

    def __init__(self, query: str, role: vocabulary.Role, kinds: Sequence[str], entry: RoleEntry) -> None:
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

    path: str | None
    problems: Sequence[Problem]
    unknown: list[str]
    next: list[str] = ["gitmem role"]


def listing(store: Store) -> RoleList:
    """Return the roles that are held, and those that the aliases of the pack stand for."""
    roles = vocabulary.read(store.repo.worktree)
    agents, _ = read_client_agents(store.repo.worktree)
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
    roles = vocabulary.read(store.repo.worktree)
    holders, left_out = _holders(store)
    is_held = fold(text) in {one.role for one in holders}
    role = vocabulary.resolve(roles, text, policy=WARN if is_held else vocabulary.KNOWN, writing=False)
    agents, _ = read_client_agents(store.repo.worktree)
    key = (role.lifecycle_role, role.specialty_profile or "")
    entries = _entries(store, roles, holders, roles.pack.offered(), agents)
    entry = next((each for each in entries if (each.lifecycle_role, each.specialty_profile) == key), None)
    if entry is None:
        entry = RoleEntry(*key, is_known=roles.pack.knows(*key))
    if role.role_alias and role.role_alias not in entry.aliases:
        entry.aliases.append(role.role_alias)  # a legacy one, which is not offered
    shown = RoleShown(text, role, roles.pack.lifecycle_roles.get(role.lifecycle_role, ()), entry)
    shown.remark = (
        " ".join(filter(None, (vocabulary.warning(roles, role, text), roles.warning, left_out))) or None
    )
    return shown


def check(store: Store) -> RoleCheck:
    """Return what is wrong with the files of roles and agents, and with the roles of sessions."""
    roles = vocabulary.read(store.repo.worktree)
    _, problems = read_client_agents(store.repo.worktree)
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
        kept = descriptors.read_scope(strict_json.read(stated)) if stated else None
        kinds = descriptors.unknown_kinds(kept, pack) if kept is not None else []
        if kinds:
            found.append(
                f"{name} has the responsibility {sanitize(', '.join(kinds))}, which is not known here."
            )
        alias = pack.aliases.get(fold(one.record.get("role_alias", "")))
        if alias is None:
            continue
        meant = {"lifecycle_role": alias.lifecycle_role, "specialty_profile": alias.specialty_profile}
        if descriptors.compare(meant, one.record).role_mismatch:
            now = role_id(alias.lifecycle_role, alias.specialty_profile)
            found.append(f"{name} is {one.role} by the alias {alias.name}, which now means {now}.")
    return found


def _holders(store: Store) -> tuple[list[Presence], str | None]:
    """Return the sessions that hold a role, last seen first, and a sentence if there are more."""
    now = store.now()
    found = [
        one
        for one in presence.shown(store, stating="lifecycle_role").values()
        if addressing.holds_role(one, now)
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
