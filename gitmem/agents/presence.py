"""Sessions and their presence, from records and this clone's heartbeats."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..order.session import FIELDS, HOLD_MICROS
from ..records.ids import is_bound, is_of_somebody, role_id
from ..text.addresses import is_words, of_writer, words_of, writer_of
from ..text.name_matching import fold
from . import heartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..records.record_types import SessionFields
    from ..store import Store


CLONE_ID = 7 + FIELDS.index("clone_id")  # in a row of a session
LIVE_MICROS = 15 * 60 * 1_000_000
IDLE_MICROS = 24 * 3600 * 1_000_000
READ_MAX = 1_000  # sessions that a query reads, if its caller does not say how many
SHOWN_MAX = 5  # writers of the same words in an error
BEGUN_MAX = 4  # sessions that the beginning of an id finds

_SELECT = (
    "SELECT s.session_id, s.session_id IN (SELECT name FROM own), s.started, s.ended,"
    f" (SELECT max(a.until) - {HOLD_MICROS} FROM alive a WHERE a.session_id = s.session_id), t.until, t.shown, "
    + ", ".join(f"s.{name}" for name in FIELDS)
    + " FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last "
)
_HELD = "WHERE s.ended IS NULL AND t.until > ?"
# Which ones are read if there are too many: peers can write any number of sessions, but none of this clone.
_LATEST = " ORDER BY t.until DESC, s.session_id"
_OWN_FIRST = " ORDER BY s.session_id NOT IN (SELECT name FROM own), t.until DESC, s.session_id"
_OPEN_FIRST = _OWN_FIRST.replace("BY", "BY s.ended IS NOT NULL,")


class Presence:
    """A folded session. Times are microseconds since the epoch.

    Attributes:
        name: The display name as shown now; `asked` is the one that its records ask for.
        reader: The identity for its messages and receipts.
        status: `live`, `idle`, `gone` or `ended`.
        last_seen: The later of its heartbeat, if it started in this clone, and its last record; never in the future.
        age: The time since then.
        record_at: Its last record.
        held: Whether it holds its name now.
        here: Whether it was started in this clone.
        is_homeless: Whether it would be at work, but its worktree is gone. Its `status` is then `gone`.
        record: Its fields by their names in the contract, without empty ones; lists and objects as JSON.
    """

    def __init__(self, row: Sequence[object], now: int, heartbeat: int, *, is_unnoted: bool) -> None:
        session_id, is_own, started, ended, record_at, until, shown, *fields = row
        values = {name: str(value) for name, value in zip(FIELDS, fields, strict=True) if value is not None}
        self.session_id = str(session_id)
        self.started = _micros(started)
        self.ended = _micros(ended) if ended is not None else None
        self.record_at = _micros(record_at)
        self.name = str(shown)
        self.asked = values.get("display_name", "")
        self.agent_identity = values.get("agent_identity")
        self.clone_id = values.get("clone_id", "")
        self.worktree = values.get("worktree")
        self.wu_id = values.get("wu_id")
        self.harness_session = values.get("harness_session")
        self.reader = self.agent_identity or self.session_id
        self.here = bool(is_own) or is_unnoted
        # A line or file from the future comes from a wrong clock: count it as "now".
        self.last_seen = min(now, max(self.record_at, heartbeat if self.here else 0))
        self.age = now - self.last_seen
        self.held = self.ended is None and now < _micros(until)
        self.status = _status(self.age, self.ended is not None)
        self.is_homeless = False
        self.record = {"session_id": self.session_id, **values, "display_name": self.name}

    @property
    def role(self) -> str | None:
        """Its actual role, as it is shown; None if it states none."""
        return role_id(self.record.get("lifecycle_role"), self.record.get("specialty_profile"))

    def holds_role(self, now: int) -> bool:
        """Return whether it is an open session of a writer, whose id is bound, has a line of the last 24 hours and states a role."""
        is_writers = is_of_somebody("sess", self.session_id)
        return (
            is_writers and self.role is not None and self.ended is None and now - self.record_at < IDLE_MICROS
        )

    @property
    def workspace(self) -> str | None:
        """Its workspace; None without one."""
        return self.record.get("workspace_id")

    @property
    def is_current(self) -> bool:
        """Whether it is live or idle."""
        return self.status in ("live", "idle")


def shown(
    store: Store, *, all: bool = False, most: int | None = None, stating: str | None = None
) -> dict[str, Presence]:
    """Return sessions by their ids, as they show now.

    Args:
        all: Include all of the log, not only open ones that hold their name or were lately seen in this clone.
        most: How many the log gives, those of this clone first, then those last at work; None for `READ_MAX`.
        stating: Only sessions that state this one of `FIELDS`.
    """
    now = store.now()
    where, values = ("WHERE true", []) if all else (_HELD, [now])
    of = f" AND s.{stating} IS NOT NULL" if stating is not None else ""
    held = _found(store, where + of, values, _OWN_FIRST, most)
    if all:
        return held
    beats = heartbeats.all_last_seen(store)
    recent = [name for name, at in beats.items() if name not in held and at > now - IDLE_MICROS]
    for session_id in recent:
        held.update(_found(store, f"WHERE s.ended IS NULL AND s.session_id = ?{of}", (session_id,)))
    return held


def latest(store: Store, most: int) -> list[Presence]:
    """Return the sessions of the log that were last at work, open or not."""
    return list(_found(store, "", (), _LATEST, most).values())


def get(store: Store, session_id: str) -> Presence | None:
    """Return the session with exactly this id, or None."""
    return _found(store, "WHERE s.session_id = ?", (session_id,)).get(session_id)


def with_prefix(store: Store, prefix: str) -> list[Presence]:
    """Return the sessions whose ids start with a prefix, at most `BEGUN_MAX`."""
    where = "WHERE s.session_id >= ? AND s.session_id < ?"
    return list(_found(store, where, (prefix, prefix + "\x7f"), " ORDER BY s.session_id", BEGUN_MAX).values())


def of_identity(store: Store, identity: str) -> list[Presence]:
    """Return the sessions of an agent: open ones first, then by when they were last seen.

    Of more than `READ_MAX` the open ones of this clone, then other open ones, then those of this clone.
    """
    return _latest_first(_found(store, "WHERE s.agent_identity = ?", (identity,), _OPEN_FIRST).values())


def of_role(store: Store, lifecycle_role: str, specialty_profile: str | None) -> list[Presence]:
    """Return the open sessions with a role, last seen first; without a profile those with any.

    Of more than `READ_MAX` those with the latest records, whoever wrote them: a signal to a role goes to each, or to nobody.
    """
    where = "WHERE s.ended IS NULL AND s.lifecycle_role = ? AND coalesce(s.specialty_profile, '') = coalesce(?, s.specialty_profile, '')"
    return _latest_first(_found(store, where, (lifecycle_role, specialty_profile), _LATEST).values())


def of_published_client(store: Store, value: str) -> Presence | None:
    """Return the latest open session whose records have this `harness_session`; this clone's are preferred."""
    where = "WHERE s.harness_session = ? AND s.ended IS NULL"
    order = " ORDER BY s.clone_id = ? DESC, s.started DESC, s.session_id"
    return next(iter(_found(store, where, (value, store.log.clone_id()), order, 1).values()), None)


def of_name(store: Store, folded: str) -> list[Presence]:
    """Return the sessions that show under a folded name now.

    These are its holders. If there are none, they are sessions at work here without a record for two days.
    """
    where = "WHERE t.shown_fold = ? AND t.until > ? AND s.ended IS NULL"
    holders = _found(store, where, (folded, store.now()), _OWN_FIRST).values()
    return list(holders) or [
        one for one in shown(store).values() if one.is_current and fold(one.name) == folded
    ]


def last_holder(store: Store, folded: str) -> Presence | None:
    """Return the last session that showed under a name, or None."""
    row = store.db().execute(
        "SELECT session_id FROM tenure WHERE shown_fold = ? ORDER BY until DESC LIMIT 1", (folded,)
    ).fetchone()  # fmt: skip
    return get(store, row[0]) if row else None


def open_ids(db: sqlite3.Connection, reader: str) -> list[str]:
    """Return the open sessions of a reader: the session itself, or those of an agent."""
    query = "SELECT session_id FROM session WHERE ended IS NULL AND (session_id = ?1 OR agent_identity = ?1)"
    return [str(id) for (id,) in db.execute(query, (reader,))]


def count(store: Store, *, all: bool = False) -> int:
    """Return how many sessions of the log `shown` chooses from."""
    query = (
        "SELECT count(*) FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last"
        " WHERE ? OR (s.ended IS NULL AND t.until > ?)"
    )
    return int(store.db().execute(query, (all, store.now())).fetchone()[0])


def is_known_reader(store: Store, reader: str) -> bool:
    """Return whether the log has a line by or about this reader identity."""
    row = store.db().execute("SELECT 1 FROM reader WHERE reader = ?", (reader,)).fetchone()
    return row is not None


def address_of(store: Store, text: str, *, asks_file: bool = False) -> str:
    """Return the address that words mean here: the agent or person of that name of this writer, else of the only other writer that has one.

    Words that nobody has mean this writer's own. What is no words of an agent or a person stands as it is.

    Args:
        asks_file: Whether the only one of several other writers that `.gitmem/signers` knows is meant. Never for who acts.

    Raises:
        UsageError: `ambiguous-recipient` if several other writers have agents or people of these words.
    """
    if not is_words(text) or writer_of(text):
        return text
    mine = store.own_address(text)
    before = [of_writer(text, writer) for writer in sorted(store.own().writers)]
    own = [each for each in [mine, *before] if is_known_reader(store, each)]
    found = own[:1] if mine in own else own or addresses_with(store.db(), text)
    told: list[str] = []
    if len(found) > 1 and asks_file:
        from . import signers

        file = signers.read(store)
        known = file.known(store, found)
        if len(known) == 1:
            return known.pop()
        told = file.sentences()[:1]
    if len(found) > 1:
        since = "SELECT reader || ' (since ' || substr(at, 1, 10) || ')' FROM reader WHERE reader = ?"
        raise UsageError(
            f"{text} is ambiguous: {len(found)} writers have an agent or a person of this name. Nothing was written.",
            hint=" ".join(("Add the writer that you mean.", *told)),
            code="ambiguous-recipient",
            suggestions=[store.db().execute(since, (each,)).fetchone()[0] for each in found[:SHOWN_MAX]],
            next=["gitmem roster --all"],
        )
    return found[0] if found else mine


def addresses_with(db: sqlite3.Connection, words: str) -> list[str]:
    """Return the addresses of these words, of any writer; of more than `READ_MAX` some."""
    query = f"SELECT reader FROM reader WHERE reader > ?1 || '@' AND reader < ?1 || 'A' LIMIT {READ_MAX}"
    rows = db.execute(query, (words,)) if is_words(words) else ()
    return [str(reader) for (reader,) in rows if words_of(reader) == words]


def addresses_of(db: sqlite3.Connection, writer: str, most: int) -> list[str]:
    """Return so many addresses of agents and people of a writer that the log has lines of, people and then the first ones first."""
    query = (
        "SELECT reader FROM reader WHERE substr(reader, -17) = '@' || ?1 AND reader NOT GLOB 'h-*'"
        " ORDER BY reader NOT GLOB 'human:*', at, reader LIMIT ?2"
    )
    return [str(reader) for (reader,) in db.execute(query, (writer, most))]


def age_of_writer(db: sqlite3.Connection, writer: str) -> tuple[str, str]:
    """Return what sorts writers by their first attestation, the oldest first; one without any comes last."""
    row = db.execute(
        "SELECT at FROM line WHERE kind = 'attestation' AND instr(body, ?) ORDER BY at LIMIT 1",
        (f'"writer":"{writer}"',),
    ).fetchone()  # fmt: skip
    return (str(row[0]) if row else "~"), writer


def short_address(store: Store, address: str) -> str:
    """Return an address as it is shown: the words alone if they mean it here."""
    words, writer = words_of(address), writer_of(address)
    if not writer or address == store.own_address(words):
        return words
    try:
        return words if address_of(store, words) == address else address
    except UsageError:
        return address


class ShownNames:
    """Display names by session id or reader identity, looked up on demand."""

    def __init__(self, db: sqlite3.Connection, key: str) -> None:
        self._db = db
        self._query = (
            "SELECT t.shown FROM tenure t JOIN session s ON s.session_id = t.session_id"
            f" WHERE {key} AND t.last ORDER BY s.ended IS NOT NULL, t.until DESC LIMIT 1"
        )
        self._known: dict[str, str | None] = {}

    def get(self, key: str) -> str | None:
        """Return the display name, or None for people and unknown readers."""
        if key not in self._known:
            row = self._db.execute(self._query, {"key": key}).fetchone()
            self._known[key] = row[0] if row else None
        return self._known[key]


def names_by_session(db: sqlite3.Connection) -> ShownNames:
    """Return the display names of sessions by id."""
    return ShownNames(db, "s.session_id = :key")


def names_by_reader(db: sqlite3.Connection) -> ShownNames:
    """Return the display names of readers. For an identity with several sessions, the last one at work counts."""
    return ShownNames(db, "(s.session_id = :key OR s.agent_identity = :key)")


def readers_named(db: sqlite3.Connection, name: str) -> set[str]:
    """Return session id and identity of the session that shows under a name, or was the last to do so, and the addresses of these words."""
    row = db.execute(
        "SELECT s.session_id, s.agent_identity FROM tenure t JOIN session s ON s.session_id = t.session_id"
        " WHERE t.shown_fold = ? ORDER BY t.until DESC LIMIT 1",
        (fold(name),),
    ).fetchone()
    return {*filter(None, row or ()), *addresses_with(db, name)}


def find_session(db: sqlite3.Connection, text: str) -> str | None:
    """Return the session that an id or a unique prefix names, or None.

    Raises:
        UsageError: `ambiguous-id` if several sessions match.
    """
    from ..index import resolve_id

    if not text.startswith("sess-") or len(text) == len("sess-"):
        return None
    found = resolve_id.beginning(db, "session", "session_id", text)
    if len(found) > 1:
        raise resolve_id.ambiguous(text, found)
    return next(iter(found), None)


def _found(
    store: Store, where: str, values: Sequence[object], order: str = "", most: int | None = None
) -> dict[str, Presence]:
    limit = READ_MAX if most is None else most
    rows = store.db().execute(f"{_SELECT}{where}{order} LIMIT ?", (*values, limit)).fetchall()
    return {row[0]: made_of(store, row) for row in rows}


def made_of(store: Store, row: Sequence[object]) -> Presence:
    """Return a session of a row of the log: one of this clone with what its files say."""
    session_id = str(row[0])
    # Where no process may note who writes here, the clone that a session names is all that is known.
    is_unnoted = not store.own().writers and store.log.clone_id() == row[CLONE_ID]
    found = Presence(row, store.now(), heartbeats.last_seen(store, session_id), is_unnoted=is_unnoted)
    if found.here and found.is_current and heartbeats.is_homeless(store, session_id):
        found.status, found.is_homeless = "gone", True
    return found


def _latest_first(found: Iterable[Presence]) -> list[Presence]:
    return sorted(found, key=lambda one: (one.ended is not None, -one.last_seen, one.session_id))


def _status(age: int, ended: bool) -> str:
    if ended:
        return "ended"
    if age < LIVE_MICROS:
        return "live"
    return "idle" if age < IDLE_MICROS else "gone"


def _micros(value: object) -> int:
    assert isinstance(value, int)
    return value


def format_age(micros: int) -> str:
    """Return a time span in words, such as "2 hours ago"."""
    seconds = max(0, micros) // 1_000_000
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {word}s ago"
    return "a minute ago" if seconds >= 60 else "just now"


def describe(one: Presence, typed: str) -> str:
    """Return the text to type, followed by name, identity, worktree, work unit and when it was last seen."""
    seen = f"{one.status}, seen {format_age(one.age)}"
    about = [part for part in (one.name, one.agent_identity or one.session_id) if part != typed]
    about += [f"in {one.worktree}"] if one.worktree else []
    about += [f"on {one.wu_id}"] if one.wu_id else []
    return f"{typed} ({', '.join([*about, seen])})"


_OF_READER = "FROM session s WHERE (s.session_id = :reader OR s.agent_identity = :reader)"
_SEES = f"SELECT s.ended IS NULL, max(coalesce(s.workspace_id = :workspace, 1)) {_OF_READER} GROUP BY 1"
_NAMES = f"SELECT DISTINCT s.workspace_id {_OF_READER} AND (s.ended IS NULL) = :open AND s.workspace_id IS NOT NULL ORDER BY 1 LIMIT :most"
NAMES_MAX = 3


def other_workspaces(store: Store, reader: str, workspace: str) -> list[str]:
    """Return up to three workspaces of a reader whose inbox never shows signals of this workspace; else an empty list.

    One open session in this workspace, or without any, is enough; if all have ended, one of those.
    """
    values = {"reader": reader, "workspace": workspace, "most": NAMES_MAX}
    sees: dict[bool, bool] = {bool(is_open): bool(may) for is_open, may in store.db().execute(_SEES, values)}
    is_open = True in sees
    if sees.get(is_open, True):
        return []
    return [str(name) for (name,) in store.db().execute(_NAMES, {**values, "open": is_open})]


def of_client(store: Store, client_id: str, *, ended: bool = False) -> Presence | None:
    """Return the latest session that was started here under a client's own session id.

    Args:
        ended: Return a session that has ended or is of another key, which cannot go on, rather than one that can.
    """
    words = words_of(client_address(store, client_id))
    query = "SELECT session_id FROM session WHERE harness_session = ?"
    published = dict.fromkeys(
        of_writer(words, writer) for writer in ("", store.own_writer(), *store.own().writers)
    )
    ids = [str(id) for each in published for (id,) in store.db().execute(query, (each,))]
    found = [
        one
        for one in (get(store, id) for id in ids)
        if one is not None
        and (one.here or not store.own().writers or heartbeats.client_of(store, one.session_id) == client_id)
        and (one.ended is not None or store.is_of_another_key(one.session_id)) is ended
    ]
    return max(found, key=lambda one: (one.started, one.session_id), default=None)


def client_address(store: Store, client_id: str, *, recorded: bool = False) -> str:
    """Return the address of a client without a session: what is published of its own id.

    Args:
        recorded: Whether it will be recorded, and so must be the same from now on.
    """
    return of_writer(store.keys.hashed(client_id, recorded=recorded), store.own_writer())


def has_client(store: Store, found: Presence) -> bool:
    """Return whether a client has begun a session, or works under one that its user had begun."""
    return found.harness_session is not None or heartbeats.client_of(store, found.session_id) != ""


def is_client_of(store: Store, found: Presence, client_id: str) -> bool:
    """Return whether a client's own id is, or was before a `/clear`, that of a session."""
    if heartbeats.client_of(store, found.session_id) == client_id:
        return True
    published = client_address(store, client_id)
    query = "SELECT 1 FROM entity_line WHERE kind = 'session' AND id = ? AND session = ? LIMIT 1"
    return store.db().execute(query, (found.session_id, published)).fetchone() is not None


def record_fields(found: Presence, event: str) -> SessionFields:
    """Return the fields that every record of a session has. The clone is that of its start, wherever this runs."""
    return {
        "session_id": found.session_id,
        "event": event,
        "display_name": found.asked,
        "clone_id": found.clone_id,
    }


def recordable_branch(name: str | None) -> str | None:
    """Return a branch's name if records can have it: an unusual name must not prevent that they are written."""
    from .. import records
    from ..text.secrets import find_secret

    if name is None or not records.fits("session", "branch", name):
        return None
    return None if find_secret(name) else name


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
        found = get(store, session_id)
        if found is not None and found.agent_identity and found.here and found.worktree == here:
            same = of_identity(store, found.agent_identity)
            elsewhere = (one for one in same if one.session_id != session_id)
            return None if any(one.status == "live" for one in elsewhere) else found
    return None


def unregistered_here(store: Store) -> list[Presence]:
    """Return the open sessions of this worktree that have no file: where they started, the git folder was read-only.

    Only sessions that this user started in this clone count. A clone without an id never wrote its git folder, so nothing
    tells which these are: then every session of this user with this worktree's name counts.
    """
    from ..log.local_log import read_word

    db = store.db()
    known = heartbeats.known_sessions(store)
    rows = db.execute(
        "SELECT session_id, session_id IN (SELECT name FROM own) FROM session WHERE ended IS NULL AND worktree = ?",
        (heartbeats.label(store),),
    )
    without_id = read_word(os.path.join(store.repo.state, "clone")) is None
    writer = store.own_writer()
    names = [
        name for name, own in rows if name not in known and (own or (without_id and is_bound(name, writer)))
    ]
    found = (get(store, name) for name in names)
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
    """Return the open sessions of one worktree, or of all, that this user's key can write for."""
    found = []
    for session_id, (where, _) in sorted(heartbeats.known_sessions(store).items()):
        if folder in (None, where) and not store.is_of_another_key(session_id):
            one = get(store, session_id)
            if one is not None and one.ended is None:
                found.append(one)
    return found
