"""Sessions, the roster and the pool of names as text."""

from __future__ import annotations

from gitmem.agents.headline import beside_name
from gitmem.text.sanitize import within

from .output import paint, record_position, sanitize, with_options
from .text import SEPARATOR, format_ago, sync_error_line, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.agents.display_names import NameChanged, NamePool
    from gitmem.agents.serialize import SessionRow
    from gitmem.sessions.roster import Roster, SessionList, WhoAmI
    from gitmem.sessions.session_result import SessionEnded, SessionResult, SessionStarted

NAMES_SHOWN = 30
ACTIVITY_MAX = 40  # columns
HEADS = ("NAME", "STATUS", "SEEN", "UNREAD", "IDENTITY", "WORK", "WHERE", "DOES")
SHORTENED = (7, 6, 5, 2, 3, 1)  # columns, in the order in which a narrow terminal shortens them


def started(found: SessionStarted) -> list[str]:
    """Return a new session. The last line is the command that selects it for the caller's shell."""
    rest = with_options([command for command in found.next if not command.startswith("export ")])
    return [
        *session(found),
        *(f"next: {sanitize(command)}" for command in rest[:3]),
        f"export GITMEM_SESSION={found.session_id}",
    ]


def session(found: SessionResult) -> list[str]:
    """Return a session's name, ids, work and activity."""
    about = [found.session_id, found.agent_identity or "no agent identity"]
    about += [each for each in (found.wu_id, found.lane, found.initiative_id) if each]
    if found.worktree:
        about.append(f"in {found.worktree}")
    lines = [plain(f"You are {found.display_name} ({SEPARATOR.join(about)})")]
    if found.activity:
        lines.append(plain(f"doing: {found.activity}"))
    if found.remark:
        lines.append(plain(found.remark))
    return lines


def ended(found: SessionEnded) -> list[str]:
    """Return the lines for a session that has ended."""
    said = f": {found.summary}" if found.summary else ""
    remark = [plain(found.remark)] if found.remark else []
    return [plain(f"{found.display_name} ({found.session_id}) has ended{said}"), *remark]


def roster(found: Roster | SessionList) -> list[str]:
    """Return the sessions as a table; its last column, activities and summaries, is left out if none is known."""
    rows = [_row(each) for each in found.sessions]
    failed = sync_error_line(getattr(found, "autosync", None))
    remark = str(getattr(found, "remark", None) or "")
    if not rows:
        return [plain(remark or "No active sessions"), *failed]
    count = len(HEADS) - (not any(row[-1] for row in rows))  # the last column only if an activity is known
    shortened = [at for at in SHORTENED if at < count]
    shown = table([row[:count] for row in (HEADS, *rows)], shortened=shortened, painted=_painted)
    return [*shown, *([plain(remark)] if remark else []), *failed]


def _painted(row: int, column: int, cell: str) -> str:
    """Return a cell of the roster in its colours: the heading, and each status."""
    if row and HEADS[column] != "STATUS":
        return cell
    return paint(cell, "" if row else "head")


def _does(each: SessionRow) -> str:
    if each["status"] == "ended" and each["summary"]:
        return each["summary"]
    return beside_name(each["headline"], each["display_name"], each["activity"])


def _row(each: SessionRow) -> tuple[str, ...]:
    work = [each["wu_id"], each["initiative_id"], each["lane"]]
    where = each["worktree"] or ""
    if not each["here"]:
        where += " (another clone)"
    unread = each.get("unread")
    row = (
        each["display_name"],
        each["status"],
        format_ago(each["last_seen"]),
        "-" if unread is None else str(unread),
        each["agent_identity"] or each["session_id"],
        " ".join(filter(None, work)) or "-",
        where.strip(),
        within(sanitize(_does(each), keep=""), ACTIVITY_MAX),
    )
    return tuple(map(plain, row))


def names(found: NamePool) -> list[str]:
    """Return the next free names of the pool, and the holders of those in use."""
    held = [each for each in found.names if each.held_by]
    free = [each.name for each in found.names if not each.held_by]
    lines = [f"{len(found.names)} names, {len(held)} in use; next free:"]
    lines.append(plain(", ".join(free[:NAMES_SHOWN])))
    lines += [plain(f"{each.name}: {each.held_by}") for each in held]
    return lines


def names_changed(found: NameChanged) -> list[str]:
    """Return which names were added to the pool or removed, and which were not."""
    lines = []
    if found.names:
        verb = "added" if found.event == "add" else "removed"
        lines.append(f"{verb}: {plain(', '.join(found.names))}{SEPARATOR}{record_position(found.commit)}")
    if found.unchanged:
        state = "already in the pool" if found.event == "add" else "not in the pool"
        are = "is" if len(found.unchanged) == 1 else "are"
        lines.append(f"{plain(', '.join(found.unchanged))} {are} {state}; unchanged")
    return lines


def whoami(found: WhoAmI) -> list[str]:
    """Return everything that is known of the caller, one field a line."""
    return fields(found.as_json())


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


def plain(text: str) -> str:
    """Sanitize a text for one line: no tabs."""
    return sanitize(text, keep="")
