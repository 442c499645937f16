"""Sessions, the roster, the pool of names and roles as text."""

from __future__ import annotations

from gitmem.agents.descriptions import beside_name
from gitmem.index import grants
from gitmem.text.sanitize import first_of, within

from .output import paint, sanitize, terminal, with_options
from .text import (
    ID_SHOWN,
    SEPARATOR,
    WIDE,
    block,
    facts,
    format_ago,
    lines_of_work,
    plain,
    rest,
    sync_error_line,
    table,
    wrap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gitmem.agents.descriptions import SessionRow
    from gitmem.agents.lifecycle import SessionResult
    from gitmem.agents.other_keys import Trust
    from gitmem.agents.roster import RoleCheck, RoleEntry, RoleList, RoleShown, Roster, WhoAmI
    from gitmem.agents.vocabulary import ClientAgent
    from gitmem.history.open_work import Wait, Waits
    from gitmem.trust.keys import MadeKey


ACTIVITY_MAX = 40  # columns
PARTS_OF_ROLE = (
    "actual_role",
    "lifecycle_role",
    "specialty_profile",
    "role_pack",
)  # text shows the role that they make
HEADS = ("NAME", "STATUS", "SEEN", "UNREAD", "ROLE", "IDENTITY", "WORK", "WHERE", "DOES")
EDITS_SHOWN = OWING_SHOWN = 3
NARROW = 60  # a terminal of fewer columns has each wait as a sentence, in as many lines as it needs
OPTIONAL = ("ROLE", "DOES")  # columns that are left out if all their cells are empty
# In the order in which a narrow terminal shortens them.
SHORTENED = ("DOES", "WHERE", "WORK", "ROLE", "SEEN", "UNREAD", "STATUS")


def started(found: SessionResult) -> list[str]:
    """Return a new session. The last line is the command that selects it for the caller's shell."""
    rest = with_options([command for command in found.next if not command.startswith("export ")])
    return [
        *session(found, "You are " if "gitmem inbox" in found.next else "Started: "),
        *(f"next: {sanitize(command)}" for command in rest[:3]),
        "",
        f"export GITMEM_SESSION={found.session_id}",
    ]


def session(found: SessionResult, head: str = "You are ") -> list[str]:
    """Return a session's name, ids, work and activity, after how it begins: only of the caller's own that it is the caller."""
    role = found.role and f"{found.role}{f' as {found.role_alias}' if found.role_alias else ''}"
    about = facts(
        found.session_id,
        found.agent_identity or "no agent identity",
        found.wu_id,
        found.lane,
        found.initiative_id,
        role,
        found.model,
        found.worktree and f"in {found.worktree}",
    )
    scope = found.actual_ownership_scope
    lines = block(
        f"{head}{found.display_name} ({about})",
        scope is not None and f"scope: {scope.text}",
        found.capabilities and f"can: {', '.join(found.capabilities)}",
        found.activity and f"doing: {found.activity}",
        found.remark,
    )
    return list(map(plain, lines))


def ended(found: SessionResult) -> list[str]:
    """Return the lines for a session that has ended."""
    said = f": {found.summary}" if found.summary else ""
    lines = block(f"{found.display_name} ({found.session_id}) has ended{said}", found.remark)
    return list(map(plain, lines))


def wait_rows(found: Waits) -> list[tuple[Wait, list[str]]]:
    """Return a row for each thing that is owed, by however many: who waits, the verb, for whom, to do what, and since when."""
    from gitmem.history.open_work import words_of

    together: dict[tuple[str, str | None], list[Wait]] = {}
    for each in found.rows:
        together.setdefault((each.id, each.you), []).append(each)
    rows = []
    for every in together.values():
        waiter, verb, owes, to_do = words_of(every[0])
        owes = first_of([owes, *(words_of(each)[2] for each in every[1:])], OWING_SHOWN)
        cells = (waiter, verb, owes, to_do, format_ago(every[0].since).removesuffix(" ago"))
        rows.append((every[0], list(map(plain, cells))))
    return rows


def waits(found: Waits) -> list[str]:
    """Return who waits for whom as a table."""
    shown = terminal()
    columns = shown.columns if shown is not None else 0
    is_narrow = 0 < columns < WIDE
    said = [(wait.id[:ID_SHOWN], *cells) for wait, cells in wait_rows(found)]
    rows = [
        [f"  {who}", *([f"{verb} {owes} {to_do}"] if is_narrow else [verb, owes, to_do]), age, id]
        for id, who, verb, owes, to_do, age in said
    ]
    last = len(rows[0]) - 1

    def painted(row: int, column: int, cell: str) -> str:
        if is_narrow and column == last - 2:
            before, owes, after = cell.partition(f" {said[row][3]} ")
            return before + paint(owes, "head") + after
        return paint(cell, "quiet" if column >= last - 1 else "" if column % 2 else "head")

    if 0 < columns < NARROW:
        lines = [
            line for row in rows for line in wrap(SEPARATOR.join([f"{row[0]} {row[1]}", *row[2:]]), columns)
        ]
    else:
        lines = table(rows, shortened=(last - 2, last, last - 1, 0), painted=painted)
    return block(
        paint("who waits for whom", "head"),
        lines,
        rest(found.more, then=""),
    )


def roster(found: Roster) -> list[str]:
    """Return who waits for whom, and the sessions as a table."""
    rows = [_row(each) for each in found.sessions]
    waiting: Any = found.waits  # `Waits` of a package above that of the roster
    above = [*waits(waiting), ""] if waiting is not None and waiting.rows else []
    said = {each.id for each in waiting.rows} if waiting is not None else ()
    work = lines_of_work(found.work, said)
    remark, failed = plain(found.remark or ""), sync_error_line(found.autosync)
    if not rows:
        return [*above, remark or "No active sessions", *work, *failed]
    kept = [at for at, head in enumerate(HEADS) if head not in OPTIONAL or any(row[at] for row in rows)]
    shown = table(
        [[row[at] for at in kept] for row in (HEADS, *rows)],
        shortened=[kept.index(at) for at in map(HEADS.index, SHORTENED) if at in kept],
        painted=lambda row, column, cell: _painted(row, kept[column], cell),
    )
    edits = [
        plain(f"{each['display_name']} edits: {first_of(each['edits'], EDITS_SHOWN)}")
        for each in found.sessions
        if each.get("edits")
    ]
    wakes: dict[str, list[str]] = {}
    for each in found.sessions:
        wakes.setdefault(each.get("wakes") or "", []).append(each["display_name"])
    woken = [plain(f"wakes: {how} ({first_of(who, EDITS_SHOWN)})") for how, who in wakes.items() if how]
    key = found.writer and any(row["writer"] not in (None, found.writer) for row in found.sessions)
    writes = key and f"you write with the key of {found.writer}"
    return [*above, *block(shown, edits, woken, work, remark, writes, failed)]


def _painted(row: int, column: int, cell: str) -> str:
    """Return a cell of the roster in its colours: the heading, and each status."""
    if row and HEADS[column] != "STATUS":
        return cell
    return paint(cell, "" if row else "head")


def _does(each: SessionRow) -> str:
    summary: str | None = each["summary"] if each["status"] == "ended" else None
    return summary or beside_name(each["headline"], each["display_name"], each["activity"])


def _row(each: SessionRow) -> tuple[str, ...]:
    work = [each["wu_id"], each["initiative_id"], each["lane"]]
    where = each["worktree"] or ""
    if not each["here"]:
        where += " (another clone)"
    if not each.get("writer"):
        where += " (unsigned)"
    unread = each.get("unread")
    row = (
        each["display_name"],
        each["status"],
        format_ago(each["last_seen"]),
        "-" if unread is None else str(unread),
        each["role"] or "",
        f"{each['agent_identity'] or each['session_id']}{' (known)' if each.get('known') else ''}",
        " ".join(filter(None, work)) or "-",
        where.strip(),
        within(sanitize(_does(each), keep=""), ACTIVITY_MAX),
    )
    return tuple(map(plain, row))


def whoami(found: WhoAmI) -> list[str]:
    """Return everything that is known of the caller, one field a line."""
    values = {
        name: value
        for name, value in found.as_json().items()
        if name not in (*PARTS_OF_ROLE, "work", "known")
    }
    scope = found.actual_ownership_scope
    shown = fields({**values, "actual_ownership_scope": scope.text if scope is not None else None})
    return [
        *shown,
        *(["known: by .gitmem/signers"] if found.known else []),
        *lines_of_work(found.work, whole=True),
    ]


def made_key(found: MadeKey) -> list[str]:
    """Return a new key file, and how to use it."""
    return [
        f"writer: {found.writer}",
        f"key file: {sanitize(found.key_file)}",
        f"note: {plain(found.remark)}",
    ]


def trust(found: Trust) -> list[str]:
    """Return which key writes here, and a line for each other one that has to do with it."""
    rows = [
        (
            each.writer,
            plain(first_of(each.known_as, HOLDERS_SHOWN)) or "no record yet",
            _words(each.known_for, "known for {}"),
            _words(each.you_allow, "may write as {} of yours"),
            _words(each.allows_you, "lets you write as {} of its"),
            "goes on as you" if each.goes_on_as_you else "you go on as it" if each.you_go_on_as_it else "",
        )
        for each in found.others
    ]
    return block(
        f"writer: {found.writer or ('none' if found.key_problem else 'none yet; the first record makes its key')}",
        found.key_file and f"key file: {sanitize(found.key_file)}",
        found.key_problem and f"problem: {plain(found.key_problem)}",
        found.known_for and f"known for: {_words(found.known_for, '{}')}",
        found.goes_on_as and f"goes on as: {found.goes_on_as}",
        table(rows, shortened=(1, 2)),
        found.signers and f"signers: {sanitize(found.signers)}",
        [f"note: {plain(each)}" for each in found.problems],
        found.remark and f"note: {plain(found.remark)}",
    )


def _words(words: Sequence[str], said: str) -> str:
    return (
        said.format("all" if grants.ALL in words else plain(first_of(words, HOLDERS_SHOWN))) if words else ""
    )


def fields(values: Mapping[str, object]) -> list[str]:
    """Return name and value of each field that is not empty, one a line."""
    lines = []
    for key, value in values.items():
        if key == "next" or value is None or value in ("", []):
            continue
        words = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        lines.append(
            f"{paint(key.replace('_', ' '), 'head')}: {paint(plain(words)) if key == 'status' else plain(words)}"
        )
    return lines


HOLDERS_SHOWN = 3
NOBODY = "nobody"


def roles(found: RoleList) -> list[str]:
    """Return a line for each role, and the words that any role is made of."""
    return block(
        table([*map(_role_row, found.roles)], head=("ROLE", "HELD BY", "NAMES"), shortened=(2, 1)),
        plain(f"lifecycle roles: {', '.join(found.lifecycle_roles)}"),
        plain(f"profiles: {', '.join(found.specialty_profiles)}"),
        found.unassigned and plain(f"agents without a role: {_agents(found.unassigned)}"),
        plain(found.remark or ""),
    )


def role(found: RoleShown) -> list[str]:
    """Return what a role means and who holds it."""
    entry = found.entry
    lines = block(
        f"{entry.role}{SEPARATOR}{found.resolved_by}",
        found.responsibility_kinds and f"responsible to: {', '.join(found.responsibility_kinds)}",
        found.capabilities and f"can: {', '.join(found.capabilities)}",
        entry.aliases and f"aliases: {', '.join(entry.aliases)}",
        [f"agent of {each.client}: {each.path}{_model(each)}" for each in entry.agents],
        [f"held by {_holder(each)}, {format_ago(each['last_seen'])}" for each in entry.holders]
        or f"held by {NOBODY}",
        found.remark,
    )
    return list(map(plain, lines))


def role_checked(found: RoleCheck) -> list[str]:
    """Return each finding in a line."""
    lines = [problem.text for problem in found.problems] + found.unknown
    where = found.path or "the built-in roles"
    return list(map(plain, lines)) or [f"No problems: {where} and the agent files of clients"]


def _role_row(entry: RoleEntry) -> tuple[str, ...]:
    held = block(
        map(_holder, entry.holders[:HOLDERS_SHOWN]),
        (more := len(entry.holders) - HOLDERS_SHOWN) > 0 and f"{more} more",
    )
    aliases = entry.aliases and f"alias: {', '.join(entry.aliases)}"
    unknown = "" if entry.is_known else " (unknown here)"
    return (
        plain(f"{entry.role}{unknown}"),
        plain(", ".join(held) or NOBODY),
        facts(aliases, _agents(entry.agents)),
    )


def _holder(one: SessionRow) -> str:
    identity = f" ({one['agent_identity']})" if one["agent_identity"] else ""
    return f"{one['display_name']}{identity}{SEPARATOR}{one['status']}"


def _agents(found: Sequence[ClientAgent]) -> str:
    return ", ".join(each.path for each in found)


def _model(agent: ClientAgent) -> str:
    return f"{SEPARATOR}{agent.model}" if agent.model else ""
