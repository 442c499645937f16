"""What hooks and agents repeat, without typer: exact shapes only, `None` for any other.

`inbox` with nothing new is answered from the index alone. The rest goes the usual
way through `frequent` or `syncing`, so both ways give the same bytes. Whatever is not plainly
one of these shapes (an unknown option, one given twice, a value that starts with
`-`) is left to the app, which also makes the error.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .surroundings import Surroundings

DAY_MICROS = 24 * 3600 * 1_000_000
MANY = 100
FILES_MAX = 32  # files of sessions: with more the usual way answers
# Of each command: how many words it takes, its flags, its options, and those that may be repeated,
# each with the name that `frequent` has for it. A test holds them to the app.
_COMMON = {"-C": "directory", "--as": "as_"}
_KEPT = {"--sync": "sync", "--allow-secret": "allow_secret", "-q": "quiet", "--quiet": "quiet",
         "--requires-ack": "requires_ack", "--insist": "insist"}  # fmt: skip
SHAPES: dict[str, tuple[int, int, dict[str, str], dict[str, str], dict[str, str]]] = {
    "inbox": (
        0,
        0,
        {"--all": "all", "--no-mark": "no_mark", "--count": "count"},
        {"--for": "for_", "--wu": "wu", "--lane": "lane", "--thread": "thread", "--from": "from_",
         "--since": "since", "--limit": "limit", "--max-bytes": "max_bytes"},
        {"--intent": "intent"},
    ),
    "watch": (
        0,
        0,
        {},
        {"--session": "session", "--sync": "sync", "--exec": "exec_", "--exec-limit": "exec_limit",
         "--write": "write"},
        {},
    ),
    "sync": (
        0,
        MANY,
        {"--all": "all", "--publish": "publish", "--allow-foreign": "allow_foreign", "--auto": "auto"},
        {"--timeout": "timeout"},
        {},
    ),
    "converged": (1, 1, {"--strict": "strict", "--sync": "sync"}, {"--wait": "wait"}, {}),
    "roster": (0, 1, {"--all": "all"}, {}, {}),
    "signal": (
        1,
        1,
        {**_KEPT, "--broadcast": "broadcast", "--allow-unseen": "allow_unseen", "--fuzzy": "fuzzy"},
        {"--wu": "wu", "--initiative": "initiative", "--lane": "lane", "--intent": "intent",
         "--reply-to": "reply_to", "--thread": "thread", "--interrupt": "interrupt", "--artifact": "artifact",
         "--idempotency-key": "idempotency_key"},
        {"--to": "to"},
    ),
    "reply": (
        2,
        2,
        {**_KEPT, "--agree": "agree", "--reject": "reject", "--counter": "counter"},
        {"--idempotency-key": "idempotency_key"},
        {"--to": "to"},
    ),
}  # fmt: skip


class Asked:
    """A command line that has one of the shapes."""

    __slots__ = ("as_", "command", "directory", "json", "values", "words")

    def __init__(self, command: str) -> None:
        self.command = command
        self.words: list[str] = []
        self.values: dict[str, object] = {}
        self.directory: str | None = None
        self.as_: str | None = None
        self.json = False


def answer(args: Sequence[str]) -> int | None:
    """The exit status of a command that was answered here, or None: ask the app."""
    if list(args) == ["--version"]:
        from gitmem import __version__

        from .render import out

        out.say(f"gitmem {__version__}")
        return 0
    asked = parse(args)
    if asked is None:
        return None
    from .surroundings import Surroundings

    # Closed last: SQLite tidies its files up where nobody else has them open, and that once is enough.
    opened: list[sqlite3.Connection] = []
    try:
        with Surroundings(asked.directory, asked.as_, asked.json) as at:
            if asked.command == "inbox" and not set(asked.values) - {"count"}:
                status = _nothing_new(at, opened, count="count" in asked.values)
                if status is not None:
                    return status
            if asked.command == "sync":
                from .syncing import sync

                return sync(at, *asked.words, **asked.values)  # type: ignore[arg-type]  # as SHAPES has them
            from . import frequent

            body = getattr(frequent, asked.command)
            return int(body(at, *asked.words, **asked.values))
    finally:
        for db in opened:
            db.close()


def parse(args: Sequence[str]) -> Asked | None:
    """The arguments as one of the shapes, or None where they are not plainly one."""
    rest = list(args)
    before: dict[str, str] = {}
    json = False
    while rest and rest[0] not in SHAPES:  # -C, --as and --json may stand before the command
        option = rest.pop(0)
        if option == "--json" and not json:
            json = True
        elif option in _COMMON and option not in before and rest and not rest[0].startswith("-"):
            before[option] = rest.pop(0)
        else:
            return None
    if not rest:
        return None
    asked = Asked(rest.pop(0))
    asked.json = json
    if not _take(asked, rest):
        return None
    least, most, *_ = SHAPES[asked.command]
    if not least <= len(asked.words) <= most:
        return None
    directory = asked.values.pop("directory", None)
    as_ = asked.values.pop("as_", None)
    if "-C" in before and directory is not None:
        directory = os.path.join(before["-C"], str(directory))
    asked.directory = str(directory) if directory is not None else before.get("-C")
    asked.as_ = str(as_) if as_ is not None else before.get("--as")
    return asked


def _take(asked: Asked, rest: list[str]) -> bool:
    """Sort what follows the command's name into words and values. False where one is not plain."""
    _, _, flags, options, repeated = SHAPES[asked.command]
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            asked.words += rest
            return True
        if arg == "-" or not arg.startswith("-"):
            asked.words.append(arg)
            continue
        if arg == "--json" or arg in flags:
            if arg == "--json":
                asked.json = True
            else:
                asked.values[flags[arg]] = True
            continue
        option, equals, value = arg.partition("=")
        if not equals or not option.startswith("--"):
            option = arg
            if not rest or (rest[0].startswith("-") and rest[0] != "-"):
                return False
            value = rest.pop(0)
        if option in repeated:
            asked.values[repeated[option]] = [*_listed(asked.values.get(repeated[option])), value]
            continue
        name = options.get(option) or _COMMON.get(option)
        if name is None or name in asked.values:
            return False
        asked.values[name] = value
    return True


def _listed(value: object) -> list[str]:
    return list(value) if isinstance(value, list) else []


def _nothing_new(at: Surroundings, opened: list[sqlite3.Connection], *, count: bool) -> int | None:
    """0 where nothing is unread, and that has been said; None where the usual way must look.

    Only for a session that is plainly there: named by GITMEM_SESSION, or by its harness.
    """
    if at.as_ is not None or not (at.session or at.harness):
        return None
    from gitmem.index import query
    from gitmem.log import ledger
    from gitmem.operations import mail, view_shape

    from .spools import spools_elsewhere
    from .surroundings import machine

    place = at.place
    if place.by_folder:  # the usual way asks git whether such a repository may be used
        return None
    written, read = spools_elsewhere(place)
    db = query.fresh(place, machine(), view_shape.SHAPE, [*written, *read])
    if db is None:
        return None
    opened.append(db)
    now = time.time_ns() // 1000
    session = _session(place.state, db, at, now)
    if session is None:
        return None
    session_id, identity, workspace = session
    reader = identity or session_id
    if mail.unread_ids(db, reader, session_id, workspace, now):
        return None
    if not query.has_all(db, ledger.last_commit(place.state)):
        return None
    _seen(place.state, session_id)
    at.looks = True
    from .render import out

    if count:
        out.say(out.no_count(reader) if at.json else "0")
    else:
        out.say(out.nothing_as_json(reader) if at.json else out.nothing_new(reader))
    return 0


def _session(
    state: str, db: sqlite3.Connection, at: Surroundings, now: int
) -> tuple[str, str | None, str | None] | None:
    """Id, identity and workspace of the one session that is meant, was started here and has not ended.

    None where the log has forged lines, and also for one whose last record is a day old: the usual way writes another, which keeps its name.
    """
    columns = (
        "SELECT session_id, agent_identity, workspace_id FROM session s WHERE ended IS NULL"
        " AND (SELECT max(until) FROM tenure t WHERE t.session_id = s.session_id) > ? AND "
    )
    held = now + DAY_MICROS  # a name is held for two days after the last record
    if at.session:
        found = db.execute(columns + "session_id = ?", (held, at.session)).fetchall()
    else:
        found = []
        for name in _of_client(state, at.harness[1]) if at.harness else ():
            found += db.execute(columns + "session_id = ?", (held, name)).fetchall()
    if len(found) != 1:
        return None
    is_own = db.execute("SELECT 1 FROM own WHERE name = ?", (found[0][0],)).fetchone()
    unclear = db.execute("SELECT EXISTS (SELECT 1 FROM forged), EXISTS (SELECT 1 FROM unchecked)").fetchone()
    return found[0] if is_own and unclear == (0, 0) else None


def _of_client(state: str, client_id: str) -> list[str]:
    """The sessions that were started here under a client's own id, by their files; empty where these are many.

    What is published instead of that id is a hash under the clone key, which loads more than the rest of this.
    """
    folder = os.path.join(state, "sessions")
    ending = b"\0" + client_id.encode("utf-8", "replace")
    found = []
    try:
        names = os.listdir(folder)
        for name in names if len(names) <= FILES_MAX else ():
            with open(os.path.join(folder, name), "rb") as file:
                if file.read().endswith(ending):
                    found.append(name)
    except OSError:
        return []
    return found


def _seen(state: str, session_id: str) -> None:
    """The heartbeat, as `operations.local` has it: a touched file."""
    try:
        os.utime(os.path.join(state, "sessions", session_id))
    except OSError:
        return
