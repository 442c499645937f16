"""The sessions of this clone, by local files and by lines that were written here.

The other folds include every line, and so all clones agree. These functions answer which session this process is and
what its own sessions have read. They ignore forged lines (`trust.line_checks`).
"""

from __future__ import annotations

import os

from ..log.local_log import read_word
from ..trust import clone_key, sender_tables
from . import heartbeats, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..records.record_types import SessionFields
    from ..store import Store
    from .presence import Presence

# Sessions that ever had an identity: a peer can forge the record that takes it away.
_OF_READER = (
    "FROM session s WHERE s.session_id IN"
    " (SELECT :reader UNION ALL SELECT session_id FROM bearer WHERE identity = :reader) AND {forged}EXISTS"
    " (SELECT 1 FROM forged f WHERE f.name = s.session_id)"
)
# Of another clone's session every workspace counts that it was ever in: a peer can forge a change.
_SEES = (
    "SELECT s.ended IS NULL, max(CASE WHEN s.session_id IN (SELECT name FROM own)"
    " THEN coalesce(s.workspace_id = :workspace, 1) ELSE EXISTS"
    " (SELECT 1 FROM session_event e WHERE e.session_id = s.session_id"
    " AND (e.workspace_id = :workspace OR (e.event = 'start' AND e.workspace_id IS NULL))) END) "
    + _OF_READER.format(forged="NOT ")
    + " GROUP BY 1"
)
_FORGED = "SELECT s.session_id " + _OF_READER.format(forged="")
_NAMES = (
    "SELECT DISTINCT s.workspace_id "
    + _OF_READER.format(forged="NOT ")
    + " AND (s.ended IS NULL) = :open AND s.workspace_id IS NOT NULL ORDER BY 1 LIMIT :most"
)
NAMES_MAX = 3
_NOT_FORGED = " AND e.line NOT IN (SELECT line FROM forged)"


def trusted(store: Store, session_id: str) -> Presence | None:
    """Return a session as `presence.get` does, without forged lines."""
    found = presence.get(store, session_id)
    db = store.db()
    if found is None or not sender_tables.is_forged(db, (session_id,)):
        return found
    started, ended, fields, claims = fold(db, session_id)
    row = db.execute(
        "SELECT until, shown FROM tenure WHERE line = ? ORDER BY claimed DESC LIMIT 1", (claims[-1][0],)
    ).fetchone()
    until, shown = row or (0, claims[-1][2])
    values = (
        session_id,
        started,
        ended,
        found.record_at,
        until,
        shown,
        *(fields.get(name) for name in presence.FIELDS),
    )
    return presence.made_of(store, values)


def other_workspaces(store: Store, reader: str, workspace: str) -> list[str]:
    """Return up to three workspaces of a reader whose inbox never shows signals of this workspace; else an empty list.

    One open session in this workspace, or without any, is enough; if all have ended, one of those. A peer can write
    any number of lines about sessions: none of them hides a session of this clone from this question, of which only
    genuine records count, or another honest one.
    """
    db = store.db()
    values = {"reader": reader, "workspace": workspace, "most": NAMES_MAX}
    sees: dict[bool, bool] = {bool(is_open): bool(may) for is_open, may in db.execute(_SEES, values)}
    theirs: dict[bool, set[str]] = {True: set(), False: set()}
    for (session_id,) in db.execute(_FORGED, values).fetchall():
        _, ended, fields, _ = fold(db, session_id)
        if reader in (session_id, fields.get("agent_identity")):
            name = fields.get("workspace_id")
            sees[ended is None] = sees.get(ended is None, False) or name in (None, workspace)
            theirs[ended is None].update(filter(None, [name]))
    is_open = True in sees
    if sees.get(is_open, True):
        return []
    theirs[is_open].update(name for (name,) in db.execute(_NAMES, {**values, "open": is_open}))
    return sorted(theirs[is_open])[:NAMES_MAX]


def fold(
    db: sqlite3.Connection, session_id: str
) -> tuple[int, int | None, dict[str, str], list[tuple[int, int, str]]]:
    """Return the fold of one of this clone's sessions, as `presence.fold_events`, from its genuine records.

    If all its records are forged, they count.
    """
    events = db.execute(presence.EVENTS.format(but=_NOT_FORGED), (session_id,)).fetchall()
    return presence.fold_events(
        events or db.execute(presence.EVENTS.format(but=""), (session_id,)).fetchall()
    )


def fields_at(db: sqlite3.Connection, session_id: str, at: int) -> dict[str, str]:
    """Return the fields of one of this clone's sessions as its genuine records had them at a time, in microseconds."""
    events = db.execute(presence.EVENTS.format(but=_NOT_FORGED), (session_id,)).fetchall()
    earlier = [event for event in events if event[1] <= at]
    return presence.fold_events(earlier)[2] if earlier else {}


def of_client(store: Store, client_id: str, *, ended: bool = False) -> Presence | None:
    """Return the latest session that was started here under a client's own session id.

    Args:
        ended: Return a session that has ended, rather than an open one.
    """
    key = store.keys.now()
    published = clone_key.hashed(key, client_id)
    db = store.db()
    rows = db.execute("SELECT session_id FROM session WHERE harness_session = ?", (published,)).fetchall()
    ids = {str(session_id) for (session_id,) in rows}
    if not ids or sender_tables.is_forged(db, (published,)):  # in the log it may now belong to another client
        ids.update(heartbeats.of_client(store, client_id))
    found = []
    for session_id in ids:
        began_here = key.mac is None or sender_tables.is_own(db, session_id)
        if not began_here and heartbeats.client_of(store, session_id) != client_id:
            continue
        one = trusted(store, session_id)
        if one is not None and one.harness_session == published and (one.ended is not None) is ended:
            found.append(one)
    return max(found, key=lambda one: (one.started, one.session_id), default=None)


def has_client(store: Store, found: Presence) -> bool:
    """Return whether a client has begun a session, or works under one that its user had begun."""
    return found.harness_session is not None or heartbeats.client_of(store, found.session_id) != ""


def is_client_of(store: Store, found: Presence, client_id: str) -> bool:
    """Return whether a client's own id is, or was before a `/clear`, that of a session."""
    if heartbeats.client_of(store, found.session_id) == client_id:
        return True
    published = clone_key.hashed(store.keys.now(), client_id)
    return published in _values(store.db(), "harness_session", "session_id", found.session_id)


def addresses(db: sqlite3.Connection, reader: str, session: str | None) -> list[str]:
    """Return the names that signals may address a reader by, itself first, from lines that are not forged.

    These are the reader, its session, the ids that its client has had, and the other sessions of its present one: a resumed
    conversation is the same agent.
    """
    name = session or reader
    found = dict.fromkeys([reader, name])
    if not name.startswith(sender_tables.PREFIXES):
        return list(found)
    clients = [name] if name.startswith("h-") else _values(db, "harness_session", "session_id", name)
    present = name if name.startswith("h-") else fold(db, name)[2]["harness_session"] if clients else None
    same = _values(db, "session_id", "harness_session", present) if present else []
    found.update((each, None) for each in same if fold(db, each)[2].get("harness_session") == present)
    found.update(dict.fromkeys(clients))
    return list(found)


def _values(db: sqlite3.Connection, column: str, key: str, value: str) -> list[str]:
    rows = db.execute(
        f"SELECT DISTINCT e.{column} FROM session_event e WHERE e.{key} = ?{_NOT_FORGED}", (value,)
    )
    return [str(row[0]) for row in rows.fetchall() if row[0] is not None]


def record(found: Presence, event: str) -> SessionFields:
    """Return the fields that every record of a session has. The clone is that of its start, wherever this runs."""
    return {
        "session_id": found.session_id,
        "event": event,
        "display_name": found.asked,
        "clone_id": found.clone_id,
    }


def of_worktree(store: Store) -> list[Presence]:
    """Return the open sessions of this worktree that were seen within 24 hours."""
    return [one for one in _open(store, store.repo.tree) if one.is_current]


def last_agent_here(store: Store) -> Presence | None:
    """Return the last session of this worktree with an agent identity, or None if that agent is at work elsewhere.

    Only sessions that were started in this clone count: a peer can claim to have worked here. An agent that crashed is
    `live` for some minutes after its last command, as one that works beside the caller: callers tell them apart by asking.
    """
    db = store.db()
    rows = db.execute(
        "SELECT s.session_id FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last"
        " WHERE s.worktree = ? AND s.agent_identity IS NOT NULL AND s.session_id IN (SELECT name FROM own)"
        " ORDER BY t.until DESC",
        (here := heartbeats.label(store),),
    )
    for (session_id,) in rows.fetchall():
        found = trusted(store, session_id)
        if found is not None and found.agent_identity and found.here and found.worktree == here:
            same = presence.of_identity(store, found.agent_identity)
            elsewhere = (one for one in same if one.session_id != session_id)
            return None if any(one.status == "live" for one in elsewhere) else found
    return None


def unregistered_here(store: Store) -> list[Presence]:
    """Return the open sessions of this worktree that have no file: where they started, the git folder was read-only.

    Only sessions whose records have this clone's code count, because a peer can claim to work here. A clone without an
    id never wrote its git folder, so it has no codes: then every session with this worktree's name counts.
    """
    db = store.db()
    known = heartbeats.known_sessions(store)
    rows = db.execute(
        "SELECT session_id, session_id IN (SELECT name FROM own) FROM session WHERE ended IS NULL AND worktree = ?",
        (heartbeats.label(store),),
    )
    without_id = read_word(os.path.join(store.repo.state, "clone")) is None
    names = [name for name, own in rows if name not in known and (own or without_id)]
    found = (trusted(store, name) for name in names)
    return [one for one in found if one is not None and one.ended is None and one.is_current]


def possible_callers(store: Store) -> list[Presence]:
    """Return every session that an unidentified caller could be.

    These are the open sessions of this worktree, however long they have been silent, and the open sessions of other
    worktrees of this clone that were seen within 24 hours.
    """
    here = _open(store, store.repo.tree)
    ids = {one.session_id for one in here}
    others = (one for one in _open(store, None) if one.is_current or one.is_homeless)
    return here + [one for one in others if one.session_id not in ids]


def _open(store: Store, folder: str | None) -> list[Presence]:
    """Return the open sessions of one worktree, or of all."""
    found = []
    for session_id, (where, _) in sorted(heartbeats.known_sessions(store).items()):
        if folder in (None, where):
            one = trusted(store, session_id)
            if one is not None and one.ended is None:
                found.append(one)
    return found
