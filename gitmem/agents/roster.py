"""The roster: sessions at work, as others see them, and the roles that they hold."""

from __future__ import annotations

from ..errors import check_limit
from ..index import entities
from ..index.index_file import StepLimit
from ..log.lines import writer_of
from ..outcome import Outcome, command
from ..records.ids import role_id
from ..settings import WARN
from ..sync import autosync, whereabouts
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from . import descriptions, mailbox, names, other_keys, presence, session_view, signers, waking
from .caller import other_workspaces
from .descriptions import by_role, row

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..outcome import PartOfAnswer
    from ..store import Store
    from .caller import Caller
    from .descriptions import SessionRow
    from .presence import Presence
    from .vocabulary import ClientAgent, Pack, Problem


EDITS_MAX = 50  # paths of a session that a roster names
GONE_MAX = 10  # sessions of which a roster says that their worktree is gone
SHOWN = 50  # sessions of a list
UNREAD_STEPS = 20_000_000  # steps of SQLite for all sessions of one answer


class Roster(Outcome, kw_only=True):
    """Who waits for whom (`history.open_work`), and sessions, each with its name, location, `status`, `last_seen`, `headline` and number of `unread` signals.

    `more` is the number of sessions that a limit left out. `remark` says why the list is empty, and which sessions claim
    without proof to be of this clone. `autosync` has the failure of the last sync, or None. `work` has who works on
    what (`history.open_work`), where the answer has it. `writer` is the id of the key that writes here, None if none was needed yet.
    """

    waits: PartOfAnswer | None = None
    sessions: Sequence[SessionRow]
    more: int = 0
    writer: str | None = None
    work: PartOfAnswer | None = None
    remark: str | None = None
    autosync: autosync.FailedSync | None = None
    next: list[str]


class WhoAmI(descriptions.Stated, kw_only=True):
    """The caller. `headline` is that of its signals, `work` what it has to do and has claimed (`history.open_work`).

    `writer` attested the start of its session; None without one. `known` is whether `.gitmem/signers` knows its address.
    """

    workspace_id: str | None
    status: str | None
    headline: str
    writer: str | None
    known: bool
    unread: int
    work: PartOfAnswer | None = None
    remark: str | None
    next: list[str]


def roster(
    store: Store,
    query: str | None = None,
    *,
    all: bool = False,
    caller: Caller | None = None,
    steps_most: int = UNREAD_STEPS,
    limit: int | None = None,
    read_most: int = presence.READ_MAX,
    work: bool = True,
) -> Roster:
    """Return the sessions at work, grouped by role, those without one last; in each group last seen first.

    Args:
        query: A text similar to a name, identity, work unit, lane or worktree: a fuzzy search, best match first.
        all: Include sessions that are gone or ended, and say which ones `.gitmem/signers` knows.
        caller: The caller, if known. It is not advised to signal itself.
        steps_most: The limit for unread signals and headlines, see `StepLimit`. Beyond it, `unread` is None and a
            headline the name.
        limit: The maximum number of sessions, those of the caller and of this clone first, then live ones; None for all that are read.
        read_most: How many sessions of the log are read, if the limit is not higher: those of this clone first, then those last at work.
        work: Whether it says who waits for whom and who works on what.

    Raises:
        UsageError: The limit is below 1.
    """
    from . import edited_paths

    check_limit(limit)
    if query:
        found, left = names.matching(store, query, all=all, most=read_most), 0
        unread = _left(store, read_most, all=all)
    else:
        most = max(limit or 0, read_most)
        found, unread = by_role(presence.shown(store, all=all, most=most).values()), 0
        left = _left(store, most, all=all)
    found = [one for one in found if all or one.is_current or one.is_homeless]
    db, now = store.db(), store.now()
    total = len(found) + left
    found = _first(found, limit, caller) if not query else found[:limit]
    left_behind = [] if query else mailbox.left_behind(store)
    known = {one.session_id for one in found}
    found += [one for one in left_behind if one.session_id not in known]
    steps = StepLimit(db, steps_most)
    rows: list[SessionRow] = [
        {**each, "unread": steps.ask(_unread, db, one, now)}
        for one, each in zip(found, _rows(store, db, steps, found, marks=all), strict=True)
    ]
    edits = edited_paths.by_session(store)
    for each in rows:
        if paths := edits.get(each["session_id"]):
            each["edits"] = paths[:EDITS_MAX]
    key, failed = store.writers.describe()[0] or None, autosync.last_failure(store.repo)
    outcome = Roster(sessions=rows, writer=key, autosync=failed, next=_next(found, rows, query, all, caller))
    outcome.more = total - len(known)
    if work and not query:
        outcome.waits = store.domain.waits(store, caller)
        outcome.next = [*(outcome.waits.steps if outcome.waits is not None else ()), *outcome.next]
        outcome.work = store.domain.open_work(store)
    outcome.next = [*(["gitmem sync"] if failed is not None else []), *outcome.next]
    if query and not found:
        live = sum(one.status == "live" for one in presence.shown(store, most=read_most).values())
        outcome.remark = f"No sessions match {query}; active sessions: {live}."
    not_shown = f"{outcome.more} more not shown." if outcome.more else None
    not_read = f"{unread} sessions were not searched." if unread else None
    elsewhere = other_workspaces(caller, (one["workspace_id"] for one in rows))
    away = _not_at_work(found, left_behind, [] if query else other_keys.left_sentences(store))
    notes = (outcome.remark, not_shown, not_read, elsewhere, away, whereabouts.unread(store))
    outcome.remark = " ".join(filter(None, notes)) or None
    return outcome


def _left(store: Store, most: int, *, all: bool) -> int:
    """Return how many sessions are not among so many."""
    return max(presence.count(store, all=all) - most, 0)


def _first(found: Sequence[Presence], limit: int | None, caller: Caller | None) -> list[Presence]:
    """Return so many sessions in their order: those of the caller, of this clone, and live ones, rather than others."""
    if limit is None or len(found) <= limit:
        return list(found)
    ids = caller.ids if caller is not None else []

    def rank(one: Presence) -> tuple[bool, bool, bool, int]:
        return not (one.here and one.reader in ids), not one.here, one.status != "live", -one.last_seen

    kept = {one.session_id for one in sorted(found, key=rank)[:limit]}
    return [one for one in found if one.session_id in kept]


def whoami(store: Store, caller: Caller) -> WhoAmI:
    """Return the caller as others see it, and how much it has not read."""
    found = presence.get(store, caller.session_id) if caller.session_id else None
    db = store.db()
    unread = mailbox.unread_ids(db, caller.reader, caller.session_id, caller.workspace, store.now())
    record: dict[str, Any] = found.record if found else {}
    stated = dict.fromkeys(("wu_id", "initiative_id", "lane", "activity", "worktree"))
    remark = caller.remark
    if found is not None and found.asked != found.name and remark is None:
        remark = f"The name {found.asked} belongs to an earlier session; your display name is {found.name}."
    elsewhere = other_keys.of_same_words(store, caller.reader)
    remark = " ".join(filter(None, (remark, store.writers.refusal(), elsewhere))) or None
    return WhoAmI.taken_from(
        {**stated, **record, **descriptions.role_row(record, caller.identity)},
        reader_identity=caller.reader,
        session_id=caller.session_id,
        agent_identity=caller.identity,
        display_name=found.name if found else caller.name,
        workspace_id=caller.workspace,
        status=found.status if found else None,
        headline=descriptions.headline_of_caller(store, db, caller) or caller.name or caller.reader,
        writer=_writers(db, [caller.session_id] if caller.session_id else []).get(caller.session_id),
        known=bool(signers.read(store).known(store, [caller.reader])),
        unread=len({id for _, id in unread}),
        work=store.domain.own_work(store, caller),
        remark=remark,
        next=[*caller.next, *(["gitmem inbox"] if unread else [])][:3],
    )


def session_row(store: Store, db: sqlite3.Connection, steps: StepLimit, one: Presence) -> SessionRow:
    """Return a session as answers show it, with its headline."""
    return row(one, descriptions.headline_of(store, db, one, steps))


def _rows(
    store: Store, db: sqlite3.Connection, steps: StepLimit, found: Sequence[Presence], *, marks: bool
) -> Iterator[SessionRow]:
    """Yield sessions as lists show them, each made when it is asked for: the steps are for all.

    Args:
        marks: Whether those that `.gitmem/signers` knows are marked.
    """
    known = signers.read(store).known(store, [one.reader for one in found]) if marks else ()
    writers = _writers(db, [one.session_id for one in found])
    for one in found:
        each: SessionRow = {**session_row(store, db, steps, one), "writer": writers.get(one.session_id)}
        if one.reader in known:
            each["known"] = True
        if one.here and one.harness_session and one.ended is None:
            each["wakes"] = waking.says(store, one.session_id)
        yield each


def _writers(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str | None, str | None]:
    """Return the writer of the line that began each session; None if that line names none."""
    begun = entities.lines_of(db, session_view.SESSION, ids, event="start")
    return {id: writer_of(lines.rows[0].line) or None for id, lines in begun.items() if lines}


def _unread(db: sqlite3.Connection, one: Presence, now: int) -> int:
    rows = mailbox.unread_ids(db, one.reader, one.session_id, one.record.get("workspace_id"), now)
    return len({id for _, id in rows})


def _next(
    found: Sequence[Presence], rows: Sequence[SessionRow], query: str | None, all: bool, caller: Caller | None
) -> list[str]:
    if not found:
        again = ["gitmem", "roster", *([query] if query else []), "--all"]
        first = "gitmem roster" if query else "gitmem session start"
        return [first, *([] if all else [command(*again)])]
    ours = caller.ids if caller is not None else []
    own = [each for one, each in zip(found, rows, strict=True) if one.reader in ours]
    if any(each["unread"] for each in own):
        return ["gitmem inbox"]
    return [] if own or any(one.held for one in found) else ["gitmem session start"]


def _not_at_work(found: Sequence[Presence], left_behind: Sequence[Presence], left: Sequence[str]) -> str:
    """Return whose worktrees are gone, and how the messages of sessions that are not at work any more are shown.

    Args:
        left: Sentences about addresses that were left.
    """
    told = [f"{one.name}'s worktree {one.worktree} is gone." for one in found if one.is_homeless][:GONE_MAX]
    for one in left_behind[:1]:
        others = f" So have {len(left_behind) - 1} more." if left_behind[1:] else ""
        shows = command("gitmem", "inbox", "--for", one.reader)
        told.append(f"{one.name} is not at work and has unread messages: {shows}.{others}")
    return " ".join([*told, *left])


HOLDERS_MAX = 200


class RoleEntry(Outcome):
    """A role: its holders, the aliases that mean it, and the agents of clients that have such a name.

    Attributes:
        is_known: Whether the vocabulary of this work tree has it.
        aliases: Those that are offered, and a legacy one while a holder has it.
    """

    role: str | None
    lifecycle_role: str
    specialty_profile: str
    is_known: bool
    holders: list[SessionRow] = []
    aliases: list[str] = []
    agents: list[ClientAgent] = []


class RoleList(Outcome):
    """The roles that somebody holds, or that a name stands for; and the words that any role is made of.

    Attributes:
        unassigned: The agents of clients whose names mean no role.
        remark: What is wrong with the file of roles, and whether holders are left out; or None.
    """

    roles: list[RoleEntry]
    lifecycle_roles: list[str]
    specialty_profiles: list[str]
    unassigned: list[ClientAgent]
    pack: str
    remark: str | None
    next: list[str] = []


class RoleShown(Outcome):
    """What a text means as a role, and who holds it.

    Attributes:
        responsibility_kinds: Those of a scope that states none.
    """

    query: str
    resolved_by: str
    role_alias: str | None
    capabilities: list[str]
    responsibility_kinds: list[str]
    entry: RoleEntry
    remark: str | None
    next: list[str]


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


class _Roles:
    """The vocabulary of a work tree, and the sessions and agents of clients that have a role of it."""

    def __init__(self, store: Store) -> None:
        from . import vocabulary

        self.store = store
        self.found = vocabulary.read(store.repo.worktree)
        self.agents, self.problems = vocabulary.read_client_agents(store.repo.worktree)
        every, now = presence.shown(store, stating="lifecycle_role").values(), store.now()
        holders = [one for one in every if one.holds_role(now)]
        self.holders = sorted(holders[:HOLDERS_MAX], key=lambda one: (-one.last_seen, one.session_id))
        self.left_out = (
            f"More than {HOLDERS_MAX} sessions hold roles: the others are not listed."
            if len(holders) > HOLDERS_MAX
            else None
        )

    def entry(self, lifecycle_role: str, specialty_profile: str) -> RoleEntry:
        """Return a role that nobody holds."""
        known = self.found.pack.knows(lifecycle_role, specialty_profile or None)
        return RoleEntry(role_id(lifecycle_role, specialty_profile), lifecycle_role, specialty_profile, known)

    def entries(self) -> dict[tuple[str, str], RoleEntry]:
        """Return the roles that somebody holds or an offered alias or an agent of a client stands for, by their two parts."""
        found: dict[tuple[str, str], RoleEntry] = {}
        pack, db = self.found.pack, self.store.db()
        steps = StepLimit(db, UNREAD_STEPS)

        def entry(lifecycle_role: str, specialty_profile: str) -> RoleEntry:
            key = (lifecycle_role, specialty_profile)
            return found.setdefault(key, self.entry(*key))

        for alias in pack.offered():
            entry(alias.lifecycle_role, alias.specialty_profile).aliases.append(alias.name)
        for one in self.holders:
            of = entry(one.record["lifecycle_role"], one.record.get("specialty_profile", ""))
            of.holders.append(session_row(self.store, db, steps, one))
            stated = one.record.get("role_alias")
            if stated and stated not in of.aliases:
                of.aliases.append(stated)
        for agent in self.agents:
            if meant := pack.aliases.get(fold(agent.name)):
                entry(meant.lifecycle_role, meant.specialty_profile).agents.append(agent)
        return found


def roles(store: Store) -> RoleList:
    """Return the roles that are held, and those that the aliases of the pack stand for."""
    at = _Roles(store)
    pack = at.found.pack
    return RoleList(
        sorted(at.entries().values(), key=lambda each: (not each.holders, each.role or "")),
        [*pack.lifecycle_roles],
        [*pack.specialty_profiles],
        [each for each in at.agents if fold(each.name) not in pack.aliases],
        pack.name,
        " ".join(filter(None, (at.found.warning, at.left_out))) or None,
    )


def role(store: Store, text: str) -> RoleShown:
    """Return what a text means as a role.

    Raises:
        UsageError: `unknown-role`, `ambiguous-role` or `bad-role`: it means none, and nobody holds it.
    """
    from . import vocabulary

    at = _Roles(store)
    is_held = fold(text) in {one.role for one in at.holders}
    meant = vocabulary.resolve(at.found, text, policy=WARN if is_held else vocabulary.KNOWN, writing=False)
    key = (meant.lifecycle_role, meant.specialty_profile or "")
    entry = at.entries().get(key) or at.entry(*key)
    if meant.role_alias and meant.role_alias not in entry.aliases:
        entry.aliases.append(meant.role_alias)  # a legacy one, which is not offered
    remarks = (vocabulary.warning(at.found, meant, text), at.found.warning, at.left_out)
    return RoleShown(
        text,
        meant.resolved_by,
        meant.role_alias,
        meant.capabilities,
        [*at.found.pack.lifecycle_roles.get(meant.lifecycle_role, ())],
        entry,
        " ".join(filter(None, remarks)) or None,
        [command("gitmem", "session", "set", "--role", entry.role or text)],
    )


def role_check(store: Store) -> RoleCheck:
    """Return what is wrong with the files of roles and agents, and with the roles of sessions."""
    at = _Roles(store)
    unknown = [each for one in at.holders for each in _unknown_roles(at.found.pack, one)]
    return RoleCheck(
        at.found.path, [*at.found.problems, *at.problems], [*unknown, *filter(None, [at.left_out])]
    )


def _unknown_roles(pack: Pack, one: Presence) -> Iterator[str]:
    """Yield what of a session's role is unknown here, or differs from what its alias now means."""
    from . import descriptors

    name = sanitize(one.name)
    if not pack.knows(one.record.get("lifecycle_role"), one.record.get("specialty_profile")):
        yield f"{name} has the role {sanitize(one.role or '')}, which is not known here."
    stated = descriptions.scope_of(one.record.get("actual_ownership_scope"))
    kinds = descriptors.unknown_kinds(stated, pack) if stated is not None else []
    if kinds:
        yield f"{name} has the responsibility {sanitize(', '.join(kinds))}, which is not known here."
    alias = pack.aliases.get(fold(one.record.get("role_alias", "")))
    if alias is None:
        return
    meant = {"lifecycle_role": alias.lifecycle_role, "specialty_profile": alias.specialty_profile}
    if descriptors.compare(meant, one.record).role_mismatch:
        now = role_id(alias.lifecycle_role, alias.specialty_profile)
        yield f"{name} is {one.role} by the alias {alias.name}, which now means {now}."
